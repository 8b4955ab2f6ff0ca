"""What may leave a source, and what did: the answers of `garage egress`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from garage.config import Config, CorpusClass, Egress
from garage.inference.policy import Purpose, Reason, Zone, decide
from garage.serve.opening import opened
from garage.store import egress as store
from garage.store import sources
from garage.store.egress import Audit


@dataclass(frozen=True, slots=True)
class Verdict:
    """What would happen to the documents of one class."""

    corpus_class: str
    documents: int
    allowed: bool
    reason: Reason
    explanation: str


@dataclass(frozen=True, slots=True)
class Checked:
    """What would happen to a source's documents; `allowed` when all of them may go.

    `addresses` are what the destination's name resolved to now; none where it was not looked up.
    """

    source: str
    policy: str
    destination: str
    zone: Zone
    addresses: tuple[str, ...]
    purpose: Purpose
    allowed: bool
    classes: tuple[Verdict, ...]


@dataclass(frozen=True, slots=True)
class Log:
    """Rows of the audit, the latest first."""

    transfers: tuple[Audit, ...]


def check(
    config: Config,
    source: str,
    url: str,
    *,
    corpus_class: str | None,
    purpose: str,
    starting: Callable[[], None] = lambda: None,
) -> Checked:
    """Decides about every class that the source has, or `corpus_class`; nothing is sent. Raises UnknownSource.

    A source without documents is judged by the class that its files have when nothing else says.
    """
    from garage.inference.egress import Guard

    with opened(config, starting=starting) as database, database.connection() as conn:
        row = sources.source(conn, source)
        counted = store.documents_by_class(conn, row.id)
    wanted = [corpus_class] if corpus_class else list(counted) or [row.default_class]
    destination = Guard(config.egress.origins).destination(url)
    verdicts = []
    for name in wanted:
        found = decide(
            [cast("Egress", row.egress)], [cast("CorpusClass", name)], Purpose(purpose), destination
        )  # both words are checked by their tables
        verdicts.append(Verdict(name, counted.get(name, 0), found.allowed, found.reason, found.explanation))
    return Checked(
        row.slug,
        row.egress,
        destination.origin,
        destination.zone,
        destination.addresses,
        Purpose(purpose),
        all(verdict.allowed for verdict in verdicts),
        tuple(verdicts),
    )


def log(config: Config, *, limit: int, starting: Callable[[], None] = lambda: None) -> Log:
    """The last transfers to other programs, allowed and refused."""
    with opened(config, sync=False, starting=starting) as database, database.connection() as conn:
        return Log(tuple(store.audits(conn, limit=limit)))
