"""The slides of a presentation (PresentationML) written as Markdown.

python-pptx gives a whole file up when one relationship points nowhere, and has no interface for diagrams and comments;
the parts are read as they are.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

from garage.extract.mirror import clean_line
from garage.extract.office.archive import local
from garage.extract.office.drawing import graphics, line, paragraphs, table

if TYPE_CHECKING:
    from garage.extract.office.archive import Archive, Element

_ROW = 228_600  # English Metric Units, a quarter of an inch: what lies that close side by side is one row
_TITLES = ("title", "ctrTitle")
_UNSEEN = ("sldNum", "dt")
_SHAPES = ("{*}sp", "{*}grpSp", "{*}graphicFrame", "{*}cxnSp", "{*}pic")

Place: TypeAlias = tuple[int, int]
"""Distance from the top and from the left in English Metric Units."""


class Writer:
    """Collects the blocks of slides."""

    def __init__(self, archive: "Archive", authors: dict[str, str]) -> None:
        self._archive = archive
        self._authors = authors
        self._layouts: dict[str, dict[str, Place]] = {}
        self._footers: set[str] = set()
        self.blocks: list[str] = []
        self.has_text = False
        self.title: str | None = None

    def slide(self, number: int, part: str) -> None:
        """Write one slide; one that cannot be read keeps its heading."""
        root = self._archive.xml(part) if part else None
        tree = root.find("{*}cSld/{*}spTree") if root is not None else None
        hidden = " (hidden)" if root is not None and root.get("show") in ("0", "false") else ""
        heading = f"## Slide {number}{hidden}"
        if tree is None:
            self.blocks.append(heading)
            return
        title = next((text for shape in tree.iter("{*}sp") if _role(shape) in _TITLES and (text := line(shape))), "")
        self.title = self.title or clean_line(title)
        self.blocks.append(f"{heading}: {title}" if title else heading)
        self.has_text = self.has_text or bool(title)
        self._shapes(part, tree, self._inherited(part))
        for notes in self._archive.related(part, "notesSlide"):
            self._notes(notes)
        self._comments(part)

    def _shapes(self, part: str, tree: "Element", inherited: dict[str, Place]) -> None:
        for shape in _ordered(tree, inherited):
            role = _role(shape)
            if role in _TITLES or role in _UNSEEN:
                continue
            if shape.tag.endswith("}grpSp"):
                self._shapes(part, shape, {})
                continue
            body = shape.find("{*}txBody")
            if body is not None:
                text = "\n".join(paragraphs(body, bullets=role in ("body", "obj")))
                if role == "ftr" and text in self._footers:
                    continue
                self._footers.update({text} if role == "ftr" else ())
                self._add(text)
            for grid in shape.iter("{*}tbl"):
                self._add(table(grid))
            for block in graphics(self._archive, part, shape):
                self._add(block)

    def _inherited(self, part: str) -> dict[str, Place]:
        """Where a slide's placeholders lie by its layout and master: by index and by type."""
        for layout in self._archive.related(part, "slideLayout"):
            if layout not in self._layouts:
                places: dict[str, Place] = {}
                for source in (*self._archive.related(layout, "slideMaster"), layout):
                    root = self._archive.xml(source) if source in self._archive else None
                    for shape in root.iter("{*}sp") if root is not None else ():
                        place = _place(shape)
                        if place is not None:
                            places.update(dict.fromkeys(_placeholder(shape), place))
                self._layouts[layout] = places
            return self._layouts[layout]
        return {}

    def _notes(self, part: str) -> None:
        root = self._archive.xml(part)
        lines = []
        for shape in root.iter("{*}sp") if root is not None else ():
            body = shape.find("{*}txBody")
            if body is not None and _role(shape) not in ("sldNum", "dt", "hdr", "ftr", "sldImg"):
                lines += paragraphs(body)
        self._section("Notes", lines)

    def _comments(self, part: str) -> None:
        """Remarks of reviewers, in the old form (a text) and in the new one (paragraphs, with replies)."""
        lines = []
        for name in self._archive.related(part, "comments"):
            root = self._archive.xml(name)
            for comment in root.iter("{*}cm", "{*}reply") if root is not None else ():
                author = self._authors.get(comment.get("authorId", ""), "")
                bodies = [comment.findtext("{*}text") or "", *map(line, comment.iterchildren("{*}txBody"))]
                text = " ".join(" ".join(bodies).split())
                if text:
                    lines.append(f"- {author}: {text}" if author else f"- {text}")
        self._section("Comments", lines)

    def _section(self, name: str, lines: list[str]) -> None:
        if lines:
            self.blocks.append(f"### {name}")
            self._add("\n".join(lines))

    def _add(self, block: str) -> None:
        if block.strip():
            self.blocks.append(block)
            self.has_text = True


