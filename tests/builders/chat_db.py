"""Writes databases of the Messages app: the tables, columns and indexes that macOS 15 has."""

import plistlib
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

NANOSECONDS = 10**9
APPLE_EPOCH = 978_307_200

_NUMBERS = "INTEGER DEFAULT 0"
_MESSAGE = (
    "guid TEXT UNIQUE NOT NULL, text TEXT, replace *, service_center TEXT, handle_id *, subject TEXT, country TEXT,"
    "attributedBody BLOB, version *, type *, service TEXT, account TEXT, account_guid TEXT, error *, date INTEGER,"
    "date_read INTEGER, date_delivered INTEGER, is_delivered *, is_finished *, is_emote *, is_from_me *, is_empty *,"
    "is_delayed *, is_auto_reply *, is_prepared *, is_read *, is_system_message *, is_sent *, has_dd_results *,"
    "is_service_message *, is_forward *, was_downgraded *, is_archive *, cache_has_attachments *, cache_roomnames TEXT,"
    "was_data_detected *, was_deduplicated *, is_audio_message *, is_played *, date_played INTEGER, item_type *,"
    "other_handle *, group_title TEXT, group_action_type *, share_status *, share_direction *, is_expirable *,"
    "expire_state *, message_action_type *, message_source *, associated_message_guid TEXT, associated_message_type *,"
    "balloon_bundle_id TEXT, payload_data BLOB, expressive_send_style_id TEXT, associated_message_range_location *,"
    "associated_message_range_length *, time_expressive_send_played INTEGER, message_summary_info BLOB,"
    "ck_sync_state *, ck_record_id TEXT, ck_record_change_tag TEXT, destination_caller_id TEXT, is_corrupt *,"
    "reply_to_guid TEXT, sort_id INTEGER, is_spam *, has_unseen_mention *, thread_originator_guid TEXT,"
    "thread_originator_part TEXT, syndication_ranges TEXT, synced_syndication_ranges TEXT, was_delivered_quietly *,"
    "did_notify_recipient *, date_retracted *, date_edited *, was_detonated *, part_count INTEGER, is_stewie *,"
    "is_sos *, is_critical *, bia_reference_id TEXT, is_kt_verified *, fallback_hash TEXT,"
    "associated_message_emoji TEXT, is_pending_satellite_send *, needs_relay *, schedule_type *, schedule_state *,"
    "sent_or_received_off_grid *, date_recovered *"
)
_CHAT = (
    "guid TEXT UNIQUE NOT NULL, style INTEGER, state INTEGER, account_id TEXT, properties BLOB, chat_identifier TEXT,"
    "service_name TEXT, room_name TEXT, account_login TEXT, is_archived *, last_addressed_handle TEXT,"
    "display_name TEXT, group_id TEXT, is_filtered *, successful_query INTEGER, engram_id TEXT,"
    "server_change_token TEXT, ck_sync_state *, original_group_id TEXT, last_read_message_timestamp *,"
    "cloudkit_record_id TEXT, last_addressed_sim_id TEXT, is_blackholed *, syndication_date *, syndication_type *,"
    "is_recovered *, is_deleting_incoming_messages *"
)
_ATTACHMENT = (
    "guid TEXT UNIQUE NOT NULL, created_date *, start_date *, filename TEXT, uti TEXT, mime_type TEXT,"
    "transfer_state *, is_outgoing *, user_info BLOB, transfer_name TEXT, total_bytes *, is_sticker *,"
    "sticker_user_info BLOB, attribution_info BLOB, hide_attachment *, ck_sync_state *,"
    "ck_server_change_token_blob BLOB, ck_record_id TEXT, original_guid TEXT UNIQUE NOT NULL,"
    "is_commsafety_sensitive *, emoji_image_content_identifier TEXT, emoji_image_short_description TEXT,"
    "preview_generation_state *"
)
_HANDLE = (
    "id TEXT NOT NULL, country TEXT, service TEXT NOT NULL, uncanonicalized_id TEXT, person_centric_id TEXT,"
    "UNIQUE (id, service)"
)
_JOINS = {
    "chat_message_join": ("chat", "message", ", message_date INTEGER DEFAULT 0, PRIMARY KEY (chat_id, message_id)"),
    "chat_handle_join": ("chat", "handle", ", UNIQUE (chat_id, handle_id)"),
    "message_attachment_join": ("message", "attachment", ", UNIQUE (message_id, attachment_id)"),
    "chat_recoverable_message_join": (
        "chat",
        "message",
        ", delete_date INTEGER, ck_sync_state INTEGER, PRIMARY KEY (chat_id, message_id), CHECK (delete_date != 0)",
    ),
}
_INDEXES = (
    "message(date)",
    "message(thread_originator_guid)",
    "message(handle_id, date)",
    "message(handle_id)",
    "message(is_sent, is_from_me, error)",
    "message(associated_message_guid)",
    "message(cache_has_attachments)",
    "message(other_handle)",
    "message(is_read, is_from_me, item_type)",
    "chat(chat_identifier, service_name)",
    "chat(room_name, service_name)",
    "chat(group_id)",
    "chat_message_join(chat_id, message_date, message_id)",
    "chat_message_join(message_id)",
    "chat_handle_join(handle_id)",
    "message_attachment_join(attachment_id)",
)


