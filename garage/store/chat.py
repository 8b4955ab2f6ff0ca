"""The Messages database of macOS (chat.db): its threads, and the messages of one, as rows.

Read from a private copy, in which one table of ours says which message belongs to which chat, so that each of many
worker processes finds a thread's messages by an index and nobody has to work it out again. Columns came and went with
the versions of macOS; one that is not there reads as NULL.
"""

import contextlib
import hashlib
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from garage.store.chat_snapshot import ChatDatabaseError, copied, damaged

Value: TypeAlias = "int | float | str | bytes | None"

_APPLE_EPOCH = 978_307_200  # seconds from 1970 to 2001
# Older versions counted seconds. In nanoseconds this many are 100 seconds after the epoch; in seconds, the year 5169.
_SECONDS_BELOW = 10**11
_LATEST = 2**63 - 1
_ONE_TO_ONE = 45
_REACTIONS = (1000, 3999)
_TABLES = ("message", "handle", "chat", "chat_message_join", "chat_handle_join")
_MESSAGE_COLUMNS = (
    *("guid", "text", "attributedBody", "subject", "service", "date", "date_edited", "date_retracted", "is_from_me"),
    *("item_type", "group_title", "group_action_type", "associated_message_guid", "associated_message_type"),
    *("associated_message_emoji", "message_summary_info"),
)

_MEMBERSHIP = """
create table garage_member (chat integer not null, message integer not null, primary key (chat, message)) without rowid
"""
_JOINED = """
insert or ignore into garage_member
select j.chat_id, j.message_id from chat_message_join j
join chat c on c.ROWID = j.chat_id join message m on m.ROWID = j.message_id
"""
# What nothing joins: rows of older versions and of synchronisation. Those that a person deleted look the same, but for
# the table that keeps them for thirty days. `room` is set for messages of a group, which belong to no other chat.
_LOOSE = """
create temporary table loose as
select m.ROWID as message, lower(h.id) as address, {service} as service, {item_type} as item_type, {room} as room
from message m left join handle h on h.ROWID = m.handle_id
where m.ROWID not in (select message from garage_member) {not_deleted}
"""
_ADDRESSES = """
create temporary table one_to_one as
select c.ROWID as chat, lower(h.id) as address, {service_name} as service
from chat c join chat_handle_join j on j.chat_id = c.ROWID join handle h on h.ROWID = j.handle_id
where {one_to_one}
union
select c.ROWID, lower({identifier}), {service_name} from chat c where {one_to_one} and {identifier} is not null
"""
_ALONE = "(select count(*) from chat_handle_join a where a.chat_id = c.ROWID) = 1 and {room} is null"
# Of several chats with one address (iMessage and SMS), the one of the message's own service, then the oldest.
_ADOPT = """
insert or ignore into garage_member
select chat, message from (
  select o.chat, l.message, row_number() over (
    partition by l.message order by o.service is not l.service, o.chat) as choice
  from loose l join one_to_one o on o.address = l.address
  where l.room is null and coalesce(l.item_type, 0) = 0)
where choice = 1
"""
_ADOPT_ROOM = """
insert or ignore into garage_member
select min(c.ROWID), l.message from loose l join chat c on {room} = l.room group by l.message
"""


@dataclass(frozen=True, slots=True)
class ChatSnapshot:
    """A copy that can be read by any process while the block that made it lasts.

    `name` is the original's file name. Of the messages that belong to no chat, `adopted` found theirs by the address of
    their sender or the name of their group, `skipped` did not.
    """

    path: Path
    name: str
    adopted: int
    skipped: int


@dataclass(frozen=True, slots=True)
class ThreadRecord:
    """A thread as the walk records it.

    `messages` is their number, reactions and changes of the group not counted. `changed_ns` is the time of the newest
    message, edit or withdrawal, in nanoseconds since 1970. `signature` is a number of 63 bits that differs when
    anything differs from which the thread is made.
    """

    guid: str
    messages: int
    changed_ns: int
    signature: int


