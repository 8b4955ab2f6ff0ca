"""Sheets of a workbook as text: `## name`, then a line a row."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from garage.config import Extraction

COLUMNS = 16_384
"""Columns that a sheet has at most in the programs that people use."""

SEPARATOR = " | "
_GAP = 16  # empty cells in a row that are written; a wider gap says nothing more
_WARNING_NAME = 100


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of a sheet is read: rows that have any text, and characters of a cell."""

    rows: int
    characters: int

    @classmethod
    def of(cls, settings: Extraction) -> "Limits":
        """The limits as configured."""
        return cls(settings.max_sheet_rows, settings.max_cell_chars)


@dataclass(slots=True)
class Sheet:
    """Collects one sheet: rows that have text, what else stands on it, and how much of it was dropped.

    `position` is the number of the last row seen, blank or not; `full` says that no further row is taken.
    """

    name: str
    limits: Limits
    hidden: bool = False
    rows: list[str] = field(default_factory=list)
    below: list[str] = field(default_factory=list)
    position: int = 0
    dropped: int = 0
    shortened: int = 0
    full: bool = False

    def cell(self, text: str) -> str:
        """A cell's text on one line and within its limit."""
        if len(text) > self.limits.characters:
            text = text[: self.limits.characters]
            self.shortened += 1
        return " ".join(text.split())

    def row(self, numbered: tuple[int, dict[int, str]]) -> None:
        """Take a row: its number and its cells by column; one without any text is skipped, one too many counted."""
        self.position, cells = numbered
        if not cells:
            return
        if len(self.rows) >= self.limits.rows:
            self.full = True
            self.dropped += 1
            return
        parts: list[str] = []
        last = 0
        for column in sorted(cells):
            parts += [""] * min(column - last - 1, _GAP)
            parts.append(cells[column])
            last = column
        self.rows.append(SEPARATOR.join(parts))

    def lines(self) -> list[str]:
        """The rows without the columns that are empty in all of them, then what else stands on the sheet."""
        margin = 0
        while self.rows and all(row.startswith(SEPARATOR, margin) for row in self.rows):
            margin += len(SEPARATOR)
        return [*(row[margin:] for row in self.rows), *(line for line in self.below if line)]

    def warnings(self) -> Iterable[str]:
        """What was left out of it."""
        name = self.name[:_WARNING_NAME]
        if self.dropped:
            yield f"the sheet {name} has {self.dropped} rows beyond the limit of {self.limits.rows}"
        if self.shortened:
            yield f"the sheet {name} has {self.shortened} cells beyond the limit of {self.limits.characters} characters"
        if self.hidden:
            yield f"the sheet {name} is hidden"


def text(sheets: Iterable[Sheet]) -> str:
    """All sheets that hold anything, a blank line between them."""
    written = []
    for sheet in sheets:
        if lines := sheet.lines():
            hidden = " (hidden)" if sheet.hidden else ""
            written.append("\n".join([f"## {sheet.name}{hidden}", *lines]))
    return "\n\n".join(written)
