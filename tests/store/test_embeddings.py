"""Models with tables of their own: registered, filled, copied, indexed, and one of them serving."""

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from psycopg import Connection

from garage.inference.catalogue import STORAGE_LIMITS
from garage.store import documents, embeddings
from garage.store import search as store
from garage.store.database import Database, Row
from garage.store.embeddings import EmbeddingModel, PendingVector, table_name, vector_sha256
from garage.store.errors import DimensionMismatch

Put = Callable[..., Any]


def register(conn: Connection[Row], slug: str = "m", **changes: Any) -> EmbeddingModel:
    described = {"dims": 3, "stored_dims": 3, "storage": "vector", "fingerprint": "first", **changes}
    return embeddings.register(conn, slug, **described)


def unit(count: int, dims: int, seed: int = 1) -> NDArray[np.float32]:
    drawn = np.random.default_rng(seed).standard_normal((count, dims), np.float32)
    lengths: NDArray[np.float32] = np.linalg.norm(drawn, axis=1, keepdims=True).astype(np.float32)
    return drawn / lengths


def fill(conn: Connection[Row], model: EmbeddingModel, source_id: int) -> list[PendingVector]:
    done: list[PendingVector] = []
    for batch in embeddings.pending_vectors(conn, model, source_id, batch=64, rebuild=False):
        embeddings.put_vectors(conn, model, batch, unit(len(batch), model.stored_dims, seed=len(done)))
        done += batch
    return done


def test_a_model_is_registered_once_and_found_again(database: Database) -> None:
    with database.connection() as conn:
        first = register(conn, "all-minilm-l6-v2", dims=384, stored_dims=384)
        assert (first.table_name, first.is_default, first.indexed_at) == ("emb_all_minilm_l6_v2", False, None)
        assert register(conn, "all-minilm-l6-v2", dims=384, stored_dims=384) == first
        assert embeddings.model(conn, "all-minilm-l6-v2") == first
        assert embeddings.model(conn, "other") is None
        assert embeddings.models(conn) == [first]


@pytest.mark.parametrize("change", [{"dims": 4}, {"stored_dims": 2}, {"storage": "halfvec"}])
def test_a_model_of_another_width_is_refused_and_the_table_stays(database: Database, change: dict[str, Any]) -> None:
    with database.connection() as conn:
        model = register(conn)
        with pytest.raises(DimensionMismatch, match="slug of its own") as refused:
            register(conn, **{**change, "fingerprint": "second"})
        assert refused.value.fields["slug"] == "m"
        assert embeddings.model(conn, "m") == model


def test_names_of_tables_fit_into_postgres_and_do_not_collide(database: Database) -> None:
    slugs = ["a-b", "a_b", "a--b", "a-_b", "x" * 41, "x" * 40 + "y", "x-" * 20 + "x", "x_" * 20 + "x", "1", "0-1"]
    names = [table_name(slug) for slug in slugs]
    assert len(set(names)) == len(names)
    assert max(map(len, names)) <= 48
    with database.connection() as conn:
        for slug in slugs:
            model = register(conn, slug, dims=2, stored_dims=2)
            embeddings.build_index(conn, model)
        made = {name for (name,) in conn.execute("select relname from pg_class where relname like 'emb%'")}
    for name in names:
        assert {name, f"{name}_hnsw", f"{name}_input", f"{name}_pkey"} <= made


def test_sql_and_python_identify_a_vector_alike(database: Database, source_id: int, put: Put) -> None:
    put("a.txt", ["one", "zwei 🦩"], title="T", heading="H")
    for fingerprint in ("f", "ключ", "0" * 64):
        with database.connection() as conn:
            model = register(conn, f"m-{len(fingerprint)}", fingerprint=fingerprint)
            (batch,) = embeddings.pending_vectors(conn, model, source_id, batch=10, rebuild=False)
            inputs = dict(conn.execute("select id, input_sha256 from chunks").fetchall())
        for item in batch:
            assert item.vector_sha256 == vector_sha256(fingerprint, inputs[item.chunk_id])
            assert item.vector_sha256 == hashlib.sha256(fingerprint.encode() + inputs[item.chunk_id]).digest()


