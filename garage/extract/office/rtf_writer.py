"""Paragraphs and tables of an RTF document as Markdown blocks."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from garage.extract.tables import markdown

_HEADING = re.compile(
    r"(?:heading|überschrift|titre|título|titolo|kop|rubrik|nadpis|nagłówek|заголовок) ?([1-9])", re.IGNORECASE
)


@dataclass(slots=True)
class Paragraph:
    """What is said of a paragraph: its style's name, its level in the outline and in a list, both from 0."""

    style: str = ""
    outline: int | None = None
    in_table: bool = False
    list_number: int = 0
    level: int = 0
    is_item: bool = False

    def heading(self) -> int:
        """The level of the heading that it is, from 1; 0 for none."""
        match = _HEADING.fullmatch(self.style.strip())
        if match:
            return int(match[1])
        if self.style.strip().lower() == "title":
            return 1
        return self.outline + 1 if self.outline is not None and 0 <= self.outline < 9 else 0


class Writer:
    """Collects the blocks of one stream of text: the body, a footnote, a text box."""

    def __init__(self) -> None:
        self._blocks: list[str] = []
        self._text: list[str] = []
        self._cells: list[str] = []
        self._rows: list[list[str]] = []
        self._hanging: list[str] = []
        self._paragraph = Paragraph()
        self.notes: list[str] = []
        self.title: str | None = None

    def write(self, text: str) -> None:
        """Add characters to the paragraph."""
        self._text.append(text)

    def begin(self, paragraph: Paragraph) -> None:
        """Learn what the paragraph is whose text is being collected."""
        self._paragraph = paragraph

    def note(self, text: str) -> None:
        """Refer to a footnote."""
        if text:
            self.notes.append(text)
            self._text.append(f"[^{len(self.notes)}]")

    def hang(self, blocks: list[str]) -> None:
        """Keep what stands in a box for after the paragraph."""
        self._hanging += blocks

    def end_paragraph(self) -> None:
        """Write the paragraph; inside of a cell it only ends a line."""
        if self._paragraph.in_table or self._cells:
            self._text.append("\n")
            return
        self._end_table()
        text = "".join(self._text).strip()
        self._text.clear()
        level = self._paragraph.heading()
        if text and level:
            line = " ".join(text.split())
            self.title = self.title or (line if level == 1 else None)
            self._blocks.append(f"{'#' * min(level, 6)} {line}")
        elif text and (self._paragraph.is_item or self._paragraph.list_number > 0):
            indent = "  " * self._paragraph.level
            self._blocks.append(f"{indent}- " + text.replace("\n", f"\n{indent}  "))
        elif text:
            self._blocks.append(text)
        self._end_hanging()

    def end_cell(self) -> None:
        """End a cell of a table."""
        self._cells.append(" ".join("".join(self._text).split()))
        self._text.clear()

    def end_row(self, *, nested: bool = False) -> None:
        """End a row of a table; one inside of a cell stands among the rows of the table around it."""
        if self._text and "".join(self._text).strip() and not nested:
            self.end_cell()
        self._rows.append(self._cells)
        self._cells = []

    def finished(self) -> list[str]:
        """End what has been begun and return the blocks."""
        if self._cells:
            self.end_row()
        self._paragraph = Paragraph(style=self._paragraph.style, is_item=self._paragraph.is_item)
        self.end_paragraph()
        return self._blocks

    @staticmethod
    def joined(blocks: Iterable[str]) -> str:
        """Blocks as text: a blank line between them, none between the items of a list."""
        text = ""
        before = ""
        parts = []
        for block in blocks:
            both = block.lstrip().startswith("- ") and before.lstrip().startswith("- ")
            parts.append(("\n" if both else "\n\n") + block)
            before = block
        text = "".join(parts)
        return text[2:] if text.startswith("\n\n") else text[1:]

    def _end_table(self) -> None:
        rows, self._rows = self._rows, []
        if sum(map(len, rows)) == 1:
            self._blocks += [cell for row in rows for cell in row if cell]  # a frame around text
        elif written := markdown(rows):
            self._blocks.append(written)

    def _end_hanging(self) -> None:
        self._blocks += self._hanging
        self._hanging = []
