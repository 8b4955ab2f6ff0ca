"""The headings of a Markdown document, found the way CommonMark finds them, in one pass over its lines.

Only headings of the document itself count. A `#` line inside a code fence, an indented code block, a list item, a
quotation or an HTML block is content, and a row of dashes below a table or a list is a rule, not an underline.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

SECTION_LEVELS = 3
"""Headings of these levels (1 to 3) open sections."""

TITLE_LENGTH = 200
"""A longer title is cut here; a longer paragraph is no title, whatever stands below it."""

_TAB = 4
_CODE_INDENT = 4
_NESTING = 32  # the most list items or quotations inside one another; it bounds the work on a line

# A line that starts with any other character, outside of every block, can only be text of a paragraph.
_MARKERS = frozenset(" \t#`~=-*+_<>|:0123456789")

_ATX = re.compile(r"(#{1,6})(?=[ \t]|$)")
# Behind an opening fence of backticks there is no other backtick: that would be code inside a line of text.
_FENCE = re.compile(r"`{3,}+(?!.*`)|~{3,}")
_ITEM = re.compile(r"([-+*]|(\d{1,9})[.)])([ \t]+|$)")
_UNDERLINE = re.compile(r"(=+|-+)[ \t]*$")
_TABLE_RULE = re.compile(r"(?=[^|]*\|)[|: \t]*-[-|: \t]*$")
_REFERENCE = re.compile(r"\[[^\]\n]+\]:")
_ATTRIBUTES = ("#", ".", ":")

_BLOCK_TAG = re.compile(
    r"</?(?:address|article|aside|base|blockquote|body|caption|center|col|colgroup|dd|details|dialog|dir|div|dl|dt"
    r"|fieldset|figcaption|figure|footer|form|frame|frameset|h[1-6]|head|header|hr|html|iframe|legend|li|link|main"
    r"|menu|menuitem|nav|ol|optgroup|option|p|param|search|section|summary|table|tbody|td|tfoot|th|thead|title|tr"
    r"|track|ul)(?=[ \t>]|/>|$)",
    re.IGNORECASE,
)
_LONE_TAG = re.compile(r"</?[A-Za-z][A-Za-z0-9-]*(?:[ \t][^<>]*)?>[ \t]*$")
# HTML that runs on to a closing mark, across blank lines. Any other HTML block ends at a blank line.
_VERBATIM = (
    (
        re.compile(r"<(?:pre|script|style|textarea)(?=[ \t>]|$)", re.IGNORECASE),
        ("</pre>", "</script>", "</style>", "</textarea>"),
    ),
    (re.compile("<!--"), ("-->",)),
    (re.compile(r"<\?"), ("?>",)),
    (re.compile(r"<!\[CDATA\["), ("]]>",)),
    (re.compile("<![A-Za-z]"), (">",)),
)


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading; its lines are `content[start:end]`, the last line feed included."""

    start: int
    end: int
    level: int
    title: str


def markdown_headings(content: str, start: int = 0) -> Iterator[Heading]:
    """The headings that open sections in `content[start:]`, `start` being the beginning of a line."""
    reader = _Reader()
    size = len(content)
    while start < size:
        end = content.find("\n", start) + 1 or size
        first = content[start]
        if first == "\n":
            reader.read_blank()
        elif first in _MARKERS or not reader.read_plain(start):
            heading = reader.read(content, start, end)
            if heading is not None and heading.level <= SECTION_LEVELS:
                yield heading
        start = end


def heading_title(text: str) -> str:
    """A heading's text on one line, without closing `#`s and a trailing `{#id .class}`, at most TITLE_LENGTH long."""
    text = text.strip()
    opened = text.rstrip("#")
    if not opened or opened[-1] in " \t":
        text = opened.rstrip()
    if text.endswith("}"):
        before, _, inside = text[:-1].rpartition("{")
        if before.strip() and inside.lstrip().startswith(_ATTRIBUTES):
            text = before
    text = " ".join(text.split())
    return text if len(text) <= TITLE_LENGTH else text[:TITLE_LENGTH].rstrip() + "…"


