"""The command `garage`: its groups, its exit codes, and how an error reaches a person.

Exit codes: 0 done, 1 refused or failed, 2 a bad argument or a configuration that is not valid, 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from garage.errors import GarageError
from garage.serve.commands.authors import authors
from garage.serve.commands.config import config
from garage.serve.commands.egress import egress
from garage.serve.commands.explain import explain
from garage.serve.commands.models import models
from garage.serve.commands.outcomes import outcomes
from garage.serve.commands.search import search
from garage.serve.commands.services import down, up
from garage.serve.commands.source import source
from garage.serve.commands.status import status
from garage.serve.commands.update import update

DEBUG_VARIABLE = "GARAGE_DEBUG"
FAILED, MISUSED, INTERRUPTED = 1, 2, 130
# Errors that an argument or the configuration causes, by the name of their class.
_MISUSE = {
    "BadPattern",
    "ConfigError",
    "EmptyQuery",
    "InvalidModelEntry",
    "NotAFolder",
    "NotText",
    "NothingToExplain",
    "SeveralAuthors",
    "SeveralDocuments",
    "UnknownAuthor",
    "UnknownKind",
    "UnknownModel",
    "UnknownSource",
}


class NotText(GarageError):
    """An argument whose bytes are no text, where a name or a word is asked for (`argument`)."""

    argument: str


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="garage")
def cli() -> None:
    """Garage: a private, searchable knowledge base out of your own folders.

    Start with: garage up, garage source add FOLDER, garage update, garage search "..."
    """


for command in (up, down, source, update, search, explain, status, outcomes, authors, models, egress, config):
    cli.add_command(command)


def main() -> NoReturn:
    """The installed command."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Runs one command; returns the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A name that the terminal's encoding lacks must not end a listing.
            stream.reconfigure(errors="replace")
    try:
        result = cli.main(list(arguments), prog_name="garage", standalone_mode=False)
    except click.exceptions.Abort:
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except Exception as error:
        if os.environ.get(DEBUG_VARIABLE):
            raise
        return _told(_explained(error, arguments), as_json="--json" in arguments)
    return result if isinstance(result, int) else 0


def _told(error: Exception, *, as_json: bool) -> int:
    """Says what went wrong: a sentence and what to do next, never a stack trace."""
    from garage.serve.output import error_json

    if isinstance(error, GarageError):
        message, hint = error.message.rstrip(), error.hint
    elif isinstance(error, OSError) and error.filename:
        message = f"{os.fsdecode(error.filename)}: {error.strerror}."
        hint = "Check that it is what Garage takes it for, that you may write there, and that the disk has room."
    else:
        message = f"Something failed that should not have: {type(error).__name__}: {error}".rstrip()
        hint = f"Set {DEBUG_VARIABLE}=1 and run the same command again to see where."
    click.echo(f"{message}\n{hint}".rstrip(), err=True)
    if as_json:
        click.echo(error_json(error, message, hint))
    kinds = {kind.__name__ for kind in type(error).__mro__}
    return MISUSED if kinds & _MISUSE else FAILED


def _explained(error: Exception, arguments: Sequence[str]) -> Exception:
    """What a person can act on, for an error that came up unexplained (a server that is not there)."""
    if isinstance(error, UnicodeEncodeError):
        # Not refused before a command begins: a path may have any bytes.
        for argument in filter(_is_no_text, arguments):
            said = argument.encode("utf-8", "replace").decode("utf-8")
            return NotText(
                f"{said!r} is not text in UTF-8.",
                hint="Names and words are; set the terminal to UTF-8 and type it again.",
                argument=argument,
            )
    if not type(error).__module__.startswith("psycopg"):
        return error
    from garage.store.errors import explained

    return explained(error)  # type: ignore[arg-type]  # the driver's own classes are imported in the store only


def _is_no_text(argument: str) -> bool:
    """Whether it holds stand-ins for bytes that no text has."""
    return any("\ud800" <= char <= "\udfff" for char in argument)
