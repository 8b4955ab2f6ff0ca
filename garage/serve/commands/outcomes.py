"""`garage outcomes`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from garage.serve.invocation import Invocation, takes_invocation

if TYPE_CHECKING:
    from garage.serve.outcomes import Outcomes


@click.command()
@click.option("--source", metavar="NAME", help="Only files of this source.")
@click.option("--kind", metavar="KIND", help="Only files that ended so; without it, all but those that were read.")
@click.option("-n", "--limit", type=click.IntRange(1), default=100, show_default=True, help="Number of files listed.")
@takes_invocation
def outcomes(invocation: Invocation, *, source: str | None, kind: str | None, limit: int) -> None:
    """List how reading files ended, and why some were not.

    KIND is ok, no_text, rejected, encrypted, unsupported, too_large, timeout, memory, error, unreadable, placeholder
    or deferred.
    """
    from garage.serve import outcomes as library

    found = library.outcomes(
        invocation.config(),
        source=source,
        kind=kind,
        limit=limit,
        starting=lambda: invocation.note("Starting the database"),
    )
    invocation.answer(found, lambda: _lines(found))


def _lines(found: Outcomes) -> Iterator[str]:
    from garage.serve.output import ago, columns, plural, printable

    if found.files:
        rows = [("OUTCOME", "SOURCE", "WHEN", "FILE")]
        rows += [(file.outcome, file.source, ago(file.at), printable(file.uri)) for file in found.files]
        listed = list(columns(rows))
        yield listed[0]
        for line, file in zip(listed[1:], found.files, strict=True):
            yield line
            if file.reason:
                yield f"    {printable(file.reason)}"
        if found.total > len(found.files):
            yield f"... and {found.total - len(found.files):,} more; --limit shows them."
        yield ""
    counted = ", ".join(f"{kind} {number:,}" for kind, number in found.kinds.items())
    files = sum(found.kinds.values())
    yield f"{plural(files, 'file')}: {counted}" if files else "No file was read yet, or none ended so."
