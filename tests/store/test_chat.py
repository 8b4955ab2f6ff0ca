import random
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from garage.store import chat as store
from garage.store import chat_snapshot
from garage.store.chat import ThreadRecord, snapshot, threads
from garage.store.chat_snapshot import ChatDatabaseError
from tests.builders.chat_db import APPLE_EPOCH, ChatDatabase, attributed_body

ANNA, BEN = "+4915112345678", "ben@example.org"
DIRECT, GROUP = f"iMessage;-;{ANNA}", "iMessage;+;chat1"


@pytest.fixture
def build(tmp_path: Path) -> Callable[[], ChatDatabase]:
    return lambda: ChatDatabase(tmp_path / "chat.db")


def listed(path: Path) -> dict[str, ThreadRecord]:
    with snapshot(path) as copy:
        return {thread.guid: thread for thread in threads(copy)}


def texts(path: Path, guid: str) -> list[str | None]:
    with snapshot(path) as copy:
        return [row.text for row in store.messages(copy, guid)]


def test_a_thread_counts_its_messages_and_knows_its_newest_change(build: Callable[[], ChatDatabase]) -> None:
    with build() as db:
        chat = db.chat(DIRECT, ANNA)
        db.message(chat, "one", at=1_700_000_000)
        db.message(chat, "two", at=1_700_000_500, date_edited=(1_700_000_900 - APPLE_EPOCH) * 10**9)
        db.message(chat, "Liked", associated_message_type=2001, at=1_700_000_600)
        db.message(chat, None, item_type=2, group_title="x", at=1_700_000_700)
        db.chat("iMessage;-;nobody@example.org", "nobody@example.org")
    (thread,) = listed(db.path).values()
    assert (thread.guid, thread.messages, thread.changed_ns) == (DIRECT, 2, 1_700_000_900 * 10**9)
    assert 0 <= thread.signature < 2**63


def test_the_signature_tells_of_whatever_a_thread_is_made_of(build: Callable[[], ChatDatabase]) -> None:
    changes = (
        "update message set text = 'longer text' where guid = 'G1'",
        "update message set attributedBody = x'00' where guid = 'G1'",
        "update message set date = date + 1 where guid = 'G1'",
        "update message set is_from_me = 1 where guid = 'G1'",
        "update message set guid = 'G3', ROWID = 77 where guid = 'G2'",
        "update chat set display_name = 'Anna'",
        "update handle set id = 'anna@example.org'",
    )
    with build() as db:
        chat = db.chat(DIRECT, ANNA)
        db.message(chat, "text", guid="G1", sender=ANNA)
        loose = db.message(None, "text", guid="G2")
        db.insert("chat_message_join", chat_id=chat, message_id=loose)
        db.commit()
        signatures = [listed(db.path)[DIRECT].signature]
        for change in changes:
            db.conn.execute("pragma foreign_keys = off")
            db.conn.execute(change)
            if "77" in change:
                db.conn.execute("update chat_message_join set message_id = 77 where message_id = ?", (loose,))
            db.commit()
            signatures.append(listed(db.path)[DIRECT].signature)
    assert len(set(signatures)) == len(signatures)


def test_the_signature_stays_when_a_message_is_read_or_another_thread_grows(build: Callable[[], ChatDatabase]) -> None:
    with build() as db:
        db.message(db.chat(DIRECT, ANNA), "text", sender=ANNA)
        other = db.chat("SMS;-;+1", "+1")
        db.message(other, "x")
        db.commit()
        before = listed(db.path)
        db.conn.execute("update message set is_read = 1, date_read = date + 5, is_played = 1, date_played = 9")
        db.message(other, "y")
        db.commit()
        after = listed(db.path)
    assert after[DIRECT] == before[DIRECT]
    assert after["SMS;-;+1"].signature != before["SMS;-;+1"].signature


def test_messages_that_nothing_joins_go_to_the_conversation_with_their_sender(
    build: Callable[[], ChatDatabase],
) -> None:
    with build() as db:
        direct = db.chat(DIRECT, ANNA)
        db.chat(GROUP, ANNA, BEN)
        db.message(direct, "joined", sender=ANNA, at=1_700_000_000)
        db.message(None, "loose", sender=ANNA, service="SMS", at=1_700_000_001)
        db.message(None, "mine", handle_id=db.handle(ANNA), at=1_700_000_002)
    assert texts(db.path, DIRECT) == ["joined", "loose", "mine"]
    with snapshot(db.path) as copy:
        assert (copy.adopted, copy.skipped) == (2, 0)


