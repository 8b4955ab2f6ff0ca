from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from garage.extract.messages import read_thread
from garage.extract.mirror import canonical
from garage.extract.model import Extracted, Malformed, NoText
from garage.store.chat import snapshot
from tests.builders.chat_db import ChatDatabase, attributed_body, edited

ANNA, BEN = "+4915112345678", "ben@example.org"
GUID = f"iMessage;-;{ANNA}"
GROUP = "iMessage;+;chat123456789"
FILE = "__kIMFileTransferGUIDAttributeName"


@pytest.fixture
def build(tmp_path: Path) -> Callable[[], ChatDatabase]:
    return lambda: ChatDatabase(tmp_path / "chat.db")


def read(db: ChatDatabase, guid: str = GUID) -> Extracted:
    with snapshot(db.path) as copy:
        return read_thread(copy, guid)


@contextmanager
def one_chat(build: Callable[[], ChatDatabase]) -> Iterator[tuple[ChatDatabase, int]]:
    with build() as db:
        yield db, db.chat(GUID, ANNA)


def words(found: Extracted) -> list[str]:
    return [found.content[part.start : part.end] for part in found.parts]


def test_a_thread_is_a_document_that_can_be_read(build: Callable[[], ChatDatabase]) -> None:
    with one_chat(build) as (db, chat):
        db.message(chat, "Dinner at eight?", sender=ANNA, at=1_714_558_320)
        db.message(chat, "Yes!\nI bring wine.", at=1_714_558_400)
    found = read(db)
    assert found.content == (
        f"Conversation with {ANNA} (iMessage). Times are UTC.\n\n"
        f"[2024-05-01 10:12] {ANNA}: Dinner at eight?\n"
        "[2024-05-01 10:13] Me: Yes!\nI bring wine.\n"
    )
    assert (found.kind, found.title, found.communication, found.record) == ("conversation", ANNA, True, GUID)
    assert found.meta == {
        "guid": GUID,
        "participants": [ANNA],
        "services": ["iMessage"],
        "messages": 2,
        "first": "2024-05-01T10:12:00+00:00",
        "last": "2024-05-01T10:13:20+00:00",
    }


def test_a_part_holds_the_words_and_says_who_wrote_them_and_when(build: Callable[[], ChatDatabase]) -> None:
    with one_chat(build) as (db, chat):
        db.message(chat, "Dinner at eight?", sender=ANNA, at=1_714_558_320)
        db.message(chat, "Yes!\nI bring wine.", at=1_714_558_400)
    found = read(db)
    assert words(found) == ["Dinner at eight?", "Yes!\nI bring wine."]
    assert [(part.sender, part.direction, part.at, part.quoted) for part in found.parts] == [
        (ANNA, "received", "2024-05-01T10:12:00+00:00", False),
        ("Me", "sent", "2024-05-01T10:13:20+00:00", False),
    ]


def test_messages_stand_in_the_order_of_their_time(build: Callable[[], ChatDatabase]) -> None:
    with one_chat(build) as (db, chat):
        db.message(chat, "second", at=1_714_558_400)
        db.message(chat, "first", at=1_714_558_300)
    assert words(read(db)) == ["first", "second"]


def test_seconds_of_older_versions_are_told_from_nanoseconds(build: Callable[[], ChatDatabase]) -> None:
    with one_chat(build) as (db, chat):
        db.message(chat, "old", date=300_000_000)
        db.message(chat, "undated", date=0)
    assert [part.at for part in read(db).parts] == [None, "2010-07-05T05:20:00+00:00"]


def test_a_text_that_only_the_attributed_body_has_is_read(build: Callable[[], ChatDatabase]) -> None:
    with one_chat(build) as (db, chat):
        db.message(chat, None, sender=ANNA, attributedBody=attributed_body("Grüße 👋🏽"))
        db.message(chat, "", sender=ANNA, attributedBody=attributed_body("x" * 300))
    assert words(read(db)) == ["Grüße 👋🏽", "x" * 300]


def test_a_body_that_cannot_be_read_is_counted(build: Callable[[], ChatDatabase]) -> None:
    with one_chat(build) as (db, chat):
        db.message(chat, None, attributedBody=b"garbage")
        db.message(chat, "readable")
    found = read(db)
    assert words(found) == ["readable"]
    assert found.warnings == ("messages without words, left out: 1",)


