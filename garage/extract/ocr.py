"""Reading pictures of text: the one place that calls Tesseract.

The picture goes to it through a pipe and the words come back through another, so a worker that is killed leaves no
file behind; it runs in the worker's process group, which is what gets killed. It is told to use one thread, since there
is a worker for every core.
"""

import os
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from garage.config import Extraction
from garage.extract import tools
from garage.extract.mirror import canonical
from garage.extract.model import Malformed, Unsupported

if TYPE_CHECKING:
    from PIL.Image import Image

_DPI = 300
_WORD_LEVEL = 5  # of a row of its table: page, block, paragraph, line, word
_WORD_CONFIDENCE = 35.0
_LINE_CONFIDENCE = 60.0
_TEXT_CONFIDENCE = 65.0


class OutOfTime(Exception):
    """The picture could not be read in the time that there was."""


@dataclass(frozen=True, slots=True)
class Recognised:
    """What a picture says: lines as they stand in it, a blank line between blocks; `confidence` from 0 to 100."""

    text: str
    confidence: float

    @property
    def letters(self) -> int:
        """How many letters and digits it has."""
        return sum(map(str.isalnum, self.text))


@dataclass(frozen=True, slots=True)
class _Word:
    place: tuple[int, int, int]  # block, paragraph, line
    confidence: float
    text: str

    @property
    def letters(self) -> int:
        return sum(map(str.isalnum, self.text))


@dataclass(frozen=True, slots=True)
class Reader:
    """Tesseract with the languages that it shall expect; `warnings` names those that are not installed."""

    program: str
    languages: tuple[str, ...]
    warnings: tuple[str, ...] = ()

    def read(self, image: "Image", *, seconds: float, dpi: int = _DPI) -> Recognised:
        """Return the text in a picture; noise that Tesseract takes for letters is left out.

        Raises:
            OutOfTime: it takes longer than `seconds`.
            Malformed: Tesseract cannot read the picture.
        """
        return _text(_words(self._table(image, seconds=seconds, dpi=dpi)))

    def _table(self, image: "Image", *, seconds: float, dpi: int) -> str:
        grey = image.convert("L")
        raw = b"P5 %d %d 255\n" % grey.size + grey.tobytes()
        command = [self.program, "stdin", "stdout", "-l", "+".join(self.languages), "--dpi", str(dpi), "tsv"]
        if seconds <= 0:
            raise OutOfTime
        try:
            done = subprocess.run(
                command,
                input=raw,
                capture_output=True,
                timeout=seconds,
                check=False,
                env={**os.environ, "OMP_THREAD_LIMIT": "1"},
            )
        except subprocess.TimeoutExpired as error:
            raise OutOfTime from error
        if done.returncode:
            said = " ".join(done.stderr.decode(errors="replace").split())[-200:]
            raise Malformed(f"Tesseract cannot read the picture: {said or f'it ended with {done.returncode}'}")
        return done.stdout.decode(errors="replace")


def reader(settings: Extraction) -> Reader:
    """Tesseract, ready to read.

    Raises:
        Unsupported: it, or every language that it shall read, is not installed; the message says what to install.
    """
    found = tools.tesseract(settings)
    if found is None:
        raise Unsupported(
            "it is a picture of text at best, and Tesseract, which reads those, is not installed"
            " (Debian and Ubuntu: apt install tesseract-ocr; macOS: brew install tesseract)"
        )
    absent = tuple(
        f"Tesseract cannot read {name} before its language package is installed ({_package(name)})"
        for name in found.absent
    )
    if not found.languages:
        raise Unsupported("; ".join(absent) or "no language is configured for reading pictures")
    return Reader(found.program, found.languages, absent)


def _package(language: str) -> str:
    debian = f"tesseract-ocr-{language.lower().replace('_', '-')}"
    return f"Debian and Ubuntu: apt install {debian}; macOS: brew install tesseract-lang"


def _words(table: str) -> Iterator[_Word]:
    for row in table.splitlines()[1:]:
        cells = row.split("\t", 11)
        if len(cells) == 12 and cells[0] == str(_WORD_LEVEL) and cells[11].strip():
            yield _Word((int(cells[2]), int(cells[3]), int(cells[4])), float(cells[10]), cells[11].strip())


def _text(words: Iterable[_Word]) -> Recognised:
    """The lines that are text, and how sure Tesseract is of them."""
    blocks: dict[tuple[int, int], list[str]] = {}
    weight = score = 0.0
    for (block, paragraph, _), group in groupby(words, key=lambda word: word.place):
        line = list(group)
        sure = [word for word in line if word.confidence >= _WORD_CONFIDENCE]
        letters = sum(word.letters for word in line)
        if not letters or _mean(line) < _LINE_CONFIDENCE:
            continue
        blocks.setdefault((block, paragraph), []).append(" ".join(word.text for word in sure))
        weight += letters
        score += _mean(line) * letters
    text = canonical("\n\n".join("\n".join(lines) for lines in blocks.values())).strip()
    return Recognised(text, round(score / weight, 1) if weight else 0.0)


def _mean(words: list[_Word]) -> float:
    """The confidence of a line; long words count for more, since a speck passes for a letter easily."""
    weights = [max(1, word.letters) for word in words]
    return sum(word.confidence * weight for word, weight in zip(words, weights, strict=True)) / sum(weights)
