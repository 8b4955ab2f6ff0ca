"""`garage egress`: what may leave, and what did."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from garage.serve.choices import CLASSES, PURPOSES
from garage.serve.invocation import Invocation, takes_invocation

if TYPE_CHECKING:
    from garage.serve.egress import Checked, Log


@click.group()
def egress() -> None:
    """Ask what may leave this machine, and see what did."""


@egress.command()
@click.argument("source")
@click.option("--to", "url", required=True, metavar="URL", help="The server that content would go to.")
@click.option("--class", "corpus_class", type=click.Choice(CLASSES), help="Only this class; default those it has.")
@click.option(
    "--purpose", type=click.Choice(PURPOSES), default="embedding", show_default=True, help="What it would go there for."
)
@takes_invocation
def check(invocation: Invocation, *, source: str, url: str, corpus_class: str | None, purpose: str) -> int:
    """Say whether the documents of SOURCE may go to a server, and why.

    Nothing is sent. The exit code is 1 when any of them would be withheld.
    """
    from garage.serve import egress as library

    found = library.check(
        invocation.config(),
        source,
        url,
        corpus_class=corpus_class,
        purpose=purpose,
        starting=lambda: invocation.note("Starting the database"),
    )
    invocation.answer(found, lambda: _checked(found))
    return 0 if found.allowed else 1


def _checked(found: Checked) -> Iterator[str]:
    from garage.serve.output import plural

    addresses = f", at {' and '.join(found.addresses)}" if found.addresses else ""
    yield f"From {found.source} (policy {found.policy}) to {found.destination} ({found.zone}{addresses}):"
    for verdict in found.classes:
        what = "may go" if verdict.allowed else "withheld"
        yield f"  {verdict.corpus_class}, {plural(verdict.documents, 'document')}: {what} ({verdict.reason})"
        yield f"    {verdict.explanation}"


@egress.command()
@click.option(
    "-n", "--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="Number of rows listed."
)
@takes_invocation
def log(invocation: Invocation, *, limit: int) -> None:
    """List what content went to other programs and what was withheld, the latest first.

    The log holds numbers and names of sources, never content, titles or paths.
    """
    from garage.serve import egress as library

    found = library.log(invocation.config(), limit=limit, starting=lambda: invocation.note("Starting the database"))
    invocation.answer(found, lambda: _logged(found))


def _logged(found: Log) -> Iterator[str]:
    from garage.serve.output import ago, columns, printable

    if not found.transfers:
        yield "No content was handed to another program, and none was withheld."
        return
    rows = [("LAST", "ITEMS", "SOURCE", "CLASS", "PURPOSE", "DESTINATION", "ZONE", "WHAT", "REASON")]
    for row in found.transfers:
        what = "sent" if row.allowed else "withheld"
        where = printable(row.destination)
        of = (row.source, row.corpus_class, row.purpose, where, row.zone, what, row.reason)
        rows.append((ago(row.last_at), f"{row.items:,}", *of))
    yield from columns(rows)
