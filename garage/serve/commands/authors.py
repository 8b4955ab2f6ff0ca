"""`garage authors`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from garage.serve.invocation import Invocation, takes_invocation

if TYPE_CHECKING:
    from garage.serve.authors import Authors, Pair
    from garage.store.authors import Author


@click.group()
def authors() -> None:
    """See who wrote and sent the documents, make two authors one, and take them apart again."""


@authors.command("list")
@click.option("-n", "--limit", type=click.IntRange(1), default=50, show_default=True, help="Number of authors listed.")
@click.option("--self", "only_self", is_flag=True, help="Only you, as the configuration names you.")
@takes_invocation
def list_(invocation: Invocation, *, limit: int, only_self: bool) -> None:
    """List authors with their identities and their documents, those with the most documents first."""
    from garage.serve import authors as library

    found = library.listed(
        invocation.config(),
        limit=limit,
        only_self=only_self,
        starting=lambda: invocation.note("Starting the database"),
    )
    invocation.answer(found, lambda: _listed(found, only_self=only_self))


def _listed(found: Authors, *, only_self: bool) -> Iterator[str]:
    from garage.serve.output import columns, printable

    if not found.authors:
        yield (
            "Nobody is known to be you: `identity` in the configuration says who you are."
            if only_self
            else "No author is known yet. `garage update` reads who wrote what."
        )
        return
    rows = [("ID", "NAME", "DOCUMENTS", "AS")]
    for author in found.authors:
        name = f"{printable(author.name)} (you)" if author.is_self else printable(author.name)
        roles = ", ".join(f"{role} {number:,}" for role, number in author.roles.items())
        rows.append((str(author.id), name, f"{author.documents:,}", roles))
    lines = list(columns(rows))
    yield lines[0]
    for line, author in zip(lines[1:], found.authors, strict=True):
        yield line
        if author.identities:
            yield f"    {printable(', '.join(author.identities))}"
        if author.notes:
            yield f"    {printable(author.notes)}"
    if found.total > len(found.authors):
        yield f"... and {found.total - len(found.authors):,} more; --limit shows them."


@authors.command()
@click.argument("gone", metavar="FROM")
@click.argument("kept", metavar="INTO")
@click.option("--yes", is_flag=True, help="Do not ask.")
@takes_invocation
def merge(invocation: Invocation, gone: str, kept: str, *, yes: bool) -> None:
    """Make FROM and INTO one author, under the name of INTO.

    Each is an id, an identity such as email:ann@example.org, or the name that is shown. Identities, notes and documents
    of both are kept; when one of them is you, that one is.
    """
    from garage.errors import GarageError
    from garage.serve import authors as library
    from garage.serve.opening import opened
    from garage.serve.output import plural

    with opened(invocation.config(), starting=lambda: invocation.note("Starting the database")) as database:
        both = library.pair(database, gone, kept)
        if not yes:
            if not sys.stdin.isatty():
                raise GarageError(
                    f"This would make one author of two, and there is nobody to ask. {' '.join(_pair(both))}",
                    hint="Say --yes if it is meant.",
                )
            for line in _pair(both):
                invocation.note(line)
            if not click.confirm("Make them one?", err=True):
                raise GarageError("Nothing was merged.")
        done = library.merge(database, both)
    said = f"{plural(done.identities, 'identity', 'identities')} and {plural(done.documents, 'part')} in documents"
    invocation.answer(
        {"author": done.author, "gone": both.gone.id, "identities": done.identities, "documents": done.documents},
        lambda: [*_pair(both), f"They are one now: author {done.author} took over {said}."],
    )


@authors.command()
@click.argument("identity")
@takes_invocation
def detach(invocation: Invocation, identity: str) -> None:
    """Make IDENTITY an author of its own again, where it was merged by mistake.

    IDENTITY is written as the list shows it, such as email:ann@example.org. The next update says anew which documents
    are whose.
    """
    from garage.serve import authors as library

    new = library.detach(invocation.config(), identity, starting=lambda: invocation.note("Starting the database"))
    invocation.answer(
        new, lambda: [f"{_author(new)} is an author now. `garage update` says whose documents are whose."]
    )


def _pair(both: Pair) -> Iterator[str]:
    yield f"{_author(both.gone)} goes into"
    yield f"{_author(both.kept)}."


def _author(author: Author) -> str:
    from garage.serve.output import plural, printable

    you = ", you" if author.is_self else ""
    identities = ", ".join(":".join(pair) for pair in author.identities) or "no identity"
    return (
        f"{printable(author.name)} (id {author.id}{you}; {plural(author.documents, 'document')};"
        f" {printable(identities)})"
    )