def test_messages_of_nobody_or_of_people_with_groups_only_are_skipped_and_counted(
    build: Callable[[], ChatDatabase],
) -> None:
    with build() as db:
        db.message(db.chat(GROUP, ANNA, BEN), "joined", sender=BEN)
        db.message(None, "of a group's member", sender=BEN)
        db.message(None, "of nobody")
        db.message(None, "of an unknown", handle_id=4711)
    with snapshot(db.path) as copy:
        assert (copy.adopted, copy.skipped) == (0, 3)
        assert [thread.messages for thread in threads(copy)] == [1]


def test_of_two_conversations_with_one_address_the_one_of_the_same_service_is_chosen(
    build: Callable[[], ChatDatabase],
) -> None:
    with build() as db:
        db.chat(DIRECT, ANNA)
        db.chat(f"SMS;-;{ANNA}", ANNA, service="SMS")
        db.message(None, "by SMS", sender=ANNA, service="SMS")
        db.message(None, "by RCS", sender=ANNA, service="RCS")
    assert texts(db.path, f"SMS;-;{ANNA}") == ["by SMS"]
    assert texts(db.path, DIRECT) == ["by RCS"]


def test_a_conversation_without_members_is_found_by_its_identifier(build: Callable[[], ChatDatabase]) -> None:
    with build() as db:
        db.chat("any;-;Ben@Example.org")
        db.message(None, "loose", sender=BEN)
    assert texts(db.path, "any;-;Ben@Example.org") == ["loose"]


def test_a_loose_message_of_a_group_goes_to_no_other_conversation(build: Callable[[], ChatDatabase]) -> None:
    with build() as db:
        db.chat(DIRECT, ANNA)
        db.chat(GROUP, ANNA, BEN, room_name="chat1")
        db.message(None, "in the group", sender=ANNA, cache_roomnames="chat1")
        db.message(None, "in a group that is gone", sender=ANNA, cache_roomnames="chat2")
        db.message(None, None, item_type=3, sender=ANNA)
    assert texts(db.path, DIRECT) == []
    assert texts(db.path, GROUP) == ["in the group"]
    with snapshot(db.path) as copy:
        assert (copy.adopted, copy.skipped) == (1, 2)


def test_what_a_person_deleted_is_not_brought_back(build: Callable[[], ChatDatabase]) -> None:
    with build() as db:
        chat = db.chat(DIRECT, ANNA)
        db.message(chat, "kept", sender=ANNA)
        deleted = db.message(None, "deleted last week", sender=ANNA)
        db.insert("chat_recoverable_message_join", chat_id=chat, message_id=deleted, delete_date=1)
    assert texts(db.path, DIRECT) == ["kept"]


def test_a_message_in_two_chats_is_in_both(build: Callable[[], ChatDatabase]) -> None:
    with build() as db:
        first, second = db.chat(DIRECT, ANNA), db.chat(f"SMS;-;{ANNA}", ANNA, service="SMS")
        message = db.message(first, "hi", sender=ANNA)
        db.insert("chat_message_join", chat_id=second, message_id=message)
    assert [thread.messages for thread in listed(db.path).values()] == [1, 1]


def test_a_schema_of_another_age_is_read(tmp_path: Path) -> None:
    old = ChatDatabase(tmp_path / "chat.db")
    with old:
        old.message(old.chat(DIRECT, ANNA), "hi", sender=ANNA, date=300_000_000)
        old.message(None, "loose", sender=ANNA, date=300_000_001, attributedBody=attributed_body("loose"))
        old.commit()
        for name in ("attachment", "message_attachment_join", "chat_recoverable_message_join"):
            old.conn.execute(f"drop table {name}")
        gone = "date_edited date_retracted group_title group_action_type message_summary_info associated_message_emoji"
        for column in (*gone.split(), "cache_roomnames", "subject"):
            old.conn.execute(f"alter table message drop column {column}")
        old.conn.execute("drop index idx_7")
        old.conn.execute("alter table message drop column other_handle")
    assert texts(old.path, DIRECT) == ["hi", "loose"]
    assert listed(old.path)[DIRECT].changed_ns == (300_000_001 + APPLE_EPOCH) * 10**9


