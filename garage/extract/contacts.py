"""Address books (vCard): a section a person, with what is known of them in words."""

import quopri
import re
from collections.abc import Iterator
from dataclasses import dataclass

from garage.config import Extraction
from garage.extract.mirror import JSON, canonical, clean_line, decode, looks_binary
from garage.extract.model import Extracted, NoText, Unsupported

NAME = "contacts"
LIBRARIES = ("charset-normalizer",)
SETTINGS: tuple[str, ...] = ()
TOOLS: tuple[str, ...] = ()
SUFFIXES = dict.fromkeys((".vcf", ".vcard"), "markdown")

_LABELS = {
    "NICKNAME": "Nickname",
    "ORG": "Organisation",
    "TITLE": "Title",
    "ROLE": "Role",
    "TEL": "Phone",
    "EMAIL": "Mail",
    "ADR": "Address",
    "IMPP": "Chat",
    "URL": "Web",
    "BDAY": "Birthday",
    "ANNIVERSARY": "Anniversary",
    "CATEGORIES": "Categories",
    "RELATED": "Related",
    "X-ABRELATEDNAMES": "Related",
}
_SAID = frozenset({"HOME", "WORK", "CELL", "FAX", "IPHONE", "MOBILE"})  # types that tell a person something
_STRUCTURED = frozenset({"N", "ADR", "ORG"})
_QUOTED_PRINTABLE = re.compile(r"^[^:\n]*ENCODING=QUOTED-PRINTABLE[^:\n]*:", re.IGNORECASE)
_LINE = re.compile(r"(?:[\w-]+\.)?([\w-]+)((?:;(?:\"[^\"]*\"|[^\":;])*)*):(.*)")
_ESCAPE = re.compile(r"\\([nN,;:\\])")
_SPLIT = re.compile(r"(?<!\\);")


@dataclass(frozen=True, slots=True)
class _Property:
    """A line of a card: its name, the words of its type, and its value with escapes."""

    name: str
    types: tuple[str, ...]
    value: str


def extract(raw: bytes, *, name: str, settings: Extraction) -> Extracted:
    """Return the people of a file in its order; pictures, keys and sounds are left out, and so are broken lines.

    Raises:
        Unsupported: it is no address book.
        NoText: nobody in it has a name or anything else to say.
    """
    del name, settings
    if looks_binary(raw):
        raise Unsupported("it is a binary file with the name of an address book")
    text, encoding = decode(raw)
    text = canonical(text)
    if "BEGIN:VCARD" not in text.upper():
        raise Unsupported("it is no address book")
    sections = [section for card in _cards(text) if (section := _section(card))]
    if not sections:
        raise NoText("nobody in it has a name")
    meta: dict[str, JSON] = {"entries": len(sections)}
    if encoding not in {"utf-8", "utf-8-sig"}:
        meta["encoding"] = encoding
    title = sections[0].partition("\n")[0].removeprefix("## ") if len(sections) == 1 else None
    return Extracted(content=canonical("\n\n".join(sections)), kind="markdown", title=title, meta=meta)


def _cards(text: str) -> Iterator[list[_Property]]:
    """The properties of each card; one that does not end does when the next one begins."""
    card: list[_Property] | None = None
    for line in _lines(text):
        found = _LINE.fullmatch(line)
        name = found[1].upper() if found else ""
        if name in {"BEGIN", "END"} and found and found[3].strip().upper() == "VCARD":
            if card:
                yield card
            card = [] if name == "BEGIN" else None
        elif found and card is not None:
            card.append(_Property(name, tuple(_types(found[2])), found[3]))
    if card:
        yield card


def _lines(text: str) -> Iterator[str]:
    """The logical lines: unfolded, those in quoted-printable (of version 2.1) decoded."""
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if quoted := _QUOTED_PRINTABLE.match(line):
            pieces = [line[quoted.end() :]]
            while pieces[-1].endswith("=") and at < len(lines):
                pieces[-1] = pieces[-1][:-1]
                pieces.append(lines[at])
                at += 1
            decoded = decode(quopri.decodestring("".join(pieces).encode("utf-8", "replace")))[0]
            yield quoted[0] + " ".join(decoded.split())
            continue
        pieces = [line]
        while at < len(lines) and lines[at].startswith((" ", "\t")):
            pieces.append(lines[at][1:])
            at += 1
        yield "".join(pieces)


def _types(parameters: str) -> Iterator[str]:
    for parameter in parameters.split(";"):
        for word in parameter.rpartition("=")[2].strip('"').split(","):
            yield word.upper()


def _section(card: list[_Property]) -> str:
    named = {entry.name: entry.value for entry in reversed(card)}
    organisation = _value("ORG", named.get("ORG", ""))
    title = _value("FN", named.get("FN", "")) or _full_name(named.get("N", "")) or organisation
    fields = [
        f"{_LABELS[entry.name]}{_kind(entry)}: {value}"
        for entry in card
        if entry.name in _LABELS and (value := _value(entry.name, entry.value))
    ]
    notes = [_note(entry.value) for entry in card if entry.name == "NOTE"]
    blocks = [f"## {title or 'Somebody'}", "\n".join(dict.fromkeys(fields)), *notes]
    return "\n\n".join(block for block in blocks if block) if title or fields or any(notes) else ""


def _kind(entry: _Property) -> str:
    said = [word.lower() for word in dict.fromkeys(entry.types) if word in _SAID]
    return f" ({', '.join(said)})" if said else ""


def _value(name: str, value: str) -> str | None:
    if name in _STRUCTURED:
        parts = (clean_line(_unescaped(part)) for part in _SPLIT.split(value))
        return ", ".join(part for part in parts if part) or None
    return clean_line(re.sub(r"^(?:tel|mailto|x-apple):", "", _unescaped(value)))


def _full_name(value: str) -> str | None:
    """The name in the order in which it is said; it is stored as family, given, further, before, behind."""
    parts = [clean_line(_unescaped(part)) or "" for part in _SPLIT.split(value)]
    family, given, further, before, behind = (parts + [""] * 5)[:5]
    return clean_line(f"{before} {given} {further} {family} {behind}")


def _note(value: str) -> str:
    lines = canonical(_unescaped(value)).strip().split("\n")
    return "\n".join(f"\\{line}" if re.match(r" {0,3}#{1,6}\s", line) else line for line in lines)


def _unescaped(value: str) -> str:
    return _ESCAPE.sub(lambda match: "\n" if match[1] in "nN" else match[1], value)
