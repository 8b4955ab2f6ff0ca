"""Damaged copies of files of every kind, read in a real run: each ends in an outcome, and none ends the run."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from garage.extract.registry import extractor_of

OUTCOMES = {"ok", "no_text", "rejected", "encrypted", "unsupported", "too_large", "timeout", "memory", "error"}
LARGEST = 2_000_000  # bytes of a file that is copied: damage to larger ones is of the same kinds, and slower


def truncated(raw: bytes, rng: random.Random) -> bytes:
    return raw[: rng.randrange(1, max(2, len(raw)))]


def flipped(raw: bytes, rng: random.Random) -> bytes:
    """A few bits in a thousand bytes, wherever they are."""
    damaged = bytearray(raw)
    for _ in range(max(3, len(raw) // 2_000)):
        damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
    return bytes(damaged)


def beheaded(raw: bytes, rng: random.Random) -> bytes:
    """Its middle torn out: what holds addresses of itself points into nowhere."""
    first, last = sorted(rng.randrange(len(raw)) for _ in range(2))
    return raw[:first] + raw[last:]


DAMAGE: tuple[Callable[[bytes, random.Random], bytes], ...] = (truncated, flipped, beheaded)


def damaged_copies(paths: list[Path], into: Path) -> Iterator[str]:
    """Writes damaged copies of files and yields their names; the same at every call."""
    for number, path in enumerate(paths):
        rng = random.Random(f"{path.name} {number}")
        raw = path.read_bytes()
        for damage in DAMAGE:
            name = f"{number:03} {damage.__name__} {path.name}"
            (into / name).write_bytes(damage(raw, rng))
            yield name


def survives(spine: Any, folder: Path, names: list[str]) -> dict[str, str]:
    """Reads the folder twice; how each file ended, the same both times."""
    spine.configure(
        {"name": "lib", "root": folder, "include_code": True},
        extraction={"workers": 2, "seconds": 30, "memory_bytes": 768 << 20, "ocr_max_pages": 2},
    )
    assert spine.walk().counts["files"] == len(names)
    spine.read()
    outcomes: dict[str, str] = spine.outcomes()
    assert len(outcomes) == len(names)
    assert set(outcomes.values()) <= OUTCOMES
    again = spine.read()
    assert not any(again.counts.values())
    for content, start, end, text in spine.rows(
        "select d.content, c.char_start, c.char_end, c.text from chunks c join documents d on d.id = c.document_id"
    ):
        assert content[start:end] == text
    return outcomes


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_damaged_copies_of_real_files_cost_themselves_only(spine: Any, shared: Path, tmp_path: Path) -> None:
    folder = tmp_path / "damaged"
    folder.mkdir()
    corpus = shared / "corpus"
    every = sorted(p for p in corpus.rglob("*") if p.is_file() and extractor_of(p.name) and p.stat().st_size < LARGEST)
    chosen = random.Random(20).sample(every, 70)
    names = list(damaged_copies(chosen, folder))
    outcomes = survives(spine, folder, names)
    slow = [name for name, outcome in outcomes.items() if outcome in ("timeout", "memory")]
    assert len(slow) <= len(names) // 50, slow
