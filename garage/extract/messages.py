"""Conversations of the Messages app: a thread is a document, a message is a part of it.

A part holds the words of one message and nothing else. Who wrote them and when stand before it in the line and on the
part, so they can be read and filtered by, but an address and a time are no part of what a passage means. Reactions and
changes of the group are lines outside of every part: they can be read, and a reaction makes no passage anew.
"""

import datetime as dt
import plistlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from garage.extract.attributed_body import AttributedText, decode, text_of
from garage.extract.mirror import canonical, clean_line, clean_metadata, has_text
from garage.extract.model import Extracted, Malformed, NoText
from garage.passage import Part
from garage.store import chat as store
from garage.store.chat import Attachment, Chat, ChatSnapshot, MessageRow
from garage.store.chat_snapshot import ChatDatabaseError

NAME = "messages"
LIBRARIES: tuple[str, ...] = ()
SETTINGS: tuple[str, ...] = ()
TOOLS: tuple[str, ...] = ()

ME = "Me"
_UNKNOWN = "Unknown"
_PLACEHOLDER = "\ufffc"
_FILE = "__kIMFileTransferGUIDAttributeName"
_TRANSCRIPT = "IMAudioTranscription"
_NAMED = 5  # participants that a title names
_REMOVED = 3000
_REACTIONS = {0: "❤️", 1: "👍", 2: "👎", 3: "😂", 4: "‼️", 5: "❓"}
_MEMBERS, _RENAMED, _LEFT = 1, 2, 3  # item types of the changes of a group that are told


@dataclass(frozen=True, slots=True)
class _Line:
    """What a row becomes: `head` is read, `words` are the message; a note has none."""

    guid: str
    head: str
    words: str = ""
    sender: str | None = None
    direction: Literal["sent", "received"] | None = None
    at: str | None = None


@dataclass(slots=True)
class _Thread:
    """A thread as its rows come in."""

    lines: list[_Line] = field(default_factory=list)
    reactions: dict[str, dict[tuple[str, str], None]] = field(default_factory=dict)
    services: set[str] = field(default_factory=set)
    wordless: int = 0


def read_thread(copy: ChatSnapshot, guid: str) -> Extracted:
    """Return the conversation of a GUID, of the kind 'conversation', one part a message.

    Raises:
        NoText: none of its messages has words or names a file.
        Malformed: the database is damaged, or has no such conversation any more.
    """
    thread = _Thread()
    try:
        about = store.chat(copy, guid)
        if about is None:
            raise Malformed("the conversation vanished after it was listed")
        for row in store.messages(copy, guid):
            _add(thread, row)
    except ChatDatabaseError as error:
        raise Malformed(error.message) from error
    title = _title(about)
    services = sorted(thread.services or {about.service or ""} - {""})
    sent_by = f" ({', '.join(services)})" if services else ""
    head = f"Conversation with {_people(about) or title}{sent_by}. Times are UTC."
    content, parts = _laid_out(canonical(head) + "\n", thread)
    if not parts:
        raise NoText("none of its messages has words")
    times = [part.at for part in parts if part.at]
    meta = clean_metadata(
        {
            "guid": guid,
            "participants": about.participants,
            "services": services,
            "messages": len(parts),
            "first": min(times, default=None),
            "last": max(times, default=None),
        }
    )
    assert isinstance(meta, dict)
    return Extracted(
        content=content,
        kind="conversation",
        title=title,
        meta=meta,
        parts=parts,
        record=guid,
        communication=True,
        warnings=(f"messages without words, left out: {thread.wordless}",) if thread.wordless else (),
    )


def _title(chat: Chat) -> str:
    return clean_line(chat.name) or _people(chat) or clean_line(chat.identifier) or "Conversation"


def _people(chat: Chat) -> str:
    people = [person for address in chat.participants if (person := clean_line(address))]
    more = f" and {len(people) - _NAMED} more" if len(people) > _NAMED else ""
    return ", ".join(people[:_NAMED]) + more


def _laid_out(head: str, thread: _Thread) -> tuple[str, tuple[Part, ...]]:
    """The lines one below the other, each message's reactions below it, and where the words stand."""
    pieces = [head]
    parts: list[Part] = []
    at = len(head)
    for line in thread.lines:
        start = at + len(line.head)
        notes = "".join(f"    ({who}: {what})\n" for who, what in thread.reactions.get(line.guid, ()))
        piece = f"{line.head}{line.words}\n{notes}"
        if line.words:
            end = start + len(line.words)
            parts.append(Part(start, end, sender=line.sender, direction=line.direction, at=line.at))
        pieces.append(piece)
        at += len(piece)
    return "".join(pieces), tuple(parts)


