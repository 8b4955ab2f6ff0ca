"""EPUB: a book's chapters as Markdown, in the order in which they are read."""

import posixpath
from typing import TYPE_CHECKING
from urllib.parse import unquote

from garage.config import Extraction
from garage.extract.mirror import JSON, canonical, clean_line, clean_metadata, clean_text
from garage.extract.model import Encrypted, Extracted, Malformed, NoText, Unsupported
from garage.extract.web import markup

if TYPE_CHECKING:
    from garage.extract.office.archive import Archive, Element

NAME = "epub"
LIBRARIES = ("lxml", *markup.LIBRARIES)
SETTINGS = ()
TOOLS = ()
SUFFIXES = {".epub": "markdown"}

_WARNINGS = 20
_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
# Fonts are scrambled so that they cannot be taken out of a book; its text is open all the same.
_FONTS_ONLY = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")
_PAGES = (".xhtml", ".html", ".htm")
_META = {"creator": "author", "language": "language", "publisher": "publisher", "date": "published"}
_META |= {"subject": "keywords", "description": "description"}


def extract(raw: bytes, *, name: str, settings: Extraction) -> Extracted:
    """Return the pages of the spine one after the other; a page without a heading gets its title as one.

    Raises:
        NoText: no page holds any.
        Encrypted: its pages open in the program of the one who sold it only.
        Unsupported: it is no book.
        TooLarge: it unpacks to more than a book ever would.
        Malformed: it is no archive, or all that could have held text is damaged.
    """
    from garage.extract.office.archive import Archive

    del name, settings
    archive = Archive(raw)
    package = _package(archive)
    root = archive.xml(package) if package else None
    pages = _spine(package, root) if root is not None else []
    if not any(page in archive for page in pages):
        pages = [page for page in sorted(archive.names()) if page.endswith(_PAGES)]
        if pages:
            archive.warnings.append("the order of its pages is lost; they follow by their names")
    if not pages:
        raise Unsupported("it holds no book")
    _refuse_locked(archive, pages)
    meta = _meta(root)
    title = clean_line(meta.pop("title", None))
    blocks = _blocks(archive, pages, title)
    if not blocks and archive.warnings:
        raise Malformed(archive.warnings[0], meta=meta)
    if not blocks:
        raise NoText("its pages hold no text", meta=meta)
    return Extracted(
        content=canonical("\n\n".join(blocks)),
        kind="markdown",
        title=title,
        meta=meta,
        warnings=tuple(archive.warnings)[:_WARNINGS],
    )


def _package(archive: "Archive") -> str:
    """The name of the part that describes the book."""
    root = archive.xml(_CONTAINER) if _CONTAINER in archive else None
    for rootfile in root.iter("{*}rootfile") if root is not None else ():
        if (path := unquote(rootfile.get("full-path", ""))) in archive:
            return path
    return next((path for path in archive.names() if path.endswith(".opf")), "")


def _spine(package: str, root: "Element") -> list[str]:
    """The names of the pages in their order; a table of contents only repeats the headings."""
    items = {item.get("id", ""): item for item in root.iterfind("{*}manifest/{*}item")}
    found = []
    for reference in root.iterfind("{*}spine/{*}itemref"):
        item = items.get(reference.get("idref", ""))
        if item is not None and "nav" not in item.get("properties", "").split():
            href = unquote(item.get("href", "").partition("#")[0])
            found.append(posixpath.normpath(posixpath.join(posixpath.dirname(package), href)))
    return list(dict.fromkeys(found))


def _blocks(archive: "Archive", pages: list[str], title: str | None) -> list[str]:
    """The text of the pages that hold any."""
    blocks = []
    before: str | None = None
    for page in pages:
        data = archive.read(page)
        if data is None:
            continue
        read = markup.to_markdown(data)
        text = read.text.strip("\n")
        if not text.strip():
            continue
        if read.heading is None and read.title and read.title not in (title, before):
            text = f"## {read.title}\n\n{text}"
        before = read.title or before
        blocks.append(text)
        archive.warnings += [f"the part {page[:100]}: {warning}" for warning in read.warnings]
    return blocks


def _refuse_locked(archive: "Archive", pages: list[str]) -> None:
    root = archive.xml(_ENCRYPTION) if _ENCRYPTION in archive else None
    read = {page.lower() for page in pages}
    for item in root.iter("{*}EncryptedData") if root is not None else ():
        methods = {method.get("Algorithm", "") for method in item.iterchildren("{*}EncryptionMethod")}
        targets = {unquote(reference.get("URI", "")).lower() for reference in item.iter("{*}CipherReference")}
        if not methods <= set(_FONTS_ONLY) and targets & read:
            raise Encrypted("its pages open with a key of its seller only")


def _meta(root: "Element | None") -> dict[str, JSON]:
    from garage.extract.office.archive import local

    said: dict[str, list[str]] = {}
    for item in (item for meta in root.iter("{*}metadata") for item in meta) if root is not None else ():
        key = "title" if local(item) == "title" else _META.get(local(item))
        if key and (text := clean_text("".join(item.itertext()))):
            said.setdefault(key, []).append(text)
    joined = {key: ", ".join(texts) if key in ("author", "keywords") else texts[0] for key, texts in said.items()}
    cleaned = clean_metadata(joined)
    return cleaned if isinstance(cleaned, dict) else {}
