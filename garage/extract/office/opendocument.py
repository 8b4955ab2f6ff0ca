"""The body of an OpenDocument file written as Markdown, or as the rows of its sheets."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from garage.extract.office.archive import attribute, local, natural
from garage.extract.office.tables import COLUMNS, Limits, Sheet
from garage.extract.tables import markdown

if TYPE_CHECKING:
    from garage.extract.office.archive import Element

_LEVELS = 9
_DEPTH = 100  # of blocks within blocks; deeper ones are read as if they stood on one line
_SPACES = 100  # of a run of spaces
_REPEATED = 64  # equal cells or rows in a row that are written
# What is not seen: what was deleted, remarks, forms, pronunciations, numbers of notes, descriptions of pictures.
_UNSEEN = frozenset(
    (
        *("tracked-changes", "annotation", "annotation-end", "forms", "ruby-text", "note-citation", "sequence-decls"),
        *("event-listeners", "page-number", "page-count", "settings", "table-source", "date-time-decl"),
    )
)
_CONTAINERS = frozenset(
    (
        *("text", "section", "index-body", "index-title", "table-of-content", "alphabetical-index", "bibliography"),
        *("illustration-index", "table-index", "object-index", "user-index", "frame", "text-box", "g", "a", "page"),
        *("numbered-paragraph", "list-header", "header", "footer", "master-page", "note-body", "header-first"),
        *("footer-first", "header-left", "footer-left", "region-left", "region-center", "region-right", "drawing"),
    )
)
_SHAPES = ("frame", "g", "text-box", "rect", "custom-shape", "ellipse", "polygon", "line", "connector", "caption")


class Writer:
    """Collects the blocks of a document: headings as `#`, list items as `-`, tables as rows, notes at the end.

    Args:
        styles: What the paragraphs' styles are based on; a title is told by its style only.
    """

    def __init__(self, styles: "Iterable[Element]" = ()) -> None:
        self._parents = {attribute(style, "name"): attribute(style, "parent-style-name") for style in styles}
        self._blocks: list[tuple[str, bool]] = []  # text, and whether it is a list item
        self._notes: list[str] = []
        self.title: str | None = None

    def text(self) -> str:
        """The blocks so far: a blank line between them, none between the items of a list."""
        pairs = zip(self._blocks, [("", False), *self._blocks], strict=False)
        return "".join(("\n" if item and after else "\n\n") + block for (block, item), (_, after) in pairs)[2:]

    def notes(self) -> None:
        """Write the notes, numbered in the order in which the text refers to them."""
        for number, note in enumerate(self._notes, start=1):
            self.add(f"[^{number}]: {note}")

    def comments(self, body: "Element") -> None:
        """Write the remarks of those who reviewed the document."""
        said = []
        for remark in body.iter("{*}annotation"):
            text = " ".join(" ".join(map(_plain, remark.iter("{*}p"))).split())
            author = " ".join((remark.findtext("{*}creator") or "").split())
            if text:
                said.append(f"- {author}: {text}" if author else f"- {text}")
        if said:
            self.add("### Comments")
        for item in said:
            self.add(item, is_item=True)

    def add(self, block: str, *, is_item: bool = False) -> None:
        """Write a block unless it is empty."""
        if block.strip():
            self._blocks.append((block, is_item))

    def once(self, container: "Element") -> None:
        """Write what a running header or footer says that has not been written yet."""
        before = len(self._blocks)
        self.blocks(container)
        known = set(self._blocks[:before])
        self._blocks[before:] = [block for block in dict.fromkeys(self._blocks[before:]) if block not in known]

    def blocks(self, container: "Element", depth: int = 0) -> None:
        """Write everything inside `container` that is seen, in its order."""
        for element in container:
            name = local(element)
            if not name or name in _UNSEEN:
                continue
            if name == "h" or (name == "p" and self._is_title(element)):
                self._heading(element)
            elif name == "p":
                self._paragraph(element, "")
            elif name == "list":
                self._list(element, 0)
            elif name == "table":
                self._table(element, depth)
            elif depth < _DEPTH and (name in _CONTAINERS or name in _SHAPES):
                self.blocks(element, depth + 1)

    def slides(self, body: "Element", word: str) -> int:
        """Write every page of a presentation or drawing under a heading, its notes under another; return how many."""
        number = 0
        for number, page in enumerate(body.iterchildren("{*}page"), start=1):
            shapes = list(page.iterchildren())
            titled = [shape for shape in shapes if attribute(shape, "class") == "title" and local(shape) == "frame"]
            title = " ".join(" ".join(map(line, titled)).split())
            self.title = self.title or title or None
            self.add(f"## {word} {number}: {title}" if title else f"## {word} {number}")
            for shape in shapes:
                if local(shape) == "notes":
                    self._page_notes(shape)
                elif shape not in titled and local(shape) in _SHAPES:
                    self.blocks(shape)
        return number

    def _page_notes(self, notes: "Element") -> None:
        text = [line(frame) for frame in notes.iterchildren("{*}frame") if attribute(frame, "class") == "notes"]
        if any(text):
            self.add("### Notes")
            self.add("\n\n".join(filter(None, text)))

    def _heading(self, element: "Element") -> None:
        text, hanging = self._inline(element)
        title = " ".join(text.split())
        level = attribute(element, "outline-level") or "1"
        depth = int(level) if level.isdecimal() and len(level) < 3 else 1
        if title:
            self.title = self.title or (title if depth == 1 else None)
            self.add(f"{'#' * min(max(depth, 1), 6)} {title}")
        self._hanging(hanging)

    def _is_title(self, element: "Element") -> bool:
        style = attribute(element, "style-name")
        return "Title" in (style, self._parents.get(style))

    def _paragraph(self, element: "Element", indent: str, *, mark: str = "") -> None:
        text, hanging = self._inline(element)
        text = text.strip()
        if text:
            further = indent + " " * len(mark)
            self.add(f"{indent}{mark}" + text.replace("\n", f"\n{further}"), is_item=bool(mark))
        self._hanging(hanging)

    def _hanging(self, shapes: "list[Element]") -> None:
        """Write the text boxes that hang on a paragraph behind it."""
        for shape in shapes:
            self.blocks(shape, _DEPTH // 2)

    def _list(self, element: "Element", level: int) -> None:
        for item in element.iterchildren("{*}list-item", "{*}list-header"):
            mark = "- "
            for block in item:
                name = local(block)
                if name in ("p", "h"):
                    self._paragraph(block, "  " * level + ("" if mark else "  "), mark=mark)
                    mark = ""
                elif name == "list":
                    self._list(block, min(level + 1, _LEVELS))
                elif name == "table":
                    self._table(block, _DEPTH)

    def _table(self, table: "Element", depth: int) -> None:
        """Write a table; one of a single cell is a frame around text. What is repeated stands as often, in reason."""
        rows = list(_rows(table))
        cells = [cell for row in rows[:2] for cell in _cells(row)]
        if len(rows) == len(cells) == 1 and depth < _DEPTH:
            self.blocks(cells[0], depth + 1)
            return
        written: list[list[str]] = []
        for row in rows:
            texts: list[str] = []
            for cell in _cells(row):
                texts += [line(cell, self._notes)] * _repeated(cell, "number-columns-repeated")
            written += [texts[:COLUMNS]] * (_repeated(row, "number-rows-repeated") if any(texts) else 1)
        self.add(markdown(written))

    def _inline(self, element: "Element") -> tuple[str, "list[Element]"]:
        """The characters of a paragraph, and the shapes with text that hang on it."""
        hanging: list[Element] = []
        return "".join(_pieces(element, self._notes, hanging)), hanging


def line(container: "Element", notes: list[str] | None = None) -> str:
    """All text inside `container` on one line, that of tables and boxes within it too; `notes` receives its notes."""
    kept = notes if notes is not None else []
    seen = (one for one in container.iter("{*}p", "{*}h") if not any(map(_hides, _above(one, container))))
    texts = ["".join(_pieces(paragraph, kept, [])) for paragraph in seen]
    return " ".join(" ".join(texts).split())


def _hides(element: "Element") -> bool:
    """Whether what is inside an element is not read where it stands."""
    name = local(element)
    return name in _UNSEEN or name == "note"


def _plain(paragraph: "Element") -> str:
    """The text of one paragraph."""
    return " ".join("".join(_pieces(paragraph, [], [])).split())


def _above(element: "Element", top: "Element") -> Iterator["Element"]:
    for above in element.iterancestors():
        if above is top:
            return
        yield above


def _pieces(element: "Element", notes: list[str], hanging: "list[Element]") -> Iterator[str]:
    """The text of a paragraph in pieces; notes go to `notes`, the shapes that hang on it to `hanging`."""
    yield element.text or ""
    waiting = [iter(element)]
    tails = [""]
    while waiting:
        child = next(waiting[-1], None)
        if child is None:
            waiting.pop()
            yield tails.pop()
            continue
        name, tail = local(child), child.tail or ""
        if name in ("span", "a", "meta", "meta-field", "ruby", "ruby-base", "bookmark-ref", "reference-ref"):
            yield child.text or ""
            waiting.append(iter(child))
            tails.append(tail)
            continue
        if name == "s":
            count = attribute(child, "c") or "1"
            yield " " * min(natural(count, 1), _SPACES)
        elif name in ("tab", "line-break"):
            yield "\t" if name == "tab" else "\n"
        elif name == "note":
            notes.append(" ".join(line(body) for body in child.iterchildren("{*}note-body")))
            yield f"[^{len(notes)}]"
        elif name in _SHAPES:
            hanging.append(child)
        elif name and name not in _UNSEEN:
            yield "".join(child.itertext()) if not len(child) else ""  # a field: a date, an author
        yield tail


def _rows(table: "Element") -> Iterator["Element"]:
    """The rows of a table, those in groups and of headings too, but not of tables within."""
    for child in table:
        name = local(child)
        if name == "table-row":
            yield child
        elif name in ("table-header-rows", "table-row-group", "table-rows"):
            yield from _rows(child)


def _cells(row: "Element") -> Iterator["Element"]:
    yield from row.iterchildren("{*}table-cell", "{*}covered-table-cell")


def _filled(row: "Element") -> bool:
    return next(row.iter("{*}p", "{*}h"), None) is not None


def _repeated(element: "Element", name: str) -> int:
    times = attribute(element, name) or "1"
    return min(int(times), _REPEATED) if times.isdecimal() and len(times) < 10 else 1


class Sheets:
    """Collects the sheets of a spreadsheet, row by row: what the cells show, and the notes on them."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._hidden: set[str] = set()
        self.sheets: list[Sheet] = []

    def style(self, style: "Element") -> None:
        """Learn which sheets are hidden: those of a style that says so, which stands before them."""
        for properties in style.iterchildren("{*}table-properties"):
            if attribute(properties, "display") == "false":
                self._hidden.add(attribute(style, "name") or "")

    def table(self, table: "Element") -> None:
        """Begin a sheet."""
        name = " ".join((attribute(table, "name") or "").split()) or f"Sheet {len(self.sheets) + 1}"
        self.sheets.append(Sheet(name, self._limits, hidden=attribute(table, "style-name") in self._hidden))

    def row(self, row: "Element") -> None:
        """Take a row of the last sheet."""
        sheet = self.sheets[-1]
        if sheet.full:
            sheet.dropped += _filled(row)
            return
        cells: dict[int, str] = {}
        column = 1
        for cell in row.iterchildren("{*}table-cell", "{*}covered-table-cell"):
            text = sheet.cell(line(cell))
            for note in cell.iterchildren("{*}annotation"):
                remark = " ".join(map(_plain, note.iter("{*}p")))
                text = f"{text} [note: {remark[: self._limits.characters]}]".strip() if remark else text
            times = attribute(cell, "number-columns-repeated") or "1"
            count = int(times) if times.isdecimal() and len(times) < 10 else 1
            if column > COLUMNS:
                break
            if text:
                cells.update(dict.fromkeys(range(column, column + min(count, _REPEATED)), text))
            column += count
        for _ in range(_repeated(row, "number-rows-repeated") if cells else 1):
            sheet.row((sheet.position + 1, cells))
