"""The parts of a MIME message: which of them is the text to read, what is attached, which other mails it carries."""

import binascii
import quopri
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.message import Message

from garage.extract.mime.mailheaders import file_name, lenient_base64, parameters, raw_header
from garage.extract.web.charset import decode_as
from garage.extract.web.markup import to_markdown

_PARTS = 2_000
_DEPTH = 50
_TOKEN = re.compile(r"\s*\"?([A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+)")
_ENCODING = re.compile(r"[A-Za-z0-9-]+")
_SHORT_PLAIN = 400  # a plain part of fewer characters may only say that the mail is written in HTML
_LONGER = 5
_SIGNATURES = frozenset(("application/pgp-signature", "application/pkcs7-signature", "application/x-pkcs7-signature"))
_NOT_READ = frozenset(
    ("text/calendar", "text/x-amp-html", "text/watch-html", "text/rtf", "text/richtext", "text/x-vcard")
)
_ENCRYPTED = "it is encrypted; only its header can be read"
_BASE64_LINE = re.compile(r"[A-Za-z0-9+/]{60,76}={0,2}")
_BASE64_END = re.compile(r"[A-Za-z0-9+/]{1,76}={1,2}|[A-Za-z0-9+/]{40,76}")
_BASE64_LINES = 4
_UU_BEGIN = re.compile(r"begin [0-7]{3,4} (\S.{0,200})")
_UU_LINE = re.compile(r"M[\x20-\x60]{60,61}")
_BOUNDARY = re.compile(r"^--(\S[^\n]{0,200}?)[ \t\r]*\n(?=[Cc]ontent-)", re.MULTILINE)
_ARMOUR = re.compile(r"-----BEGIN PGP (MESSAGE|SIGNED MESSAGE|SIGNATURE|PUBLIC KEY BLOCK)-----")


@dataclass(slots=True)
class Contents:
    """What a message holds. `texts` are the readable parts in their order, `messages` the mails that it carries."""

    texts: list[str] = field(default_factory=list)
    attachments: list[str] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def contents(message: Message) -> Contents:
    """Sort the parts of a message; never raises for anything that a message may hold."""
    found = Contents()
    reader = _Reader(found)
    reader.read(message, 0, root=True)
    if not any(map(str.strip, found.texts)):
        found.texts += reader.reports
    found.texts = list({text.strip(): text for text in found.texts}.values())
    found.attachments = list(dict.fromkeys(found.attachments))
    found.warnings = list(dict.fromkeys(found.warnings))
    return found


def content_type(part: Message) -> str:
    """The type of a part in lower case; text/plain where it names none, or something that is no type."""
    value = raw_header(part, "Content-Type") or ""
    if match := _TOKEN.match(value):
        return match[1].lower()
    return "text/html" if value.strip().lower() in {"html", "text/html;"} else part.get_default_type()


