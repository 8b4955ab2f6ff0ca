"""A mail as a document: a header block, the sender's words, and marked as such, the words of others."""

import re
from dataclasses import dataclass, field
from email.message import Message

from garage.extract.mime.mailheaders import addresses, date, header, raw_header
from garage.extract.mime.mimebody import contents
from garage.extract.mime.quoting import quoted_lines
from garage.extract.mirror import JSON, canonical, clean_line, clean_metadata, has_text
from garage.extract.model import Extracted, NoText
from garage.passage import Part

LIBRARIES = ("selectolax", "charset-normalizer")

_NESTED = 5  # mails in mails
_MESSAGES = 200
_TITLE_WORDS = 80
_WARNINGS = 20
_SHOWN = 50  # recipients in the header block; all are in the metadata
_MESSAGE_ID = re.compile(r"<([^<>\s]+)>")
_LIST_ID = re.compile(r"<\s*([^<>]+?)\s*>\s*$")


@dataclass(frozen=True, slots=True)
class Letter:
    """What a mail says, whatever file it came in. Addresses read `Name <address>`; `date` is as the mail shows it."""

    subject: str | None = None
    sender: tuple[str, ...] = ()
    to: tuple[str, ...] = ()
    cc: tuple[str, ...] = ()
    bcc: tuple[str, ...] = ()
    date: str | None = None
    at: str | None = None
    body: str = ""
    attachments: tuple[str, ...] = ()
    enclosed: tuple["Letter", ...] = ()
    meta: dict[str, JSON] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def letter(message: Message, *, depth: int = 0) -> Letter:
    """Read a parsed message, and those that it encloses."""
    found = contents(message)
    messages = found.messages[:_MESSAGES]
    if depth >= _NESTED:
        messages = []
    if len(messages) < len(found.messages):
        found.warnings.append("enclosed messages were left out")
    enclosed = tuple(letter(inner, depth=depth + 1) for inner in messages)
    meta: dict[str, JSON] = {}
    if identity := _identities(message, "Message-ID", whole=True):
        meta["message_id"] = identity[0]
    if reply := _identities(message, "In-Reply-To"):
        meta["in_reply_to"] = reply[0]
    if references := _identities(message, "References"):
        meta["references"] = [*references]
    listed = header(message, "List-Id")
    if listed:
        match = _LIST_ID.search(listed)
        meta["list_id"] = match[1] if match else listed
    return Letter(
        subject=header(message, "Subject"),
        sender=tuple(addresses(message, "From") or addresses(message, "Sender")),
        to=tuple(addresses(message, "To")),
        cc=tuple(addresses(message, "Cc")),
        bcc=tuple(addresses(message, "Bcc")),
        date=header(message, "Date"),
        at=date(message),
        body="\n\n".join(text.strip("\r\n") for text in found.texts if text.strip()),
        attachments=tuple(found.attachments),
        enclosed=enclosed,
        meta=meta,
        warnings=tuple(found.warnings),
    )


def _identities(message: Message, name: str, *, whole: bool = False) -> list[str]:
    value = clean_line(raw_header(message, name)) or ""
    return _MESSAGE_ID.findall(value) or ([value.strip("<> ")] if whole and value.strip("<> ") else [])


def document(found: Letter, *, name: str, record: str = "", warnings: tuple[str, ...] = ()) -> Extracted:
    """Return a letter as a document of the class communication, titled by its subject; `warnings` go before its own.

    Raises:
        NoText: it has neither a header that a person would look for nor a body.
    """
    writer = _Writer()
    writer.add(found, quoted=False)
    content = "".join(writer.pieces)
    if not writer.worth_finding:
        raise NoText("the mail is empty")
    warnings = tuple(dict.fromkeys([*warnings, *found.warnings, *writer.warnings]))
    return Extracted(
        content=canonical(content),
        kind="prose",
        title=found.subject or _first_words(found.body) or clean_line(name),
        meta=_meta(found),
        body_start=writer.body_start,
        parts=tuple(writer.parts),
        record=record,
        communication=True,
        warnings=warnings[:_WARNINGS],
    )


