"""Data versions: equal for equal rows in any order, another one after any change that matters."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from garage.store import embeddings, files
from garage.store.database import Database
from garage.store.digest import partition_digest, text_digest, vectors_digest


def digest(database: Database, table: str, source_id: int) -> str:
    with database.connection() as conn:
        return partition_digest(conn, table, source_id)


def test_nothing_has_a_digest_too(database: Database, source_id: int, second_source: int) -> None:
    for table in ("source_files", "documents", "chunks"):
        assert digest(database, table, source_id) == digest(database, table, second_source)


def test_rows_in_another_order_have_the_same_digest(
    database: Database, source_id: int, second_source: int, put: Callable[..., Any], file: Callable[..., Any]
) -> None:
    names = ["a.txt", "b.txt", "c.txt"]
    for source, order in ((source_id, names), (second_source, names[::-1])):
        for name in order:
            put(name, [f"text of {name}", "more"], source=source)
        with database.transaction() as conn:
            files.load(conn, [file(name) for name in order])
            files.apply(conn, source, delete=True)
    for table in ("source_files", "documents", "chunks"):
        one = digest(database, table, source_id)
        assert one == digest(database, table, second_source)
        assert len(one) == 16
        assert int(one, 16) >= 0


@pytest.mark.parametrize(
    "change", [{"size": 2}, {"mtime_ns": 2}, {"extractor": "markdown"}, {"uri": "b.txt"}], ids=lambda c: next(iter(c))
)
def test_files_have_another_digest_when_their_stat_changes(
    database: Database, source_id: int, file: Callable[..., Any], change: dict[str, object]
) -> None:
    seen = []
    for described in ({"uri": "a.txt"}, {"uri": "a.txt", **change}):
        with database.transaction() as conn:
            files.load(conn, [file(**described)])
            files.apply(conn, source_id, delete=True)
        seen.append(digest(database, "source_files", source_id))
    assert seen[0] != seen[1]


def test_documents_and_passages_have_another_digest_when_their_text_changes(
    database: Database, source_id: int, put: Callable[..., Any]
) -> None:
    put("a.txt", ["one", "two"])
    before = {table: digest(database, table, source_id) for table in ("documents", "chunks")}
    put("a.txt", ["one", "two"])
    assert {table: digest(database, table, source_id) for table in before} == before
    put("a.txt", ["one", "three"])
    for table, old in before.items():
        assert digest(database, table, source_id) != old


def test_passages_have_another_digest_when_only_the_title_changes(
    database: Database, source_id: int, put: Callable[..., Any]
) -> None:
    put("a.txt", ["one"], title="Old")
    before = digest(database, "chunks", source_id)
    put("a.txt", ["one"], title="New")
    assert digest(database, "chunks", source_id) != before


def test_two_equal_passages_are_not_none(database: Database, source_id: int, put: Callable[..., Any]) -> None:
    before = digest(database, "chunks", source_id)
    put("a.txt", ["same", "same"])
    assert digest(database, "chunks", source_id) != before


def test_vectors_have_the_digest_of_what_they_were_made_from(
    database: Database, source_id: int, put: Callable[..., Any]
) -> None:
    put("a.txt", ["one", "two"])
    with database.connection() as conn:
        model = embeddings.register(conn, "m", dims=2, stored_dims=2, storage="vector", fingerprint="f")
        empty = vectors_digest(conn, model.table_name, source_id)
        (batch,) = embeddings.pending_vectors(conn, model, source_id, batch=10, rebuild=False)
        embeddings.put_vectors(conn, model, batch, np.eye(2, dtype=np.float32))
        whole = vectors_digest(conn, model.table_name, source_id)
        embeddings.put_vectors(conn, model, batch, np.eye(2, dtype=np.float32)[::-1])
        assert vectors_digest(conn, model.table_name, source_id) == whole != empty
        conn.execute("delete from emb_m where chunk_id = (select min(chunk_id) from emb_m)")
        assert vectors_digest(conn, model.table_name, source_id) not in (whole, empty)


def test_a_text_has_a_digest() -> None:
    assert text_digest("a") == text_digest("a") != text_digest("b")
    assert len(text_digest("")) == 16
