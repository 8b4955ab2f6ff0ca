"""Zip containers of XML parts, which Office, OpenDocument and EPUB files are, opened as files that nobody vouches for.

What unpacks without end is refused by the sizes that the archive states, and a part unpacks no further than its own.
Entities are never looked up or expanded, nothing is fetched. A part that is missing or damaged costs that part only:
it is None, and a warning says so.
"""

import io
import posixpath
import re
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, TypeAlias

from lxml import etree

from garage.extract.mirror import JSON, clean_metadata, clean_text
from garage.extract.model import Encrypted, Malformed, TooLarge, Unsupported

if TYPE_CHECKING:
    Element: TypeAlias = etree._Element  # noqa: SLF001 - the class has no public name

UNPACKED_BYTES = 512 * 1024 * 1024
"""Most bytes that the parts read from one file may unpack to."""

BROKEN = (zipfile.BadZipFile, EOFError, OSError, ValueError, NotImplementedError, zlib.error, etree.XMLSyntaxError)
"""What reading a damaged part raises."""

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_OLE_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
_ZIP_ENCRYPTED = 0x1
_TEXTS = (".xml", ".rels", ".opf", ".ncx", ".html", ".xhtml", ".htm", ".vml")
_WARNING = 100
_CORE = {
    "title": "title",
    "creator": "author",
    "lastModifiedBy": "last_modified_by",
    "created": "created",
    "modified": "modified",
    "subject": "subject",
    "keywords": "keywords",
    "category": "category",
    "language": "language",
    "description": "description",
}
_DATE = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?")


def opened(raw: bytes) -> zipfile.ZipFile:
    """Return the archive that an Office file is.

    Raises:
        Encrypted: it opens with a password only.
        Unsupported: it is an Office file of the old kind, from before 2007.
        TooLarge: its texts unpack to more than `UNPACKED_BYTES`.
        Malformed: it is no zip archive.
    """
    if is_old(raw):
        raise Unsupported("it is a file of the format before 2007", hint="Save a copy of it in the new format.")
    try:
        archive = zipfile.ZipFile(io.BytesIO(raw))
    except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        raise Malformed(f"it is no archive: {error}") from error
    if any(entry.flag_bits & _ZIP_ENCRYPTED for entry in archive.infolist()):
        raise Encrypted("it opens with a password only")
    if sum(entry.file_size for entry in archive.infolist() if entry.filename.lower().endswith(_TEXTS)) > UNPACKED_BYTES:
        raise TooLarge(f"it unpacks to more than {UNPACKED_BYTES} bytes")
    return archive


def is_old(raw: bytes) -> bool:
    """Whether it is a file of the format before 2007, which is an OLE container.

    Raises:
        Encrypted: it is a locked file of the new format, which stands in such a container.
    """
    if raw.startswith(_OLE) and _OLE_ENCRYPTED in raw:
        raise Encrypted("it opens with a password only", hint="Save a copy of it without the password.")
    return raw.startswith(_OLE)


def parsed(data: bytes) -> "Element":
    """Return the root of an XML document; entities in it stay unread and nothing is fetched.

    Raises:
        ValueError: text is hidden in entities, which the standards of these files forbid.
        etree.XMLSyntaxError: it is damaged.
        MemoryError: there is not enough memory for its tree.
    """
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise memory_or(error) from error
    refuse_entities(root)
    return root


def elements(
    stream: IO[bytes], tags: tuple[str, ...], *, events: tuple[str, ...] = ("start", "end")
) -> "Iterator[tuple[str, Element]]":
    """The elements with these tags one by one, each with its event; entities stay unread and nothing is fetched.

    Raises:
        etree.XMLSyntaxError: it is damaged, told when the damage is reached.
        MemoryError: there is not enough memory.
    """
    try:
        yield from etree.iterparse(
            stream, events=events, tag=tags, resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False
        )
    except etree.XMLSyntaxError as error:
        raise memory_or(error) from error


def forget(element: "Element") -> None:
    """Free an element that has been read, and those before it."""
    element.clear()
    while (before := element.getprevious()) is not None:
        before.getparent().remove(before)


def memory_or(error: Exception) -> Exception:
    """What an error of a parser stands for: libxml2 reports that memory ran out as if the text were wrong."""
    no_memory = isinstance(error, etree.XMLSyntaxError) and error.code == etree.ErrorTypes.ERR_NO_MEMORY
    return MemoryError("the parser ran out of memory") if no_memory else error


def refuse_entities(root: "Element") -> None:
    """Raise ValueError where text is hidden in entities: the standards forbid them, and they are not looked up."""
    if next(root.iter(etree.Entity), None) is not None:
        raise ValueError("it uses entities")