def test_text_that_is_no_utf8_is_read_all_the_same(build: Callable[[], ChatDatabase]) -> None:
    with build() as db:
        chat = db.chat(DIRECT, ANNA)
        db.message(chat, "x", guid="G1")
        db.conn.execute("update message set text = cast(x'61ff62' as text) where guid = 'G1'")
    assert texts(db.path, DIRECT) == ["a\ufffdb"]
    assert listed(db.path)[DIRECT].messages == 1


def test_values_of_the_wrong_type_are_no_values(build: Callable[[], ChatDatabase]) -> None:
    with build() as db:
        chat = db.chat(DIRECT, ANNA)
        db.message(chat, None, date="yesterday", item_type="x", associated_message_type="y", attributedBody="z")
        db.message(chat, "far", date=2**63 - 1, guid="far")
    with snapshot(db.path) as copy:
        rows = {row.guid: row for row in store.messages(copy, DIRECT)}
        assert sorted(row.at_ns or 0 for row in rows.values()) == [0, 2**63 - 1]
        assert next(threads(copy)).changed_ns <= 2**63 - 1


def test_a_database_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "places.sqlite"
    conn = sqlite3.connect(path)
    conn.execute("create table message (x)")
    conn.commit()
    conn.close()
    with pytest.raises(ChatDatabaseError, match="not one of Messages") as caught, snapshot(path):
        pass
    assert caught.value.reason == "foreign"


def test_a_damaged_database_is_told(build: Callable[[], ChatDatabase]) -> None:
    with build() as db:
        chat = db.chat(DIRECT, ANNA)
        for number in range(3_000):
            db.message(chat, f"message {number} " * 20, sender=ANNA)
    raw = bytearray(db.path.read_bytes())
    for start in range(4096 * 5, len(raw) - 4096, 4096 * 2):
        raw[start : start + 4096] = bytes(4096)
    db.path.write_bytes(raw)
    with pytest.raises(ChatDatabaseError) as caught:
        texts(db.path, DIRECT)
    assert caught.value.reason == "damaged"


@pytest.mark.slow
def test_no_damage_is_anything_but_an_error_that_says_so(
    build: Callable[[], ChatDatabase], monkeypatch: pytest.MonkeyPatch
) -> None:
    with build() as db:
        for number in range(5):
            chat = db.chat(f"iMessage;-;{number}", f"{number}@example.org")
            for text in ("one", "two", None):
                message = db.message(chat, text, sender=f"{number}@example.org", attributedBody=attributed_body("body"))
            db.attach(message, "file.pdf")
            db.message(None, "loose", sender=f"{number}@example.org")
    monkeypatch.setattr(chat_snapshot, "_just_written", lambda state: False)  # it is written once a round
    whole = db.path.read_bytes()
    chance = random.Random(7)
    outcomes = {"read": 0, "damaged": 0}
    for round_ in range(150):
        raw = bytearray(whole if round_ % 4 else whole[: chance.randrange(100, len(whole))])
        for _ in range(chance.choice((1, 3, 20, 200))):
            raw[chance.randrange(16, len(raw))] = chance.randrange(256)
        db.path.write_bytes(raw)
        try:
            with snapshot(db.path) as copy:
                for thread in list(threads(copy)):
                    store.chat(copy, thread.guid)
                    list(store.messages(copy, thread.guid))
            outcomes["read"] += 1
        except ChatDatabaseError as error:
            outcomes[error.reason] += 1
    assert min(outcomes.values()) > 20


@pytest.mark.slow
def test_many_threads_are_listed_and_read_by_an_index_each(build: Callable[[], ChatDatabase]) -> None:
    with build() as db:
        chats = [db.chat(f"iMessage;-;{number}", f"{number}@example.org") for number in range(500)]
        for number in range(30_000):
            db.message(chats[number % 500] if number % 10 else None, "words " * 9, sender=f"{number % 500}@example.org")
    started = time.process_time()
    with snapshot(db.path) as copy:
        guids = [thread.guid for thread in threads(copy)]
        assert sum(len(list(store.messages(copy, guid))) for guid in guids) == 30_000
    # About 2 seconds here; a scan of the messages for each thread, or each loose message, would take minutes.
    assert time.process_time() - started < 20
