"""Parsing a mail however damaged: Python's parser, fed with a header that it takes."""

import re
from email.message import Message

_FIELD = re.compile(rb"[!-9;-~]{1,100}[ \t]*:")
_SPACED_FIELD = re.compile(rb"^([!-9;-~]{1,100})[ \t]+:", re.MULTILINE)
_KNOWN = re.compile(
    rb"(?:from|to|cc|subject|date|message-id|mime-version|content-type|content-transfer-encoding|received)\s*:",
    re.IGNORECASE,
)
_END_OF_HEADER = re.compile(rb"\n\r?\n|\r\r")


def begins(raw: bytes) -> bool:
    """Whether bytes begin as a mail does, with a field of a header."""
    return _FIELD.match(raw[:1000].lstrip()) is not None


def parse(raw: bytes) -> tuple[Message, tuple[str, ...]]:
    """Parse a message; what had to be left out is told.

    Python's newer policies raise on headers that real mail has, so headers are kept as they stand.
    """
    from email.parser import BytesHeaderParser, BytesParser

    raw = _mended(raw)
    try:
        return BytesParser().parsebytes(raw), ()
    except RecursionError:
        warning = "it is nested too deeply; only its header was read"
        return BytesHeaderParser().parsebytes(raw[: _header_end(raw)] + b"\n\n"), (warning,)


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
    known = [number for number, line in enumerate(lines) if _KNOWN.match(line)]
    if not known:
        # No header at all: everything is the body.
        return head + rest if _FIELD.match(head) else b"\n" + raw
    mended = [
        b" " + line if 0 < number < known[-1] and line and line[:1] not in b" \t" and not _FIELD.match(line) else line
        for number, line in enumerate(lines)
    ]
    return b"\n".join(mended) + rest