def natural(text: str, usual: int) -> int:
    """A count or an index as an attribute gives it, `usual` for what is none.

    Python refuses numbers of thousands of digits; of these the first ones are as far beyond any limit.
    """
    return int(text[:20]) if text.isdecimal() else usual


def local(element: "Element") -> str:
    """The name of an element without its namespace; '' for comments and the like."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def attribute(element: "Element", name: str) -> str | None:
    """The value of an attribute that has a namespace, whichever: the dialects of a standard differ in them."""
    return next((str(value) for key, value in element.attrib.items() if str(key).endswith("}" + name)), None)


@dataclass(frozen=True, slots=True)
class Relation:
    """What a part of an Office file refers to: `kind` is the last word of the type, `target` the name of a part."""

    identifier: str
    kind: str
    target: str


class Archive:
    """The parts of a container by name, whatever their case; `warnings` tells which could not be had.

    Raises:
        ExtractError: as `opened` does.
    """

    def __init__(self, raw: bytes) -> None:
        self._zip = opened(raw)
        self._entries = {_plain(entry.filename): entry for entry in self._zip.infolist()}
        self._read = 0
        self.warnings: list[str] = []

    def __contains__(self, name: str) -> bool:
        return _plain(name) in self._entries

    def names(self) -> Iterator[str]:
        """The names of all parts, in lower case."""
        return iter(self._entries)

    def numbered(self, stem: str) -> list[str]:
        """The parts called `stem` and a number, by that number: what a damaged main part may have referred to."""
        pattern = re.compile(re.escape(stem) + r"(\d{1,6})\.xml")
        return sorted(filter(pattern.fullmatch, self._entries), key=lambda name: int(name[len(stem) : -4]))

    def open(self, name: str) -> IO[bytes] | None:
        """A stream of a part; None with a warning when there is none. It unpacks no further than its stated size."""
        try:
            return self._zip.open(self._entries[_plain(name)])
        except KeyError:
            self.warn(name, "is missing")
        except BROKEN as error:
            self.warn(name, f"cannot be read: {error}")
        return None

    def read(self, name: str) -> bytes | None:
        """The bytes of a part; None with a warning when they cannot be had.

        Raises:
            TooLarge: it and what has been read before are more than `UNPACKED_BYTES`.
        """
        stream = self.open(name)
        if stream:
            self._read += self._entries[_plain(name)].file_size
        if self._read > UNPACKED_BYTES:
            raise TooLarge(f"it unpacks to more than {UNPACKED_BYTES} bytes")
        try:
            return stream.read() if stream else None
        except BROKEN as error:
            self.warn(name, f"cannot be read: {error}")
            return None

    def xml(self, name: str) -> "Element | None":
        """The root of a part that is XML; None with a warning when it cannot be had."""
        data = self.read(name)
        try:
            return None if data is None else parsed(data)
        except BROKEN as error:
            self.warn(name, f"cannot be read: {error}")
            return None

    def warn(self, name: str, what: str) -> None:
        """Remember what is wrong with a part."""
        self.warnings.append(f"the part {clean_text(name)[:_WARNING]} {clean_text(what)[:_WARNING]}")

    def relations(self, name: str = "") -> list[Relation]:
        """What a part, or the file itself, refers to within the file, in its order; nothing when that is lost."""
        folder, _, base = name.rpartition("/")
        rels = f"{folder}/_rels/{base}.rels"
        root = self.xml(rels) if rels in self else None
        found = []
        for item in root.iter("{*}Relationship") if root is not None else ():
            target = item.get("Target", "")
            if target and item.get("TargetMode") != "External":
                kind = item.get("Type", "").rpartition("/")[2]
                found.append(Relation(item.get("Id", ""), kind, _plain(posixpath.join("/" + folder, target))))
        return found

    def related(self, name: str, kind: str) -> list[str]:
        """The names of the parts of a kind that a part refers to."""
        return [relation.target for relation in self.relations(name) if relation.kind == kind]

    def main(self, usual: str) -> str:
        """The name of the main part of an Office file; `usual` when the file does not say."""
        said = [target for target in self.related("", "officeDocument") if target in self]
        return said[0] if said else usual

    def core(self) -> dict[str, JSON]:
        """Title, author, dates and the like under the names that all kinds of file share."""
        names = [*self.related("", "core-properties"), "docprops/core.xml"]
        root = next((root for name in names if name in self and (root := self.xml(name)) is not None), None)
        said: dict[str, Any] = {}
        for item in root if root is not None else ():
            key = _CORE.get(local(item))
            text = clean_text(item.text or "")
            if key and text and (key not in ("created", "modified") or _DATE.fullmatch(text)):
                said.setdefault(key, text)
        cleaned = clean_metadata(said)
        return cleaned if isinstance(cleaned, dict) else {}


def _plain(name: str) -> str:
    return posixpath.normpath("/" + name.replace("\\", "/").lower()).strip("/")
