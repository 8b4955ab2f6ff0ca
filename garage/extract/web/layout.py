"""Writing what an HTML page shows as Markdown lines: paragraphs, lists, quotations, tables, preformatted text."""

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from garage.extract.tables import markdown

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

_SPACE = re.compile(r"\s+")
_INVISIBLE = "\u00ad\u034f\u200b\u200c\u200d\u2060\ufeff"
_FILLER = re.compile(f"(?: ?[{_INVISIBLE}]){{3,}} ?")  # what newsletters stretch their preview with
_NO_WORDS = str.maketrans("", "", " \t" + _INVISIBLE)
_SOFT_HYPHEN = "\u00ad"
_LOOKS_LIKE_HEADING = re.compile(r"#{1,6}(?=\s)")
_BACKTICKS = re.compile(r"`{3,}")

# What stands on lines of its own, and what has a blank line around it besides.
_LINES = frozenset(
    (
        *("html", "body", "div", "section", "article", "main", "aside", "header", "footer", "nav", "address", "center"),
        *("form", "fieldset", "legend", "details", "summary", "dialog", "hgroup", "search", "figure", "figcaption"),
        *("dl", "dt", "dd", "option", "textarea", "noframes", "frameset", "caption", "title"),
    )
)
_PARAGRAPHS = frozenset(
    ("p", "ul", "ol", "menu", "dir", "blockquote", "pre", "listing", "xmp", "table", "hr", "plaintext")
)
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_VERBATIM = frozenset(("pre", "listing", "xmp", "plaintext"))
_LISTS = frozenset(("ul", "ol", "menu", "dir"))
_CELLS = frozenset(("td", "th"))
_HANDLED = _LINES | _PARAGRAPHS | _HEADINGS.keys() | _LISTS | _CELLS | {"li", "tr", "a", "br", "img", "q"}

_INDENTS = 8  # deeper lists and quotations are written at this depth
_TABLES = 8  # tables in tables; deeper ones are read as if they were not there
_COLUMNS = 100
_ROWS = 1000  # rows that a cell may take, in the first columns
_CELL_CHARS = 1_000  # a longer cell is a column of a page, not of a table
_ROW_CHARS = 200
_HEADING_CHARS = 300  # a longer one is a text that was made large
_TARGET_CHARS = 120  # longer ones are made for counting clicks
_TARGET = re.compile(r"(?:https?|ftp)://[^\s()<>\[\]\x00-\x1f]+|mailto:[^\s()<>\[\]?\x00-\x1f]+", re.IGNORECASE)


@dataclass(slots=True)
class _Block:
    """Lines that are being written: of the page, or of one cell."""

    lines: list[str] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)
    flushes: int = 0
    gap: bool = False
    plain: bool = True  # one paragraph at most: it may stand in a row of a table


@dataclass(slots=True)
class _Cell:
    """A cell that does not fit into a row of a table: it has structure of its own, or is long."""

    lines: list[str]
    plain: bool


# Most cells are a few words, and a sheet that was saved as a page has millions of them.
_Row: TypeAlias = "list[str | _Cell]"


@dataclass(slots=True)
class _Table:
    """`covered`: up to which row (its number) a cell from further up stands in a column."""

    rows: list[_Row] = field(default_factory=list)
    covered: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Indent:
    """What a list item or a quotation puts before its lines."""

    first: str
    rest: str
    written: bool = False