@dataclass(frozen=True, slots=True)
class Chat:
    """A conversation: `participants` are addresses, without the owner's."""

    guid: str
    identifier: str | None
    name: str | None
    service: str | None
    participants: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that came with a message."""

    guid: str
    name: str


@dataclass(frozen=True, slots=True)
class MessageRow:
    """A row of a thread as it is stored; times in nanoseconds since 1970, None where unknown.

    `sender` is an address, None for what the owner wrote. `other` is the address that a change of the group concerns.
    """

    guid: str
    text: str | None
    body: bytes | None
    subject: str | None
    service: str | None
    at_ns: int | None
    retracted: bool
    from_me: bool
    sender: str | None
    item_type: int
    group_title: str | None
    group_action: int
    other: str | None
    target: str | None
    reaction: int
    emoji: str | None
    summary: bytes | None
    attachments: tuple[Attachment, ...]


@contextlib.contextmanager
def snapshot(path: Path, *, folder: Path | None = None) -> Iterator[ChatSnapshot]:
    """Make a private copy of a Messages database, as it is now, that lasts as long as the block.

    Raises:
        ChatDatabaseError: it cannot be read, is no Messages database, or is damaged.
    """
    with copied(path, folder=folder) as copy:
        with _explaining(str(path)), contextlib.closing(sqlite3.connect(copy.path, isolation_level=None)) as conn:
            _harden(conn)
            _check(conn, path)
            conn.execute("pragma synchronous = off")
            conn.execute("pragma journal_mode = delete")  # takes the log in, so that the copy is one file
            conn.execute("begin")
            adopted, skipped = _join(conn)
            conn.execute("commit")
        yield ChatSnapshot(copy.path, path.name, adopted, skipped)


def threads(copy: ChatSnapshot) -> Iterator[ThreadRecord]:
    """Yield every thread that has a message, by its GUID.

    Raises:
        ChatDatabaseError: the database is damaged.
    """
    with _explaining(copy.name), _opened(copy) as conn:
        has = _columns(conn, "message")
        about = {chat: (guid, described) for chat, guid, described in _about(conn)}
        for chat, count, edited, retracted, date, rows in conn.execute(_threads_statement(has)):
            if count and chat in about:
                guid, described = about[chat]
                digest = hashlib.blake2b(f"{described}\n{rows}".encode("utf-8", "replace"), digest_size=8).digest()
                newest = max(nanoseconds(value) or 0 for value in (date, edited, retracted))
                yield ThreadRecord(guid, count, newest, int.from_bytes(digest, "big") >> 1)


def _threads_statement(has: set[str]) -> str:
    """One row a chat, put together where the rows are: a Python object for each of a million messages takes seconds."""

    def column(name: str) -> str:
        return f"m.{name}" if name in has else "null"

    told = [column(name) for name in ("date", "date_edited", "date_retracted", "is_from_me", "handle_id")]
    told += [f"length({column(name)})" for name in ("text", "attributedBody", "message_summary_info", "group_title")]
    line = " || ' ' || ".join(["m.ROWID", *(f"coalesce({value}, '')" for value in told)])
    reaction = f"coalesce({column('associated_message_type')}, 0) between {_REACTIONS[0]} and {_REACTIONS[1]}"
    return (
        "select chat, sum(is_message), max(edited), max(retracted), max(date), group_concat(line, char(10)) from ("
        f"select t.chat as chat, coalesce({column('item_type')}, 0) = 0 and not {reaction} as is_message,"
        f" {column('date_edited')} as edited, {column('date_retracted')} as retracted, {column('date')} as date,"
        f" {line} as line from garage_member t join message m on m.ROWID = t.message order by t.chat, t.message)"
        " group by chat"
    )


def _about(conn: sqlite3.Connection) -> Iterator[tuple[int, str, str]]:
    """Row id and GUID of each chat, with all that its title is made of."""
    has = _columns(conn, "chat")
    name = "c.display_name" if "display_name" in has else "null"
    people = "(select group_concat(h.id) from chat_handle_join j join handle h on h.ROWID = j.handle_id"
    for chat, guid, shown, who in conn.execute(
        f"select c.ROWID, c.guid, {name}, {people} where j.chat_id = c.ROWID) from chat c"
    ):
        yield chat, str(guid), repr((shown, who))


def chat(copy: ChatSnapshot, guid: str) -> Chat | None:
    """The conversation of that GUID; None when there is none (any more).

    Raises:
        ChatDatabaseError: the database is damaged.
    """
    with _explaining(copy.name), _opened(copy) as conn:
        has = _columns(conn, "chat")
        wanted = ("chat_identifier", "display_name", "service_name")
        fields = ", ".join(name if name in has else "null" for name in wanted)
        row = conn.execute(f"select ROWID, {fields} from chat where guid = ?", (guid,)).fetchone()
        if row is None:
            return None
        people = conn.execute(
            "select h.id from chat_handle_join j join handle h on h.ROWID = j.handle_id where j.chat_id = ?"
            " order by j.rowid",
            (row[0],),
        )
        participants = tuple(dict.fromkeys(str(address) for (address,) in people if address))
    return Chat(guid, _text(row[1]), _text(row[2]), _text(row[3]), participants)


def messages(copy: ChatSnapshot, guid: str) -> Iterator[MessageRow]:
    """Yield the rows of a thread in the order of their dates: messages, reactions, changes of the group.

    Raises:
        ChatDatabaseError: the database is damaged.
    """
    with _explaining(copy.name), _opened(copy) as conn:
        attached = _attachments(conn, guid)
        has = _columns(conn, "message")
        fields = ", ".join(f"m.{name}" if name in has else "null" for name in _MESSAGE_COLUMNS)
        other = "o.id" if "other_handle" in has else "null"
        join = "left join handle o on o.ROWID = m.other_handle" if "other_handle" in has else ""
        rows = conn.execute(
            f"select m.ROWID, h.id, {other}, {fields} from chat c join garage_member t on t.chat = c.ROWID"
            f" join message m on m.ROWID = t.message left join handle h on h.ROWID = m.handle_id {join}"
            " where c.guid = ? order by m.date, m.ROWID",
            (guid,),
        )
        for row in rows:
            yield _message(row, attached.get(row[0], ()))


def _message(row: tuple[Value, ...], attached: tuple[Attachment, ...]) -> MessageRow:
    _, sender, other, guid, text, body, subject, service, date, _, retracted, from_me, item_type, *rest = row
    group_title, group_action, target, associated, emoji, summary = rest
    return MessageRow(
        guid=str(guid),
        text=_text(text),
        body=body if isinstance(body, bytes) else None,
        subject=_text(subject),
        service=_text(service),
        at_ns=nanoseconds(date),
        retracted=bool(retracted),
        from_me=bool(from_me),
        sender=None if from_me else _text(sender),
        item_type=item_type if isinstance(item_type, int) else 0,
        group_title=_text(group_title),
        group_action=group_action if isinstance(group_action, int) else 0,
        other=_text(other),
        target=_text(target),
        reaction=associated if _is_reaction(associated) and isinstance(associated, int) else 0,
        emoji=_text(emoji),
        summary=summary if isinstance(summary, bytes) else None,
        attachments=attached,
    )


def _attachments(conn: sqlite3.Connection, guid: str) -> dict[int, tuple[Attachment, ...]]:
    if not {"attachment", "message_attachment_join"} <= _tables(conn):
        return {}
    has = _columns(conn, "attachment")
    names = [f"nullif(a.{name}, '')" for name in ("transfer_name", "filename") if name in has]
    shown = "where coalesce(a.hide_attachment, 0) = 0 and" if "hide_attachment" in has else "where"
    found: dict[int, tuple[Attachment, ...]] = {}
    for message, attachment, name in conn.execute(
        f"select t.message, a.guid, coalesce({', '.join([*names, 'null', 'null'])}) from chat c"
        " join garage_member t on t.chat = c.ROWID join message_attachment_join j on j.message_id = t.message"
        f" join attachment a on a.ROWID = j.attachment_id {shown} c.guid = ? order by j.message_id, j.attachment_id",
        (guid,),
    ):
        file_name = str(name or "").rpartition("/")[2]
        found[message] = (*found.get(message, ()), Attachment(str(attachment), file_name))
    return found


def nanoseconds(value: Value) -> int | None:
    """A date of the database, seconds or nanoseconds since 2001, as nanoseconds since 1970; None for no date."""
    if not isinstance(value, int) or value <= 0:
        return None
    since = value * 10**9 if value < _SECONDS_BELOW else value
    return min(since + _APPLE_EPOCH * 10**9, _LATEST)


def _is_reaction(associated: Value) -> bool:
    return isinstance(associated, int) and _REACTIONS[0] <= associated <= _REACTIONS[1]


def _text(value: Value) -> str | None:
    return value if isinstance(value, str) and value else None


def _join(conn: sqlite3.Connection) -> tuple[int, int]:
    """Write which message belongs to which chat; return how many were adopted, and how many belong to none."""
    conn.execute(_MEMBERSHIP)
    conn.execute(_JOINED)
    has, chats = _columns(conn, "message"), _columns(conn, "chat")
    recoverable = "chat_recoverable_message_join" in _tables(conn)
    deleted = "and m.ROWID not in (select message_id from chat_recoverable_message_join)" if recoverable else ""
    conn.execute(
        _LOOSE.format(
            service="m.service" if "service" in has else "null",
            item_type="m.item_type" if "item_type" in has else "null",
            room="nullif(m.cache_roomnames, '')" if "cache_roomnames" in has else "null",
            not_deleted=deleted,
        )
    )
    room = "nullif(c.room_name, '')" if "room_name" in chats else "null"
    style = f"c.style = {_ONE_TO_ONE} or c.style is null and " if "style" in chats else ""
    conn.execute(
        _ADDRESSES.format(
            service_name="c.service_name" if "service_name" in chats else "null",
            identifier="c.chat_identifier" if "chat_identifier" in chats else "null",
            one_to_one=f"({style}{_ALONE.format(room=room)})",
        )
    )
    adopted = conn.execute(_ADOPT).rowcount + conn.execute(_ADOPT_ROOM.format(room=room)).rowcount
    (loose,) = conn.execute("select count(*) from loose").fetchone()
    return adopted, loose - adopted


@contextlib.contextmanager
def _opened(copy: ChatSnapshot) -> Iterator[sqlite3.Connection]:
    # Nobody writes to the copy, so SQLite needs neither locks nor files of its own beside it.
    with contextlib.closing(sqlite3.connect(f"{copy.path.as_uri()}?mode=ro&immutable=1", uri=True)) as conn:
        _harden(conn)
        yield conn


def _harden(conn: sqlite3.Connection) -> None:
    conn.text_factory = lambda raw: raw.decode("utf-8", "replace")
    conn.execute("pragma trusted_schema = off")
    conn.execute("pragma cell_size_check = on")


def _tables(conn: sqlite3.Connection) -> set[str]:
    return {name for (name,) in conn.execute("select name from sqlite_master where type = 'table'")}


def _columns(conn: sqlite3.Connection, table: str) -> set[str]:
    return {name for _, name, *_ in conn.execute(f"pragma table_info({table})")}


def _check(conn: sqlite3.Connection, path: Path) -> None:
    if not set(_TABLES) <= _tables(conn):
        raise ChatDatabaseError(
            f"{path} is a database, but not one of Messages.",
            hint="Name the file chat.db, which macOS keeps in ~/Library/Messages.",
            path=str(path),
            reason="foreign",
        )


@contextlib.contextmanager
def _explaining(path: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise damaged(path, str(error)) from error
    except UnicodeDecodeError as error:  # from SQLite's own message, when it quotes what is damaged
        raise damaged(path, "its schema is unreadable") from error
