"""What is stored of one document or file, on a real database."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from garage.store import embeddings, explaining, runs
from garage.store.database import Database
from garage.store.explaining import Vectors

Put = Callable[..., Any]


@pytest.fixture
def ids(database: Database, source_id: int, second_source: int, put: Put) -> dict[str, int]:
    """Documents of two sources, two of them records of one mailbox, by source and address."""
    put("a/one.md", ["One text", "and another"])
    put("b#x/one.md", ["Another text"])
    put("mail.mbox", ["First"], record="1@x", corpus_class="communication", trust_tier="received")
    put("mail.mbox", ["Second"], record="2#x", corpus_class="communication")
    put("mail.mbox.txt", ["Not in the mailbox"])
    put("a/one.md", ["One text", "and another"], source=second_source)
    with database.connection() as conn:
        rows = conn.execute("select s.slug || ':' || d.uri, d.id from documents d join sources s on s.id = source_id")
        return dict(rows.fetchall())


def test_an_address_is_found_whole_with_its_record(
    database: Database, source_id: int, second_source: int, ids: dict[str, int]
) -> None:
    with database.connection() as conn:

        def found(uri: str, *sources: int) -> set[int]:
            return {one.document_id for one in explaining.by_uri(conn, sources or (source_id, second_source), uri)}

        assert found("a/one.md") == {ids["notes:a/one.md"], ids["letters:a/one.md"]}
        assert found("a/one.md", source_id) == {ids["notes:a/one.md"]}
        assert found("mail.mbox#2#x") == {ids["notes:mail.mbox#2#x"]}
        assert found("b#x/one.md") == {ids["notes:b#x/one.md"]}
        assert found("mail.mbox") == found("one.md") == found("") == set()


def test_the_end_of_an_address_is_a_whole_name(
    database: Database, source_id: int, second_source: int, ids: dict[str, int]
) -> None:
    with database.connection() as conn:
        found = explaining.by_name(conn, [source_id, second_source], "one.md", limit=10)
        assert {one.uri for one in found} == {"a/one.md", "b#x/one.md"}
        assert explaining.by_name(conn, [source_id], "ne.md", limit=10) == []
        assert len(explaining.by_name(conn, [source_id, second_source], "one.md", limit=2)) == 2


def test_a_file_is_known_by_a_walk_an_attempt_or_a_document(
    database: Database, source_id: int, second_source: int, ids: dict[str, int]
) -> None:
    with database.connection() as conn:
        conn.execute("insert into source_files values (%s, 'walked.md', 1, 1, 1, 'text')", (source_id,))
        conn.execute(
            "insert into ingest_outcomes (source_id, uri, outcome, size, mtime_ns, extractor_fingerprint, reason)"
            " values (%s, 'tried.md', 'encrypted', 1, 1, 'x', 'locked')",
            (source_id,),
        )
        for uri in ("walked.md", "tried.md", "mail.mbox"):
            assert explaining.known_files(conn, [source_id, second_source], uri) == [source_id]
        assert explaining.known_files(conn, [second_source], "mail.mbox") == []
        tried, walked = explaining.attempt(conn, source_id, "tried.md"), explaining.listed(conn, source_id, "walked.md")
        assert explaining.attempt(conn, source_id, "walked.md") is None
    assert tried is not None
    assert (tried.outcome, tried.reason, tried.sha256) == ("encrypted", "locked", None)
    assert walked is not None
    assert (walked.size, walked.extractor, walked.kind) == (1, "text", "file")


def test_the_records_of_a_file_are_counted_and_the_first_named(
    database: Database, source_id: int, ids: dict[str, int]
) -> None:
    with database.connection() as conn:
        found = explaining.records(conn, source_id, "mail.mbox", limit=1)
    assert (found.total, found.classes) == (2, {"communication": 2})
    assert found.trusts == {"authored": 1, "received": 1}
    assert [one.uri for one in found.first] == ["mail.mbox#1@x"]


def test_quoted_passages_are_counted_apart(database: Database, ids: dict[str, int]) -> None:
    number = ids["notes:a/one.md"]
    with database.connection() as conn:
        conn.execute("update chunks set quoted = true where document_id = %s and ord = 1", (number,))
        stored = explaining.document(conn, number)
        assert explaining.document(conn, 10**9) is None
    assert stored is not None
    assert (stored.passages, stored.quoted, stored.dropped) == (2, 1, 0)
    assert stored.characters == len("One text\nand another\n")


def test_documents_of_the_same_content_are_twins_whatever_their_source(database: Database, ids: dict[str, int]) -> None:
    with database.connection() as conn:
        total, first = explaining.twins(conn, ids["notes:a/one.md"])
        assert (total, [one.source for one in first]) == (1, ["letters"])
        assert explaining.twins(conn, ids["notes:mail.mbox.txt"]) == (0, [])


def test_vectors_are_current_outdated_or_missing(database: Database, source_id: int, ids: dict[str, int]) -> None:
    with database.connection() as conn:
        model = embeddings.register(conn, "m", dims=2, stored_dims=2, storage="vector", fingerprint="1")
        (batch,) = embeddings.pending_vectors(conn, model, source_id, batch=100, rebuild=False)
        embeddings.put_vectors(conn, model, batch, np.full((len(batch), 2), 0.5**0.5, np.float32))
        number = ids["notes:a/one.md"]
        assert explaining.vectors(conn, number) == [Vectors("m", 2, 0, 0)]
        conn.execute(
            "delete from emb_m where chunk_id = (select min(id) from chunks where document_id = %s)", (number,)
        )
        assert explaining.vectors(conn, number) == [Vectors("m", 1, 0, 1)]
        embeddings.register(conn, "m", dims=2, stored_dims=2, storage="vector", fingerprint="2")
        assert explaining.vectors(conn, number) == [Vectors("m", 0, 1, 1)]


def test_the_lineage_is_the_walk_before_the_writing_run_and_the_first_of_each_later_stage(
    database: Database, source_id: int, put: Put
) -> None:
    def ran(stage: str, *, error: str | None = None) -> int:
        with database.connection() as conn:
            number = runs.begin(conn, source_id, stage, f"of {stage}", None)
            runs.finish(conn, number, done=0, counts={}, error=error)
        return number

    for _ in range(2):
        ran("documents")
        ran("attribution")
        walked = ran("source_files")
    ran("source_files", error="DeletionRefused")
    with database.connection() as conn:
        written = runs.begin(conn, source_id, "documents", "r", None)
    put("a.md", ["Text"])
    with database.connection() as conn:
        runs.finish(conn, written, done=1, counts={})
    failed = ran("chunks", error="killed")
    attributed, cut = ran("attribution"), ran("chunks")
    for stage in ("source_files", "documents", "attribution", "chunks"):
        ran(stage)
    with database.connection() as conn:
        row = conn.execute("select ingested_at from documents").fetchone()
        assert row is not None
        found = explaining.lineage(conn, source_id, row[0])
    assert [run.id for run in found] == [walked, written, attributed, cut]
    assert failed not in [run.id for run in found]
    assert found[1].run_id == "r"
