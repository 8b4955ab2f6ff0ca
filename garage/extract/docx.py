"""Word: the text of a document as Markdown, in the order in which it is read."""

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from garage.extract.mirror import canonical, clean_line
from garage.extract.model import Extracted, Malformed, Unsupported
from garage.extract.ooxml import Package, attribute, local
from garage.extract.wordprocessing import Styles, Writer

NAME = "docx"
LIBRARIES: tuple[str, ...] = ()
SUFFIXES = dict.fromkeys((".docx", ".docm", ".dotx", ".dotm"), "markdown")

_NOTES = {"footnotes": "footnote", "endnotes": "endnote"}
_WARNINGS = 20


def extract(raw: bytes, *, name: str) -> Extracted:
    """Return headings as `#`, list items as `-`, tables as rows, text boxes behind the paragraph that they hang on.

    Footnotes and endnotes follow the body, then the headers and footers, each once. Tracked changes are read as if
    accepted; comments are left out.

    Raises:
        Encrypted: it opens with a password only.
        Unsupported: it is a file of another program, or of Word before 2007.
        TooLarge: it unpacks to more than a document of text ever would.
        Malformed: the archive or its main part is damaged.
    """
    del name
    package = Package(raw)
    main = next(package.related("officeDocument"), "word/document.xml")
    if not package.has(main):
        raise Unsupported("it holds no Word document")
    root = package.xml(main)
    if root is None:
        raise Malformed(package.warnings[-1])
    if local(root) != "document":
        raise Unsupported("it holds no Word document")
    writer = Writer(Styles(_related(package, main, "styles")), _notes(package, main))
    writer.blocks(root)
    title = writer.title
    writer.referenced_notes()
    for margin in _margins(package, main, root):
        writer.blocks(margin, once=True)
    said_title, meta = package.core_properties()
    return Extracted(
        content=canonical(writer.text()),
        kind="markdown",
        title=clean_line(said_title) or clean_line(title),
        meta=meta,
        warnings=tuple(package.warnings[:_WARNINGS]),
    )


def _related(package: Package, main: str, kind: str) -> Element | None:
    part = next(package.related(kind, main), None)
    return package.xml(part) if part else None


def _notes(package: Package, main: str) -> dict[tuple[str, str], Element]:
    """Every footnote and endnote by (kind, identifier); the lines that separate them from the text are none."""
    found = {}
    for part_kind, kind in _NOTES.items():
        root = _related(package, main, part_kind)
        for note in root if root is not None else ():
            if local(note) == kind and attribute(note, "type") in (None, "normal"):
                found[kind, attribute(note, "id") or ""] = note
    return found


def _margins(package: Package, main: str, root: Element) -> Iterator[Element]:
    """The headers and footers that a section of the document shows."""
    relations = package.relations(main)
    references = [attribute(e, "id") for e in root.iter() if local(e) in ("headerReference", "footerReference")]
    for part in dict.fromkeys(relations[r].part for r in references if r in relations):
        margin = package.xml(part)
        if margin is not None:
            yield margin
