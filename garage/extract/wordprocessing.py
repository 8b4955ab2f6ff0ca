"""Word's markup (WordprocessingML) written as Markdown.

Elements are told by their local names, so both dialects of the standard read alike, and whatever is not known is
looked into: text inside a new kind of container is found, text inside a field's code or a deletion is not.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from garage.extract.ooxml import attribute, local

# Formatting, deleted or moved text, the codes of fields, the pronunciation printed above East Asian text.
_UNSEEN = (
    "pPr rPr tblPr tblGrid tblPrEx trPr tcPr sdtPr sdtEndPr sectPr customXmlPr smartTagPr docPr"
    " del moveFrom delText instrText delInstrText fldData rt rubyPr"
)
_SKIPPED = frozenset(_UNSEEN.split())
_CHARACTERS = {"tab": "\t", "ptab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
_NOTE_REFERENCES = {"footnoteReference": "footnote", "endnoteReference": "endnote"}
_HEADING_NAME = re.compile(r"heading ?([1-9])")
_LIST_NAME = re.compile(r"list (?:bullet|number)")
_BASES = 20  # styles that a style may be based on, one on another, before it is a circle
_LEVELS = 9
_SPAN = 63  # columns that Word's own tables may have


@dataclass(frozen=True, slots=True)
class Role:
    """What a paragraph is: a heading of a level from 1, a list item of a level from 0, or neither."""

    heading: int | None = None
    item: int | None = None


class Styles:
    """The roles that a document's paragraph styles give; without a styles part, only the usual names count."""

    def __init__(self, root: Element | None) -> None:
        styles = root if root is not None else ()
        self._styles = {attribute(style, "styleId") or "": style for style in styles if local(style) == "style"}

    def role(self, paragraph: Element) -> Role:
        """The role of a paragraph, from its own properties first, then from its style and what that is based on."""
        properties = _child(paragraph, "pPr")
        style = _value(properties, "pStyle")
        own = _outline(properties)
        heading = own if own is not None else self._heading(style)
        if heading:
            return Role(heading=heading)
        numbering = _child(properties, "numPr")
        if numbering is None:
            return Role(item=self._item(style))
        return Role(item=_level(numbering))

    def _chain(self, style: str | None) -> Iterator[Element]:
        for _ in range(_BASES):
            element = self._styles.get(style or "")
            if element is None:
                return
            yield element
            style = _value(element, "basedOn")

    def _heading(self, style: str | None) -> int:
        """The level of a heading style; 0 for any other."""
        for element in self._chain(style):
            level = _named_level(_value(element, "name"))
            if level is None:
                level = _outline(_child(element, "pPr"))
            if level is not None:
                return level
        if style not in self._styles:
            return _named_level(style) or 0
        return 0

    def _item(self, style: str | None) -> int | None:
        for element in self._chain(style):
            numbering = _child(_child(element, "pPr"), "numPr")
            if numbering is not None:
                return _level(numbering)
            if _LIST_NAME.match((_value(element, "name") or "").lower()):
                return 0
        return None


