"""Tables of PDF pages as rows, by a second library that sees where things stand; slower than the first, by far.

The words of a page come in the order in which the file draws them, as the first library gives them too; a table
takes the place of the first word in it.
"""

import gc
import io
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from garage.extract.pages.pdf_text import tidy
from garage.extract.tables import markdown

if TYPE_CHECKING:
    from pdfplumber.page import Page
    from pdfplumber.table import Table

_SAME_LINE = 0.5  # of a word's height that two words of a line may be shifted by
_TALL = 10  # lines of text in a cell; where two of a row have more, the rows are told by the lines of text
_ALIGNED = 3.0  # points
_SPACE = 0.15  # of a letter's size between two letters: they belong to two words
_TWICE = 0.08  # of a letter's size between two that are one; the narrowest letters follow one another at 0.2
_COLLECTED = 20  # pages between two searches for what is no longer used, of some 30 ms each
_MENDED = 4  # letters whose meaning the library does not know; with more of them it is no help

_Box = tuple[float, float, float, float]
_Word = dict[str, Any]


def closer(raw: bytes, wanted: Collection[int]) -> Iterator[tuple[int, str, int]]:
    """Yield of each `wanted` page, counted from 0, its number, its text and how many tables that has, as Markdown.

    A page that cannot be read has no text. What a page takes in memory is given back before the next is read. Raises
    whatever the library does when the file cannot be opened.
    """
    import pdfplumber
    from pdfminer.pdfpage import PDFPage
    from pdfplumber.page import Page

    last = max(wanted, default=-1)
    seen = 0
    with pdfplumber.open(io.BytesIO(raw), password="") as file:
        # The library's own list of pages would hold the contents of all of them at once.
        for index, found in enumerate(PDFPage.create_pages(file.doc)):
            if index > last:
                return
            if index in wanted:
                yield index, *_looked_at(Page(file, found, page_number=index + 1))
                seen += 1
                if seen % _COLLECTED == 0:
                    gc.collect()  # a page's parser refers to itself and holds all that the page draws
            file.doc._cached_objs.clear()  # noqa: SLF001 - there is no public way to let go of streams


def _looked_at(page: "Page") -> tuple[str, int]:
    once = page.filter(_Once().seen_first)
    try:
        text, tables = _read(once)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - whatever one page does, the others are read
        return "", 0
    finally:
        once.close()
        page.close()
    return ("" if text.count("(cid:") > _MENDED else text), tables


class _Once:
    """Lets letters pass that were not drawn at the same place before, as imitations of bold type are."""

    def __init__(self) -> None:
        self._seen: set[tuple[str, int, int, int]] = set()

    def seen_first(self, item: dict[str, Any]) -> bool:
        """Whether to keep what is drawn on a page."""
        if item["object_type"] != "char" or item["text"].isspace():
            return True
        size = max(1, round(item["size"]))
        x, y = int(item["x0"] / (_TWICE * size)), int(item["top"] / (_TWICE * size))
        near = ((item["text"], size, x + i, y + j) for i in (-1, 0, 1) for j in (-1, 0, 1))
        new = self._seen.isdisjoint(near)
        self._seen.add((item["text"], size, x, y))
        return new


def _read(page: "Page") -> tuple[str, int]:
    words = page.extract_words(use_text_flow=True, x_tolerance_ratio=_SPACE)
    tables: list[tuple[_Box, str]] = []
    for table in page.find_tables():
        inside = [word for word in words if _within(word, table.bbox)]
        if written := markdown(_rows(table, inside)):
            tables.append((table.bbox, written))
    blocks: list[str] = []
    outside: list[_Word] = []
    done: set[int] = set()
    for word in words:
        at = next((index for index, (box, _) in enumerate(tables) if _within(word, box)), None)
        if at is None:
            outside.append(word)
        elif at not in done:
            done.add(at)
            blocks += [_lines(outside), tables[at][1]]
            outside = []
    blocks.append(_lines(outside))
    return tidy("\n\n".join(filter(None, blocks))), len(tables)


def _within(word: _Word, box: _Box) -> bool:
    x, y = (word["x0"] + word["x1"]) / 2, (word["top"] + word["bottom"]) / 2
    return bool(box[0] <= x <= box[2] and box[1] <= y <= box[3])


def _lines(words: Iterable[_Word]) -> str:
    """Words in their order; a new line begins where one stands lower, higher or further left than the word before."""
    return "\n".join(" ".join(word["text"] for word in line) for line in _in_lines(words))


def _in_lines(words: Iterable[_Word]) -> Iterator[list[_Word]]:
    line: list[_Word] = []
    for word in words:
        if line:
            last = line[-1]
            height = max(last["bottom"] - last["top"], word["bottom"] - word["top"], 1.0)
            shifted = abs(_middle(word) - _middle(last)) > _SAME_LINE * height
            if shifted or (word["upright"] and word["direction"] == "ltr" and word["x0"] < last["x0"] - height):
                yield line
                line = []
        line.append(word)
    if line:
        yield line


def _middle(word: _Word) -> float:
    return float(word["top"] + word["bottom"]) / 2


def _rows(table: "Table", words: list[_Word]) -> list[list[str]]:
    """The cells of a table by row; none when it is a frame around text, or rules between columns of a page."""
    rows: list[list[str]] = []
    for row in table.rows:
        cells = [[word for word in words if box and _within(word, box)] for box in row.cells]
        if sum(map(bool, cells)) == 1:  # a cell across all columns; what it holds may be drawn in columns
            cells = [sorted(cell, key=_place) for cell in cells]
        lines = [list(_in_lines(cell)) for cell in cells]
        if _are_rows(lines):
            rows += _by_line(lines)
        else:
            rows.append([" ".join(word["text"] for line in cell for word in line) for cell in lines])
    columns = [column for column in zip(*rows, strict=False) if any(column)]
    rows = [list(row) for row in zip(*columns, strict=True) if any(row)]
    return rows if len(rows) > 1 and len(columns) > 1 else []


def _are_rows(cells: list[list[list[_Word]]]) -> bool:
    """Whether the lines of text in the cells of a ruled row are rows themselves, rather than text that was too long."""
    heights = [[_middle(line[0]) for line in cell] for cell in cells if cell]
    tall = sum(len(cell) > _TALL for cell in heights)
    if len(heights) == 1 or tall > 1:
        return len(heights[0]) > 1
    first = heights[0] if len(heights) > 2 else []
    return len(first) > 1 and all(
        len(cell) == len(first) and all(abs(a - b) <= _ALIGNED for a, b in zip(cell, first, strict=True))
        for cell in heights
    )


def _place(word: _Word) -> tuple[float, float]:
    return round(_middle(word) / _ALIGNED), word["x0"]


def _by_line(cells: list[list[list[_Word]]]) -> Iterator[list[str]]:
    """Rows without rules between them: the lines of text that stand at the same height."""
    at: dict[float, dict[int, list[_Word]]] = {}
    for column, lines in enumerate(cells):
        for line in lines:
            height = _middle(line[0])
            near = next((key for key in at if abs(key - height) <= _ALIGNED), height)
            at.setdefault(near, {}).setdefault(column, []).extend(line)
    for _, row in sorted(at.items()):
        # Words of one line may have been drawn in several pieces.
        pieces = (sorted(row.get(column, ()), key=lambda word: float(word["x0"])) for column in range(len(cells)))
        yield [" ".join(word["text"] for word in cell) for cell in pieces]
