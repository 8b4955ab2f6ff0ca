"""The header of a mail as a person reads it: encoded words, addresses, dates, file names.

The standard library parses headers strictly or not at all; here every header comes out as well as it can, since a mail
is found by them.
"""

import base64
import binascii
import datetime as dt
import re
from email.message import Message
from email.utils import mktime_tz, parsedate_tz
from urllib.parse import unquote_to_bytes

from garage.extract.mirror import METADATA_STRING, clean_line
from garage.extract.web.charset import codec, decode_as

_ENCODED_WORD = re.compile(r"=\?([^?\s]{0,60})\?([BbQq])\?([^?]*)\?=")
_Q_ESCAPE = re.compile(rb"=([0-9A-Fa-f]{2})")
_NOT_BASE64 = re.compile(rb"[^A-Za-z0-9+/]")
_RAW_LIMIT = 200_000  # code points of one header; a list of recipients beyond that is cut
# Lengths are bounded, or a quote that never ends would be looked for from every place in the header.
_ADDRESS_TOKEN = re.compile(
    r'"(?:[^"\\]|\\.){0,500}"|\((?:[^()\\]|\\.){0,500}\)|<[^<>]*>|[,;:]|[^",;:<>()]+|.', re.DOTALL
)
_SEPARATORS, _GROUP = frozenset(",;"), ":"
_BARE = re.compile(r"[^\s<>\"',;()@]{1,100}@[^\s<>\"',;()]{1,255}")
_PARAMETER = re.compile(r';\s*([^\s=;*]+)(?:\*(\d+))?(\*)?\s*=\s*("(?:[^"\\]|\\.)*"|[^;]*)', re.DOTALL)
_ADDRESSES = 1_000
_WIDE_DATES = (1900, 2200)


def raw_header(message: Message, name: str) -> str | None:
    """The first header of a name as it stands, unfolded; bytes beyond ASCII are surrogates."""
    wanted = name.lower()
    for key, value in message.raw_items():
        if key.lower() == wanted:
            return " ".join(str(value)[:_RAW_LIMIT].split())
    return None


def header(message: Message, name: str) -> str | None:
    """The first header of a name as a line to read; None where there is none, or it is empty."""
    return clean_line(_words(raw_header(message, name) or "", hint(message)))


def hint(message: Message) -> str | None:
    """The character set that bytes beyond ASCII in a header are likeliest in: that of the body."""
    return codec(parameters(raw_header(message, "Content-Type") or "").get("charset"))


def _words(text: str, charset: str | None = None) -> str:
    """Decode the encoded words of a header (RFC 2047), and bytes beyond ASCII that should have been encoded."""
    pieces: list[str] = []
    waiting: list[tuple[str, bytes]] = []  # words next to each other may share a character
    end = 0
    for match in _ENCODED_WORD.finditer(text):
        between = text[end : match.start()]
        if between.strip() or not waiting:
            pieces += [_joined(waiting), _eight_bit(between, charset)]
            waiting = []
        waiting.append((match[1].partition("*")[0].lower(), _word_bytes(match[2], match[3])))
        end = match.end()
    pieces += [_joined(waiting), _eight_bit(text[end:], charset)]
    return "".join(pieces)


def _joined(words: list[tuple[str, bytes]]) -> str:
    text = ""
    for position, (charset, raw) in enumerate(words):
        if position and words[position - 1][0] == charset:
            continue
        following = [raw]
        for other, more in words[position + 1 :]:
            if other != charset:
                break
            following.append(more)
        text += decode_as(b"".join(following), charset)[0]
    return text


def _word_bytes(encoding: str, text: str) -> bytes:
    raw = text.encode("utf-8", "surrogateescape")
    if encoding in "Bb":
        return lenient_base64(raw)
    return _Q_ESCAPE.sub(lambda match: bytes([int(match[1], 16)]), raw.replace(b"_", b" "))


def lenient_base64(raw: bytes) -> bytes:
    """Decode base64 with whatever stands between, a wrong end, or none."""
    kept = _NOT_BASE64.sub(b"", raw)
    if len(kept) % 4 == 1:
        kept = kept[:-1]
    try:
        return base64.b64decode(kept + b"=" * (-len(kept) % 4))
    except binascii.Error:
        return b""


def _eight_bit(text: str, charset: str | None) -> str:
    if text.isascii():
        return text
    raw = text.encode("utf-8", "surrogateescape")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode(charset or "cp1252", "replace")


def addresses(message: Message, name: str) -> list[str]:
    """Everybody that the headers of a name list, as `Name <address>`, the address without a name, or the name alone."""
    wanted = name.lower()
    charset = hint(message)
    found: list[str] = []
    for key, value in message.raw_items():
        if key.lower() == wanted:
            found += _mailboxes(" ".join(str(value)[:_RAW_LIMIT].split()), charset)
    return list(dict.fromkeys(found))[:_ADDRESSES]


