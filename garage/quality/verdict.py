"""What the gate says of a text, and on which grounds."""

from dataclasses import dataclass

REASON_LENGTH = 300


@dataclass(frozen=True, slots=True)
class Signal:
    """A measurement beyond its limit.

    `value` and `threshold` are shares of 0 to 1 or counts a line; `decisive` signals reject by themselves, of the
    others it takes two.
    """

    name: str
    value: float
    threshold: float
    decisive: bool

    def __str__(self) -> str:
        if self.name.endswith(" a line"):
            return f"{self.name} {self.value:.2f} (limit {self.threshold:.2f})"
        return f"{self.name} {self.value:.0%} (limit {self.threshold:.0%})"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a text is rejected, and every signal that spoke against it, the decisive ones first.

    A text that passes may have one signal; a verdict without signals found nothing.
    """

    rejected: bool
    signals: tuple[Signal, ...] = ()

    @property
    def reason(self) -> str:
        """The signals in words, as an outcome records them; "" when there are none."""
        return "; ".join(map(str, self.signals))[:REASON_LENGTH]
