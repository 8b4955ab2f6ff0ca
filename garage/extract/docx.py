"""Word: the text of a document as Markdown, in the order in which it is read; python-docx opens the file."""

import io
from collections.abc import Iterable
from typing import TYPE_CHECKING

from garage.config import Extraction
from garage.extract.mirror import canonical, clean_line
from garage.extract.model import Extracted, ExtractError

if TYPE_CHECKING:
    from docx.document import Document

NAME = "docx"
LIBRARIES = ("python-docx", "lxml")
SETTINGS: tuple[str, ...] = ()
TOOLS: tuple[str, ...] = ()
SUFFIXES = dict.fromkeys((".docx", ".docm", ".dotx", ".dotm"), "markdown")

_WARNINGS = 20


def extract(raw: bytes, *, name: str, settings: Extraction) -> Extracted:
    """Return headings as `#`, list items as `-`, tables as rows, text boxes behind the paragraph that they hang on.

    Charts and diagrams follow the body, then footnotes and endnotes, comments, and the headers and footers, each once.
    Tracked changes are read as if accepted.

    Raises:
        Encrypted: it opens with a password only.
        Unsupported: it is a file of another program, or of Word before 2007.
        TooLarge: it unpacks to more than a document of text ever would.
        Malformed: the archive or its main part is damaged.
    """
    from docx import Document
    from lxml.etree import XMLSyntaxError

    from garage.extract.office import ooxml
    from garage.extract.office.archive import memory_or, opened

    del name, settings
    archive = opened(raw)
    if ooxml.sound(archive):
        try:
            return _read(Document(io.BytesIO(raw)), ())
        except (ExtractError, MemoryError):
            raise
        except Exception:  # noqa: BLE001, S110 - whatever it stumbles over, it is put together without that
            pass
    try:
        return _read(*ooxml.mended(archive))
    except XMLSyntaxError as error:
        raise memory_or(error) from error


def _read(document: "Document", warnings: Iterable[str]) -> Extracted:
    from docx.oxml.ns import qn

    from garage.extract.office.ooxml import core_properties, related
    from garage.extract.office.wordprocessing import Styles, Writer, flatten, notes

    root, part = document.element, document.part
    flatten(root)
    writer = Writer(Styles(related(part, "styles")), {**notes(part, "footnote"), **notes(part, "endnote")})
    writer.blocks(root if root.body is None else root.body)
    title = writer.title
    writer.graphics(part)
    writer.referenced_notes()
    writer.comments(part)
    for reference in root.iter(qn("w:headerReference"), qn("w:footerReference")):
        margin = getattr(part.related_parts.get(reference.get(qn("r:id"))), "element", None)
        if margin is not None:
            flatten(margin)
            writer.blocks(margin, once=True)
    meta = core_properties(document)
    return Extracted(
        content=canonical(writer.text()),
        kind="markdown",
        title=clean_line(meta.pop("title", None)) or clean_line(title),
        meta=meta,
        warnings=tuple(warnings)[:_WARNINGS],
    )
