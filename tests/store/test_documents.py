"""Documents with their passages: what is written, what is kept, and what is still to be done."""

import random
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from garage.store import documents, files
from garage.store.database import Database
from garage.store.documents import ChunkCounts, PendingFile

Put = Callable[..., ChunkCounts]


def rows(database: Database, uri: str) -> list[tuple[Any, ...]]:
    """Passages of a document in their order: id, text, start, end, first and last line."""
    with database.connection() as conn:
        return conn.execute(
            "select c.id, c.text, c.char_start, c.char_end, c.start_line, c.end_line, c.ord from chunks c"
            " join documents d on d.id = c.document_id where d.uri = %s order by c.ord",
            (uri,),
        ).fetchall()


def ids(database: Database, uri: str) -> dict[str, int]:
    return {row[1]: row[0] for row in rows(database, uri)}


def test_a_document_is_stored_with_all_that_is_known_of_it(database: Database, put: Put, source_id: int) -> None:
    counts = put("letters/a.txt", ["one", "two"], title="Letter", meta={"author": "Ada", "tags": ["x", None, 1.5]})
    assert counts == ChunkCounts(kept=0, written=2, deleted=0)
    with database.connection() as conn:
        row = conn.execute(
            "select source_id, uri, title, kind, corpus_class, trust_tier, content, body_start, meta, byte_size,"
            " extractor, extractor_fingerprint, chunked_as, chunks_dropped, chunked_sha256 = content_sha256"
            " from documents"
        ).fetchone()
        assert documents.counts(conn, source_id) == (1, 2)
    assert row == (
        source_id, "letters/a.txt", "Letter", "prose", "document", "authored", "one\ntwo\n", 0,
        {"author": "Ada", "tags": ["x", None, 1.5]}, 8, "text", "1", "by hand of prose", 0, True,
    )  # fmt: skip


def test_every_passage_equals_its_slice_of_the_content(database: Database, put: Put) -> None:
    put("a.txt", ["naïve 🦩", "zweite Zeile", "第三行"])
    put("a.txt", ["第三行", "new first", "naïve 🦩"])
    with database.connection() as conn:
        found = conn.execute(
            "select c.text, substr(d.content, c.char_start + 1, c.char_end - c.char_start), d.content, c.char_start,"
            " c.char_end from chunks c join documents d on d.id = c.document_id"
        ).fetchall()
    assert len(found) == 3
    for text, sliced, content, start, end in found:
        assert text == sliced == content[start:end]


def test_a_kept_passage_keeps_its_row_wherever_it_moves(database: Database, put: Put) -> None:
    put("a.txt", ["one", "two", "three"])
    before = ids(database, "a.txt")
    assert put("a.txt", ["zero", "three", "one"]) == ChunkCounts(kept=2, written=1, deleted=1)
    after = ids(database, "a.txt")
    assert list(after) == ["zero", "three", "one"]
    assert {text: after[text] for text in ("one", "three")} == {text: before[text] for text in ("one", "three")}
    assert after["zero"] not in before.values()
    assert [row[2:] for row in rows(database, "a.txt")] == [(0, 4, 1, 1, 0), (5, 10, 2, 2, 1), (11, 14, 3, 3, 2)]


def test_a_passage_of_another_chunker_is_written_anew(database: Database, put: Put) -> None:
    put("a.txt", ["one", "two"])
    assert put("a.txt", ["one", "two"], chunker="another") == ChunkCounts(kept=0, written=2, deleted=2)


def test_a_document_stored_again_unchanged_writes_no_passage(database: Database, put: Put) -> None:
    put("a.txt", ["one", "two", "one"])
    with database.connection() as conn:
        before = conn.execute("select ctid, xmin from chunks order by id").fetchall()
    assert put("a.txt", ["one", "two", "one"]) == ChunkCounts(kept=3, written=0, deleted=0)
    with database.connection() as conn:
        assert conn.execute("select ctid, xmin from chunks order by id").fetchall() == before


