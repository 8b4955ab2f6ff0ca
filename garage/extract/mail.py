"""A mail in a file of its own: .eml as programs save it, .emlx as Apple Mail keeps it."""

import re
from email.message import Message

from garage.config import Extraction
from garage.extract import message
from garage.extract.mirror import looks_binary
from garage.extract.model import Extracted, Unsupported

NAME = "mail"
LIBRARIES = message.LIBRARIES
SETTINGS: tuple[str, ...] = ()
TOOLS: tuple[str, ...] = ()
SUFFIXES = dict.fromkeys((".eml", ".emlx"), "prose")

_FIELD = re.compile(rb"[!-9;-~]{1,100}[ \t]*:")
_SPACED_FIELD = re.compile(rb"^([!-9;-~]{1,100})[ \t]+:", re.MULTILINE)
_KNOWN = re.compile(
    rb"(?:from|to|cc|subject|date|message-id|mime-version|content-type|content-transfer-encoding|received)\s*:",
    re.IGNORECASE,
)
_END_OF_HEADER = re.compile(rb"\r?\n\r?\n|\r\r")
_LENGTH_LINE = re.compile(rb"\s*(\d{1,12})[ \t]*\r?\n")
_PLIST = re.compile(rb"<\?xml [^>]{0,200}>\s*<!DOCTYPE plist ")


def extract(raw: bytes, *, name: str, settings: Extraction) -> Extracted:
    """Return the header block, the body and the header blocks and bodies of enclosed mails; attachments by name.

    Raises:
        Unsupported: it is a binary file with the name of a mail.
        NoText: it has neither a header that a person would look for nor a body.
    """
    del settings
    if name.lower().endswith(".emlx"):
        raw = _unwrapped(raw)
    if not begins(raw) and looks_binary(raw):
        raise Unsupported("it is a binary file with the name of a mail")
    parsed, warnings = parse(raw)
    return message.document(message.with_warnings(message.letter(parsed), warnings), name=name)


def begins(raw: bytes) -> bool:
    """Whether bytes begin as a mail does, with a field of a header."""
    return _FIELD.match(raw[:1000].lstrip()) is not None


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


def parse(raw: bytes) -> tuple[Message, tuple[str, ...]]:
    """Parse a message, however damaged; what had to be left out is told.

    Python's newer policies raise on headers that real mail has, so headers are read as they stand.
    """
    from email.parser import BytesHeaderParser, BytesParser

    raw = _mended(raw)
    try:
        return BytesParser().parsebytes(raw), ()
    except RecursionError:
        return BytesHeaderParser().parsebytes(raw[: _header_end(raw)] + b"\n\n"), (
            "it is nested too deeply; only its header was read",
        )


def _header_end(raw: bytes) -> int:
    match = _END_OF_HEADER.search(raw)
    return match.start() if match else len(raw)


def _mended(raw: bytes) -> bytes:
    """The message with a header that Python's parser takes: no blank lines before it, no stray lines within it."""
    raw = raw.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n\t \0")
    end = _header_end(raw)
    head, rest = raw[:end], raw[end:]
    head = _SPACED_FIELD.sub(rb"\1:", head)
    lines = re.split(rb"\r?\n|\r", head)
    if not any(_KNOWN.match(line) for line in lines):
        # No header at all: everything is the body.
        return head + rest if _FIELD.match(head) else b"\n" + raw
    last = max(number for number, line in enumerate(lines) if _KNOWN.match(line))
    mended = [
        line if number == 0 or number > last or not line or line[:1] in b" \t" or _FIELD.match(line) else b" " + line
        for number, line in enumerate(lines)
    ]
    return b"\n".join(mended) + rest
