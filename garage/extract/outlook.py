"""What Outlook saves as a file (.msg): mails, appointments, contacts, tasks."""

import datetime as dt
import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING

from garage.config import Extraction
from garage.extract.mime import message
from garage.extract.mime.mailparse import begins, parse
from garage.extract.mirror import JSON, clean_line
from garage.extract.model import Extracted, NoText, Unsupported
from garage.extract.web.charset import codec, decode_as
from garage.extract.web.markup import to_markdown

if TYPE_CHECKING:
    from oxmsg.storage import Storage

NAME = "outlook"
LIBRARIES = ("python-oxmsg", "olefile", *message.LIBRARIES)
SETTINGS: tuple[str, ...] = ()
TOOLS: tuple[str, ...] = ()
SUFFIXES = {".msg": "prose"}

SIGNATURE = bytes.fromhex("d0cf11e0a1b11ae1")
"""How the containers of Microsoft's older programs begin."""
_ROOT, _ENCLOSED, _OTHER = 32, 24, 8  # bytes before the properties of a file, of a message within it, of other storages
_UNICODE, _BYTES, _TEXT, _OBJECT = 0x001F, 0x0102, 0x001E, 0x000D
_CLASS, _SUBJECT, _HEADERS, _BODY, _RTF, _HTML = 0x001A, 0x0037, 0x007D, 0x1000, 0x1009, 0x1013
_SENT, _DELIVERED, _CODEPAGE, _MESSAGE_CODEPAGE = 0x0039, 0x0E06, 0x3FDE, 0x3FFD
_SENDER = ((0x0C1A, (0x5D01, 0x0C1F)), (0x0042, (0x5D02, 0x0065)))  # name, addresses; of who sent, of whom for
_NAME, _ADDRESSES, _ROLE = 0x3001, (0x39FE, 0x3003), 0x0C15
_SHOWN = {1: 0x0E04, 2: 0x0E03, 3: 0x0E02}
_MESSAGE_ID, _REPLY, _REFERENCES = 0x1035, 0x1042, 0x1039
_FILE_NAMES, _ATTACHED, _HIDDEN = (0x3707, 0x3704, 0x3001), 0x3701, 0x7FFE
_NAMED = 0x8000
# What an appointment, a task or a contact says beside its text: by property, and by name within Outlook's own sets.
_FIELDS = {
    0x3A16: "Company", 0x3A18: "Department", 0x3A17: "Title", 0x3A08: "Business phone", 0x3A09: "Home phone",
    0x3A1C: "Mobile phone", 0x3A24: "Fax", 0x3A26: "Address", 0x3A27: "City", 0x3A2A: "Postal code",
    0x3A28: "State", 0x3A4F: "Nickname", 0x3A51: "Web page",
}  # fmt: skip
_NAMED_FIELDS = {
    0x8208: "Location", 0x820D: "Begins", 0x820E: "Ends", 0x8104: "Begins", 0x8105: "Due", 0x8083: "Mail",
    0x8093: "Mail", 0x80A3: "Mail", 0x801B: "Business address", 0x801A: "Home address", 0x802B: "Web page",
}  # fmt: skip
_PAGES = {
    65001: "utf-8", 20127: "ascii", 20866: "koi8-r", 21866: "koi8-u", 10000: "mac_roman", 51932: "euc-jp",
    51949: "euc-kr", 52936: "gb18030", 54936: "gb18030", **dict.fromkeys((50220, 50221, 50222), "iso-2022-jp"),
}  # fmt: skip
_EPOCH = dt.datetime(1601, 1, 1, tzinfo=dt.UTC)
_YEARS = 1900, 2200
_NESTED = 5


def extract(raw: bytes, *, name: str, settings: Extraction) -> Extracted:
    """Return the header block and the body; enclosed mails with theirs; attachments by name.

    Raises:
        Unsupported: it is no file of Outlook.
        NoText: it has neither a header that a person would look for nor a body.
    """
    import io

    from olefile import OleFileIO  # type: ignore[import-untyped]  # the library has no annotations
    from oxmsg.storage import Storage

    del settings
    if not raw.startswith(SIGNATURE):
        if begins(raw):
            parsed, warnings = parse(raw)
            return message.document(message.letter(parsed), name=name, warnings=warnings)
        raise Unsupported("it is no file of Outlook")
    with OleFileIO(io.BytesIO(raw)) as container:
        root = Storage.from_ole(container)
    if not any(stream.name == "__properties_version1.0" for stream in root.streams):
        raise Unsupported("it is a file of another program, not an item of Outlook")
    named = _names(root)
    return message.document(_letter(_Properties(root, _ROOT), named, depth=0), name=name)