def test_of_equal_passages_each_keeps_a_row(database: Database, put: Put) -> None:
    put("a.txt", ["same", "same", "other", "same"])
    before = [row[0] for row in rows(database, "a.txt")]
    assert put("a.txt", ["same", "same"]) == ChunkCounts(kept=2, written=0, deleted=2)
    assert {row[0] for row in rows(database, "a.txt")} <= set(before)
    assert put("a.txt", ["same"] * 3) == ChunkCounts(kept=2, written=1, deleted=0)


def test_a_new_title_changes_what_models_and_words_see_but_keeps_the_rows(database: Database, put: Put) -> None:
    put("a.txt", ["one"], title="Old", heading="H")
    query = "select id, input_sha256, lexical_prose, lexical_seq from chunks"
    with database.connection() as conn:
        old = conn.execute(query).fetchone()
    assert put("a.txt", ["one"], title="New", heading="H").kept == 1
    with database.connection() as conn:
        new = conn.execute(query).fetchone()
    assert old is not None
    assert new is not None
    assert old[0] == new[0]
    assert old[1] != new[1]
    assert new[2] == "New\nNew\nH\none"
    assert new[3] > old[3]


def test_random_edits_end_like_a_fresh_document_and_keep_what_they_can(database: Database, put: Put) -> None:
    rng = random.Random(6)
    before: dict[str, list[int]] = {}
    for _ in range(40):
        texts = [rng.choice("abcdefgh") * rng.randint(1, 3) for _ in range(rng.randint(0, 12))]
        counts = put("a.txt", texts)
        found = rows(database, "a.txt")
        assert [row[1] for row in found] == texts
        assert [row[6] for row in found] == list(range(len(texts)))
        assert [row[2] for row in found] == [sum(len(t) + 1 for t in texts[:n]) for n in range(len(texts))]
        after: dict[str, list[int]] = {}
        for row in found:
            after.setdefault(row[1], []).append(row[0])
        kept = Counter({text: len(known) for text, known in before.items()}) & Counter(texts)
        assert counts.kept == kept.total()
        assert counts.written == len(texts) - counts.kept
        assert counts.deleted == sum(map(len, before.values())) - counts.kept
        for text, number in kept.items():
            assert len(set(before[text]) & set(after[text])) == number
        before = after


def test_dropping_a_document_takes_its_passages_along(database: Database, put: Put, source_id: int) -> None:
    put("a.txt", ["one"])
    put("b.txt", ["two"])
    with database.connection() as conn:
        assert documents.drop_document(conn, source_id, "a.txt") == 1
        assert documents.drop_document(conn, source_id, "a.txt") == 0
        assert documents.counts(conn, source_id) == (1, 1)


def test_documents_of_vanished_files_are_deleted_in_portions(
    database: Database, put: Put, source_id: int, second_source: int, file: Callable[..., Any]
) -> None:
    for number in range(5):
        put(f"{number}.txt", ["text"])
    put("0.txt", ["text"], source=second_source)
    with database.transaction() as conn:
        files.load(conn, [file("3.txt")])
        files.apply(conn, source_id, delete=True)
    with database.connection() as conn:
        assert [documents.drop_vanished(conn, source_id, limit=3) for _ in range(3)] == [3, 1, 0]
        assert conn.execute("select source_id, uri from documents order by id").fetchall() == [
            (source_id, "3.txt"),
            (second_source, "0.txt"),
        ]


VERSIONS = {"text": "v1", "markdown": "m1"}


def record(database: Database, source_id: int, seen: list[Any]) -> None:
    with database.transaction() as conn:
        files.load(conn, seen)
        files.apply(conn, source_id, delete=True)


