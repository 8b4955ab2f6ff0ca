"""May what a walk did not find be deleted? A pure decision; asking it, and heeding it, is the caller's part.

The risk is not deleting, it is believing that something is gone: an unplugged drive looks like a mass deletion.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from garage.walk.errors import DeletionRefused


class Decision(StrEnum):
    """What to do with the files that a walk did not find."""

    DELETE = "delete"
    WITHHOLD = "withhold"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision about `vanished` of `known` files; `cause` says why they stay and is empty when they may go."""

    decision: Decision
    known: int
    vanished: int
    cause: str = ""

    @property
    def share(self) -> float:
        """The vanished part of the known files, 0 to 1; 0 when none were known."""
        return self.vanished / self.known if self.known else 0.0

    @property
    def accepts_device(self) -> bool:
        """Whether the device the root is on now may be remembered as the source's own."""
        return self.decision is Decision.DELETE or self.vanished == 0

    def refusal(self, source: str) -> DeletionRefused:
        """Return the error to raise for `source` when the decision is to refuse."""
        return DeletionRefused(source=source, vanished=self.vanished, known=self.known, cause=self.cause)


def judge(
    *,
    known: int,
    vanished: int,
    complete: bool,
    root_empty: bool,
    device: int,
    known_device: int | None,
    allow_deletes: bool,
    limit: float = 0.25,
) -> Verdict:
    """Decide about the `vanished` of `known` files that a walk did not find.

    Args:
        known: files of the source on record before the walk.
        vanished: those of them that the walk did not find.
        complete: the walk ran to exhaustion with every folder read. Without that nothing is ever deleted.
        root_empty: the root holds nothing at all, as the mount point of an unplugged drive does.
        device: the device the root is on now.
        known_device: the device it was on when last accepted; None when that was never recorded.
        allow_deletes: a person said so for this run.
        limit: the share of the known files that may go unasked; exactly that share still may.
    """
    if not 0 <= vanished <= known:
        raise ValueError(f"{vanished} files cannot have vanished of {known}")

    if not complete:
        return Verdict(Decision.WITHHOLD, known, vanished, "the walk is not complete")
    cause = ""
    if vanished and not allow_deletes:
        if root_empty:
            cause = "the root is empty where it had files"
        elif known_device is not None and device != known_device:
            cause = "the root is on another device than before"
        elif vanished / known > limit:
            cause = f"more than {limit:.0%} of its files are gone"
    return Verdict(Decision.REFUSE if cause else Decision.DELETE, known, vanished, cause)
