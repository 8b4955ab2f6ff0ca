"""Files that hold many documents: each is addressed by its record, and a file takes all of its own along."""

from collections.abc import Callable
from dataclasses import replace

from garage.passage import Part
from garage.store import documents
from garage.store.database import Database
from garage.store.documents import ChunkSet

Cut = Callable[..., ChunkSet]


def stored(database: Database) -> list[tuple[str, str, str]]:
    with database.connection() as conn:
        return conn.execute("select file_uri, record, uri from documents order by uri").fetchall()


def test_the_documents_of_a_file_are_addressed_by_their_records(database: Database, put: Callable[..., object]) -> None:
    put("mail.mbox", ["one"], record="<1@example.org>")
    put("mail.mbox", ["two"], record="<2@example.org>")
    put("mail.mbox#<1@example.org>", ["a file with such a name"])
    assert stored(database) == [
        ("mail.mbox", "<1@example.org>", "mail.mbox#<1@example.org>"),
        ("mail.mbox#<1@example.org>", "", "mail.mbox#<1@example.org>"),
        ("mail.mbox", "<2@example.org>", "mail.mbox#<2@example.org>"),
    ]


def test_a_record_of_any_length_can_be_stored_and_found_again(database: Database, put: Callable[..., object]) -> None:
    for record in ("x" * 100_000, "x" * 100_000 + "y"):
        put("mail.mbox", ["one"], record=record)
        put("mail.mbox", ["one"], record=record)
    assert [len(record) for _, record, _ in stored(database)] == [100_000, 100_001]


def test_what_is_stored_of_a_file_is_told_by_record(
    database: Database, put: Callable[..., object], source_id: int
) -> None:
    put("mail.mbox", ["one"], record="a")
    put("mail.mbox", ["two"], record="b")
    put("other.mbox", ["three"], record="a")
    with database.connection() as conn:
        found = documents.records(conn, source_id, "mail.mbox")
    assert set(found) == {"a", "b"}
    assert found["a"][1:] == ("1", "by hand of prose")


def test_only_the_records_that_are_not_named_are_dropped(
    database: Database, put: Callable[..., object], source_id: int
) -> None:
    for uri, record in (("mail.mbox", "a"), ("mail.mbox", "b"), ("mail.mbox", ""), ("other.mbox", "b")):
        put(uri, ["one"], record=record)
    with database.transaction() as conn:
        assert documents.drop_document(conn, source_id, "mail.mbox", but=["a"]) == 2
    assert stored(database) == [("mail.mbox", "a", "mail.mbox#a"), ("other.mbox", "b", "other.mbox#b")]
    with database.transaction() as conn:
        assert documents.drop_document(conn, source_id, "mail.mbox") == 1


def test_the_parts_of_a_document_come_back_with_it_when_it_is_cut_again(
    database: Database, put: Callable[..., object], source_id: int
) -> None:
    parts = [Part(0, 3, sender="Ada", direction="sent", at="2024-05-01T10:12:00Z"), Part(4, 7, quoted=True)]
    put("thread", ["one", "two"], parts=parts)
    with database.connection() as conn:
        (pending,) = documents.pending_chunks(conn, source_id, {"prose": "another version"}, rebuild=False)
    assert pending.parts == parts


def test_a_passage_says_who_speaks_and_a_change_of_that_keeps_its_row(
    database: Database, passages: Cut, put: Callable[..., object], source_id: int
) -> None:
    put("thread", ["one", "two"])

    def who() -> list[tuple[int, str | None, str | None, bool]]:
        with database.connection() as conn:
            return conn.execute("select id, sender, direction, quoted from chunks order by ord").fetchall()

    before = who()
    assert [row[1:] for row in before] == [(None, None, False)] * 2
    cut = passages(["one", "two"])
    first, second = cut.rows
    said = [replace(first, sender="Ada", direction="received"), replace(second, quoted=True)]
    with database.transaction() as conn:
        (document_id, sha256) = conn.execute("select id, content_sha256 from documents").fetchall()[0]
        counts = documents.put_chunks(conn, source_id, document_id, sha256, ChunkSet(said, "newer", 0))
    assert (counts.kept, counts.written) == (2, 0)
    assert who() == [(before[0][0], "Ada", "received", False), (before[1][0], None, None, True)]