def test_passages_are_pending_until_they_have_a_current_vector(database: Database, source_id: int, put: Put) -> None:
    put("a.txt", ["one", "two"], title="T", heading="H")
    with database.connection() as conn:
        model = register(conn)
        assert embeddings.count_pending(conn, model, source_id) == 2
        done = fill(conn, model, source_id)
        assert [(p.title, p.heading_path, p.text) for p in done] == [("T", "H", "one"), ("T", "H", "two")]
        assert embeddings.count_pending(conn, model, source_id) == 0
        assert embeddings.count_pending(conn, model, source_id, rebuild=True) == 2
        assert embeddings.count_vectors(conn, model) == embeddings.count_vectors(conn, model, source_id) == 2
        assert embeddings.is_complete(conn, model)
    put("a.txt", ["two", "three"], title="T", heading="H")
    with database.connection() as conn:
        assert not embeddings.is_complete(conn, model)
        assert [p.text for p in fill(conn, model, source_id)] == ["three"]
        assert embeddings.count_vectors(conn, model) == 2
    put("a.txt", ["two", "three"], title="New title", heading="H")
    with database.connection() as conn:
        assert embeddings.count_pending(conn, model, source_id) == 2
        assert embeddings.count_vectors(conn, model) == 2  # the old ones answer until they are replaced
        changed = register(conn, fingerprint="second")
        fill(conn, changed, source_id)
        assert embeddings.is_complete(conn, changed)
        assert not embeddings.is_complete(conn, model)


def test_a_retired_source_does_not_keep_a_model_incomplete(database: Database, source_id: int, put: Put) -> None:
    put("a.txt", ["one"])
    with database.connection() as conn:
        model = register(conn)
        assert not embeddings.is_complete(conn, model)
        conn.execute("update sources set active = false")
        assert embeddings.is_complete(conn, model)


def test_batches_cover_a_long_work_list_in_order(database: Database, source_id: int, put: Put) -> None:
    put("a.txt", [f"text {number}" for number in range(103)])
    with database.connection() as conn:
        model = register(conn)
        batches = list(embeddings.pending_vectors(conn, model, source_id, batch=3, rebuild=False))
    assert [len(batch) for batch in batches] == [3] * 34 + [1]
    assert [p.text for batch in batches for p in batch] == [f"text {number}" for number in range(103)]


def test_equal_texts_share_a_vector_across_documents_and_sources(
    database: Database, source_id: int, second_source: int, put: Put
) -> None:
    put("a.txt", ["same", "own"])
    with database.connection() as conn:
        model = register(conn)
        fill(conn, model, source_id)
    put("b.txt", ["same", "same", "new"], source=second_source)
    put("c.txt", ["same"], source=second_source, title="Another title")
    with database.connection() as conn:
        assert embeddings.copy_known(conn, model, second_source) == 2
        assert embeddings.copy_known(conn, model, second_source) == 0
        assert embeddings.count_pending(conn, model, second_source) == 2
        assert conn.execute(
            "select count(distinct e.embedding::text), count(*) from emb_m e join chunks c on c.id = e.chunk_id"
            " join documents d on d.id = c.document_id where c.text = 'same' and d.title = 'A title'"
        ).fetchone() == (1, 3)
        other = register(conn, fingerprint="second")
        assert embeddings.copy_known(conn, other, second_source) == 0


def test_a_passage_deleted_while_it_was_embedded_is_left_out(database: Database, source_id: int, put: Put) -> None:
    put("a.txt", ["one", "two"])
    put("b.txt", ["three"])
    with database.connection() as conn:
        model = register(conn)
        (batch,) = embeddings.pending_vectors(conn, model, source_id, batch=10, rebuild=False)
        documents.drop_document(conn, source_id, "a.txt")
        assert embeddings.put_vectors(conn, model, batch, unit(3, 3)) == 1
        assert embeddings.count_vectors(conn, model) == 1


def test_a_vector_of_an_older_text_does_not_count_as_current(database: Database, source_id: int, put: Put) -> None:
    put("a.txt", ["one"], title="Old")
    with database.connection() as conn:
        model = register(conn)
        (batch,) = embeddings.pending_vectors(conn, model, source_id, batch=10, rebuild=False)
    put("a.txt", ["one"], title="New")
    with database.connection() as conn:
        assert embeddings.put_vectors(conn, model, batch, unit(1, 3)) == 1
        assert embeddings.count_pending(conn, model, source_id) == 1


@pytest.mark.parametrize("shape", [(1, 2), (2, 3), (1, 4)])
def test_vectors_of_another_shape_are_refused(
    database: Database, source_id: int, put: Put, shape: tuple[int, int]
) -> None:
    put("a.txt", ["one"])
    with database.connection() as conn:
        model = register(conn)
        (batch,) = embeddings.pending_vectors(conn, model, source_id, batch=10, rebuild=False)
        with pytest.raises(DimensionMismatch) as refused:
            embeddings.put_vectors(conn, model, batch, unit(*shape))
        assert (refused.value.fields["expected"], refused.value.fields["got"]) == (3, shape[1])
        assert embeddings.count_vectors(conn, model) == 0


