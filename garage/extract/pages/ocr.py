"""Reading pictures of text: the one place that calls Tesseract.

It runs in the worker's process group, which is what gets killed, and its files lie in the folder that the worker has
for such, which goes with it. It is told to use one thread, since there is a worker for every core.
"""

import os
import re
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from garage.config import Extraction
from garage.extract.mirror import canonical
from garage.extract.model import Malformed, Unsupported
from garage.extract.pages import tools

if TYPE_CHECKING:
    from PIL.Image import Image

_DPI = 150  # of pictures that do not say: with 300, small letters on a screen pass for specks
_WORD_LEVEL = 5  # of a row of its table: page, block, paragraph, line, word
# Measured on pages and screenshots of 9 to 36 pixels a letter, blurred, noisy, skewed and in inverse video: 68 to 97
# for all words of a picture together. What it sees in leaves, scribbles and noise, and in text that lies on its side:
# 27 to 36, in single letters of up to 80.
_WORD_CONFIDENCE, _LINE_CONFIDENCE = 35.0, 60.0
_DOUBTFUL = 50.0
_PLAIN_LINE, _PLAIN_LETTERS = 85.0, 8  # of a line that is text whatever surrounds it
_FEW_WORDS = 5
_ENLARGED = 88.0  # below this, small letters may be why
_LOW = 20.0  # pixels; of lower letters it drops some without a doubt about the others
_SMALL = 1_500_000  # pixels
_TURNED = re.compile(r"Rotate: (90|180|270)\s[^:]*Orientation confidence: ([\d.]+)")
_TURN_CONFIDENCE = 1.5


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
    height: int
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
    turns: bool = False
    warnings: tuple[str, ...] = ()

    def read(self, image: "Image", *, seconds: float, dpi: int = _DPI) -> Recognised:
        """Return the text in a picture; noise that Tesseract takes for letters is left out.

        A picture that makes no sense is turned, a small one that makes little is enlarged, where that helps.

        Raises:
            OutOfTime: it takes longer than `seconds`.
            Malformed: Tesseract cannot read the picture.
        """
        until = time.monotonic() + seconds
        grey = image.convert("L")
        words = self._words(grey, until, dpi)
        sure = _mean(words)
        other: Image | None = None
        if sure < _DOUBTFUL and len(words) >= _FEW_WORDS:
            other = self._upright(grey, until)
        elif words and grey.width * grey.height <= _SMALL and (sure < _ENLARGED or _height(words) < _LOW):
            other, dpi = grey.resize((grey.width * 2, grey.height * 2)), dpi * 2
        if other is not None:
            again = self._words(other, until, dpi)
            words = max(words, again, key=_mean)
        return _text(words)

    def _words(self, grey: "Image", until: float, dpi: int) -> list[_Word]:
        said = self._said(grey, until, "image_to_data", lang="+".join(self.languages), config=f"--dpi {dpi}")
        if said is None:
            raise Malformed("Tesseract cannot read the picture")
        return list(_words(said))

    def _upright(self, grey: "Image", until: float) -> "Image | None":
        """The picture the right way up, where it is not and Tesseract can tell."""
        said = self._said(grey, until, "image_to_osd") if self.turns else None
        found = _TURNED.search(said or "")
        if found is None or float(found[2]) < _TURN_CONFIDENCE:
            return None
        return grey.rotate(-int(found[1]), expand=True)

    def _said(self, grey: "Image", until: float, question: str, **arguments: str) -> str | None:
        """What Tesseract writes about a picture; None when it gives up on it."""
        import pytesseract

        seconds = until - time.monotonic()
        if seconds <= 0:
            raise OutOfTime
        pytesseract.pytesseract.tesseract_cmd = self.program
        os.environ["OMP_THREAD_LIMIT"] = "1"
        grey.format = "PPM"  # what it is written as: PNG would be packed for nothing
        try:
            return str(getattr(pytesseract, question)(grey, timeout=seconds, **arguments))
        except pytesseract.TesseractError:
            return None
        except RuntimeError as error:  # so it says that the time is over
            raise OutOfTime from error


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
    return Reader(found.program, found.languages, found.turns, absent)


def _package(language: str) -> str:
    debian = f"tesseract-ocr-{language.lower().replace('_', '-')}"
    return f"Debian and Ubuntu: apt install {debian}; macOS: brew install tesseract-lang"


def _words(table: str) -> Iterator[_Word]:
    for row in table.splitlines()[1:]:
        cells = row.split("\t", 11)
        if len(cells) == 12 and cells[0] == str(_WORD_LEVEL) and cells[11].strip():
            yield _Word(
                place=(int(cells[2]), int(cells[3]), int(cells[4])),
                height=int(cells[9]),
                confidence=float(cells[10]),
                text=cells[11].strip(),
            )


def _text(words: Sequence[_Word]) -> Recognised:
    """The lines that are text, and how sure Tesseract is of them."""
    doubtful = _mean(words) < _DOUBTFUL
    blocks: dict[tuple[int, int], list[str]] = {}
    weight = score = 0.0
    for (block, paragraph, _), group in groupby(words, key=lambda word: word.place):
        line = list(group)
        letters, sure = sum(word.letters for word in line), _mean(line)
        plain = sure >= _PLAIN_LINE and letters >= _PLAIN_LETTERS
        if letters and (plain or (sure >= _LINE_CONFIDENCE and not doubtful)):
            kept = " ".join(word.text for word in line if word.confidence >= _WORD_CONFIDENCE)
            blocks.setdefault((block, paragraph), []).append(kept)
            weight += letters
            score += sure * letters
    text = canonical("\n\n".join("\n".join(lines) for lines in blocks.values())).strip()
    return Recognised(text, round(score / weight, 1) if weight else 0.0)


def _height(words: Sequence[_Word]) -> float:
    return statistics.median(word.height for word in words)


def _mean(words: Sequence[_Word]) -> float:
    """The confidence of words together; long ones count for more, since a speck passes for a letter easily."""
    weights = [max(1, word.letters) for word in words]
    total = sum(word.confidence * weight for word, weight in zip(words, weights, strict=True))
    return total / sum(weights) if words else 0.0