class Writer:
    """Takes the beginnings, ends and words of a page one after the other; `text` is what has come of them."""

    def __init__(self, *, fences: bool = True) -> None:
        self.heading: str | None = None
        self._fences = fences
        self._block = _Block()
        self._cells: list[tuple[_Block, _Row, int]] = []  # what is written on after each open cell, and its place
        self._tables: list[_Table] = []
        self._deeper_tables = 0
        self._indents: list[list[_Indent]] = [[]]
        self._lists: list[int | None] = []  # the number of the next item; None: not numbered
        self._links: list[tuple[_Block, int, int, str]] = []
        self._verbatim = 0
        self._level = 0  # of the heading that is being written

    def text(self) -> str:
        """Everything written so far, ending with a line end."""
        self._flush()
        while self._tables:
            self._end_table()
        return "\n".join(self._block.lines) + "\n"

    def words(self, text: str) -> None:
        """Text as it stands in the page."""
        if self._verbatim:
            self._block.pieces.append(text.replace("\xa0", " "))
        else:
            self._block.pieces.append(_SPACE.sub(" ", text))

    def begin(self, tag: str, node: "LexborNode") -> None:
        """An element begins."""
        if tag not in _HANDLED:
            return
        if tag == "br":
            self._block.pieces.append("\n")
        elif tag == "a":
            target = node.attributes.get("href") or ""
            self._links.append((self._block, self._block.flushes, len(self._block.pieces), target.strip()))
        elif tag == "img":
            if alt := _SPACE.sub(" ", node.attributes.get("alt") or "").strip():
                self._block.pieces.append(f" {alt} ")
        elif tag == "q":
            self._block.pieces.append("“")
        elif self._verbatim:
            self._verbatim += tag in _VERBATIM
            self._new_line()
        elif self._level and tag in _LINES:
            self._block.pieces.append(" ")
        elif tag in _CELLS or tag == "tr":
            self._begin_cell(tag, node)
        else:
            self._begin_block(tag, node)

    def end(self, tag: str) -> None:
        """The element that was begun last ends."""
        if tag not in _HANDLED:
            return
        if tag == "a":
            self._end_link()
        elif tag == "q":
            self._block.pieces.append("”")
        elif tag in _VERBATIM:
            self._verbatim -= 1
            if not self._verbatim:
                self._end_verbatim()
        elif self._verbatim:
            self._new_line()
        elif tag in _CELLS:
            self._flush()
            if self._cells and not self._deeper_tables:
                self._end_cell()
        elif tag in _HEADINGS:
            self._end_heading()
        elif self._level and tag in _LINES:
            self._block.pieces.append(" ")
        elif tag not in {"br", "img", "hr"}:
            self._end_block(tag)

    def _end_heading(self) -> None:
        self._flush()
        self._level = 0
        self._block.gap = True

    def _begin_block(self, tag: str, node: "LexborNode") -> None:
        self._flush()
        self._level = 0  # a paragraph or a list within a heading: its end tag was forgotten
        if tag in _PARAGRAPHS and not (tag in _LISTS and self._lists):
            self._block.gap = True
        if tag in _HEADINGS:
            self._block.gap, self._block.plain = True, False
            self._level = _HEADINGS[tag]
        elif tag in _LISTS:
            start = node.attributes.get("start") or "" if tag == "ol" else ""
            self._lists.append((int(start) if start.isdecimal() and len(start) < 7 else 1) if tag == "ol" else None)
            self._block.plain = False
        elif tag == "li":
            self._begin_item()
        elif tag == "blockquote":
            self._indents[-1].append(_Indent("> ", "> "))
            self._block.plain = False
        elif tag in _VERBATIM:
            self._verbatim = 1
            self._block.plain = False
        elif tag == "hr":
            self._add(["---"])
            self._block.gap, self._block.plain = True, False
        elif tag == "table":
            self._begin_table()

    def _end_block(self, tag: str) -> None:
        if tag == "table":
            if self._deeper_tables:
                self._deeper_tables -= 1
            else:
                self._flush()
                self._end_table()
        elif tag == "caption" and self._tables:
            self._flush()
        else:
            self._flush()
        if tag in _LISTS and self._lists:
            self._lists.pop()
        elif tag in {"li", "blockquote"} and self._indents[-1]:
            self._indents[-1].pop()
        if tag in _PARAGRAPHS and not (tag in _LISTS and self._lists):
            self._block.gap = True

    def _begin_item(self) -> None:
        number = self._lists[-1] if self._lists else None
        if number is None:
            self._indents[-1].append(_Indent("- ", "  "))
            return
        self._lists[-1] = number + 1
        mark = f"{number}. "
        self._indents[-1].append(_Indent(mark, " " * len(mark)))

    def _begin_table(self) -> None:
        self._block.plain = False
        if len(self._tables) >= _TABLES or self._deeper_tables:
            self._deeper_tables += 1
            return
        self._tables.append(_Table())

    def _begin_cell(self, tag: str, node: "LexborNode") -> None:
        if not self._tables or self._deeper_tables:
            self._flush()
            return
        table = self._tables[-1]
        if tag == "tr" or not table.rows:
            table.rows.append([])
        if tag in _CELLS:
            self._flush()
            row = table.rows[-1]
            while table.covered.get(len(row), 0) >= len(table.rows):
                row.append("")
            self._cells.append((self._block, row, len(row)))
            self._indents.append([])
            self._block = _Block()
            columns, rows = _span(node, "colspan", _COLUMNS), _span(node, "rowspan", _ROWS)
            if rows > 1 and len(row) < _COLUMNS:
                table.covered |= dict.fromkeys(range(len(row), len(row) + columns), len(table.rows) + rows - 1)
            row.extend([""] * columns)

    def _end_cell(self) -> None:
        ended = self._block
        self._block, row, place = self._cells.pop()
        self._indents.pop()
        fits = ended.plain and sum(map(len, ended.lines)) <= _CELL_CHARS
        cell = " ".join(ended.lines) if fits else _Cell(ended.lines, ended.plain)
        row[place : place + 1] = [cell]

    def _end_table(self) -> None:
        table = self._tables.pop()
        self._add_lines(_rows(table.rows))

    def _end_link(self) -> None:
        if not self._links:
            return
        block, flushes, start, target = self._links.pop()
        if block is not self._block or flushes != block.flushes or self._verbatim:
            return
        text = "".join(block.pieces[start:])
        words = text.strip()
        if not words or "\n" in text or not _adds(target, words):
            return
        before, after = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
        block.pieces[start:] = [f"{before}[{words}]({target}){after}"]

    def _end_verbatim(self) -> None:
        pieces, self._block.pieces = self._block.pieces, []
        self._block.flushes += 1
        lines = "".join(pieces).replace("\r\n", "\n").replace("\r", "\n").strip("\n").split("\n")
        if not any(line.strip() for line in lines):
            return
        if self._fences:
            longest = max((len(ticks) for line in lines for ticks in _BACKTICKS.findall(line)), default=2)
            fence = "`" * (longest + 1)
            lines = [fence, *lines, fence]
        self._add([line.rstrip() for line in lines])
        self._block.gap = True

    def _new_line(self) -> None:
        pieces = self._block.pieces
        if pieces and not pieces[-1].endswith("\n"):
            pieces.append("\n")

    def _flush(self) -> None:
        """Write the words since the last line as a paragraph, or as the heading that they are in."""
        pieces = self._block.pieces
        if self._verbatim or not pieces:
            return
        self._block.pieces = []
        self._block.flushes += 1
        lines = _tidied("".join(pieces), one_line=self._level > 0)
        if not lines:
            return
        if self._level and len(lines[0]) <= _HEADING_CHARS:
            self.heading = self.heading or lines[0]
            in_list = any(indent.first != "> " for indent in self._indents[-1])
            lines = lines if in_list else [f"{'#' * self._level} {lines[0]}"]
        else:
            lines = ["\\" + line if _LOOKS_LIKE_HEADING.match(line) else line for line in lines]
        self._add(lines)

    def _add(self, lines: list[str]) -> None:
        """Write lines behind what lists and quotations put before them."""
        indents = self._indents[-1][:_INDENTS]
        if not indents:
            self._add_lines(lines)
            return
        rest = "".join(indent.rest for indent in indents)
        first = "".join(indent.rest if indent.written else indent.first for indent in indents)
        for indent in indents:
            indent.written = indent.written or not indent.first.startswith(">")
        self._add_lines(
            [(prefix + line).rstrip() for prefix, line in zip([first] + [rest] * len(lines), lines, strict=False)]
        )

    def _add_lines(self, lines: list[str]) -> None:
        block = self._block
        if not lines:
            return
        if block.gap and block.lines:
            block.lines.append("")
            block.plain = False
        block.gap = False
        block.lines.extend(lines)


