"""Is this text something that a person wrote, or keeps to read?

A text is rejected on the grounds of one decisive signal or of two suggestive ones. Each signal by itself has innocent
causes: a bibliography repeats itself, a paper on cryptography holds digests, a table has few letters.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from garage.quality.blobs import base64_runs, hex_runs, is_blob
from garage.quality.measures import alphabetic, locked, repetition, unbroken
from garage.quality.rows import data_shaped, dump_shaped
from garage.quality.sample import Sample, sample
from garage.quality.stamps import timestamped
from garage.quality.verdict import Signal, Verdict

BLOB_LINES = 0.80
"""Of fewer than 40 lines, of a sheet and of a conversation at most this share may be digests or base64."""

TIMESTAMPED = "timestamped lines"
REPETITION = "repeated line shapes"
DUMP = "dump-shaped lines"
HEX = "hexadecimal runs a line"
BASE64 = "base64 runs a line"
ALPHABETIC = "letters"
UNBROKEN = "unbroken long lines"
LOCKED = "pinned dependencies"
BLOBS = "lines of digests or base64"

UNBROKEN_ALONE = 0.70
BUNDLE = 4096
"""Characters; shorter prose of a few lines is no bundle, for a mail may carry one long token."""

# Above (letters: below) the first limit a signal is suggestive, above the second it is decisive by itself.
LIMITS: Mapping[str, tuple[float, float | None]] = MappingProxyType(
    {
        TIMESTAMPED: (0.45, 0.60),
        REPETITION: (0.65, 0.82),
        DUMP: (0.40, 0.70),
        HEX: (0.6, 1.0),
        BASE64: (0.4, None),
        ALPHABETIC: (0.55, None),
        UNBROKEN: (0.40, UNBROKEN_ALONE),
        LOCKED: (0.40, 0.40),
    }
)
LINES_A_CHECKSUM = 40
"""What has fewer checksums is no lock file."""

_KEPT_KINDS = frozenset({"tabular", "conversation"})


def judge(text: str, *, kind: str) -> Verdict:
    """Judge a document's canonical mirror by its beginning.

    Of sheets and conversations only those are rejected that hold nothing but digests or base64: a sheet of numbers and
    a thread of short messages look like a dump and are what a person keeps. Source code is not measured by its
    letters, and of dumps it may hold all but tables of data.
    """
    taken = sample(text)
    if not taken.lines:
        return Verdict(rejected=False)
    code = kind.startswith("code:")
    if kind in _KEPT_KINDS or taken.small:
        packed = code or (kind not in _KEPT_KINDS and len(taken.text) >= BUNDLE)
        found = tuple(_without_pattern(taken, may_be_bundle=packed))
        return Verdict(bool(found), found)
    found = tuple(_exceeding(_structure(taken, code=code)))
    decisive = [signal for signal in found if signal.decisive]
    return Verdict(bool(decisive) or len(found) > 1, (*decisive, *(s for s in found if not s.decisive)))


def _without_pattern(taken: Sample, *, may_be_bundle: bool) -> Iterator[Signal]:
    """The only grounds on which a text of a few lines, a sheet or a conversation is rejected."""
    share = sum(map(is_blob, taken.lines)) / len(taken.lines)
    if share > BLOB_LINES:
        yield Signal(BLOBS, share, BLOB_LINES, decisive=True)
    packed = unbroken(taken) if may_be_bundle else 0.0
    if packed > UNBROKEN_ALONE:
        yield Signal(UNBROKEN, packed, UNBROKEN_ALONE, decisive=True)


def _structure(taken: Sample, *, code: bool) -> dict[str, float]:
    lines = len(taken.lines)
    folded = taken.folded()
    checksums = lines / LINES_A_CHECKSUM  # fewer say nothing
    found = {HEX: hex_runs(taken, checksums) / lines, BASE64: base64_runs(taken, checksums) / lines}
    found[TIMESTAMPED] = timestamped(taken, folded, LIMITS[TIMESTAMPED][0])
    found[REPETITION] = repetition(taken, folded)
    shaped = data_shaped if code else dump_shaped
    found[DUMP] = shaped(taken, LIMITS[DUMP][0] * lines) / lines
    found[UNBROKEN] = unbroken(taken)
    if found[HEX] + found[BASE64] > 1 / LINES_A_CHECKSUM:
        found[LOCKED] = locked(taken)
    if not code:
        found[ALPHABETIC] = alphabetic(taken)
    return found


def _exceeding(measured: dict[str, float]) -> Iterator[Signal]:
    for name, value in measured.items():
        suggestive, decisive = LIMITS[name]
        if name == ALPHABETIC:
            if value < suggestive:
                yield Signal(name, value, suggestive, decisive=False)
        elif decisive is not None and value > decisive:
            yield Signal(name, value, decisive, decisive=True)
        elif value > suggestive:
            yield Signal(name, value, suggestive, decisive=False)