def pending(database: Database, source_id: int, *, rebuild: bool = False, **versions: str) -> list[PendingFile]:
    with database.connection() as conn:
        found = list(documents.pending_files(conn, source_id, versions or VERSIONS, rebuild=rebuild))
        assert documents.count_pending_files(conn, source_id, versions or VERSIONS, rebuild=rebuild) == len(found)
    return found


def settle(database: Database, source_id: int, outcome: str = "ok") -> None:
    with database.transaction() as conn:
        for file in pending(database, source_id):
            documents.put_outcome(conn, source_id, file, outcome, reason="because", sha256=b"s" * 32)


def test_a_file_is_pending_until_its_attempt_is_recorded(
    database: Database, source_id: int, file: Callable[..., Any]
) -> None:
    record(database, source_id, [file("a.txt", size=3, mtime_ns=4)])
    (waiting,) = pending(database, source_id)
    assert waiting == PendingFile("a.txt", 3, 4, "text", "v1", None, same_version=False, inode=Decimal(1))
    settle(database, source_id)
    assert pending(database, source_id) == []


@pytest.mark.parametrize("change", [{"size": 2}, {"mtime_ns": 2}, {"extractor": "markdown"}])
def test_a_file_is_pending_again_when_its_stat_or_extractor_changes(
    database: Database, source_id: int, file: Callable[..., Any], change: dict[str, Any]
) -> None:
    record(database, source_id, [file("a.txt")])
    settle(database, source_id)
    record(database, source_id, [file("a.txt", **change)])
    (waiting,) = pending(database, source_id)
    assert waiting.known_sha256 == b"s" * 32
    assert waiting.same_version == ("extractor" not in change)


def test_a_new_version_of_an_extractor_makes_its_files_pending_and_no_others(
    database: Database, source_id: int, file: Callable[..., Any]
) -> None:
    record(database, source_id, [file("a.txt"), file("b.md", extractor="markdown"), file("c.xyz", extractor="other")])
    settle(database, source_id)
    (waiting,) = pending(database, source_id, text="v2", markdown="m1")
    assert (waiting.uri, waiting.same_version) == ("a.txt", False)
    rebuilt = pending(database, source_id, rebuild=True)
    assert [(w.uri, w.same_version) for w in rebuilt] == [("a.txt", False), ("b.md", False)]


@pytest.mark.parametrize("outcome", ["unreadable", "deferred"])
def test_what_time_can_mend_is_tried_again_and_other_failures_are_not(
    database: Database, source_id: int, file: Callable[..., Any], outcome: str
) -> None:
    record(database, source_id, [file("a.txt")])
    settle(database, source_id, outcome)
    assert len(pending(database, source_id)) == 1
    for final in ("no_text", "rejected", "encrypted", "unsupported", "too_large", "timeout", "memory", "error"):
        settle(database, source_id, final)
        assert pending(database, source_id) == []
        with database.connection() as conn:
            assert documents.outcome_counts(conn, source_id) == {final: 1}
            conn.execute("update ingest_outcomes set outcome = 'unreadable'")


def test_a_new_stat_of_the_same_bytes_moves_the_record_and_keeps_its_outcome(
    database: Database, source_id: int, put: Put, file: Callable[..., Any]
) -> None:
    put("a.txt", ["one"])
    record(database, source_id, [file("a.txt")])
    settle(database, source_id, "encrypted")
    record(database, source_id, [file("a.txt", mtime_ns=99)])
    (waiting,) = pending(database, source_id)
    with database.transaction() as conn:
        documents.refresh_outcome(conn, source_id, waiting)
        documents.touch_document(conn, source_id, "a.txt", mtime_ns=99)
    assert pending(database, source_id) == []
    with database.connection() as conn:
        assert documents.outcome_counts(conn, source_id) == {"encrypted": 1}
        assert conn.execute("select mtime_ns from documents").fetchone() == (99,)


