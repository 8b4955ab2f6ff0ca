"""OpenDocument: texts, presentations and drawings as Markdown, spreadsheets as their rows."""

import io
import re
from typing import TYPE_CHECKING

from garage.config import Extraction
from garage.extract.mirror import JSON, canonical, clean_line, clean_text
from garage.extract.model import Encrypted, Extracted, Malformed, NoText, Unsupported

if TYPE_CHECKING:
    from garage.extract.office.archive import Archive, Element

NAME = "odf"
LIBRARIES = ("lxml",)
SETTINGS = ("max_sheet_rows", "max_cell_chars")
TOOLS = ()
SUFFIXES = {
    **dict.fromkeys((".odt", ".ott", ".fodt", ".odp", ".otp", ".fodp", ".odg", ".otg", ".fodg"), "markdown"),
    **dict.fromkeys((".ods", ".ots", ".fods"), "tabular"),
}

_WARNINGS = 20
_SPREADSHEET = re.compile(rb"<(?:\w+:)?spreadsheet[\s>]")
_META = {
    "title": "title",
    "initial-creator": "author",
    "creator": "last_modified_by",
    "creation-date": "created",
    "date": "modified",
    "subject": "subject",
    "description": "description",
    "language": "language",
}
_DATE = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?")


def extract(raw: bytes, *, name: str, settings: Extraction) -> Extracted:
    """Return headings as `#`, lists, tables as rows, text boxes behind the paragraph that they hang on.

    Notes follow the body, then comments, then the headers and footers, each once. Slides are `## Slide n: title` with
    their notes; sheets are `## sheet` and a line a row, the cells as they show. Tracked changes are read as accepted.

    Raises:
        NoText: it holds none.
        Encrypted: it opens with a password only.
        Unsupported: it is a file of another program.
        TooLarge: it unpacks to more than a document of text ever would.
        Malformed: the archive or its content is damaged.
    """
    from garage.extract.office.archive import BROKEN, Archive, parsed

    del name
    warnings: list[str] = []
    if raw.startswith(b"PK"):
        archive = Archive(raw)
        _refuse_locked(archive)
        data, warnings = archive.read("content.xml"), archive.warnings
        if data is None:
            raise Malformed(warnings[-1]) if "content.xml" in archive else Unsupported("it is no OpenDocument file")
        others = [
            root for part in ("styles.xml", "meta.xml") if part in archive and (root := archive.xml(part)) is not None
        ]
    else:
        data, others = raw, []
    if _SPREADSHEET.search(data):
        return _sheets(data, others, settings, warnings)
    try:
        root = parsed(data)
    except BROKEN as error:
        raise Malformed(f"its content cannot be read: {error}") from error
    return _document(root, [root, *others], warnings)


def _document(root: "Element", roots: "list[Element]", warnings: list[str]) -> Extracted:
    from garage.extract.office.archive import local
    from garage.extract.office.opendocument import Writer

    body = next(root.iterfind("{*}body/*"), None)
    if body is None:
        raise Unsupported("it is no OpenDocument file")
    styles = (style for root in roots for style in root.iterfind("*/{*}style"))
    writer = Writer(styles)
    kind = local(body)
    meta = _meta(roots)
    if kind in ("presentation", "drawing"):
        pages = writer.slides(body, "Slide" if kind == "presentation" else "Page")
        meta |= {"slides" if kind == "presentation" else "pages": pages}
    else:
        writer.blocks(body)
        writer.notes()
        writer.comments(body)
        for page in (page for root in roots for page in root.iterfind("{*}master-styles/{*}master-page")):
            writer.once(page)
    content = writer.text()
    if not content:
        raise NoText("it holds no text", meta=meta)
    return Extracted(
        content=canonical(content),
        kind="markdown",
        title=clean_line(meta.pop("title", None)) or clean_line(writer.title),
        meta=meta,
        warnings=tuple(warnings)[:_WARNINGS],
    )


def _sheets(data: bytes, others: "list[Element]", settings: Extraction, warnings: list[str]) -> Extracted:
    from garage.extract.office.archive import BROKEN, elements, forget, local
    from garage.extract.office.opendocument import Sheets
    from garage.extract.office.tables import Limits, text

    found = Sheets(Limits.of(settings))
    roots = list(others)
    steps = {"style": found.style, "table": found.table, "table-row": found.row}
    try:
        for event, element in elements(io.BytesIO(data), (*(f"{{*}}{name}" for name in steps), "{*}meta")):
            name = local(element)
            if name == "meta":
                roots.append(element)
            elif (event == "start") == (name == "table"):
                steps[name](element)
            if event == "end" and name == "table-row":
                forget(element)
    except BROKEN as error:
        if not found.sheets:
            raise Malformed(f"its content cannot be read: {error}") from error
        warnings.append(f"the part content.xml cannot be read to its end: {clean_text(str(error))[:100]}")
    content = text(found.sheets)
    meta = _meta(roots)
    if not content and warnings:
        raise Malformed(warnings[0], meta=meta)
    if not content:
        raise NoText("no cell has a value", meta=meta)
    warnings += [warning for sheet in found.sheets for warning in sheet.warnings()]
    title = clean_line(meta.pop("title", None))
    meta |= {"sheets": len(found.sheets)}
    return Extracted(canonical(content), "tabular", title=title, meta=meta, warnings=tuple(warnings)[:_WARNINGS])


def _refuse_locked(archive: "Archive") -> None:
    manifest = "META-INF/manifest.xml"
    root = archive.xml(manifest) if manifest in archive else None
    if root is not None and next(root.iter("{*}encryption-data"), None) is not None:
        raise Encrypted("it opens with a password only", hint="Save a copy of it without the password.")


def _meta(roots: "list[Element]") -> dict[str, JSON]:
    """Title, author, dates and the like under the names that all kinds of file share."""
    from garage.extract.office.archive import local

    said: dict[str, JSON] = {}
    keywords: list[JSON] = []
    for item in (item for root in roots for meta in root.iter("{*}meta") for item in meta):
        key, text = _META.get(local(item)), clean_text(item.text or "")
        if local(item) == "keyword" and text:
            keywords.append(text)
        elif key and text and (key not in ("created", "modified") or _DATE.fullmatch(text)):
            said.setdefault(key, text)
    return {**said, "keywords": ", ".join(map(str, keywords))} if keywords else said