class _Reader:
    def __init__(self, found: Contents) -> None:
        self.found = found
        self.seen = 0
        self.boundaries: set[str] = set()
        self.reports: list[str] = []  # of mail servers; the words before them are for people

    def read(self, part: Message, depth: int, *, root: bool = False) -> None:
        self.seen += 1
        if self.seen > _PARTS or depth > _DEPTH:
            self.found.warnings.append("parts beyond the first 2,000 or deeper than 50 were left out")
            return
        kind = content_type(part)
        payload = part.get_payload()
        if kind in {"message/rfc822", "message/global"} and isinstance(payload, list):
            self.found.messages += [_enclosed(part, inner) for inner in payload if isinstance(inner, Message)]
        elif kind in {"text/rfc822-headers", "message/rfc822-headers"}:
            self._headers_only(part)
        elif kind in {"message/delivery-status", "message/disposition-notification"}:
            self.reports += [str(block) for block in payload] if isinstance(payload, list) else [str(payload)]
        elif kind in _SIGNATURES:
            return
        elif isinstance(payload, list):
            children = [child for child in payload if isinstance(child, Message)]
            self._multipart(kind, children, depth, part)
        elif kind.startswith("multipart/"):
            self._broken(part, depth)
        elif self._is_attached(part, kind, root=root):
            self._attach(part, kind)
        elif kind in {"application/pkcs7-mime", "application/x-pkcs7-mime"}:
            self._smime(part, depth)
        elif kind.startswith("text/") and kind not in _NOT_READ:
            self._text(part, kind)
        else:
            self._attach(part, kind)

    def _multipart(self, kind: str, children: list[Message], depth: int, part: Message) -> None:
        if boundary := parameters(raw_header(part, "Content-Type") or "").get("boundary"):
            self.boundaries.add(boundary)
        if kind == "multipart/encrypted":
            self.found.warnings.append(_ENCRYPTED)
        elif kind == "multipart/alternative":
            self._alternative(children, depth)
        elif kind == "multipart/digest":
            for child in children:
                payload = child.get_payload()
                inner = [item for item in payload if isinstance(item, Message)] if isinstance(payload, list) else []
                self.found.messages += inner or [child]
        else:
            for child in children:
                self.read(child, depth + 1)
        # A boundary that is used twice ends the message before its last parts.
        behind = part.epilogue
        if isinstance(behind, str) and (match := _BOUNDARY.search(behind)):
            self._separated(match[1], behind.encode("utf-8", "surrogateescape"), depth)

    def _separated(self, boundary: str, raw: bytes, depth: int) -> bool:
        """Read the parts that a boundary separates; whether there were any."""
        from email.parser import BytesParser

        head = f'Content-Type: multipart/mixed; boundary="{boundary}"\n\n'
        again = BytesParser().parsebytes(head.encode("utf-8", "surrogateescape") + raw)
        if not again.is_multipart():
            return False
        self.read(again, depth + 1)
        return True

    def _alternative(self, children: list[Message], depth: int) -> None:
        """The plain version unless it has nothing to say; what is attached to any of the versions is attached."""
        versions: list[tuple[bool, list[str]]] = []
        for child in children:
            before, self.found.texts = self.found.texts, []
            self.read(child, depth + 1)
            versions.append((content_type(child) == "text/plain", self.found.texts))
            self.found.texts = before
        written = [(plain, texts, sum(map(len, texts))) for plain, texts in versions if any(map(str.strip, texts))]
        if not written:
            return
        longest = max(written, key=lambda version: version[2])
        for plain, texts, length in written:
            if plain and (length >= _SHORT_PLAIN or length * _LONGER >= longest[2]):
                self.found.texts += texts
                return
        self.found.texts += longest[1]

    def _is_attached(self, part: Message, kind: str, *, root: bool) -> bool:
        disposition = (raw_header(part, "Content-Disposition") or "").split(";")[0].strip().lower()
        if disposition == "attachment":
            return True
        if root or not kind.startswith("text/"):
            return False
        named = file_name(part, locations=False) is not None
        return named and not (kind in {"text/plain", "text/html"} and not self.found.texts and disposition != "inline")

    def _attach(self, part: Message, kind: str) -> None:
        if name := file_name(part):
            self.found.attachments.append(name)
        elif kind.startswith(("image/", "audio/", "video/", "application/")) and not raw_header(part, "Content-ID"):
            self.found.attachments.append(f"unnamed {kind}")  # with an identity it is a picture within the text

    def _headers_only(self, part: Message) -> None:
        from email.parser import BytesHeaderParser

        self.found.messages.append(BytesHeaderParser().parsebytes(body_bytes(part)))

    def _text(self, part: Message, kind: str) -> None:
        raw = body_bytes(part)
        said = parameters(raw_header(part, "Content-Type") or "")
        charset = said.get("charset")
        if kind == "text/html" or (
            kind == "text/plain" and raw[:400].lstrip().lower().startswith((b"<!doctype html", b"<html"))
        ):
            marked = to_markdown(raw, charset=charset, fences=False)
            self.found.texts.append(marked.text)
            self.found.warnings += marked.warnings
            return
        text, _, damaged = decode_as(raw, charset)
        if damaged:
            self.found.warnings.append("some bytes do not fit the encoding and were replaced")
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        if kind == "text/enriched":
            text = re.sub(r"<(?:/?[A-Za-z-]{1,60})>", "", text.replace("<<", "<"))
        if said.get("format", "").strip().lower() == "flowed":
            text = unflowed(text, delete_space=said.get("delsp", "").strip().lower() == "yes")
        self.found.texts.append(self._readable(text))

    def _readable(self, text: str) -> str:
        """Without what only programs read: files encoded into the text, signatures, encrypted blocks."""
        end = text.rstrip()
        begin = end.rfind("\n--") + 1
        if end[begin:].rstrip("-").removeprefix("--") in {boundary.rstrip("-") for boundary in self.boundaries}:
            text = text[:begin]  # a boundary that is not written as it was announced
        text, names = without_encoded_files(text)
        self.found.attachments += names
        if "-----BEGIN PGP" in text:
            text, encrypted = without_armour(text)
            if encrypted:
                self.found.warnings.append(_ENCRYPTED)
        kept = without_base64(text)
        if kept != text:
            self.found.warnings.append("encoded data within the text was left out")
        return kept

    def _smime(self, part: Message, depth: int) -> None:
        from email.parser import BytesParser

        from garage.extract.mime.cms import signed_content

        inner = signed_content(body_bytes(part))
        if inner is None:
            self.found.warnings.append(_ENCRYPTED)
            return
        self.read(BytesParser().parsebytes(inner), depth + 1, root=True)

    def _broken(self, part: Message, depth: int) -> None:
        """A multipart whose parts were not found: by a boundary that stands in it, else as text without its data."""
        raw = body_bytes(part)
        payload = decode_as(raw, None)[0].replace("\r\n", "\n")
        if not payload.strip():
            return
        self.found.warnings.append("its parts are not separated as its header says")
        match = _BOUNDARY.search(payload)
        if match and self._separated(match[1], raw, depth):
            return
        self.found.texts.append(self._readable(payload))