def test_models_have_their_vectors_side_by_side_and_lose_them_with_their_passage(
    database: Database, source_id: int, put: Put
) -> None:
    put("a.txt", ["one", "two"])
    with database.connection() as conn:
        models = [register(conn, "one"), register(conn, "two", dims=5, stored_dims=5)]
        for model in models:
            fill(conn, model, source_id)
        assert [embeddings.count_vectors(conn, model) for model in models] == [2, 2]
        documents.drop_document(conn, source_id, "a.txt")
        assert [embeddings.count_vectors(conn, model) for model in models] == [0, 0]


@pytest.mark.parametrize(
    ("storage", "dims"), [("vector", 8), ("vector", 2000), ("halfvec", 2001), ("halfvec", 4000), ("bit", 4008)]
)
def test_every_storage_finds_the_nearest_with_its_index_and_without(
    database: Database, source_id: int, put: Put, storage: str, dims: int
) -> None:
    count = 300
    assert dims <= STORAGE_LIMITS[storage]  # type: ignore[index]  # one of its keys
    put("a.txt", [f"text {number}" for number in range(count)])
    vectors = unit(count, dims, seed=3)
    with database.connection() as conn:
        model = register(conn, dims=dims, stored_dims=dims, storage=storage)
        batches = list(embeddings.pending_vectors(conn, model, source_id, batch=count, rebuild=False))
        embeddings.put_vectors(conn, model, batches[0], vectors)
        ids = np.array([p.chunk_id for p in batches[0]])
        asked = [(v / np.linalg.norm(v)).astype(np.float32) for v in vectors[:10] + unit(10, dims, seed=4) * 0.3]
        exact = [ids[np.argsort(1 - vectors @ vector, kind="stable")[:20]].tolist() for vector in asked]
        unindexed = [store.nearest(conn, model, vector.tolist(), limit=20) for vector in asked]
        assert embeddings.build_index(conn, model)
        indexed_model = embeddings.model(conn, "m")
        assert indexed_model is not None
        assert indexed_model.indexed_at is not None
        assert not embeddings.build_index(conn, indexed_model)
        conn.execute("set enable_seqscan = off")  # so few rows are read faster one after the other
        indexed = [store.nearest(conn, indexed_model, vector.tolist(), limit=20) for vector in asked]
        assert scans(conn) == len(asked)
    # Half precision swaps a neighbour or two; signs alone, with the best re-ranked, are a coarser sieve.
    wanted = {"vector": 0.99, "halfvec": 0.95, "bit": 0.8}[storage]
    for found, floor in ((unindexed, 0.95), (indexed, wanted)):
        recalls = [len({id_ for id_, _ in f} & set(e)) / 20 for f, e in zip(found, exact, strict=True)]
        assert np.mean(recalls) >= floor
        assert all(f[0][0] == e[0] for f, e in zip(found, exact, strict=True))
        assert all([d for _, d in f] == sorted(d for _, d in f) for f in found)


def test_the_index_is_what_answers_once_it_is_built(database: Database, source_id: int, put: Put) -> None:
    put("a.txt", [f"text {number}" for number in range(2000)])
    with database.connection() as conn:
        model = register(conn, dims=16, stored_dims=16)
        fill(conn, model, source_id)
        conn.execute("analyze")
        embeddings.build_index(conn, model)
        model = embeddings.model(conn, "m") or model
        before = scans(conn)
        store.nearest(conn, model, unit(1, 16)[0].tolist(), limit=10)
        assert scans(conn) == before + 1
        fresh = unit(1, 16, seed=77)
        put("b.txt", ["after the index"])
        (batch,) = embeddings.pending_vectors(conn, model, source_id, batch=10, rebuild=False)
        embeddings.put_vectors(conn, model, batch, fresh)
        assert store.nearest(conn, model, fresh[0].tolist(), limit=1)[0][0] == batch[0].chunk_id


def scans(conn: Connection[Row]) -> int:
    conn.execute("select pg_stat_force_next_flush()")
    conn.execute("select pg_stat_clear_snapshot()")
    row = conn.execute("select idx_scan from pg_stat_user_indexes where indexrelname = 'emb_m_hnsw'").fetchone()
    return int(row[0]) if row else 0


def test_one_model_serves_at_a_time(database: Database) -> None:
    with database.connection() as conn:
        assert embeddings.serving(conn) is None
        for slug in ("one", "two"):
            register(conn, slug)
        for slug in ("one", "two", "two", "one"):
            embeddings.serve(conn, slug)
            serving = embeddings.serving(conn)
            assert serving is not None
            assert serving.slug == slug
        assert [model.is_default for model in embeddings.models(conn)] == [True, False]