def test_a_subject_stands_above_its_message(build: Callable[[], ChatDatabase]) -> None:
    with one_chat(build) as (db, chat):
        db.message(chat, "See you there", subject="Saturday")
    assert words(read(db)) == ["Saturday\nSee you there"]


def test_files_stand_by_name_where_they_were_sent(build: Callable[[], ChatDatabase]) -> None:
    body = attributed_body("\ufffcLook:\ufffc", [(1, {FILE: "second"}), (5, {"p": 1}), (1, {FILE: "first"})])
    with one_chat(build) as (db, chat):
        message = db.message(chat, None, attributedBody=body)
        db.attach(message, "IMG_1.HEIC", guid="first")
        db.attach(message, "IMG_2.HEIC", guid="second")
        unplaced = db.message(chat, "\ufffc", sender=ANNA)
        db.attach(unplaced, None, filename="~/Library/Messages/Attachments/ab/invoice.pdf")
        bare = db.message(chat, "By the way")
        db.attach(bare, "terms.pdf")
    assert words(read(db)) == [
        "[attachment: IMG_2.HEIC]Look:[attachment: IMG_1.HEIC]",
        "[attachment: invoice.pdf]",
        "By the way\n[attachment: terms.pdf]",
    ]


def test_hidden_files_and_places_without_a_file_are_left_out(build: Callable[[], ChatDatabase]) -> None:
    with one_chat(build) as (db, chat):
        preview = db.message(chat, "https://example.org/ \ufffc", sender=ANNA)
        db.attach(preview, "A1.pluginPayloadAttachment", hide_attachment=1)
        db.message(chat, "\ufffc", sender=ANNA)
    found = read(db)
    assert words(found) == ["https://example.org/"]
    assert found.warnings == ("messages without words, left out: 1",)


def test_what_was_said_in_a_voice_message_is_read(build: Callable[[], ChatDatabase]) -> None:
    body = attributed_body("\ufffc", [(1, {FILE: "voice", "IMAudioTranscription": "I am late"})])
    with one_chat(build) as (db, chat):
        db.attach(db.message(chat, "\ufffc", sender=ANNA, attributedBody=body), "Audio Message.caf", guid="voice")
    assert words(read(db)) == ["[attachment: Audio Message.caf] I am late"]


def test_a_reaction_is_a_line_below_its_message_and_no_message(build: Callable[[], ChatDatabase]) -> None:
    def react(kind: int, target: str, **columns: Any) -> None:
        db.message(chat, "Loved “Done”", associated_message_type=kind, associated_message_guid=target, **columns)

    with one_chat(build) as (db, chat):
        db.message(chat, "Done", guid="G1", at=1_714_558_320)
        db.message(chat, "Next", guid="G2", at=1_714_558_380)
        react(2000, "p:0/G1", sender=ANNA)
        react(2001, "bp:G2", sender=ANNA)
        react(3001, "bp:G2", sender=ANNA)
        react(2006, "p:1/G2", associated_message_emoji="🎉")
        react(1000, "G2")
        react(2004, "p:0/nobody")
    found = read(db)
    assert words(found) == ["Done", "Next"]
    assert found.content.partition("\n\n")[2] == (
        f"[2024-05-01 10:12] Me: Done\n    ({ANNA}: ❤️)\n[2024-05-01 10:13] Me: Next\n    (Me: 🎉)\n    (Me: sticker)\n"
    )


def test_the_newest_version_of_an_edited_message_is_read(build: Callable[[], ChatDatabase]) -> None:
    with one_chat(build) as (db, chat):
        db.message(chat, "At seven", message_summary_info=edited({0: ["At seven", "At eight"]}))
        body = attributed_body("One\ufffcThree")
        db.message(
            chat, None, attributedBody=body, message_summary_info=edited({2: ["3", "Three"]}, original=(0, 1, 2))
        )
        db.message(chat, None, message_summary_info=edited({0: ["a", "A"], 2: ["b", "B"]}, retracted=[2]))
        db.message(chat, "as it was", message_summary_info=b"bplist00garbage")
    assert words(read(db)) == ["At eight", "OneThree", "A", "as it was"]