def _enclosed(part: Message, inner: Message) -> Message:
    """A message within one; some programs encode it, which the standard forbids and the parser does not undo."""
    from email.parser import BytesParser

    named = (raw_header(part, "Content-Transfer-Encoding") or "").lower()
    if inner.keys() or not named.startswith(("base64", "quoted")):
        return inner
    raw = body_bytes(inner)
    return BytesParser().parsebytes(lenient_base64(raw) if named.startswith("base64") else quopri.decodestring(raw))


def body_bytes(part: Message) -> bytes:
    """The bytes of a part with its transfer encoding undone, whatever its header calls that."""
    named = _ENCODING.search(raw_header(part, "Content-Transfer-Encoding") or "")
    encoding = named[0].lower() if named else ""
    # The library gives the bytes as they are in the file only where no encoding is named.
    del part["Content-Transfer-Encoding"]
    raw = part.get_payload(decode=True)
    if encoding:
        part["Content-Transfer-Encoding"] = encoding
    if not isinstance(raw, bytes):
        return b""
    if encoding.startswith("quoted"):
        return quopri.decodestring(raw)
    if encoding.startswith("base64"):
        return lenient_base64(raw)
    if encoding in {"x-uuencode", "uuencode", "x-uue", "uue"}:
        return _uudecoded(raw)
    return raw


def _uudecoded(raw: bytes) -> bytes:
    decoded = []
    for line in raw.splitlines():
        if not line or line.startswith(b"begin ") or line.strip() in {b"end", b"`"}:
            continue
        try:
            decoded.append(binascii.a2b_uu(line))
        except binascii.Error:
            # Some encoders write one character too many.
            wanted = (((line[0] - 32) & 63) * 4 + 5) // 3
            try:
                decoded.append(binascii.a2b_uu(line[:wanted]))
            except binascii.Error:
                continue
    return b"".join(decoded)


def unflowed(text: str, *, delete_space: bool) -> str:
    """Join the lines that were broken softly (RFC 3676): they end with a space; the quotation must be as deep."""
    joined: list[str] = []
    open_depth = -1
    for line in text.split("\n"):
        words = line.lstrip(">")
        depth = len(line) - len(words)
        words = words.removeprefix(" ")
        soft = words.endswith(" ") and words != "-- "
        shown = words[:-1] if soft and delete_space else words
        if open_depth == depth and words != "-- ":
            joined.append(shown)
        else:
            joined.append(("\n" if joined else "") + (">" * depth + " " if depth else "") + shown)
        open_depth = depth if soft else -1
    return "".join(joined)


def without_encoded_files(text: str) -> tuple[str, list[str]]:
    """A text without the files that are uuencoded in it, and their names."""
    if "\nbegin " not in text and not text.startswith("begin "):
        return text, []
    kept: list[str] = []
    names: list[str] = []
    inside = False
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if inside:
            inside = line.strip() != "end"
            continue
        match = _UU_BEGIN.fullmatch(line.rstrip())
        if (
            match
            and number + 1 < len(lines)
            and (_UU_LINE.match(lines[number + 1]) or "end" in lines[number + 1 : number + 4])
        ):
            names.append(match[1])
            inside = True
            continue
        kept.append(line)
    return "\n".join(kept), names


def without_armour(text: str) -> tuple[str, bool]:
    """A text without the blocks of PGP; whether one of them was an encrypted message. Signed words stay."""
    kept: list[str] = []
    encrypted = False
    state = ""
    for line in text.split("\n"):
        match = _ARMOUR.match(line.strip()) if line.startswith("-----") else None
        if match:
            state = "signed header" if match[1] == "SIGNED MESSAGE" else match[1]
            encrypted = encrypted or state == "MESSAGE"
        elif state == "signed header":
            state = "signed" if not line.strip() else state
        elif state == "signed":
            kept.append(line.removeprefix("- "))
        elif state:
            state = "" if line.startswith("-----END PGP") else state
        else:
            kept.append(line)
    return "\n".join(kept), encrypted


def without_base64(text: str) -> str:
    """A text without runs of lines of base64, which are files that lost their header."""
    kept: list[str] = []
    run: list[str] = []
    for line in text.split("\n"):
        bare = line.strip()
        if _BASE64_LINE.fullmatch(bare) or (run and bare and _BASE64_END.fullmatch(bare)):
            run.append(line)
            continue
        kept += _words_of(run)
        run = []
        kept.append(line)
    kept += _words_of(run)
    return "\n".join(kept)


def _words_of(run: list[str]) -> Iterator[str]:
    if sum(len(line.strip()) >= 60 for line in run) < _BASE64_LINES:
        yield from run
