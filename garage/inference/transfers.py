"""Content on its way out: each batch is divided into what may go and what stays, and an account of both is recorded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from garage.config import CorpusClass, Egress
from garage.inference.policy import Decision, Destination, Purpose, Reason, Zone, decide

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Origin:
    """A document that content was taken from: its id, its source with that source's policy, and its class."""

    document_id: int
    source: str
    policy: Egress
    corpus_class: CorpusClass


@dataclass(frozen=True, slots=True)
class Content(Generic[T]):
    """Something to hand over, with every document that it was made of: a passage has one, an answer's prompt many."""

    origins: tuple[Origin, ...]
    item: T


@dataclass(frozen=True, slots=True)
class Account:
    """Content-free record of a batch: how many items with something of one source and class went, or were refused."""

    purpose: Purpose
    destination: str
    zone: Zone
    source: str
    corpus_class: str
    allowed: bool
    reason: Reason
    items: int


@dataclass(frozen=True, slots=True)
class Transfer(Generic[T]):
    """What may go, in order, and what is withheld, each with the decision about it."""

    cleared: tuple[T, ...]
    withheld: tuple[tuple[Content[T], Decision], ...]

    @property
    def counts(self) -> Mapping[str, int]:
        """`sent` and `withheld`, as a stage reports them."""
        return {"sent": len(self.cleared), "withheld": len(self.withheld)}

    @property
    def reasons(self) -> Mapping[Reason, int]:
        """How many items were withheld, by reason."""
        return Counter(decision.reason for _, decision in self.withheld)


def transfer(
    batch: Sequence[Content[T]],
    *,
    purpose: Purpose,
    destination: Destination,
    record: Callable[[Sequence[Account]], object],
) -> Transfer[T]:
    """Divides a batch by `decide`; `record` gets the account before anything is returned that could be sent.

    It is not called for what this process keeps to itself: a model that runs in it takes no content anywhere. What
    goes to another program on this machine is recorded like everything else.
    """
    cleared: list[T] = []
    withheld: list[tuple[Content[T], Decision]] = []
    accounts: Counter[tuple[str, str, bool, Reason]] = Counter()
    for content in batch:
        decision = decide(
            [origin.policy for origin in content.origins],
            [origin.corpus_class for origin in content.origins],
            purpose,
            destination,
        )
        if decision.allowed:
            cleared.append(content.item)
        else:
            withheld.append((content, decision))
        # An item counts once for each source and class in it, however many documents of them it was made of.
        of: set[tuple[str, str]] = {(origin.source, origin.corpus_class) for origin in content.origins}
        accounts.update((source, of_class, decision.allowed, decision.reason) for source, of_class in of or {("", "")})
    if accounts and (destination.zone is not Zone.LOCAL_PROCESS or withheld):
        record(
            [
                Account(purpose, destination.origin, destination.zone, source, of_class, allowed, reason, items)
                for (source, of_class, allowed, reason), items in sorted(accounts.items())
            ]
        )
    return Transfer(tuple(cleared), tuple(withheld))
