"""Word's markup (WordprocessingML) written as Markdown.

python-docx has no interface for text boxes, notes, tracked changes, equations, fields and content controls, and passes
over what stands inside them. `flatten` brings all of it into the paragraphs and tables that the library knows.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias

from docx.oxml.ns import nsmap, qn
from docx.oxml.parser import parse_xml
from lxml import etree

from garage.extract.office.archive import natural, parsed, refuse_entities
from garage.extract.office.drawing import chart, diagram
from garage.extract.office.ooxml import related
from garage.extract.tables import markdown

if TYPE_CHECKING:
    from docx.opc.part import Part
    from docx.oxml.styles import CT_Style
    from docx.oxml.table import CT_Tbl, CT_Tc
    from docx.oxml.text.paragraph import CT_P
    from docx.oxml.xmlchemy import BaseOxmlElement
    from docx.parts.styles import StylesPart

_P, _TBL, _TR, _TC, _BOX = (qn(f"w:{name}") for name in ("p", "tbl", "tr", "tc", "txbxContent"))
_VAL, _ID, _CHAR = (qn(f"w:{name}") for name in ("val", "id", "char"))
# Deleted or moved text, the pronunciation printed above East Asian text, and tab stops, which are named like tabs.
_UNSEEN = tuple(qn(f"w:{name}") for name in ("del", "moveFrom", "rt", "tabs"))
_CONTAINERS = frozenset(
    qn(f"w:{name}") for name in ("body", "hdr", "ftr", "footnote", "endnote", "comment", "tbl", "tr", "tc")
)
_CHARACTERS = {"tab": "\t", "ptab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
_NOTE_REFERENCES = {"footnoteReference": "footnote", "endnoteReference": "endnote"}
# In any namespace: equations and drawings have a `t` of their own.
_TEXTS = tuple(f"{{*}}{name}" for name in ("t", "sym", *_CHARACTERS, *_NOTE_REFERENCES))
_HEADING_NAME = re.compile(r"title|heading ?([1-9])")
_LIST_NAME = re.compile(r"list (?:bullet|number)")
_LEVELS = 9
_SPAN = 63  # columns that Word's own tables may have

Levels: TypeAlias = tuple[int | None, int | None]
"""Of a heading and of a list item, from 1; 0 where something is none, None where nothing is said of it."""


def flatten(root: "BaseOxmlElement") -> None:
    """Leave in a part what a reader sees, and every paragraph and table directly in the body or cell that shows it.

    What hangs on a paragraph, a text box or a table, comes to stand behind it; of alternatives for different programs
    only the first that has any content stays.

    Raises:
        ValueError: text is hidden in entities.
    """
    refuse_entities(root)
    for mark in list(root.iterfind(".//w:trPr/w:del", nsmap)):
        row = mark.getparent().getparent()
        row.getparent().remove(row)
    etree.strip_elements(root, *_UNSEEN, with_tail=False)
    for alternatives in list(root.iter("{*}AlternateContent")):
        choices = sorted(alternatives, key=lambda choice: not str(choice.tag).endswith("}Choice"))
        for other in set(choices) - {next((choice for choice in choices if len(choice)), None)}:
            alternatives.remove(other)
    for block in reversed(list(root.iter(_BOX, _TBL, _P))):
        holder = next(block.iterancestors(_P, _BOX, _TC), None)
        if holder is not None and holder.tag == _P:
            for piece in reversed(block) if block.tag == _BOX else (block,):
                holder.addnext(piece)
    known = {*_CONTAINERS, root.tag}
    while wrappers := {block.getparent().tag for block in root.iter(_P, _TBL, _TR, _TC)} - known:
        etree.strip_tags(root, *wrappers)


def notes(part: "Part", kind: str) -> "dict[tuple[str, str], BaseOxmlElement]":
    """Every footnote or endnote by (kind, identifier); the lines that separate them from the text are none."""
    found = related(part, f"{kind}s")
    if found is None:
        return {}
    root = parse_xml(found.blob)
    flatten(root)
    said = (note for note in root.iterchildren(qn(f"w:{kind}")) if note.get(qn("w:type"), "normal") == "normal")
    return {(kind, note.get(_ID, "")): note for note in said}


class Styles:
    """What paragraphs are by their styles; a style that the document lacks counts by its usual name."""

    def __init__(self, part: "StylesPart | None") -> None:
        styles: list[CT_Style] = getattr(part.element, "style_lst", []) if part else []
        self._styles = {style.styleId: style for style in styles}
        self._levels: dict[str | None, Levels] = {}

    def levels(self, paragraph: "CT_P") -> Levels:
        """The levels of a paragraph: its own, or else those of its style or of what that is based on."""
        if paragraph.pPr is None:
            return None, None
        return _over(_said(paragraph), self._of(_value(paragraph, "w:pPr/w:pStyle")))

    def _of(self, name: str | None) -> Levels:
        if name not in self._levels:
            self._levels[name] = None, None  # for a style that is based on itself
            style = self._styles.get(name)
            if style is None:
                self._levels[name] = _named(name), None
            else:
                self._levels[name] = _over(_said(style), self._of(_value(style, "w:basedOn")))
        return self._levels[name]


class Writer:
    """Collects a document's blocks.

    Args:
        styles: What the paragraphs are.
        notes: Footnotes and endnotes by (kind, identifier).
    """

    def __init__(self, styles: Styles, notes: "Mapping[tuple[str, str], BaseOxmlElement]") -> None:
        self._styles = styles
        self._notes = notes
        self._referenced: dict[tuple[str, str], int] = {}
        self._blocks: list[tuple[str, bool]] = []  # text, and whether it is a list item
        self.title: str | None = None

    def text(self) -> str:
        """The blocks so far: a blank line between them, none between the items of a list."""
        pairs = zip(self._blocks, [("", False), *self._blocks], strict=False)
        return "".join(("\n" if item and after else "\n\n") + block for (block, item), (_, after) in pairs)[2:]

    def blocks(self, container: "BaseOxmlElement", *, once: bool = False) -> None:
        """Write what is in a flat `container`; with `once`, only what has not been written yet (a running header)."""
        before = len(self._blocks)
        for block in container.iterchildren(_P, _TBL):
            if block.tag == _P:
                self._paragraph(block)
            else:
                self._table(block)
        if once:
            known = set(self._blocks[:before])
            self._blocks[before:] = [block for block in dict.fromkeys(self._blocks[before:]) if block not in known]

    def referenced_notes(self) -> None:
        """Write the notes that the text refers to, numbered in the order in which it does."""
        written = 0
        while written < len(self._referenced):  # a note may refer to a further one
            key = list(self._referenced)[written]
            written += 1
            self._add(f"[^{written}]: {self._line(self._notes[key])}")

    def comments(self, part: "Part") -> None:
        """Write the remarks of those who reviewed the document."""
        found = related(part, "comments")
        if found is None:
            return
        root = parse_xml(found.blob)
        flatten(root)
        said = [(comment.get(qn("w:author"), ""), self._line(comment)) for comment in root.iterchildren("{*}comment")]
        if any(text for _, text in said):
            self._add("### Comments")
        for author, text in said:
            if text:
                self._add(f"- {author}: {text}" if author.strip() else f"- {text}", is_item=True)

    def graphics(self, part: "Part") -> None:
        """Write what the charts and diagrams that the document refers to say; one that is damaged says nothing."""
        for relation in part.rels.values():
            kind = relation.reltype.rpartition("/")[2]
            if relation.is_external or kind not in ("chart", "diagramData"):
                continue
            with suppress(etree.XMLSyntaxError, ValueError):
                root = parsed(relation.target_part.blob)
                for block in chart(root) if kind == "chart" else ["\n".join(diagram(root))]:
                    if block:
                        self._add(block)

    def _add(self, block: str, *, is_item: bool = False) -> None:
        self._blocks.append((block, is_item))

    def _paragraph(self, paragraph: "CT_P") -> None:
        text = self._text(paragraph).strip()
        if not text:
            return
        heading, item = self._styles.levels(paragraph)
        if heading:
            line = " ".join(text.split())
            self.title = self.title or (line if heading == 1 else None)
            self._add(f"{'#' * min(heading, 6)} {line}")
        elif item:
            indent = "  " * (item - 1)
            self._add(f"{indent}- " + text.replace("\n", f"\n{indent}  "), is_item=True)
        else:
            self._add(text)

    def _text(self, paragraph: "BaseOxmlElement") -> str:
        """The characters of a paragraph, and the numbers of the notes that it refers to."""
        parts: list[str] = []
        for element in paragraph.iter(*_TEXTS):
            name = etree.QName(element).localname
            if name == "t":
                parts.append(element.text or "")
            elif name == "sym":
                parts.append(_symbol(element))
            elif name in _CHARACTERS:
                parts.append(_CHARACTERS[name])
            elif (key := (_NOTE_REFERENCES[name], element.get(_ID, ""))) in self._notes:
                parts.append(f"[^{self._referenced.setdefault(key, len(self._referenced) + 1)}]")
        return "".join(parts)

    def _table(self, table: "CT_Tbl") -> None:
        rows = [row.tc_lst for row in table.tr_lst]
        if sum(map(len, rows)) == 1:
            self.blocks(next(cell for row in rows for cell in row))  # a frame around text, not a table
            return
        if written := markdown([[text for cell in row for text in self._cell(cell)] for row in rows]):
            self._add(written)

    def _cell(self, cell: "CT_Tc") -> list[str]:
        """The text of a cell, and an empty one for each further column that it spans."""
        span = _value(cell, "w:tcPr/w:gridSpan") or "1"
        further = min(natural(span, 1), _SPAN) - 1
        return [self._line(cell), *[""] * further]

    def _line(self, container: "BaseOxmlElement") -> str:
        """All text inside `container` on one line, that of tables within it too."""
        return " ".join(" ".join(map(self._text, container.iter(_P))).split())


def _value(element: "BaseOxmlElement", path: str) -> str | None:
    """The `val` of what stands at `path` below an element."""
    found = element.find(path, nsmap)
    return None if found is None else found.get(_VAL)


def _number(element: "BaseOxmlElement", path: str) -> int | None:
    text = _value(element, path) or ""
    return min(int(text), _LEVELS) if re.fullmatch(r"[0-9]{1,8}", text) else None


def _over(first: Levels, second: Levels) -> Levels:
    return second[0] if first[0] is None else first[0], second[1] if first[1] is None else first[1]


def _said(element: "BaseOxmlElement") -> Levels:
    """What a paragraph, or a style by its name too, says itself."""
    name = _value(element, "w:name")
    heading = _named(name)
    outline = _number(element, "w:pPr/w:outlineLvl")
    if heading is None and outline is not None:
        heading = (outline + 1) % (_LEVELS + 1)  # the last one means body text
    if element.find("w:pPr/w:numPr", nsmap) is None:
        return heading, 1 if _LIST_NAME.match((name or "").lower()) else None
    switched_off = _number(element, "w:pPr/w:numPr/w:numId") == 0
    return heading, 0 if switched_off else min((_number(element, "w:pPr/w:numPr/w:ilvl") or 0) + 1, _LEVELS)


def _named(style: str | None) -> int | None:
    found = _HEADING_NAME.fullmatch((style or "").lower())
    return int(found[1] or 1) if found else None


def _symbol(element: "BaseOxmlElement") -> str:
    """A character of a symbol font; most stand in a private area, where only that font knows what they mean."""
    try:
        code = int(element.get(_CHAR, ""), 16)
    except ValueError:
        return ""
    return chr(code) if 0x20 <= code < 0xD800 else ""