@dataclass(slots=True)
class _Reader:
    """What the lines read so far leave open."""

    items: list[int] = field(default_factory=list)  # the columns at which the text of the open list items starts
    left: list[int] = field(default_factory=list)  # those that the current line is not indented enough for
    fence: str = ""  # the mark that opened the code fence being read
    fence_column: int = 0  # where the item that holds the fence has its text; a line further left ends both
    html_ends: tuple[str, ...] | None = None  # what ends the open HTML block: one of these, or if none a blank line
    paragraph: int | None = None  # where the document's open paragraph starts
    inner_text: bool = False  # the open paragraph is an item's or a quotation's; its lines may go on at the margin

    def read_plain(self, start: int) -> bool:
        """Take note of a line without a marker at its start; False when it must be read because a block is open."""
        if self.items or self.html_ends:
            return False
        if self.fence:
            return self.fence_column == 0
        if self.paragraph is None and not self.inner_text and self.html_ends is None:
            self.paragraph = start
        return True

    def read_blank(self) -> None:
        """Take note of a blank line."""
        if not self.fence:
            self._close_text()
            if not self.html_ends:
                self.html_ends = None

    def read(self, content: str, start: int, end: int) -> Heading | None:
        """Take note of the line `content[start:end]`, and return the heading that it is or underlines."""
        line = content[start:end].removesuffix("\n")
        text = line.lstrip(" \t")
        indent = _columns(line[: len(line) - len(text)])
        if not text:
            self.read_blank()
            return None
        if self.fence:
            if indent >= self.fence_column:
                self._close_fence(text, indent)
                return None
            self.fence = ""
        if self.html_ends is not None:
            self._close_html(line)
            return None
        kept = bisect_right(self.items, indent)
        self.left = self.items[kept:]
        del self.items[kept:]
        title = self._underlined(content, start, text, indent)
        if title is not None:
            heading = Heading(title[0], end, 1 if text[0] == "=" else 2, title[1])
            self._close_text()
            return heading
        return self._block(text, indent, start, end)

    def _block(self, text: str, indent: int, start: int, end: int) -> Heading | None:
        """Read what a line opens, list items first, as they may hold any other block."""
        while indent - (self.items[-1] if self.items else 0) < _CODE_INDENT:
            item = None if len(self.items) == _NESTING or _is_rule(text) else _ITEM.match(text)
            inside_text = self.paragraph is not None or (self.inner_text and self.items and not self.left)
            if item is None or (inside_text and not _interrupts(item, text)):
                return self._leaf(text, start, end)
            marker_end = indent + len(item[1])
            indent = _columns(item[3], marker_end)
            text = text[item.end() :]
            empty_or_code = not text or indent - marker_end > _CODE_INDENT
            self.items.append(marker_end + 1 if empty_or_code else indent)
            self._close_text()
            if not text:
                break
        return None

    def _leaf(self, text: str, start: int, end: int) -> Heading | None:
        atx = _ATX.match(text)
        fence = _FENCE.match(text)
        if atx:
            self._close_text()
            if not self.items:
                return Heading(start, end, len(atx[1]), heading_title(text[atx.end() :]))
        elif fence:
            self._close_text()
            self.fence = fence[0]
            self.fence_column = self.items[-1] if self.items else 0
        elif _is_rule(text):
            self._close_text()
        elif text[0] == ">":
            self._close_text()
            self.inner_text = _is_text(text)
        elif self._opens_html(text):
            self._close_text()
        elif self.paragraph is not None and _TABLE_RULE.match(text):
            self._close_text()
            self.inner_text = True  # the rows below are no paragraph that could be underlined
        elif self.inner_text:
            self.items += self.left  # the line goes on with the item's paragraph, so it leaves no item
        elif self.items:
            self.inner_text = True
        elif self.paragraph is None:
            self.paragraph = start
        return None

    def _close_text(self) -> None:
        self.paragraph = None
        self.inner_text = False

    def _close_fence(self, text: str, indent: int) -> None:
        marks = text.rstrip(" \t")
        closes = len(marks) >= len(self.fence) and not marks.strip(self.fence[0])
        if closes and indent - self.fence_column < _CODE_INDENT:
            self.fence = ""

    def _close_html(self, line: str) -> None:
        lowered = line.lower()
        if any(mark in lowered for mark in self.html_ends or ()):
            self.html_ends = None

    def _opens_html(self, text: str) -> bool:
        """Whether an HTML block starts here; one that ends on its first line, or stands in an item, is not kept."""
        if text[0] != "<":
            return False
        for opening, ends in _VERBATIM:
            if opening.match(text):
                self.html_ends = ends
                self._close_html(text)
                break
        else:
            has_text = self.paragraph is not None or self.inner_text
            if not _BLOCK_TAG.match(text) and (has_text or not _LONE_TAG.match(text)):
                return False
            self.html_ends = ()
        if self.items:  # what follows is indented below the item, or ends it
            self.html_ends = None
        return True

    def _underlined(self, content: str, start: int, text: str, indent: int) -> tuple[int, str] | None:
        """Start and title of the document's open paragraph, if this line underlines it."""
        if self.paragraph is None or indent >= _CODE_INDENT or not _UNDERLINE.match(text):
            return None
        if start - self.paragraph > 2 * TITLE_LENGTH or _REFERENCE.match(content, self.paragraph):
            return None
        title = " ".join(content[self.paragraph : start].split())
        return (self.paragraph, title) if len(title) <= TITLE_LENGTH else None


def _columns(space: str, column: int = 0) -> int:
    """The column behind white space that starts at `column`; a tab goes on to the next multiple of four."""
    if "\t" not in space:
        return column + len(space)
    for character in space:
        column += _TAB - column % _TAB if character == "\t" else 1
    return column


def _is_rule(text: str) -> bool:
    if not text.startswith(("-", "*", "_")):
        return False
    marks = text.replace(" ", "").replace("\t", "")
    return len(marks) >= 3 and marks == text[0] * len(marks)


def _interrupts(item: re.Match[str], text: str) -> bool:
    """Whether a list may start in the middle of a paragraph: not with an empty item, nor with another number than 1."""
    return item.end() < len(text) and (item[2] is None or int(item[2]) == 1)


def _is_text(text: str) -> bool:
    """Whether a quoted line ends in text of a paragraph, which may go on without the quotation's mark."""
    for _ in range(_NESTING):
        item = None if _is_rule(text) else _ITEM.match(text)
        if item is None and text[:1] != ">":
            break
        text = (text[item.end() :] if item else text[1:]).lstrip(" \t")
    return bool(text) and not (_is_rule(text) or _ATX.match(text) or _FENCE.match(text) or _UNDERLINE.match(text))