def schema() -> str:
    """The statements that make an empty database; the triggers, which need functions of the app, are left out."""
    tables = {"message": _MESSAGE, "chat": _CHAT, "attachment": _ATTACHMENT, "handle": _HANDLE}
    made = [
        f"CREATE TABLE {name} (ROWID INTEGER PRIMARY KEY AUTOINCREMENT, {columns.replace('*', _NUMBERS)})"
        for name, columns in tables.items()
    ]
    made += [
        f"CREATE TABLE {name} ({one}_id INTEGER REFERENCES {one} (ROWID) ON DELETE CASCADE,"
        f" {other}_id INTEGER REFERENCES {other} (ROWID) ON DELETE CASCADE{rest})"
        for name, (one, other, rest) in _JOINS.items()
    ]
    made += [f"CREATE INDEX idx_{number} ON {what}" for number, what in enumerate(_INDEXES)]
    return ";\n".join(made)


@dataclass(slots=True)
class ChatDatabase:
    """A database under construction; what it holds is on disk when the block ends, or after `commit`."""

    path: Path
    wal: bool = False
    conn: sqlite3.Connection = field(init=False)
    handles: dict[tuple[str, str], int] = field(default_factory=dict)

    def __enter__(self) -> Self:
        self.conn = sqlite3.connect(self.path)
        if self.wal:
            self.conn.execute("pragma journal_mode = wal")
        self.conn.executescript(schema())
        return self

    def __exit__(self, *exception: object) -> None:
        self.commit()
        self.conn.close()

    def commit(self) -> None:
        self.conn.commit()

    def insert(self, table: str, **columns: Any) -> int:
        names, marks = ", ".join(columns), ", ".join("?" * len(columns))
        row = self.conn.execute(f"insert into {table} ({names}) values ({marks})", tuple(columns.values()))
        assert row.lastrowid is not None
        return row.lastrowid

    def handle(self, address: str, service: str = "iMessage") -> int:
        """The row of an address, made when there is none."""
        if (address, service) not in self.handles:
            self.handles[address, service] = self.insert("handle", id=address, service=service)
        return self.handles[address, service]

    def chat(self, guid: str, *people: str, service: str = "iMessage", **columns: Any) -> int:
        """A chat with those people; a group when there are several, as macOS tells them apart."""
        group = len(people) > 1 or "room_name" in columns
        given = {"style": 43 if group else 45, "chat_identifier": guid.rpartition(";")[2], **columns}
        chat = self.insert("chat", guid=guid, service_name=service, **given)
        for address in people:
            self.insert("chat_handle_join", chat_id=chat, handle_id=self.handle(address, service))
        return chat

    def message(
        self,
        chat: int | None,
        text: str | None = None,
        *,
        sender: str | None = None,
        at: float = 1_714_558_320,
        service: str = "iMessage",
        **columns: Any,
    ) -> int:
        """A message, in a chat or in none; without a sender it is the owner's. `at`: seconds since 1970."""
        given = {
            "guid": f"M-{self.conn.total_changes}",
            "text": text,
            "service": service,
            "date": int((at - APPLE_EPOCH) * NANOSECONDS),
            "is_from_me": int(sender is None),
            "handle_id": self.handle(sender, service) if sender else 0,
            **columns,
        }
        message = self.insert("message", **given)
        if chat is not None:
            self.insert("chat_message_join", chat_id=chat, message_id=message, message_date=given["date"])
        return message

    def attach(self, message: int, name: str | None, *, guid: str = "", **columns: Any) -> int:
        guid = guid or f"at_{self.conn.total_changes}"
        attachment = self.insert("attachment", guid=guid, original_guid=guid, transfer_name=name, **columns)
        self.insert("message_attachment_join", message_id=message, attachment_id=attachment)
        return attachment


