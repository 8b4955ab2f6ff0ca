"""The people whom documents name: the list that `garage authors list` shows, and making two of them one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from garage.attribute.identity import ADDRESSES, parsed
from garage.config import Config
from garage.errors import GarageError
from garage.search.people import unknown
from garage.serve.opening import opened
from garage.store import authors as store
from garage.store import authors_listing
from garage.store.authors import Author, Merged
from garage.store.authors_listing import Listed
from garage.store.database import Database, Session


class SeveralAuthors(GarageError):
    """A name that more than one author bears (`author`, `candidates`: their ids)."""

    author: str
    candidates: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Authors:
    """The authors asked for, up to the limit, and how many there are in all."""

    authors: tuple[Listed, ...]
    total: int


@dataclass(frozen=True, slots=True)
class Pair:
    """Two authors to be made one: `gone` goes into `kept`."""

    gone: Author
    kept: Author


def listed(config: Config, *, limit: int, only_self: bool, starting: Callable[[], None] = lambda: None) -> Authors:
    """The owner first, then those of the most documents."""
    with opened(config, starting=starting) as database, database.connection() as conn:
        found = authors_listing.listed(conn, only_self=only_self, limit=limit)
        return Authors(tuple(found), len(found) if only_self else authors_listing.count(conn))


def pair(database: Database, gone: str, kept: str) -> Pair:
    """The two authors that are meant, the owner as the one that is kept.

    Raises:
        UnknownAuthor: nobody goes by one of the names.
        SeveralAuthors: several do.
        GarageError: both are the same.
    """
    with database.connection() as conn:
        one, other = _find(conn, gone), _find(conn, kept)
    if one.id == other.id:
        raise GarageError(f"{gone!r} and {kept!r} are one author already: {one.name} (id {one.id}).")
    return Pair(other, one) if one.is_self else Pair(one, other)


def merge(database: Database, both: Pair) -> Merged:
    """Makes them one; see `garage.store.authors.merge`."""
    with database.connection() as conn:
        return store.merge(conn, both.kept.id, both.gone.id)


def detach(config: Config, written: str, *, starting: Callable[[], None] = lambda: None) -> Author:
    """Makes an identity, written `kind:value`, an author of its own; the new author.

    Raises:
        UnknownAuthor: nobody has it.
        GarageError: it is the only one of its author.
    """
    with opened(config, starting=starting) as database, database.connection() as conn:
        one = parsed(written.strip())
        holder = _find(conn, written) if one else None
        if one is None or holder is None:
            raise unknown(conn, written)
        if len(holder.identities) == 1:
            raise GarageError(f"{one} is all that is known of {holder.name} (id {holder.id}).")
        # Found under another kind: the address of mails and of commits.
        pair = next(pair for pair in holder.identities if pair[1] == one.value)
        return store.author(conn, store.detach(conn, pair))


def _find(conn: Session, written: str) -> Author:
    """An author by id, by an identity `kind:value`, or by the name that is shown, whatever its case."""
    written = written.strip()
    if written.isascii() and written.isdigit() and len(written) < 19:
        return store.author(conn, int(written))
    if one := parsed(written):
        # An address is the same whether mails bear it or commits do, unless it belongs to two.
        kinds = (one.kind, *(kind for kind in ADDRESSES if one.kind in ADDRESSES and kind != one.kind))
        for kind in kinds:
            if found := [a for a in store.find(conn, pairs=[(kind, one.value)]) if (kind, one.value) in a.identities]:
                return found[0]
    found = store.find(conn, name=written) if written else []
    if not found:
        raise unknown(conn, written)
    if len(found) > 1:
        said = "; ".join(f"{a.id} ({', '.join(':'.join(i) for i in a.identities) or 'no identity'})" for a in found)
        raise SeveralAuthors(
            f"{len(found)} authors are called {written!r}.",
            hint=f"Name one by its id: {said}.",
            author=written,
            candidates=tuple(a.id for a in found),
        )
    return found[0]
