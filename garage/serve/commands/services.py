"""`garage up` and `garage down`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from garage.serve.invocation import Invocation, takes_invocation

if TYPE_CHECKING:
    from garage.serve.services import Down, Up


@click.command()
@takes_invocation
def up(invocation: Invocation) -> int:
    """Start Postgres, the Dagster UI and its daemon.

    Starts what is missing and leaves alone what runs. Everything goes on running when this command, the terminal or
    the session ends; garage down stops it.
    """
    from garage.serve import services

    result = services.up(invocation.config(), tell=invocation.note)
    invocation.answer(result, lambda: _up(result))
    return 1 if result.problems else 0


def _up(result: Up) -> Iterator[str]:
    yield f"Postgres    {result.postgres}"
    yield f"Daemon      {result.daemon}"
    yield f"Dagster UI  {result.webserver}{', definitions reloaded' if result.reloaded else ''}: {result.url}"
    for problem in result.problems:
        yield ""
        yield f"Dagster could not load Garage's definitions: {problem}"


@click.command()
@takes_invocation
def down(invocation: Invocation) -> None:
    """Stop what garage up started, and the embedded Postgres.

    A run that is under way is interrupted; what it committed stays, and the next garage update goes on from there.
    """
    from garage.config import home
    from garage.serve import services

    result = services.down(home(), tell=invocation.note)
    invocation.answer(result, lambda: _down(result))


def _down(result: Down) -> Iterator[str]:
    from garage.serve.output import joined

    names = {"webserver": "the Dagster UI", "daemon": "its daemon", "postgres": "Postgres"}
    ordered = [text for name, text in names.items() if name in result.stopped]
    yield f"Stopped {joined(ordered)}." if ordered else "Nothing was running."
    if result.external_database:
        yield "The database of GARAGE_DATABASE_URL is not Garage's to stop."