def _integer(value: int) -> bytes:
    if value < 128:
        return bytes([value])
    return b"\x81" + value.to_bytes(2, "little") if value < 2**15 else b"\x82" + value.to_bytes(4, "little")


class Archive:
    """NSArchiver's format, written as Foundation writes it: what was written once is referred to by its number."""

    def __init__(self) -> None:
        self.bytes = bytearray(b"\x04\x0bstreamtyped\x81\xe8\x03")
        self._strings: list[bytes] = []
        self._objects: list[str] = []

    def _reference(self, number: int) -> None:
        number -= 110
        self.bytes += bytes([number % 256]) if number < 128 else b"\x81" + number.to_bytes(2, "little")

    def shared(self, text: bytes) -> None:
        if text in self._strings:
            self._reference(self._strings.index(text))
        else:
            self._strings.append(text)
            self.bytes += b"\x84" + _integer(len(text)) + text

    def begin(self, *classes: tuple[str, int]) -> None:
        """A new object of the first class, which inherits from the others."""
        self.bytes += b"\x84"
        self._objects.append("an object")
        for name, version in classes:
            if name in self._objects:
                self._reference(self._objects.index(name))
                return
            self.bytes += b"\x84"
            self.shared(name.encode())
            self.bytes += bytes([version])
            self._objects.append(name)
        self.bytes += b"\x85"

    def end(self) -> None:
        self.bytes += b"\x86"

    def string(self, text: str, *, mutable: bool = False) -> None:
        self.shared(b"@")
        chain = (("NSString", 1), ("NSObject", 0))
        self.begin(*((("NSMutableString", 1),) if mutable else ()), *chain)
        self.shared(b"+")
        raw = text.encode()
        self.bytes += _integer(len(raw)) + raw
        self.end()

    def number(self, value: int) -> None:
        self.shared(b"@")
        self.begin(("NSNumber", 0), ("NSValue", 0), ("NSObject", 0))
        self.shared(b"*")
        self.bytes += b"\x84"
        self._objects.append("a C string")
        self.shared(b"i")
        self.shared(b"i")
        self.bytes += _integer(value)
        self.end()

    def data(self, raw: bytes) -> None:
        self.shared(b"@")
        self.begin(("NSData", 0), ("NSObject", 0))
        self.shared(b"i")
        self.bytes += _integer(len(raw))
        self.shared(f"[{len(raw)}c]".encode())
        self.bytes += raw
        self.end()

    def dictionary(self, values: Mapping[str, str | int | bytes]) -> None:
        self.shared(b"@")
        self.begin(("NSDictionary", 0), ("NSObject", 0))
        self.shared(b"i")
        self.bytes += _integer(len(values))
        for key, value in values.items():
            self.string(key)
            match value:
                case str():
                    self.string(value)
                case int():
                    self.number(value)
                case bytes():
                    self.data(value)
        self.end()


Runs = Sequence[tuple[int, Mapping[str, str | int | bytes]]]


def attributed_body(text: str, runs: Runs = (), *, mutable: bool = False) -> bytes:
    """The column attributedBody for a text; a run is its length in UTF-16 units and its attributes."""
    archive = Archive()
    archive.shared(b"@")
    own = (("NSMutableAttributedString", 0),) if mutable else ()
    archive.begin(*own, ("NSAttributedString", 0), ("NSObject", 0))
    archive.string(text, mutable=mutable)
    known: list[Mapping[str, str | int | bytes]] = []
    whole = len(text.encode("utf-16-le")) // 2
    for length, attributes in runs or ((whole, {"__kIMMessagePartAttributeName": 0}),):
        archive.shared(b"iI")
        new = attributes not in known
        if new:
            known.append(attributes)
        archive.bytes += _integer(known.index(attributes) + 1) + _integer(length)
        if new:
            archive.dictionary(attributes)
    archive.end()
    return bytes(archive.bytes)


def edited(parts: dict[int, Iterable[str]], *, retracted: Sequence[int] = (), original: Sequence[int] = ()) -> bytes:
    """The column message_summary_info of a message whose parts had those texts, the last one newest."""
    return plistlib.dumps(
        {
            "ust": True,
            "ec": {
                str(part): [
                    {"d": 690_513_474.0 + number, "t": attributed_body(text)} for number, text in enumerate(texts)
                ]
                for part, texts in parts.items()
            },
            "ep": sorted(parts),
            "rp": list(retracted),
            "otr": {str(part): {"lo": 0, "le": 1} for part in original or sorted(parts) or retracted},
        },
        fmt=plistlib.FMT_BINARY,
    )