def _mailboxes(text: str, charset: str | None) -> list[str]:
    found: list[str] = []
    name: list[str] = []
    address = ""
    for token in [*_ADDRESS_TOKEN.findall(_without_comments(text)), ","]:
        if token in _SEPARATORS:
            if person := _mailbox("".join(name), address, charset):
                found.append(person)
            name, address = [], ""
        elif token == _GROUP:
            name = []  # the name of a group
        elif token.startswith("<") and token.endswith(">"):
            address = token[1:-1].rpartition(":")[2].replace(" ", "")
        elif token.startswith('"'):
            name.append(re.sub(r"\\(.)", r"\1", token.strip('"')))
        else:
            name.append(token)
    return found


def _without_comments(text: str) -> str:
    """Drop comments in parentheses from what has an address besides; a comment may be all there is of a name."""
    if "(" not in text or "<" not in text:
        return text
    kept: list[str] = []
    depth, quoted, escaped = 0, False, False
    for char in text:
        if escaped:
            escaped = False
        elif char == "\\":
            escaped = True
        elif char == '"' and not depth:
            quoted = not quoted
        elif char == "(" and not quoted:
            depth += 1
        elif char == ")" and depth and not quoted:
            depth -= 1
            continue
        if not depth:
            kept.append(char)
    return "".join(kept) if not depth and not quoted else text


def _mailbox(name: str, address: str, charset: str | None) -> str | None:
    if not address and (bare := _BARE.search(name)):
        address = bare[0]
        name = (name[: bare.start()] + name[bare.end() :]).strip()
        if name.startswith("(") and name.endswith(")"):
            name = name[1:-1]
    elif not address and name.strip().startswith("("):
        return None
    shown = clean_line(_words(name, charset).strip().strip("'\"")) or ""
    shown = shown.replace("<", "").replace(">", "")
    address = clean_line(_eight_bit(address, charset)) or ""
    if shown.lower() == address.lower():
        shown = ""
    if address.startswith("@"):
        address = ""  # "undisclosed recipients", made to look like an address
    if shown and address:
        return f"{shown} <{address}>"
    return shown or address or None


def date(message: Message) -> str | None:
    """When a mail was sent, in ISO 8601 and UTC; what the last server noted where the sender's date cannot be read."""
    for name in ("Date", "Delivery-Date", "Received", "Resent-Date"):
        value = raw_header(message, name)
        if value and (found := moment(value.rpartition(";")[2] if name == "Received" else value)):
            return found
    return None


def moment(text: str) -> str | None:
    """A date of RFC 5322, or of what writes nearly so, in ISO 8601 and UTC; None when it is none."""
    text = re.sub(r"\s*:\s*", ":", re.sub(r"\([^()]*\)", " ", text[:200]))
    try:
        parsed = parsedate_tz(text)
        if parsed is None:
            return None
        at = dt.datetime.fromtimestamp(mktime_tz(parsed), dt.UTC)
    except (ValueError, OverflowError, OSError, TypeError, IndexError):
        return None
    return at.isoformat() if _WIDE_DATES[0] <= at.year <= _WIDE_DATES[1] else None


def parameters(value: str) -> dict[str, str]:
    """The parameters of a header such as Content-Type, continued and encoded ones (RFC 2231) put together."""
    pieces: dict[str, dict[int, tuple[bool, str]]] = {}
    for name, number, encoded, text in _PARAMETER.findall(value[:METADATA_STRING]):
        written = text.strip()
        if written.startswith('"'):
            written = re.sub(
                r"\\([\"\\])", r"\1", written[1:-1] if written.endswith('"') and len(written) > 1 else written[1:]
            )
        pieces.setdefault(name.lower(), {}).setdefault(
            int(number or 0) if len(number) < 5 else 0, (bool(encoded), written)
        )
    return {name: _parameter(found) for name, found in pieces.items()}


def _parameter(pieces: dict[int, tuple[bool, str]]) -> str:
    charset, raw = "utf-8", b""
    if not any(encoded for encoded, _ in pieces.values()):
        return "".join(text for _, (_, text) in sorted(pieces.items()))
    for number, (encoded, text) in sorted(pieces.items()):
        if not encoded:
            raw += text.encode("utf-8", "surrogateescape")
            continue
        if number == min(pieces) and text.count("'") >= 2:
            charset, _, text = text.split("'", 2)  # noqa: PLW2901 - what stands behind the character set and language
        raw += unquote_to_bytes(text.encode("utf-8", "surrogateescape"))
    return decode_as(raw, charset)[0]


def file_name(part: Message, *, locations: bool = True) -> str | None:
    """What a part is called, as a line to read, else where it was found; None where it says neither."""
    for name, key in (("Content-Disposition", "filename"), ("Content-Type", "name"), ("Content-Type", "filename")):
        if found := parameters(raw_header(part, name) or "").get(key):
            shown = clean_line(_words(found, hint(part)))
            if shown:
                return shown.replace("\\", "/").rpartition("/")[2] or shown
    if locations and (location := raw_header(part, "Content-Location")):
        last = clean_line(_words(location).rpartition("/")[2])
        return last if last and "." in last else None
    return None
