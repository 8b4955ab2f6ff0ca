"""The text that the pages of a PDF hold, and what on them calls for a closer look."""

import logging
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from garage.extract.mirror import canonical, clean_line, has_text
from garage.extract.pages.pdf_extras import notes

if TYPE_CHECKING:
    from pypdf import PageObject, PdfReader

_WARNINGS = 20
_WARNING_LENGTH = 200
_LOGGERS = ("pypdf", "pdfminer", "pdfplumber")

_RULE = 4.0  # points; shorter lines are hatching, letters and logos
_ACROSS, _DOWN = 2, 3  # that cross in a table at least; the frame of a box has two of each
_GRID = 2.0  # points; closer lines are one
_DRAWING = 10_000  # rules beyond that are a map or a plot, and cost minutes to look at
_SHAPES = re.compile("[\ufb00-\ufb06\ufb50-\ufbb1\ufbd3-\ufd3d\ufd50-\ufdfb\ufe70-\ufefc]+")
_BLANK = re.compile(r"\n{3,}")
_DOUBLED = 3  # lines
_PAINT = frozenset((b"S", b"s", b"f", b"F", b"f*", b"B", b"B*", b"b", b"b*"))
_LAST = frozenset((*_PAINT, b"n"))

_Extent = tuple[int, int]
_Segment = tuple[float, float, float, float]


@dataclass(slots=True)
class PageText:
    """A page as far as it is known: its text, and the notes on it.

    `ruled`: lines on it could be a table's. `doubled`: lines of text come twice, which imitates bold type.
    """

    text: str = ""
    notes: list[str] = field(default_factory=list)
    ruled: bool = False
    doubled: bool = False
    failure: str = ""

    @property
    def characters(self) -> int:
        """How much there is to read on it, white space aside."""
        return sum(map(len, self.text.split()))


def read_pages(reader: "PdfReader", *, goes_on: Callable[[], bool]) -> Iterator[PageText]:
    """Yield the pages in order, one that cannot be read with its `failure`, for as long as `goes_on`.

    What a page takes in memory is given back before the next is read.
    """
    for page in reader.pages:
        if not goes_on():
            return
        found = PageText()
        try:
            rules = _Rules()
            found.text = tidy(page.extract_text(visitor_operand_before=rules.see))
            found.ruled = rules.may_be_table
            lines = found.text.split("\n")
            found.doubled = sum(a != "" and (a == b or _is_twice(a)) for a, b in pairwise(lines)) >= _DOUBLED
            found.notes = notes(page)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever one page does, the others are read
            found.failure = type(error).__name__
        _release(reader, page)
        yield found


def _is_twice(line: str) -> bool:
    half = len(line) // 2
    return half > 3 and line[:half] == line[-half:] and len(line) - 2 * half <= 1


def tidy(text: str) -> str:
    """A page's text as letters in lines: shapes that letters take next to others (fi as one, Arabic) become letters.

    Spaces at the ends of lines, and blank lines beyond one, are what a layout leaves behind. '' when nothing is seen.
    """
    text = _SHAPES.sub(lambda shape: unicodedata.normalize("NFKC", shape[0]), canonical(text))
    text = _BLANK.sub("\n\n", "\n".join(line.rstrip() for line in text.split("\n"))).strip("\n")
    return canonical(text).strip("\n") if has_text(text) else ""


def _release(reader: "PdfReader", page: "PageObject") -> None:
    """Forget the page's content, which the reader would keep for ever; fonts stay, since the next page needs them."""
    waiting = [page.raw_get("/Contents")] if "/Contents" in page else []
    while waiting:
        held = waiting.pop()
        if isinstance(held, list):
            waiting += held
        elif reference := getattr(held, "indirect_reference", None) or held:
            key = getattr(reference, "generation", None), getattr(reference, "idnum", None)
            array = reader.resolved_objects.pop(key, None)
            waiting += array if isinstance(array, list) else []


