"""A mail in a file of its own: .eml as programs save it, .emlx as Apple Mail keeps it."""

import re

from garage.config import Extraction
from garage.extract import outlook
from garage.extract.mime import message
from garage.extract.mime.mailparse import begins, parse
from garage.extract.mirror import looks_binary
from garage.extract.model import Extracted, Unsupported

NAME = "mail"
LIBRARIES = outlook.LIBRARIES
SETTINGS: tuple[str, ...] = ()
TOOLS: tuple[str, ...] = ()
SUFFIXES = dict.fromkeys((".eml", ".emlx"), "prose")

_LENGTH_LINE = re.compile(rb"\s*(\d{1,12})[ \t]*\r?\n")
_PLIST = re.compile(rb"<\?xml [^>]{0,200}>\s*<!DOCTYPE plist ")


def extract(raw: bytes, *, name: str, settings: Extraction) -> Extracted:
    """Return the header block, the body and the header blocks and bodies of enclosed mails; attachments by name.

    Raises:
        Unsupported: it is a binary file with the name of a mail.
        NoText: it has neither a header that a person would look for nor a body.
    """
    if raw.startswith(outlook.SIGNATURE):
        return outlook.extract(raw, name=name, settings=settings)
    if name.lower().endswith(".emlx"):
        raw = _unwrapped(raw)
    if not begins(raw) and looks_binary(raw):
        raise Unsupported("it is a binary file with the name of a mail")
    parsed, warnings = parse(raw)
    return message.document(message.letter(parsed), name=name, warnings=warnings)


def _unwrapped(raw: bytes) -> bytes:
    """The message of an .emlx file: after a line with its length, before a property list. Either may be wrong."""
    match = _LENGTH_LINE.match(raw)
    if not match:
        return raw
    start, end = match.end(), match.end() + int(match[1])
    if end == len(raw) or (end < len(raw) and _PLIST.match(raw[end : end + 400].lstrip())):
        return raw[start:end]
    ends = [match.start() for match in _PLIST.finditer(raw, start)]
    return raw[start : ends[-1]] if ends else raw[start:]
