"""A mailbox in one file (.mbox, .mbx): a document for each message."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from garage.config import Extraction
from garage.extract.mime import message
from garage.extract.mime.mailheaders import raw_header
from garage.extract.mime.mailparse import begins, parse
from garage.extract.mirror import clean_line, looks_binary
from garage.extract.model import Extracted, ExtractError, Malformed, NoText, Unsupported

NAME = "mbox"
LIBRARIES = message.LIBRARIES
SETTINGS: tuple[str, ...] = ()
TOOLS: tuple[str, ...] = ()
SUFFIXES = dict.fromkeys((".mbox", ".mbx"), "prose")

# A line "From ..." begins a message when a header follows, and it either says when or has a blank line before it and a
# header of mail behind it: writers that do not escape such lines of a body are common.
_FIRST_FIELD = rb"(?:[!-9;-~]{1,100}:[ \t\r\n]|>From )"
_SURE_FIELD = (
    rb"(?:return-path|received|from|to|date|message-id|subject|delivered-to|mime-version|content-type|status|"
    rb"x-[a-z0-9-]{1,60}|dkim-signature|arc-seal|reply-to|sender|list-id)[ \t]*:"
)
_BEGIN = re.compile(
    rb"(?:^From [^\n]{0,300}\d{1,2}:\d\d[^\n]{0,100}\n(?=" + _FIRST_FIELD + rb"))"
    rb"|(?:(?:\A|(?<=\n\n)|(?<=\n\r\n))From [^\n]{1,300}\n(?=(?i:" + _SURE_FIELD + rb")))",
    re.MULTILINE,
)
_ESCAPED = re.compile(rb"^>(>*From )", re.MULTILINE)
_UW_MARK, _UW_HEADER = b"*mbx*\r\n", 2048
_UW_MESSAGE = re.compile(rb"[ 0-9]\d-[A-Z][a-z]{2}-\d{4} [0-9:]{8} [+-]\d{4},(\d{1,10});[0-9A-Fa-f]+-[0-9A-Fa-f]+\r\n")
_EXPUNGED = 0x0008  # a bit of X-Mozilla-Status: deleted, and only not yet taken out of the file
_RECORD = 500
_INTERNAL = "DON'T DELETE THIS MESSAGE -- FOLDER INTERNAL DATA"


def extract(raw: bytes, *, name: str, settings: Extraction) -> list[Extracted]:
    """Return a document for each message, addressed by its Message-ID, by a digest of it where it has none.

    A message that cannot be read is left out, which the first document is warned of.

    Raises:
        Unsupported: the file is no mailbox.
        NoText: no message holds anything to read.
        Malformed: no message can be read.
    """
    del settings
    documents: list[Extracted] = []
    seen: Counter[str] = Counter()
    total, failed = 0, Counter[str]()
    for one in split(raw):
        total += 1
        try:
            found = _document(one, name)
        except (ExtractError, MemoryError) as error:
            if isinstance(error, MemoryError):
                raise
            failed["is empty" if isinstance(error, NoText) else "cannot be read"] += 1
            continue
        except Exception:  # noqa: BLE001 - whatever one message trips, the others are read
            failed["cannot be read"] += 1
            continue
        if found is None:
            continue
        seen[found.record] += 1
        if (times := seen[found.record]) > 1:
            found = replace(found, record=f"{found.record}#{times}")
        documents.append(found)
    if not total:
        raise Unsupported("it is not a mailbox: no message begins in it")
    if not documents:
        raise (Malformed if failed["cannot be read"] else NoText)("no message of the mailbox can be read")
    if failed:
        lost = tuple(f"{count} of {total} messages: {reason}" for reason, count in failed.items())
        documents[0] = replace(documents[0], warnings=(*lost, *documents[0].warnings))
    return documents


def split(raw: bytes) -> Iterator[bytes]:
    """Yield the messages of a mailbox one after the other, without the lines between them and unescaped."""
    if raw.startswith(_UW_MARK):
        yield from _university_of_washington(raw)
        return
    if raw.count(b"\r") and b"\n" not in raw:
        raw = raw.replace(b"\r", b"\n")
    start = None
    for match in _BEGIN.finditer(raw):
        if start is not None:
            yield _ESCAPED.sub(rb"\1", raw[start : match.start()])
        start = match.end()
    if start is not None:
        yield _ESCAPED.sub(rb"\1", raw[start:])
    elif begins(raw) and not looks_binary(raw):
        yield raw


def _university_of_washington(raw: bytes) -> Iterator[bytes]:
    position = _UW_HEADER
    while match := _UW_MESSAGE.match(raw, position):
        position = match.end() + int(match[1])
        yield raw[match.end() : position]


def _document(raw: bytes, name: str) -> Extracted | None:
    """A message as a document; None when it is deleted, or a note of the mail program to itself."""
    parsed, warnings = parse(raw)
    status = raw_header(parsed, "X-Mozilla-Status") or ""
    if re.fullmatch(r"[0-9A-Fa-f]{1,8}", status) and int(status, 16) & _EXPUNGED:
        return None
    if raw_header(parsed, "Subject") == _INTERNAL:
        return None
    found = message.letter(parsed)
    known = found.meta.get("message_id")
    record = clean_line(known if isinstance(known, str) else None) or hashlib.sha256(raw).hexdigest()[:32]
    return message.document(found, name=name, record=record[:_RECORD], warnings=warnings)