def test_a_message_that_was_taken_back_is_not_shown_although_its_words_are_left(
    build: Callable[[], ChatDatabase],
) -> None:
    with one_chat(build) as (db, chat):
        db.message(chat, "Sorry", message_summary_info=edited({}, retracted=[0]), sender=ANNA)
        db.message(chat, None, date_retracted=700_000_000 * 10**9)
        db.message(chat, "Hello")
    found = read(db)
    assert words(found) == ["Hello"]
    assert f"] ({ANNA} withdrew a message)\n" in found.content
    assert "] (Me withdrew a message)\n" in found.content
    assert "Sorry" not in found.content


def test_changes_of_a_group_are_told_beside_its_messages(build: Callable[[], ChatDatabase]) -> None:
    with build() as db:
        chat = db.chat(GROUP, ANNA, BEN, display_name="Trip")
        db.message(chat, None, item_type=2, group_title="Trip")
        db.message(chat, None, item_type=1, other_handle=db.handle(BEN), sender=ANNA)
        db.message(chat, None, item_type=1, group_action_type=1, other_handle=99)
        db.message(chat, None, item_type=3, sender=BEN)
        db.message(chat, None, item_type=3, group_action_type=1)
        db.message(chat, "Where to?", sender=BEN)
    found = read(db, GROUP)
    assert found.title == "Trip"
    assert found.content.startswith(f"Conversation with {ANNA}, {BEN} (iMessage)")
    assert [line.partition("] ")[2] for line in found.content.splitlines()[2:]] == [
        "(Me named the conversation Trip)",
        f"({ANNA} added {BEN})",
        "(Me removed somebody)",
        f"({BEN} left the conversation)",
        f"{BEN}: Where to?",
    ]
    assert words(found) == ["Where to?"]


def test_a_title_names_five_and_counts_the_others(build: Callable[[], ChatDatabase]) -> None:
    with build() as db:
        db.message(db.chat(GROUP, *(f"p{number}@example.org" for number in range(7))), "hi")
    assert read(db, GROUP).title == (
        "p0@example.org, p1@example.org, p2@example.org, p3@example.org, p4@example.org and 2 more"
    )


def test_all_services_of_a_thread_are_named(build: Callable[[], ChatDatabase]) -> None:
    with one_chat(build) as (db, chat):
        for service in ("iMessage", "SMS", "RCS", "SMS"):
            db.message(chat, "hi", service=service, sender=ANNA)
    assert read(db).meta["services"] == ["RCS", "SMS", "iMessage"]


def test_a_sender_whom_nobody_knows_is_called_so(build: Callable[[], ChatDatabase]) -> None:
    with one_chat(build) as (db, chat):
        db.message(chat, "hi", is_from_me=0)
    found = read(db)
    assert "Unknown: hi" in found.content
    assert (found.parts[0].sender, found.parts[0].direction) == (None, "received")


def test_a_thread_without_words_has_no_text(build: Callable[[], ChatDatabase]) -> None:
    with one_chat(build) as (db, chat):
        db.message(chat, None, item_type=2, group_title="Trip")
        db.message(chat, "\u200b")
    with pytest.raises(NoText):
        read(db)


def test_a_thread_that_vanished_is_an_outcome(build: Callable[[], ChatDatabase]) -> None:
    with one_chat(build) as (db, chat):
        db.message(chat, "hi")
    with pytest.raises(Malformed, match="vanished"):
        read(db, "iMessage;-;somebody else")


@settings(deadline=None, max_examples=30)  # each writes two databases
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), min_size=1, max_size=5))
def test_every_thread_is_a_mirror_and_its_parts_ascend(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    with ChatDatabase(tmp_path_factory.mktemp("chat") / "chat.db") as db:
        chat = db.chat(GUID, ANNA, display_name=texts[0])
        for text in texts:
            db.message(chat, text, sender=text or None, service=text)
        db.message(chat, "the last")
    found = read(db)
    assert found.content == canonical(found.content)
    assert words(found)[-1] == "the last"
    assert all(canonical(shown).strip() == shown for shown in words(found))
    ends = [0, *(part.end for part in found.parts)]
    assert all(end < part.start < part.end for end, part in zip(ends, found.parts, strict=False))
