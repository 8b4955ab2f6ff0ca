"""Whom a search is to be narrowed to, told from a part of a name or of an identity."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from garage.attribute.identity import by_contact, parsed
from garage.store import authors_listing as store
from garage.store.authors import UnknownAuthor
from garage.store.database import Session

_SHOWN = 5  # names in a remark
_SUGGESTED = 3


@dataclass(frozen=True, slots=True)
class Wanted:
    """Authors as the filters take them (see `garage.store.search.Filters`), and remarks on who they are."""

    authors: tuple[int, ...] = ()
    speakers: tuple[str, ...] | None = None
    owner_speaks: bool = False
    notes: tuple[str, ...] = ()


def wanted(conn: Session, written: Sequence[str]) -> Wanted:
    """Everybody whose name or identity contains one of these texts. Raises UnknownAuthor where nobody's does."""
    found: dict[int, str] = {}
    notes = []
    for text in written:
        like = _like(conn, text.strip())
        if not like:
            raise unknown(conn, text)
        if len(like) > 1:
            names = list(dict.fromkeys(name for _, name in like))
            more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            notes.append(f"{text!r} is part of {len(like)} authors: {', '.join(names[:_SHOWN])}{more}")
        found |= dict(like)
    if not found:
        return Wanted()
    voices = store.voices(conn, list(found))
    if not voices.conversations:
        return Wanted(tuple(found), notes=tuple(notes))
    speakers = tuple(
        sender
        for sender in voices.senders
        if (person := by_contact(sender)) and any((i.kind, i.value) in voices.identities for i in person.identities)
    )
    return Wanted(tuple(found), speakers, voices.owner, tuple(notes))


def _like(conn: Session, text: str) -> list[tuple[int, str]]:
    """Those whose name or identity contains a text, which may be an identity as lists show it, or a number as typed."""
    if one := parsed(text):
        text = one.value
    found = store.named_like(conn, text) if text else []
    if not found and (person := by_contact(text)):
        found = store.named_like(conn, person.identities[0].value)
    return found


def unknown(conn: Session, text: str) -> UnknownAuthor:
    """The error that says that nobody goes by `text`, with those who nearly do."""
    known: dict[str, list[str]] = {}
    for called, name in store.names(conn):
        known.setdefault(called.casefold(), []).append(name)
        for word in called.casefold().split():
            known.setdefault(word, []).append(name)
    wanted = text.partition(":")[2] or text
    near = difflib.get_close_matches(wanted.strip().casefold(), known, n=_SUGGESTED, cutoff=0.6)
    names = list(dict.fromkeys(name for called in near for name in known[called]))[:_SUGGESTED]
    said = f"Did you mean {' or '.join(map(repr, names))}? " if names else ""
    return UnknownAuthor(f"There is no author {text!r}.", hint=f"{said}`garage authors list` shows them.", author=text)
