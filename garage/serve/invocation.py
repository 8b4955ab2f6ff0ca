"""What every command takes, `--json` and `--config`, and how it answers."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec

import click

if TYPE_CHECKING:
    from garage.config import Config

P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class Invocation:
    """One call of a command: whether a machine reads the answer, and which configuration it is about."""

    as_json: bool
    config_path: Path | None

    def config(self, *, may_be_missing: bool = False) -> Config:
        """The configuration; `may_be_missing` lets a named file be one that is about to be made. Raises ConfigError."""
        from garage.config import config_path, load, parse

        path = self.config_path or config_path()
        if may_be_missing and not path.exists():
            return parse("", path.absolute())
        return load(self.config_path)

    def answer(self, data: object, lines: Callable[[], Iterable[str]]) -> None:
        """Writes the answer to standard output: `data` for a machine, else `lines` for a person."""
        if self.as_json:
            from garage.serve.output import to_json

            click.echo(to_json(data))
            return
        for line in lines():
            click.echo(line)

    def note(self, text: str) -> None:
        """Says something beside the answer, on standard error."""
        click.echo(text, err=True)

    @property
    def interactive(self) -> bool:
        """Whether a person watches: progress is worth drawing."""
        return sys.stderr.isatty() and not self.as_json


def takes_invocation(function: Callable[Concatenate[Invocation, P], int | None]) -> Callable[..., int | None]:
    """Gives a command its two common options and hands them to it as its first argument."""

    @click.option("--json", "as_json", is_flag=True, help="Answer in JSON, on standard output alone.")
    @click.option(
        "--config",
        "config_path",
        type=click.Path(dir_okay=False, path_type=Path),
        help="The configuration file; default GARAGE_CONFIG, else garage.yaml in GARAGE_HOME.",
    )
    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> int | None:
        as_json, config_path = bool(kwargs.pop("as_json")), kwargs.pop("config_path")
        return function(Invocation(as_json, config_path if isinstance(config_path, Path) else None), *args, **kwargs)

    return run
