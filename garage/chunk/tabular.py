"""Passages of tables: whole rows, as many as fit, none of them repeated.

A row is a line. The extractors write a cell's own line breaks as spaces, and quotation marks are not read: one that
is never closed, as in 5" disk, would make a single row of everything below it.
"""

import re
from collections.abc import Iterator

from garage.chunk.headings import Heading, heading_title
from garage.chunk.languages import ROW
from garage.chunk.splitters import Span, Splitter, strip

_SHEET = re.compile(r"^(#{1,6})[ \t]+([^\n]+)\n?", re.MULTILINE)


def sheet_headings(content: str, start: int = 0) -> Iterator[Heading]:
    """The headings that name the sheets of a workbook in `content[start:]`.

    A sheet's heading has a blank line above it, or nothing; what follows a row directly is a row, whatever it holds.
    """
    for match in _SHEET.finditer(content, start):
        if match.start() == start or content.endswith("\n\n", 0, match.start()):
            yield Heading(match.start(), match.end(), len(match[1]), heading_title(match[2]))


def split_rows(text: str, start: int, end: int, size: int) -> Iterator[Span]:
    """Passages of `text[start:end]` of at most `size` code points; only a row longer than that is cut, at its cells."""
    cells = Splitter(ROW, size, 0)
    begin = filled = start  # text[begin:filled] are the rows of the passage being filled, without the last line feed
    while start < end:
        found = text.find("\n", start, end)
        row_end = end if found < 0 else found
        if row_end - begin > size:
            yield from _stripped(text, begin, filled)
            begin = start
        if row_end - start > size:
            yield from cells.split(text, start, row_end)
            begin = row_end + 1
        filled = row_end
        start = row_end + 1
    yield from _stripped(text, begin, filled)


def _stripped(text: str, start: int, end: int) -> Iterator[Span]:
    span = strip(text, start, end)
    if span is not None:
        yield span
