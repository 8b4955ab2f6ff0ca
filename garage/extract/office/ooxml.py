"""What python-docx needs around it: damaged files are mended.

It gives a whole file up when one relationship points nowhere, which files that passed through several programs often
have, and takes neither macros and templates nor the strict dialect of the standard.
"""

import re
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from docx.opc.constants import CONTENT_TYPE, RELATIONSHIP_TYPE
from docx.opc.packuri import PACKAGE_URI, PackURI
from docx.opc.part import PartFactory
from docx.oxml.ns import qn
from docx.oxml.parser import parse_xml
from docx.package import Package

from garage.extract.mirror import JSON, clean_text
from garage.extract.model import Malformed, Unsupported
from garage.extract.office import archive as containers
from garage.extract.office.archive import BROKEN, memory_or, refuse_entities

if TYPE_CHECKING:
    from docx.document import Document
    from docx.opc.part import Part

_STRICT = re.compile(rb"http://purl\.oclc\.org/ooxml/(wordprocessingml|officeDocument)/")
_USUAL = rb"http://schemas.openxmlformats.org/\1/2006/"
_MAIN = "officeDocument"
_KINDS = {
    _MAIN: CONTENT_TYPE.WML_DOCUMENT_MAIN,
    "core-properties": CONTENT_TYPE.OPC_CORE_PROPERTIES,
    "styles": CONTENT_TYPE.WML_STYLES,
    "header": CONTENT_TYPE.WML_HEADER,
    "footer": CONTENT_TYPE.WML_FOOTER,
    "footnotes": CONTENT_TYPE.WML_FOOTNOTES,
    "endnotes": CONTENT_TYPE.WML_ENDNOTES,
    "comments": CONTENT_TYPE.XML,
    "chart": CONTENT_TYPE.XML,
    "diagramData": CONTENT_TYPE.XML,
}
_CORE = ("title", "author", "last_modified_by", "created", "modified", "subject", "keywords", "category", "language")


def sound(archive: zipfile.ZipFile) -> bool:
    """Whether all of it, pictures too, can be unpacked within `UNPACKED_BYTES`; a size that lies is found out."""
    if sum(entry.file_size for entry in archive.infolist()) > containers.UNPACKED_BYTES:
        return False
    try:
        return archive.testzip() is None
    except BROKEN:
        return False


def mended(archive: zipfile.ZipFile) -> "tuple[Document, list[str]]":
    """Return the document put together from the parts that hold text and can be read, and what was left out.

    Raises:
        Unsupported: it holds no Word document.
        Malformed: its main part is damaged.
    """
    entries = {"/" + e.filename.replace("\\", "/").strip("/").lower(): e for e in archive.infolist()}
    package = Package()
    warnings: list[str] = []

    def read(name: str) -> bytes | None:
        """The bytes of a part if it is XML that can be read; a size that lies unpacks no further."""
        try:
            with archive.open(entries[name]) as stream:
                data = _STRICT.sub(_USUAL, stream.read(entries[name].file_size + 1))
            refuse_entities(parse_xml(data))
            return data
        except KeyError:
            warnings.append(f"the part {clean_text(name[1:])[:100]} is missing")
        except BROKEN as error:
            if isinstance(memory_or(error), MemoryError):
                raise memory_or(error) from error
            warnings.append(f"the part {clean_text(name[1:])[:100]} cannot be read: {clean_text(str(error))[:100]}")
        return None

    def load(source: "Package | Part", name: PackURI) -> None:
        rels = read(name.rels_uri) if name.rels_uri in entries else None
        for kind, identifier, type_, target in _references(name, rels):
            data = read(target)
            if data is not None:
                part: Any = PartFactory(target, _KINDS[kind], type_, data, package)
                source.load_rel(type_, part, identifier)
            elif kind == _MAIN and target in entries:
                raise Malformed(warnings[-1])

    load(package, PACKAGE_URI)
    main = related(package, _MAIN)
    if main is None or main.element.tag != qn("w:document"):
        raise Unsupported("it holds no Word document")
    load(main, main.partname)
    return main.document, warnings


def _references(source: PackURI, rels: bytes | None) -> Iterator[tuple[str, str, str, PackURI]]:
    """Kind, identifier, type and target of what `source` refers to and may hold text; for lost ones the usual names."""
    if rels is None and source == PACKAGE_URI:
        yield _MAIN, "main", RELATIONSHIP_TYPE.OFFICE_DOCUMENT, PackURI("/word/document.xml")
        yield "core-properties", "core", RELATIONSHIP_TYPE.CORE_PROPERTIES, PackURI("/docprops/core.xml")
    for relationship in parse_xml(rels).iter("{*}Relationship") if rels else ():
        type_, target = relationship.get("Type", ""), relationship.get("Target", "").lower()
        if _kind(type_) in _KINDS and relationship.get("TargetMode") != "External":
            yield _kind(type_), relationship.get("Id", ""), type_, PackURI.from_rel_ref(source.baseURI, target)


def _kind(type_: str) -> str:
    return type_.rpartition("/")[2]


def related(source: "Package | Part", kind: str) -> Any:  # noqa: ANN401 - its class depends on the kind
    """The part that `source` refers to by its first relationship whose type ends in `kind`; None without any."""
    found = (r.target_part for r in source.rels.values() if not r.is_external and _kind(r.reltype) == kind)
    return next(found, None)


def core_properties(document: "Document") -> dict[str, JSON]:
    """Title, author, dates and the like under the names that all kinds of file share."""
    part = related(document.part.package, "core-properties")
    said: dict[str, JSON] = {}
    for key, name in (*zip(_CORE, _CORE, strict=True), ("description", "comments")) if part else ():
        with suppress(AttributeError, TypeError, ValueError, OverflowError):  # an odd root, a date that is none
            value = getattr(part.core_properties, name)
            said[key] = clean_text(value if isinstance(value, str) else value.isoformat().replace("+00:00", "Z"))
    return {key: value for key, value in said.items() if value}
