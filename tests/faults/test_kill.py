"""Killed at any point and run again, a source ends in the state of an undisturbed run."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from garage.store.database import Database
from tests.faults.drivers import run_once

MAILBOX = b"".join(
    b"From a@example.org Mon May  6 10:00:00 2024\nFrom: a@example.org\nMessage-ID: <%d@example.org>\nSubject: %d\n\n"
    b"The pump of garden %d is dry.\n\n" % (number, number, number)
    for number in range(5)
)
POINTS = [
    ("garage.store.files.load", 1),
    ("garage.store.files.apply", 1),
    ("garage.store.documents.put_document", 1),
    ("garage.store.documents.put_document", 4),
    ("garage.store.documents.put_outcome", 6),
    ("garage.store.documents._insert", 10),
    ("garage.store.embeddings.put_vectors", 1),
    ("garage.store.embeddings.put_vectors", 3),
    ("garage.store.embeddings.serve", 1),
    ("garage.store.embeddings.build_index", 1),
    ("garage.extract.stage.partition_digest", 1),
    ("garage.store.runs.finish", 1),
    ("garage.store.runs.finish", 3),
]


def ingest(*arguments: str) -> int:
    return run_once("ingest_once.py", *arguments)


def state(url: str) -> dict[str, list[Any]]:
    """Everything stored, by names instead of surrogate keys."""
    with Database(url) as database, database.connection() as conn:
        tables = conn.execute("select table_name from embedding_models order by 1").fetchall()
        found: dict[str, list[Any]] = {
            "files": conn.execute("select uri, size, mtime_ns, extractor from source_files order by 1").fetchall(),
            "documents": conn.execute(
                "select uri, title, kind, content, chunked_as, chunked_sha256 from documents order by 1"
            ).fetchall(),
            "chunks": conn.execute(
                "select d.uri, c.ord, c.text, c.char_start, c.char_end, c.input_sha256 from chunks c"
                " join documents d on d.id = c.document_id order by 1, 2"
            ).fetchall(),
            "outcomes": conn.execute("select uri, outcome, source_sha256 from ingest_outcomes order by 1").fetchall(),
            "models": conn.execute("select slug, is_default, indexed_at is not null from embedding_models").fetchall(),
        }
        for (table,) in tables:
            found[table] = conn.execute(
                f"select d.uri, c.ord, e.input_sha256, e.embedding::text from {table} e"
                " join chunks c on c.id = e.chunk_id join documents d on d.id = c.document_id order by 1, 2".encode()
            ).fetchall()
    return found


@pytest.fixture(scope="session")
def undisturbed() -> dict[str, Any]:
    return {}


@pytest.mark.slow
@pytest.mark.parametrize(("point", "count"), POINTS, ids=[f"{p.rpartition('.')[2]}-{n}" for p, n in POINTS])
def test_a_killed_run_and_another_end_like_an_undisturbed_one(
    garage_home: Any,
    library: Path,
    tmp_path: Path,
    undisturbed: dict[str, Any],
    point: str,
    count: int,
    another_database: Callable[[], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (library / "Inbox.mbox").write_bytes(MAILBOX)
    for file in sorted(library.rglob("*")):
        os.utime(file, (1_700_000_000, 1_700_000_000))
    settings = {"embedding": {"models": ["all-minilm-l6-v2"], "batch": 3}, "extraction": {"workers": 1}}
    garage_home.configure({"name": "lib", "root": library}, **settings)
    assert ingest("lib", point, str(count)) == -9, "the run ended before it came to the point"
    assert ingest("lib") == 0
    if not undisturbed:
        url = another_database()
        monkeypatch.setenv("GARAGE_DATABASE_URL", url)
        assert ingest("lib") == 0
        undisturbed.update(state(url))
    assert state(garage_home.database_url) == undisturbed
