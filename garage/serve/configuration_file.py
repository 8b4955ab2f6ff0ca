"""Changing `garage.yaml` as a person would: comments and order stay, and the whole is checked before it is replaced."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from io import StringIO
from itertools import takewhile
from pathlib import Path
from typing import Any

from filelock import FileLock

from garage.config import Config, ConfigError, parse
from garage.serve.environment import replace_file

_NEW_FILE = "# Garage's configuration; docs/configuration.md lists every key.\n"
_WIDTH = 4096  # lines of a person's file are never wrapped anew

Change = Callable[[dict[str, Any]], None]


def change(path: Path, edit: Change) -> Config:
    """Applies `edit` to the configuration in `path` and returns what it says then.

    The file is made when it is missing, readable by its owner only. Raises ConfigError, with the file left as it was,
    when the result is not a valid configuration.
    """
    target = Path(os.path.realpath(path))
    with _locked(target):
        try:
            text = target.read_text(encoding="utf-8")
            mode = stat.S_IMODE(target.stat().st_mode)
        except FileNotFoundError:
            text, mode = "", 0o600
        edited = _edited(text, edit, path)
        config = parse(edited, path)
        if edited != text:
            replace_file(target, edited, mode=mode)
        return config


def add_source(path: Path, values: Mapping[str, Any]) -> Config:
    """Appends a source, given by the keys it has in the file."""

    def edit(data: dict[str, Any]) -> None:
        _list(data, "sources").append(dict(values))

    return change(path, edit)


def remove_source(path: Path, name: str) -> Config:
    """Takes out a source; one that is not there is no error."""

    def edit(data: dict[str, Any]) -> None:
        sources = _list(data, "sources")
        for at in reversed(range(len(sources))):
            if sources[at].get("name") == name:
                del sources[at]
        if not sources:
            del data["sources"]  # an empty list under a comment would be written as something that is not YAML

    return change(path, edit)


def enable_model(path: Path, slug: str, *, enabled: tuple[str, ...], described: Mapping[str, Any] | None) -> Config:
    """Appends `slug` to the models that give vectors (`enabled` are those so far), `described` under `models` first."""

    def edit(data: dict[str, Any]) -> None:
        if described is not None:
            _mapping(data, "models")[slug] = dict(described)
        embedding = _mapping(data, "embedding")
        if not embedding.get("models"):
            embedding["models"] = list(enabled)
        embedding["models"].append(slug)

    return change(path, edit)


def choose_default_model(path: Path, slug: str, *, enabled: tuple[str, ...]) -> Config:
    """Makes `slug` the model that answers searches; `enabled` are the models that give vectors."""

    def edit(data: dict[str, Any]) -> None:
        embedding = _mapping(data, "embedding")
        embedding["default"] = slug
        if not embedding.get("models"):
            embedding["models"] = list(enabled)

    return change(path, edit)


@contextmanager
def _locked(target: Path) -> Iterator[None]:
    """One change at a time: two of them would each replace what the other wrote."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(target.with_name(f".{target.name}.lock"))
        lock.acquire(timeout=60)
    except OSError as error:
        raise ConfigError(
            f"The configuration {target} cannot be changed: {error.strerror or error}.",
            hint="Check that its folder can be written to.",
            path=target,
        ) from error
    try:
        yield
    finally:
        lock.release()


def _edited(text: str, edit: Change, path: Path) -> str:
    if text.lstrip().startswith("{"):
        try:
            data = json.loads(text)
        except ValueError:
            pass  # YAML in braces
        else:
            edit(data)
            return json.dumps(data, ensure_ascii=False, indent=2) + "\n"
    return _edited_yaml(text, edit, path)


def _edited_yaml(text: str, edit: Change, path: Path) -> str:
    from ruamel.yaml import YAML
    from ruamel.yaml.comments import CommentedMap
    from ruamel.yaml.error import YAMLError
    from ruamel.yaml.util import load_yaml_guess_indent

    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = _WIDTH
    try:
        data = yaml.load(text)
        _, indent, offset = load_yaml_guess_indent(text)
    except YAMLError as error:
        raise ConfigError(f"{path} is not YAML: {error}", path=path) from error
    # Without a list in the file there is no style to follow: two spaces before the dash, two after. Where lists are
    # written in brackets the guess is that of the mappings, which may leave no room for a dash.
    offset = 2 if offset is None else offset
    yaml.indent(mapping=2, sequence=max(indent or 4, offset + 2), offset=offset)
    if data is not None and not isinstance(data, dict):
        raise ConfigError(f"{path} must hold keys and values.", hint="See docs/configuration.md.", path=path)
    # The library keeps comments beside keys only, so those of a file without any are kept here.
    above = "" if data else _comments_above(text) or _NEW_FILE
    data = data or CommentedMap()
    edit(data)
    if not data:
        return _comments_above(text)
    out = StringIO()
    yaml.dump(data, out)
    return above + out.getvalue()


def _comments_above(text: str) -> str:
    """The lines of a file before its first key."""
    lines = takewhile(lambda line: not line.strip() or line.lstrip().startswith("#"), text.splitlines())
    return "".join(f"{line}\n" for line in lines)


def _list(data: dict[str, Any], key: str) -> list[Any]:
    if data.get(key) is None:
        data[key] = []
    value: list[Any] = data[key]
    return value


def _mapping(data: dict[str, Any], key: str) -> dict[str, Any]:
    if data.get(key) is None:
        data[key] = {}
    value: dict[str, Any] = data[key]
    return value
