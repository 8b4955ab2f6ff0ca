"""A database of messages as a source: its threads are walked, guarded, read and forgotten as files are."""

from pathlib import Path
from typing import Any

import pytest

from garage.store.chat_snapshot import ChatDatabaseError
from garage.walk.errors import DeletionRefused, SourceUnavailable
from tests.builders.chat_db import ChatDatabase

ADA, BEN = "+15550001", "ben@example.org"
START = 1_714_558_320


@pytest.fixture
def chats(spine: Any, tmp_path: Path) -> Path:
    """The file of the source `phone`: eight threads of two messages."""
    path = tmp_path / "phone" / "chat.db"
    path.parent.mkdir()
    with ChatDatabase(path) as database:
        for number in range(8):
            chat = database.chat(f"iMessage;-;+1555000{number}", f"+1555000{number}")
            database.message(chat, f"is the pump of garden {number} dry", sender=f"+1555000{number}", at=START)
            database.message(chat, f"pump {number} runs again", at=START + 60)
    spine.configure({"name": "phone", "root": path, "kind": "messages"})
    return path


def changed(path: Path, *statements: str) -> None:
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(path)) as conn, conn:
        for statement in statements:
            conn.execute(statement)


def test_a_thread_is_a_document_and_a_message_a_passage_with_its_sender(spine: Any, chats: Path) -> None:
    counts = spine.update("phone")
    assert counts["source_files"]["added"] == 8
    assert counts["documents"] == {"documents_written": 8, "chunks_written": 16}
    assert spine.rows("select distinct corpus_class, kind from documents") == [("communication", "conversation")]
    assert spine.rows(
        "select d.uri, c.text, c.sender, c.direction from chunks c join documents d on d.id = c.document_id"
        " where d.uri like %s order by c.ord",
        "%0003",
    ) == [
        ("chat.db#iMessage;-;+15550003", "is the pump of garden 3 dry", "+15550003", "received"),
        ("chat.db#iMessage;-;+15550003", "pump 3 runs again", "Me", "sent"),
    ]
    assert spine.found("garden 5", "keyword")[0] == "chat.db#iMessage;-;+15550005"


def test_a_second_run_reads_nothing(spine: Any, chats: Path) -> None:
    spine.update("phone")
    again = spine.update("phone")
    assert again["documents"] == again["chunks"] == {}
    assert "added" not in again["source_files"]
    assert "changed" not in again["source_files"]


def test_a_message_more_is_the_one_passage_that_is_written(spine: Any, chats: Path) -> None:
    spine.update("phone")
    before = dict(spine.rows("select text, id from chunks"))
    changed(
        chats,
        "insert into message (guid, text, handle_id, service, date, is_from_me) values"
        " ('NEW', 'bring a spanner', 3, 'iMessage', (select max(date) + 9000000000 from message), 0)",
        "insert into chat_message_join (chat_id, message_id, message_date)"
        " select 3, ROWID, date from message where guid = 'NEW'",
    )
    counts = spine.update("phone")
    assert counts["source_files"]["changed"] == 1
    assert counts["documents"] == {"documents_written": 1, "chunks_written": 1, "chunks_kept": 2}
    assert counts["embeddings/all-minilm-l6-v2"] == {"embedded": 1}
    after = dict(spine.rows("select text, id from chunks"))
    assert before.items() <= after.items()


def test_an_edited_message_is_read_again_although_number_and_time_are_the_same(spine: Any, chats: Path) -> None:
    spine.update("phone")
    changed(chats, "update message set text = 'the pump is sold' where text like 'pump 4%'")
    assert spine.update("phone")["documents"]["documents_written"] == 1
    assert spine.found("sold", "keyword") == ["chat.db#iMessage;-;+15550004"]


def test_the_loss_of_more_than_a_quarter_of_the_threads_is_refused(spine: Any, chats: Path) -> None:
    spine.update("phone")
    lost = "select message_id from chat_message_join where chat_id <= 3"
    changed(chats, f"delete from message where ROWID in ({lost})", "delete from chat where ROWID <= 3")
    with pytest.raises(DeletionRefused):
        spine.update("phone")
    assert len(spine.contents()) == 8
    assert spine.update("phone", allow_deletes=True)["documents"] == {"documents_deleted": 3}
    assert len(spine.contents()) == 5


def test_a_database_that_is_gone_or_damaged_costs_nothing(spine: Any, chats: Path) -> None:
    spine.update("phone")
    kept = spine.state()
    whole = chats.read_bytes()
    chats.unlink()
    with pytest.raises(SourceUnavailable):
        spine.update("phone")
    for raw in (b"", b"not a database at all\n" * 500, whole[: len(whole) // 2]):
        chats.write_bytes(raw)
        with pytest.raises((ChatDatabaseError, DeletionRefused)):
            spine.update("phone")
    assert spine.state() == kept
    chats.write_bytes(whole)
    assert spine.update("phone")["documents"] == {}


def test_the_folder_of_the_database_is_left_as_it_was(spine: Any, chats: Path) -> None:
    before = {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in chats.parent.iterdir()}
    spine.update("phone")
    assert {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in chats.parent.iterdir()} == before
