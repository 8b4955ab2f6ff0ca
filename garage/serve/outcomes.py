"""How reading each file ended: the account that `garage outcomes` gives."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from garage.config import Config
from garage.errors import GarageError
from garage.serve.opening import opened
from garage.store import outcomes as store
from garage.store import sources
from garage.store.database import Session
from garage.store.errors import UnknownSource
from garage.store.outcomes import KINDS, Attempt


class UnknownKind(GarageError):
    """No file can end that way (`kind`)."""

    kind: str


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The files asked for, up to the limit, and how many there are of each kind; `total` counts those asked for."""

    files: tuple[Attempt, ...]
    total: int
    kinds: Mapping[str, int]


def outcomes(
    config: Config,
    *,
    source: str | None,
    kind: str | None,
    limit: int,
    starting: Callable[[], None] = lambda: None,
) -> Outcomes:
    """Looks up the attempts of a kind, else all that did not end 'ok'. Raises UnknownKind and UnknownSource."""
    if kind is not None and kind not in KINDS:
        raise UnknownKind(
            f"There is no outcome {kind!r}.", hint=f"{_nearest(kind, KINDS)} Known: {', '.join(KINDS)}.", kind=kind
        )
    with opened(config, starting=starting) as database, database.connection() as conn:
        if source is not None:
            _require(conn, source)
        files = store.attempts(conn, source=source, kind=kind, limit=limit)
        kinds = store.summary(conn, source=source, kind=kind)
    total = sum(number for name, number in kinds.items() if kind or name != "ok")
    return Outcomes(tuple(files), total, kinds)


def _require(conn: Session, source: str) -> None:
    known = [row.slug for row in sources.sources(conn)]
    if source not in known:
        hint = f"{_nearest(source, known)} `garage source list` shows them." if known else "There are none yet."
        raise UnknownSource(f"There is no source {source!r}.", hint=hint, source=source)


def _nearest(word: str, known: tuple[str, ...] | list[str]) -> str:
    return f"Did you mean {difflib.get_close_matches(word, known, n=1, cutoff=0.0)[0]!r}?"