def _add(thread: _Thread, row: MessageRow) -> None:
    who = ME if row.from_me else clean_line(row.sender) or _UNKNOWN
    if row.service and (service := clean_line(row.service)):
        thread.services.add(service)
    if row.reaction:
        _react(thread, row, who)
        return
    moment = None if row.at_ns is None else dt.datetime.fromtimestamp(row.at_ns // 10**9, dt.UTC)
    shown = f"[{moment:%Y-%m-%d %H:%M}] " if moment else ""
    if row.item_type:
        if note := _change(row, who):
            thread.lines.append(_Line("", shown + note))
        return
    words = _words(row)
    if words is None:
        thread.lines.append(_Line("", f"{shown}({who} withdrew a message)"))
        return
    words = canonical(words).strip()
    if not has_text(words):
        thread.wordless += 1
        return
    thread.lines.append(
        _Line(
            row.guid,
            f"{shown}{who}: ",
            words,
            sender=who if who != _UNKNOWN else None,
            direction="sent" if row.from_me else "received",
            at=moment.isoformat() if moment else None,
        )
    )


def _react(thread: _Thread, row: MessageRow, who: str) -> None:
    """Take account of a reaction or of its removal; the address of what it is to is "p:0/<GUID>" or "bp:<GUID>"."""
    target = (row.target or "").rpartition("/")[2].removeprefix("bp:")
    known = clean_line(row.emoji) or _REACTIONS.get(row.reaction % 1000, "sticker")
    what = "sticker" if row.reaction < 2000 else known
    given = thread.reactions.setdefault(target, {})
    if row.reaction >= _REMOVED:
        given.pop((who, what), None)
    else:
        given[who, what] = None


def _change(row: MessageRow, who: str) -> str | None:
    """What a row tells of the group; None for what nobody would read (places, kept recordings, new pictures)."""
    if row.item_type == _RENAMED:
        name = clean_line(row.group_title)
        return f"({who} named the conversation {name})" if name else f"({who} took away the conversation's name)"
    if row.item_type == _MEMBERS:
        verb = "removed" if row.group_action else "added"
        return f"({who} {verb} {clean_line(row.other) or 'somebody'})"
    if row.item_type == _LEFT and not row.group_action:
        return f"({who} left the conversation)"
    return None


def _words(row: MessageRow) -> str | None:
    """What a message says now, its files by name; None when its sender took it back."""
    edits = _Edits.of(row.summary)
    if edits.withdrawn or (row.retracted and not row.text and not row.body):
        return None
    # Only a file's place has attributes that say more than the text.
    body = decode(row.body) if row.body and _PLACEHOLDER.encode() in row.body else None
    text = edits.newest or row.text or (row.body and text_of(row.body)) or edits.joined
    shown = _with_files(text, body, row.attachments) if row.attachments or body or _PLACEHOLDER in text else text
    return f"{row.subject}\n{shown}" if row.subject else shown


def _with_files(text: str, body: AttributedText | None, attachments: tuple[Attachment, ...]) -> str:
    """Put names in the places of files; a file that has no place comes last, a place without a file goes away."""
    waiting = {file.guid: file.name for file in attachments}
    pieces = text.split(_PLACEHOLDER)
    shown = [pieces[0]]
    at = len(pieces[0])
    for piece in pieces[1:]:
        attributes = _attributes(body, at) if body and body.text == text else {}
        guid = attributes.get(_FILE) or next(iter(waiting), None)
        if guid in waiting:
            shown.append(_file(waiting.pop(str(guid))))
        if isinstance(spoken := attributes.get(_TRANSCRIPT), str):
            shown.append(f" {spoken}")
        shown.append(piece)
        at += 1 + len(piece)
    written = "".join(shown)
    return "\n".join(piece for piece in (written.strip(), *map(_file, waiting.values())) if piece)


def _attributes(body: AttributedText, at: int) -> Mapping[str, object]:
    return next((run.attributes for run in body.runs if run.start <= at < run.end), {})


def _file(name: str) -> str:
    return f"[attachment: {clean_line(name)}]" if clean_line(name) else "[attachment]"


@dataclass(frozen=True, slots=True)
class _Edits:
    """What `message_summary_info` tells of a message that was edited or withdrawn, by the number of its part."""

    texts: dict[int, str] = field(default_factory=dict)
    parts: frozenset[int] = frozenset()
    taken_back: frozenset[int] = frozenset()

    @classmethod
    def of(cls, summary: bytes | None) -> "_Edits":
        """Read a property list: "ec" has the versions of each part, the last one newest; "rp" the parts taken back.

        "otr" names all parts of the original. What cannot be read tells nothing.
        """
        if not summary:
            return cls()
        try:
            told = plistlib.loads(summary, fmt=plistlib.FMT_BINARY)
        except (plistlib.InvalidFileException, RecursionError):
            return cls()
        if not isinstance(told, dict):
            return cls()
        texts = {}
        edited = told.get("ec")
        for part, versions in edited.items() if isinstance(edited, dict) else ():
            newest = versions[-1] if isinstance(versions, list) and versions else None
            raw = newest.get("t") if isinstance(newest, dict) else None
            text = text_of(raw) if isinstance(raw, bytes) else None
            if text and str(part).isdecimal():
                texts[int(part)] = text
        original, gone = told.get("otr"), told.get("rp")
        parts = frozenset(int(part) for part in original if str(part).isdecimal()) if isinstance(original, dict) else ()
        taken = frozenset(part for part in gone if isinstance(part, int)) if isinstance(gone, list) else ()
        return cls(texts, frozenset(parts), frozenset(taken))

    @property
    def withdrawn(self) -> bool:
        """Whether nothing of the message is left; a message whose parts are not told has one."""
        return bool(self.taken_back) and (self.parts or {0}) <= self.taken_back

    @property
    def newest(self) -> str:
        """The newest text of a message that has a single part."""
        return self.texts.get(0, "") if self.parts <= {0} and set(self.texts) == {0} else ""

    @property
    def joined(self) -> str:
        """The newest texts of all edited parts that were not taken back."""
        return "\n".join(text for part, text in sorted(self.texts.items()) if part not in self.taken_back)
