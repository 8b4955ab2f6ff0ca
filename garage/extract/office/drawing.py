"""DrawingML, the markup of what is drawn in Office files: text frames, tables, charts and diagrams (SmartArt)."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from garage.extract.office.archive import attribute, local, natural
from garage.extract.tables import markdown

if TYPE_CHECKING:
    from garage.extract.office.archive import Archive, Element

_LEVELS = 9
_POINTS = 200  # of a chart's series; one of more is a measurement, not something to read
_SPAN = 63
_BULLETS = ("buChar", "buAutoNum", "buBlip")


def paragraph_text(paragraph: "Element") -> str:
    """The characters of a paragraph; fields that only number the page are none."""
    parts: list[str] = []
    for element in paragraph.iter("{*}t", "{*}br", "{*}tab"):
        name = local(element)
        if name == "br":
            parts.append("\n")
        elif name == "tab":
            if local(_parent(element)) != "tabLst":
                parts.append("\t")
        elif _parent(element).get("type") != "slidenum":
            parts.append(element.text or "")
    return "".join(parts).replace("\v", "\n").strip()


def paragraphs(body: "Element", *, bullets: bool = False) -> list[str]:
    """The paragraphs of a text body, list items as `-` by their level.

    With `bullets` paragraphs are items unless they say otherwise, as those of a slide's placeholder for text are.
    """
    lines = []
    for paragraph in body.iter("{*}p"):
        text = paragraph_text(paragraph)
        if not text:
            continue
        properties = paragraph.find("{*}pPr")
        says = {local(child) for child in properties} if properties is not None else set()
        level = properties.get("lvl", "0") if properties is not None else "0"
        depth = min(natural(level, 0), _LEVELS)
        if "buNone" not in says and (bullets or depth or says.intersection(_BULLETS)):
            indent = "  " * depth
            lines.append(f"{indent}- " + text.replace("\n", f"\n{indent}  "))
        else:
            lines.append(text)
    return lines


def line(container: "Element") -> str:
    """All text inside `container` on one line."""
    return " ".join(" ".join(map(paragraph_text, container.iter("{*}p"))).split())


def table(element: "Element") -> str:
    """A table as Markdown; cells that others are merged into hold the text, the others are empty."""
    rows = []
    for row in element.iterchildren("{*}tr"):
        cells = []
        for cell in row.iterchildren("{*}tc"):
            merged = cell.get("hMerge") in ("1", "true") or cell.get("vMerge") in ("1", "true")
            cells.append("" if merged else line(cell))
        rows.append(cells[: _SPAN * 4])
    return markdown(rows)


def chart(root: "Element", *, data: bool = True) -> list[str]:
    """A chart's titles as lines, then with `data` its series and categories as a table."""
    titles = [line(title) for title in root.iter("{*}title")]
    series = list(root.iter("{*}ser"))
    blocks = [title for title in dict.fromkeys(titles) if title]
    if not data:
        return blocks
    names: list[str] = []
    columns: list[dict[int, str]] = []
    categories: dict[int, str] = {}
    for one in series:
        names.append(" ".join(_points(one.find("{*}tx")).values()))
        values = one.find("{*}val")
        columns.append(_points(values if values is not None else one.find("{*}yVal")))
        labels = one.find("{*}cat")
        categories = categories or _points(labels if labels is not None else one.find("{*}xVal"))
    indices = sorted({*categories, *(index for column in columns for index in column)})[:_POINTS]
    rows = [[categories.get(index, ""), *(column.get(index, "") for column in columns)] for index in indices]
    written = markdown([["", *names], *rows])
    return [*blocks, written] if written else blocks


def _points(element: "Element | None") -> dict[int, str]:
    """The values of a chart that are kept in it, by their index; those of categories in levels are the finest."""
    found: dict[int, str] = {}
    for point in element.iter("{*}pt") if element is not None else ():
        index = point.get("idx", "")
        if index.isdecimal() and len(index) < 8:
            found.setdefault(int(index), " ".join("".join(point.itertext()).split()))
    if element is not None and not found and (value := element.find("{*}v")) is not None:
        found[0] = " ".join((value.text or "").split())
    return found


def diagram(root: "Element") -> list[str]:
    """The texts of a diagram (SmartArt) as list items, in the order in which they are kept."""
    texts = (line(point) for point in root.iter("{*}pt"))
    return [f"- {text}" for text in texts if text]


def graphics(archive: "Archive", part: str, element: "Element", *, data: bool = True) -> Iterator[str]:
    """What the charts and diagrams that `element` of a part refers to say, as blocks."""
    targets = {relation.identifier: relation.target for relation in archive.relations(part)}
    for reference in element.iter("{*}chart", "{*}relIds"):
        kind = local(reference)
        identifier = attribute(reference, "id" if kind == "chart" else "dm")
        root = archive.xml(targets[identifier]) if identifier in targets else None
        if root is not None and kind == "chart":
            yield from chart(root, data=data)
        elif root is not None:
            yield "\n".join(diagram(root))


def _parent(element: "Element") -> "Element":
    parent = element.getparent()
    return element if parent is None else parent