class _Properties:
    """The properties of a storage; one that is missing or damaged is None."""

    def __init__(self, storage: "Storage", header: int) -> None:
        self.storage = storage
        self._streams = {stream.name.lower(): stream.bytes_ for stream in storage.streams}
        raw = self._streams.get("__properties_version1.0", b"")[header:]
        self._fixed = {}
        for at in range(0, len(raw) - 15, 16):
            kind, identity = struct.unpack_from("<HH", raw, at)
            self._fixed[identity] = (kind, raw[at + 8 : at + 16])
        page = self.number(_MESSAGE_CODEPAGE) or self.number(_CODEPAGE)
        self._encoding = codec(f"cp{page}") if page else None

    def number(self, identity: int) -> int | None:
        _, raw = self._fixed.get(identity, (0, b""))
        return int.from_bytes(raw[:4], "little") if raw else None

    def time(self, identity: int) -> dt.datetime | None:
        kind, raw = self._fixed.get(identity, (0, b""))
        if kind != 0x0040 or not any(raw):
            return None
        try:
            at = _EPOCH + dt.timedelta(microseconds=int.from_bytes(raw, "little") // 10)
        except OverflowError:
            return None
        return at.replace(microsecond=0) if _YEARS[0] <= at.year <= _YEARS[1] else None

    def stream(self, identity: int, kind: int) -> bytes | None:
        return self._streams.get(f"__substg1.0_{identity:04x}{kind:04x}")

    def text(self, identity: int) -> str | None:
        if raw := self.stream(identity, _UNICODE):
            return raw.decode("utf-16-le", "replace").rstrip("\0")
        if raw := self.stream(identity, _TEXT):
            encoding = self._encoding
            if identity == _BODY and (page := self.number(_CODEPAGE)):
                encoding = codec(f"cp{page}") or _internet(page) or encoding
            return decode_as(raw.rstrip(b"\0"), encoding)[0]
        return None

    def line(self, identity: int) -> str | None:
        return clean_line(self.text(identity))

    def first(self, identities: tuple[int, ...]) -> str | None:
        return next(filter(None, map(self.line, identities)), None)

    @property
    def encoding(self) -> str | None:
        """The encoding of a body that is kept as bytes."""
        page = self.number(_CODEPAGE)
        return (codec(f"cp{page}") or _internet(page) if page else None) or self._encoding


def _internet(page: int) -> str | None:
    """The encodings of the internet that Windows numbers beside its code pages."""
    if 28591 <= page <= 28605:
        return codec(f"iso-8859-{page - 28590}")
    return codec(_PAGES.get(page))


def _names(root: "Storage") -> dict[int, int]:
    """Property -> number of the name that this file maps to it."""
    for storage in root.storages:
        if storage.name.lower() == "__nameid_version1.0":
            raw = next((stream.bytes_ for stream in storage.streams if stream.name == "__substg1.0_00030102"), b"")
            entries = (struct.unpack_from("<IHH", raw, at) for at in range(0, len(raw) - 7, 8))
            return {_NAMED + place: number for number, kind, place in entries if number and not kind & 1}
    return {}


def _letter(item: _Properties, named: dict[int, int], *, depth: int) -> message.Letter:
    from email.parser import HeaderParser

    from garage.extract.mime.mailheaders import addresses, date, header

    headers = HeaderParser().parsestr(item.text(_HEADERS) or "")
    attachments, enclosed, warnings = _attached(item, named, depth)
    people = {role: _recipients(item, role) for role in _SHOWN}
    sent = item.time(_SENT) or item.time(_DELIVERED)
    meta: dict[str, JSON] = {}
    for key, identity in (("message_id", _MESSAGE_ID), ("in_reply_to", _REPLY)):
        if value := item.line(identity):
            meta[key] = value.strip("<>")
    if references := item.line(_REFERENCES):
        meta["references"] = [reference.strip("<>") for reference in references.split()]
    if (kind := item.line(_CLASS)) and not kind.upper().startswith("IPM.NOTE"):
        meta["item"] = kind.removeprefix("IPM.").lower()
    body, more = _body(item)
    fields = "\n".join(_fields(item, named))
    return message.Letter(
        subject=item.line(_SUBJECT) or header(headers, "Subject"),
        sender=tuple(addresses(headers, "From")) or _sender(item),
        to=people[1] or tuple(addresses(headers, "To")),
        cc=people[2] or tuple(addresses(headers, "Cc")),
        bcc=people[3],
        date=header(headers, "Date") or (f"{sent:%Y-%m-%d %H:%M} UTC" if sent else None),
        at=sent.isoformat() if sent else date(headers),
        body=f"{fields}\n\n{body}".strip(),
        attachments=attachments,
        enclosed=enclosed,
        meta=meta,
        warnings=(*warnings, *more),
    )


def _person(name: str | None, address: str | None) -> str | None:
    """A person as elsewhere; what Exchange calls an address within an organisation is none that anybody knows."""
    if address and "@" not in address:
        address = None
    if name and address and name.strip("'\"").lower() != address.lower():
        return f"{name.strip(chr(39))} <{address}>"
    return address or name


def _sender(item: _Properties) -> tuple[str, ...]:
    for name, places in _SENDER:
        if person := _person(item.line(name), item.first(places)):
            return (person,)
    return ()


def _recipients(item: _Properties, role: int) -> tuple[str, ...]:
    found: list[str] = []
    for storage in item.storage.iter_recipient_storages():
        recipient = _Properties(storage, _OTHER)
        person = _person(recipient.line(_NAME), recipient.first(_ADDRESSES))
        if person and (recipient.number(_ROLE) or 1) & 0xF == role:
            found.append(person)
    if not found and (shown := item.line(_SHOWN[role])):
        found = [name.strip() for name in shown.split(";") if name.strip()]
    return tuple(dict.fromkeys(found))


def _body(item: _Properties) -> tuple[str, tuple[str, ...]]:
    """The plain body; where there is none, what the HTML or the RTF says."""
    plain = item.text(_BODY)
    if plain and plain.strip():
        return plain.replace("\r\n", "\n").replace("\r", "\n"), ()
    html = item.stream(_HTML, _BYTES) or (item.text(_HTML) or "").encode()
    if html.strip():
        marked = to_markdown(html, charset=item.encoding, fences=False)
        return marked.text, marked.warnings
    if packed := item.stream(_RTF, _BYTES):
        from garage.extract import rtf
        from garage.extract.mime.lzfu import unpacked

        try:
            found = rtf.extract(unpacked(packed), name="", settings=Extraction())
            return found.content, found.warnings
        except NoText:
            return "", ()
        except Exception:  # noqa: BLE001 - the header is worth finding whatever its body is like
            return "", ("its body cannot be read",)
    return "", ()


def _fields(item: _Properties, named: dict[int, int]) -> Iterator[str]:
    kind = (item.line(_CLASS) or "").upper()
    if not kind.startswith(("IPM.APPOINTMENT", "IPM.CONTACT", "IPM.TASK", "IPM.SCHEDULE")):
        return
    places = list(_FIELDS.items())
    places += [(identity, _NAMED_FIELDS[number]) for identity, number in named.items() if number in _NAMED_FIELDS]
    for identity, label in dict.fromkeys(places):
        at = item.time(identity)
        if value := f"{at:%Y-%m-%d %H:%M} UTC" if at else item.line(identity):
            yield f"{label}: {value}"


def _attached(
    item: _Properties, named: dict[int, int], depth: int
) -> tuple[tuple[str, ...], tuple[message.Letter, ...], tuple[str, ...]]:
    names: list[str] = []
    enclosed: list[message.Letter] = []
    warnings: list[str] = []
    for storage in item.storage.iter_attachment_storages():
        attachment = _Properties(storage, _OTHER)
        inner = f"__substg1.0_{_ATTACHED:04X}{_OBJECT:04X}"
        within = next((child for child in storage.storages if child.name.upper() == inner.upper()), None)
        if within is not None and any(stream.name == "__properties_version1.0" for stream in within.streams):
            if depth < _NESTED:
                enclosed.append(_letter(_Properties(within, _ENCLOSED), named, depth=depth + 1))
            else:
                warnings.append("enclosed messages were left out")
        elif name := attachment.first(_FILE_NAMES):
            names.append(name)
    return tuple(dict.fromkeys(names)), tuple(enclosed), tuple(warnings)