def test_attempts_at_vanished_files_are_forgotten(database: Database, source_id: int, file: Callable[..., Any]) -> None:
    record(database, source_id, [file("a.txt"), file("b.txt")])
    settle(database, source_id)
    record(database, source_id, [file("b.txt")])
    with database.transaction() as conn:
        documents.drop_vanished_outcomes(conn, source_id)
    with database.connection() as conn:
        assert conn.execute("select uri from ingest_outcomes").fetchall() == [("b.txt",)]


def test_a_work_list_of_many_pages_is_whole_while_it_is_being_worked_off(
    database: Database, source_id: int, file: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "PAGE", 7)
    names = [f"{number:03}.txt" for number in range(50)]
    record(database, source_id, [file(name) for name in names])
    done = []
    with database.connection() as reading:
        for waiting in documents.pending_files(reading, source_id, VERSIONS, rebuild=False):
            with database.transaction() as conn:
                documents.put_outcome(conn, source_id, waiting, "ok", reason="", sha256=None)
            done.append(waiting.uri)
    assert done == names


@pytest.mark.parametrize("names", [["É", "a", "Z", "ä", "z", "A", "_", "~", "0", "😀", "a/b", "a.b"]])
def test_pages_of_a_work_list_agree_with_the_order_of_names(
    database: Database, source_id: int, file: Callable[..., Any], names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "PAGE", 2)
    record(database, source_id, [file(name) for name in names])
    assert sorted(waiting.uri for waiting in pending(database, source_id)) == sorted(names)


def test_documents_are_cut_again_when_the_chunker_or_their_content_changes(
    database: Database, source_id: int, put: Put, passages: Callable[..., Any]
) -> None:
    put("a.txt", ["one", "two"])
    put("b.py", ["x = 1"], kind="code:python")
    current = {"prose": "by hand of prose", "code:python": "by hand of code:python"}

    def waiting(*, rebuild: bool = False, **versions: str) -> list[str]:
        wanted = {**current, **versions}
        with database.connection() as conn:
            assert sorted(documents.document_kinds(conn, source_id)) == ["code:python", "prose"]
            found = list(documents.pending_chunks(conn, source_id, wanted, rebuild=rebuild))
            assert documents.count_pending_chunks(conn, source_id, wanted, rebuild=rebuild) == len(found)
        return [item.content for item in found]

    assert waiting() == []
    assert waiting(rebuild=True) == ["one\ntwo\n", "x = 1\n"]
    assert waiting(prose="a new chunker") == ["one\ntwo\n"]
    with database.connection() as conn:
        (item,) = documents.pending_chunks(conn, source_id, {"prose": "a new chunker"}, rebuild=False)
        cut = passages(["one\ntwo"], chunker="a new chunker")
        with conn.transaction():
            counts = documents.put_chunks(conn, source_id, item.document_id, item.content_sha256, cut)
    assert counts == ChunkCounts(kept=0, written=1, deleted=2)
    assert waiting(prose="a new chunker of prose") == []


def test_passages_cut_from_content_that_changed_meanwhile_are_not_stored(
    database: Database, source_id: int, put: Put, passages: Callable[..., Any]
) -> None:
    put("a.txt", ["old"])
    with database.connection() as conn:
        (item,) = documents.pending_chunks(conn, source_id, {"prose": "later"}, rebuild=False)
    put("a.txt", ["new"])
    with database.transaction() as conn:
        cut = passages(["old"], chunker="later")
        assert documents.put_chunks(conn, source_id, item.document_id, item.content_sha256, cut) == ChunkCounts()
    assert [row[1] for row in rows(database, "a.txt")] == ["new"]


def test_many_documents_to_cut_come_in_portions(database: Database, source_id: int, put: Put) -> None:
    for number in range(120):
        put(f"{number}.txt", [f"text {number}"])
    with database.connection() as conn:
        found = list(documents.pending_chunks(conn, source_id, {"prose": "later"}, rebuild=False))
    assert [item.content for item in found] == [f"text {number}\n" for number in range(120)]