def _meta(found: Letter) -> dict[str, JSON]:
    meta: dict[str, JSON] = dict(found.meta)
    if found.sender:
        meta["from"] = meta["author"] = ", ".join(found.sender)
    for key, people in (("to", found.to), ("cc", found.cc), ("bcc", found.bcc)):
        if people:
            meta[key] = [*people]
    if found.at:
        meta["date"] = found.at
    if found.attachments:
        meta["attachments"] = [*found.attachments]
    cleaned = clean_metadata(meta)
    return cleaned if isinstance(cleaned, dict) else {}


class _Writer:
    """Puts the text together and notes whose words stand where."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.parts: list[Part] = []
        self.warnings: list[str] = []
        self.length = 0
        self.body_start = 0
        self.worth_finding = False

    def add(self, found: Letter, *, quoted: bool) -> None:
        sender = ", ".join(found.sender) or None
        block = canonical("\n".join(_block(found)))
        body = _tidied(canonical(found.body))
        self.worth_finding = self.worth_finding or has_text(block) or has_text(body)
        start = self.length
        if has_text(block):
            self._write(block + ("\n" if has_text(body) else ""))
        if not quoted and not self.body_start:
            self.body_start = self.length
        if not has_text(body):
            if self.length > start:
                self.parts.append(self._part(start, self.length, sender, found.at, quoted=quoted))
        else:
            self._body(body, start, sender, found.at, quoted=quoted)
        for inner in found.enclosed:
            self.warnings += inner.warnings
            self._write("\n")
            self.add(inner, quoted=True)

    def _body(self, body: str, start: int, sender: str | None, at: str | None, *, quoted: bool) -> None:
        """Write a body; its header block, from `start` on, belongs to its first words."""
        lines = body.removesuffix("\n").split("\n")
        marks = quoted_lines(lines)
        if marks and marks[0] and self.length > start:
            self.parts.append(self._part(start, self.length, sender, at, quoted=quoted))
            start = self.length
        begin = start
        position = self.length
        for number, line in enumerate(lines):
            if number and marks[number] != marks[number - 1]:
                self._close(begin, position, sender, at, marks[number - 1], quoted=quoted)
                begin = position
            position += len(line) + 1
        self._write(body)
        self._close(begin, position, sender, at, marks[-1], quoted=quoted)

    def _close(self, begin: int, end: int, sender: str | None, at: str | None, mark: bool, *, quoted: bool) -> None:  # noqa: FBT001 - whether the lines are quoted in the mail
        if end > begin:
            self.parts.append(
                Part(begin, end, sender=None if mark else sender, quoted=mark or quoted, at=None if mark else at)
            )

    def _part(self, start: int, end: int, sender: str | None, at: str | None, *, quoted: bool) -> Part:
        return Part(start, end, sender=sender, quoted=quoted, at=at)

    def _write(self, text: str) -> None:
        self.pieces.append(text)
        self.length += len(text)


def _block(found: Letter) -> list[str]:
    """The lines of the header block: who to whom, when, about what, and what came along."""
    lines = [
        ("Subject", found.subject),
        ("From", ", ".join(found.sender)),
        ("To", _people(found.to)),
        ("Cc", _people(found.cc)),
        ("Bcc", _people(found.bcc)),
        ("Date", found.date),
        ("Attachments", ", ".join(found.attachments)),
    ]
    return [f"{name}: {value}" for name, value in lines if value]


def _people(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return f"{shown} and {len(names) - _SHOWN} others" if len(names) > _SHOWN else shown


def _tidied(body: str) -> str:
    """A body without white space at the ends of lines and with at most two blank lines in a row."""
    kept: list[str] = []
    blank = 0
    for line in body.split("\n"):
        stripped = line.rstrip()
        blank = 0 if stripped else blank + 1
        if blank <= 2:
            kept.append(stripped)
    return "\n".join(kept).strip("\n") + "\n"


def _first_words(body: str) -> str | None:
    for line in body[:10_000].split("\n"):
        if not line.lstrip().startswith(">") and (words := clean_line(line)):
            return words if len(words) <= _TITLE_WORDS else words[:_TITLE_WORDS].rsplit(" ", 1)[0] + "…"
    return None