class Writer:
    """Collects a document's blocks.

    Args:
        styles: What the paragraphs are.
        notes: Footnotes and endnotes by (kind, identifier).
    """

    def __init__(self, styles: Styles, notes: Mapping[tuple[str, str], Element]) -> None:
        self._styles = styles
        self._notes = notes
        self._referenced: dict[tuple[str, str], int] = {}
        self._blocks: list[tuple[str, bool]] = []  # text, and whether it is a list item
        self.title: str | None = None

    def text(self) -> str:
        """The blocks so far: a blank line between them, none between the items of a list."""
        parts: list[str] = []
        after_item = False
        for block, is_item in self._blocks:
            if parts:
                parts.append("\n" if is_item and after_item else "\n\n")
            parts.append(block)
            after_item = is_item
        return "".join(parts)

    def blocks(self, container: Element, *, once: bool = False) -> None:
        """Write everything inside `container`; with `once`, only what has not been written yet (a running header)."""
        before = len(self._blocks)
        self._write(container)
        if once:
            known = set(self._blocks[:before])
            self._blocks[before:] = [block for block in dict.fromkeys(self._blocks[before:]) if block not in known]

    def referenced_notes(self) -> None:
        """Write the notes that the text refers to, numbered in the order in which it does."""
        written = 0
        while written < len(self._referenced):  # a note may refer to a further one
            key = list(self._referenced)[written]
            written += 1
            self._add(f"[^{written}]: {self._flat(self._notes[key])}")

    def _add(self, block: str, *, is_item: bool = False) -> None:
        self._blocks.append((block, is_item))

    def _write(self, container: Element) -> None:
        for child in _shown(container):
            match local(child):
                case "p":
                    self._paragraph(child)
                case "tbl":
                    self._table(child)
                case _:
                    self._write(child)

    def _paragraph(self, paragraph: Element) -> None:
        parts: list[str] = []
        hanging: list[Element] = []
        self._inline(paragraph, parts, hanging)
        text = "".join(parts).strip()
        if text:
            role = self._styles.role(paragraph)
            if role.heading:
                line = " ".join(text.split())
                self.title = self.title or (line if role.heading == 1 else None)
                self._add(f"{'#' * min(role.heading, 6)} {line}")
            elif role.item is not None:
                indent = "  " * role.item
                self._add(f"{indent}- " + text.replace("\n", f"\n{indent}  "), is_item=True)
            else:
                self._add(text)
        for element in hanging:
            if local(element) == "tbl":
                self._table(element)
            else:
                self._write(element)

    def _inline(self, element: Element, parts: list[str], hanging: list[Element]) -> None:
        """Collect the characters of a paragraph, and the boxes and tables that hang on it."""
        for child in _shown(element):
            name = local(child)
            if name == "t":
                parts.append(child.text or "")
            elif name in _CHARACTERS:
                parts.append(_CHARACTERS[name])
            elif name == "sym":
                parts.append(_symbol(child))
            elif name in _NOTE_REFERENCES:
                parts.append(self._reference(_NOTE_REFERENCES[name], attribute(child, "id") or ""))
            elif name in ("txbxContent", "tbl"):
                hanging.append(child)
            else:
                self._inline(child, parts, hanging)

    def _reference(self, kind: str, identifier: str) -> str:
        if (kind, identifier) not in self._notes:
            return ""
        number = self._referenced.setdefault((kind, identifier), len(self._referenced) + 1)
        return f"[^{number}]"

    def _table(self, table: Element) -> None:
        rows = [list(_cells(row)) for row in _rows(table)]
        cells = [cell for row in rows for cell in row]
        if len(cells) == 1:
            self._write(cells[0])  # a frame around text, not a table
            return
        written = [[text for cell in row for text in self._cell(cell)] for row in rows]
        written = [row for row in written if any(row)]
        width = max((len(row) for row in written), default=0)
        lines = ["| " + " | ".join(row + [""] * (width - len(row))) + " |" for row in written]
        if lines:
            self._add("\n".join([lines[0], "|" + " --- |" * width, *lines[1:]]))

    def _cell(self, cell: Element) -> list[str]:
        """The text of a cell, and an empty one for each further column that it spans."""
        span = _value(_child(cell, "tcPr"), "gridSpan") or "1"
        further = min(int(span), _SPAN) - 1 if span.isdecimal() else 0
        return [self._flat(cell).replace("|", "\\|"), *[""] * further]

    def _flat(self, container: Element) -> str:
        """All text inside `container` on one line, that of tables and boxes within it too."""
        parts: list[str] = []
        waiting = [container]
        while waiting:
            hanging: list[Element] = []
            element = waiting.pop()
            if local(element) == "p":
                self._inline(element, parts, hanging)
                parts.append(" ")
                waiting += reversed(hanging)
            else:
                waiting += reversed(list(_shown(element)))
        return " ".join("".join(parts).split())


def _shown(element: Element) -> Iterator[Element]:
    """The children that a reader sees; of alternatives for different programs only the first that has any."""
    for child in element:
        name = local(child)
        if name == "AlternateContent":
            choices = sorted(child, key=lambda choice: local(choice) != "Choice")
            yield from next(([c] for c in choices if len(c)), [])
        elif name not in _SKIPPED:
            yield child


def _rows(table: Element) -> Iterator[Element]:
    for child in _shown(table):
        if local(child) != "tr":
            yield from _rows(child)
        elif _child(_child(child, "trPr"), "del") is None:
            yield child


def _cells(row: Element) -> Iterator[Element]:
    for child in _shown(row):
        if local(child) == "tc":
            yield child
        else:
            yield from _cells(child)


def _child(element: Element | None, name: str) -> Element | None:
    return next((child for child in element if local(child) == name), None) if element is not None else None


def _value(element: Element | None, name: str) -> str | None:
    """The `val` of a child element."""
    child = _child(element, name)
    return attribute(child, "val") if child is not None else None


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() and len(text) < _LEVELS else None


def _outline(properties: Element | None) -> int | None:
    """The heading level of an outline level; 0 where it says body text, None where it says nothing."""
    level = _number(_value(properties, "outlineLvl"))
    if level is None:
        return None
    return level + 1 if level < _LEVELS else 0


def _named_level(name: str | None) -> int | None:
    lower = (name or "").lower()
    if lower == "title":
        return 1
    found = _HEADING_NAME.fullmatch(lower)
    return int(found[1]) if found else None


def _level(numbering: Element) -> int | None:
    """The level of a list item; None where the numbering was switched off."""
    if _value(numbering, "numId") == "0":
        return None
    return min(_number(_value(numbering, "ilvl")) or 0, _LEVELS - 1)


def _symbol(element: Element) -> str:
    """A character of a symbol font; most stand in a private area, where only that font knows what they mean."""
    try:
        code = int(attribute(element, "char") or "", 16)
    except ValueError:
        return ""
    return chr(code) if 0x20 <= code < 0xD800 else ""
