"""The container of Office files (Open Packaging Conventions): parts in a zip archive, tied together by relationships.

Read directly rather than through a document library: those load every part of the file, pictures and all, and give the
whole file up when one relationship points nowhere, which files that passed through several programs often have.
"""

import io
import posixpath
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree import ElementTree as ET
from xml.etree.ElementTree import Element

from garage.extract.mirror import JSON, clean_text
from garage.extract.model import Encrypted, Malformed, TooLarge, Unsupported

UNPACKED_BYTES = 512 * 1024 * 1024
"""Most bytes that the parts read from one file may unpack to."""

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_OLE_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
_ZIP_ENCRYPTED = 0x1
_CORE = {
    "creator": "author",
    "lastModifiedBy": "last_modified_by",
    "created": "created",
    "modified": "modified",
    "subject": "subject",
    "keywords": "keywords",
    "category": "category",
    "description": "description",
    "language": "language",
}


@dataclass(frozen=True, slots=True)
class Relation:
    """What a part refers to: `kind` is the last word of the relationship's type, `part` the name of the target."""

    kind: str
    part: str


def local(element: Element) -> str:
    """The name of an element without its namespace, which differs between the two dialects of the standard."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def attribute(element: Element, name: str) -> str | None:
    """The value of an attribute, whatever its namespace."""
    for key, value in element.attrib.items():
        if key.rpartition("}")[2] == name:
            return value
    return None


class Package:
    """An Office file, opened for reading. Names of parts have no leading slash; their case does not matter.

    Raises:
        Encrypted: it opens with a password only.
        Unsupported: it is an Office file of the old kind, from before 2007.
        Malformed: it is no zip archive.
    """

    def __init__(self, raw: bytes) -> None:
        if raw.startswith(_OLE):
            if _OLE_ENCRYPTED in raw:
                raise Encrypted("it opens with a password only", hint="Save a copy of it without the password.")
            raise Unsupported("it is a file of the format before 2007", hint="Save a copy of it in the new format.")
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(raw))
        except zipfile.BadZipFile as error:
            raise Malformed(f"it is no Office file: {error}") from error
        self._entries = {entry.filename.replace("\\", "/").strip("/").lower(): entry for entry in self._zip.infolist()}
        self._left = UNPACKED_BYTES
        self.warnings: list[str] = []

    def has(self, part: str) -> bool:
        """Whether there is such a part."""
        return part.lower() in self._entries

    def read(self, part: str) -> bytes | None:
        """The bytes of a part; None when there is no such part.

        Raises:
            Encrypted: the part is locked.
            TooLarge: more was unpacked than `UNPACKED_BYTES`.
            Malformed: the archive is damaged there.
        """
        entry = self._entries.get(part.lower())
        if entry is None:
            return None
        if entry.flag_bits & _ZIP_ENCRYPTED:
            raise Encrypted("it opens with a password only")
        try:
            with self._zip.open(entry) as stream:
                data = stream.read(self._left + 1)
        except (zipfile.BadZipFile, EOFError, OSError, ValueError, NotImplementedError, zlib.error) as error:
            raise Malformed(f"its part {part} cannot be unpacked: {error}") from error
        self._left -= len(data)
        if self._left < 0:
            raise TooLarge(f"it unpacks to more than {UNPACKED_BYTES} bytes")
        return data

    def xml(self, part: str) -> Element | None:
        """The root element of a part; None, with a warning, when it is missing or no XML."""
        try:
            data = self.read(part)
            if data is not None:
                return ET.fromstring(data)  # noqa: S314 - expat bounds entities and fetches nothing
            self.warnings.append(f"the part {clean_text(part)[:100]} is missing")
        except (ET.ParseError, Malformed, LookupError, ValueError) as error:
            self.warnings.append(f"the part {clean_text(part)[:100]} cannot be read: {clean_text(str(error))[:100]}")
        return None

    def relations(self, part: str = "") -> dict[str, Relation]:
        """What `part` refers to inside the file, by the identifier it uses; "" stands for the file as a whole."""
        folder, name = posixpath.split(part)
        source = posixpath.join(folder, "_rels", f"{name}.rels")
        root = self.xml(source) if self.has(source) else None
        found: dict[str, Relation] = {}
        for element in root if root is not None else ():
            target, kind = element.get("Target"), element.get("Type")
            if target and kind and element.get("TargetMode") != "External":
                path = posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")
                found[element.get("Id", "")] = Relation(kind.rpartition("/")[2], path)
        return found

    def related(self, kind: str, part: str = "") -> Iterator[str]:
        """The parts that `part` refers to by a relationship of this kind."""
        return (relation.part for relation in self.relations(part).values() if relation.kind == kind)

    def core_properties(self) -> tuple[str | None, dict[str, JSON]]:
        """The title, and author, dates and the like under the names that all kinds of file share."""
        part = next(self.related("core-properties"), "docProps/core.xml")
        root = self.xml(part) if self.has(part) else None
        children = root if root is not None else ()
        said = {local(element): clean_text(element.text) for element in children if element.text}
        meta: dict[str, JSON] = {key: said[name] for name, key in _CORE.items() if said.get(name)}
        return said.get("title") or None, meta