def authors(archive: "Archive", main: str) -> dict[str, str]:
    """The names of those who commented by the identifiers that comments have of them."""
    names: dict[str, str] = {}
    for part in (*archive.related(main, "commentAuthors"), *archive.related(main, "authors")):
        root = archive.xml(part)
        for author in root.iter("{*}cmAuthor", "{*}author") if root is not None else ():
            names[author.get("id", "")] = clean_line(author.get("name")) or ""
    return names


def _ordered(tree: "Element", inherited: dict[str, Place]) -> Iterator["Element"]:
    """The shapes of a slide or group as they are read: by rows from the top, in a row from the left."""
    placed: list[tuple[Place, Element]] = []
    last: Place = (0, 0)
    for child in tree:
        shape = _shown(child)
        if shape is not None:
            keys = _placeholder(shape)
            last = _place(shape) or next((inherited[key] for key in keys if key in inherited), last)
            placed.append((last, shape))
    placed.sort(key=lambda one: one[0][0])
    rows: list[list[tuple[Place, Element]]] = []
    for one in placed:
        if rows and one[0][0] - rows[-1][0][0][0] <= _ROW:
            rows[-1].append(one)
        else:
            rows.append([one])
    for row in rows:
        yield from (shape for _, shape in sorted(row, key=lambda one: one[0][1]))


def _shown(child: "Element") -> "Element | None":
    """A shape, itself or the first of the alternatives for different programs; None for anything else."""
    if local(child) == "AlternateContent":
        return next((shape for shape in child.iter(*_SHAPES)), None)
    return child if f"{{*}}{local(child)}" in _SHAPES else None


def _place(shape: "Element") -> Place | None:
    """Where a shape says that it lies; None when it leaves that to its layout."""
    for offset in shape.iterfind("{*}xfrm/{*}off"):  # a frame's own
        return _number(offset.get("y")), _number(offset.get("x"))
    for name in ("spPr", "grpSpPr"):
        for offset in shape.iterfind(f"{{*}}{name}/{{*}}xfrm/{{*}}off"):
            return _number(offset.get("y")), _number(offset.get("x"))
    return None


def _number(text: str | None) -> int:
    digits = (text or "").strip()
    return int(digits) if digits.lstrip("-").isdecimal() and len(digits) < 20 else 0


def _placeholder(shape: "Element") -> tuple[str, ...]:
    """Under what a placeholder's place is looked up: its index, then its type; nothing for other shapes."""
    found = next(shape.iterfind("*/{*}nvPr/{*}ph"), None)
    if found is None:
        return ()
    return f"index {found.get('idx', '0')}", f"type {_type(found)}"


def _type(placeholder: "Element") -> str:
    return str(placeholder.get("type", "obj"))


def _role(shape: "Element") -> str:
    """The type of placeholder that a shape is; '' for one that is none."""
    found = next(shape.iterfind("*/{*}nvPr/{*}ph"), None)
    return "" if found is None else _type(found)