class _Rules:
    """The straight lines that a page draws across and down; watching costs a few per cent of reading the text."""

    def __init__(self) -> None:
        self._across: dict[int, _Extent] = {}  # by height, lines at the same one as one
        self._down: dict[int, _Extent] = {}
        self._path: list[_Segment] = []
        self._at = (0.0, 0.0)
        self._count = 0

    @property
    def may_be_table(self) -> bool:
        """Whether two of them across and three down cross, as around a row of two cells; that may have many lines."""
        if self._count > _DRAWING or len(self._across) < _ACROSS or len(self._down) < _DOWN:
            return False
        crossed = dict.fromkeys(self._down, 0)
        for height, (left, right) in self._across.items():
            down = [x for x, (low, high) in self._down.items() if low <= height <= high and left <= x <= right]
            for x in down if len(down) >= _DOWN else ():
                crossed[x] += 1
        return sum(count >= _ACROSS for count in crossed.values()) >= _DOWN

    def see(self, operator: bytes, operands: Sequence[Any], matrix: Sequence[float], _: object) -> None:
        """Take note of one operator of the page's content; what it says wrongly is not for this to complain of."""
        try:
            if operator == b"re":
                x, y, width, height = map(float, operands)
                for start, end in (
                    ((x, y), (x + width, y)),
                    ((x, y + height), (x + width, y + height)),
                    ((x, y), (x, y + height)),
                    ((x + width, y), (x + width, y + height)),
                ):
                    self._line(start, end, matrix)
            elif operator == b"m":
                self._at = float(operands[0]), float(operands[1])
            elif operator == b"l":
                to = float(operands[0]), float(operands[1])
                self._line(self._at, to, matrix)
                self._at = to
            elif operator in _LAST and self._path:
                if operator in _PAINT:
                    self._draw()
                self._path.clear()
        except (ValueError, TypeError, IndexError, ArithmeticError):
            self._path.clear()

    def _line(self, start: tuple[float, float], end: tuple[float, float], matrix: Sequence[float]) -> None:
        a, b, c, d, e, f = matrix
        x0, y0 = start[0] * a + start[1] * c + e, start[0] * b + start[1] * d + f
        x1, y1 = end[0] * a + end[1] * c + e, end[0] * b + end[1] * d + f
        if max(abs(x1 - x0), abs(y1 - y0)) >= _RULE and min(abs(x1 - x0), abs(y1 - y0)) < 1.0:
            self._path.append((x0, y0, x1, y1))

    def _draw(self) -> None:
        self._count += len(self._path)
        for x0, y0, x1, y1 in self._path if self._count <= _DRAWING else ():
            flat = abs(x1 - x0) > abs(y1 - y0)
            lines, at, ends = (self._across, y0, (x0, x1)) if flat else (self._down, x0, (y0, y1))
            low, high = int(min(ends) / _GRID) - 1, int(max(ends) / _GRID) + 1
            before = lines.get(int(at / _GRID), (low, high))
            lines[int(at / _GRID)] = min(low, before[0]), max(high, before[1])


@contextmanager
def quiet() -> Iterator[list[str]]:
    """Collect what the libraries would log, each sort of message once, instead of filling the screen with it."""
    collector = _Collector()
    before = []
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        before.append((logger, logger.propagate, logger.level))
        logger.addHandler(collector)
        logger.propagate = False
        logger.setLevel(logging.WARNING)
    try:
        yield collector.messages
    finally:
        for logger, propagate, level in before:
            logger.removeHandler(collector)
            logger.propagate = propagate
            logger.setLevel(level)


class _Collector(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []
        self._seen: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        # fontTools improves formulas set in TeX and garbles some tables set in Arial: advice to install it is no help.
        if record.msg in self._seen or len(self._seen) >= _WARNINGS or record.msg.startswith("fontTools"):
            return
        self._seen.add(record.msg)
        self.messages.append((clean_line(record.getMessage()) or "a warning without words")[:_WARNING_LENGTH])