def _adds(target: str, words: str) -> bool:
    """Whether the target of a link tells a reader something that its words do not."""
    if len(target) > _TARGET_CHARS or not _TARGET.fullmatch(target):
        return False
    address = re.sub(r"^(?:https?://(?:www\.)?|ftp://|mailto:)", "", target, flags=re.IGNORECASE).rstrip("/").lower()
    return bool(address) and address not in words.lower()


def _tidied(text: str, *, one_line: bool) -> list[str]:
    """The lines of a paragraph: no white space or fillers around, no empty ones at its ends or in a row."""
    if one_line:
        text = text.replace("\n", " ")
    if text.isascii() and "\n" not in text:
        line = " ".join(text.split())
        return [line] if line else []
    lines = [" ".join(line.split()) for line in text.replace(_SOFT_HYPHEN, "").split("\n")]
    if not text.isascii():
        lines = [_FILLER.sub(" ", line).strip() for line in lines]
        lines = [line if line.translate(_NO_WORDS) else "" for line in lines]
    kept: list[str] = []
    for line in lines:
        if line or (kept and kept[-1]):
            kept.append(line)
    if kept and not kept[-1]:
        kept.pop()
    return kept


def _span(node: "LexborNode", name: str, limit: int) -> int:
    """How many columns or rows a cell takes."""
    span = node.attributes.get(name) or ""
    return max(1, min(int(span), limit)) if span.isdecimal() and len(span) < 6 else 1


def _rows(rows: list[_Row]) -> list[str]:
    """A table of data as rows of Markdown; the cells of a table that only arranges the page one after the other."""
    rows = [row for row in rows if any(row)]
    width = max(map(len, rows), default=0)
    used = [any(len(row) > column and row[column] for row in rows) for column in range(width)]
    if sum(used) >= 2 and len(rows) >= 2 and not any(isinstance(cell, _Cell) for row in rows for cell in row):
        written = [[str(cell) for cell, kept in zip(row, used, strict=False) if kept] for row in rows]
        return markdown(written).split("\n")
    lines: list[str] = []
    for row in rows:
        cells = [cell for cell in row if cell]
        words = [cell for cell in cells if isinstance(cell, str)]
        if len(words) == len(cells) and sum(map(len, words)) <= _ROW_CHARS:
            lines.append(" | ".join(words))
            continue
        for cell in cells:
            if isinstance(cell, str):
                lines.append(cell)
                continue
            if lines and lines[-1] and not cell.plain:
                lines.append("")
            lines += cell.lines
    return lines
