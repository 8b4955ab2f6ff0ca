"""Tables `embedding_models` and `emb_<slug>`: one table and one HNSW index a model, side by side."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from psycopg import Connection, sql
from psycopg import errors as pg
from psycopg.rows import class_row

from garage.store.database import Row
from garage.store.errors import DimensionMismatch

Vectors: TypeAlias = NDArray[np.float32]  # (n, dims), rows of length 1
_NAME_LIMIT = 48  # leaves room for what is prefixed to and derived from it within Postgres's 63 bytes
_COLUMNS = "id, slug, table_name, dims, stored_dims, storage, fingerprint, is_default, indexed_at"


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """A row of `embedding_models`. `indexed_at` is when its HNSW index was built; None: not yet."""

    id: int
    slug: str
    table_name: str
    dims: int
    stored_dims: int
    storage: str
    fingerprint: str
    is_default: bool
    indexed_at: datetime | None

    @property
    def table(self) -> sql.Identifier:
        return sql.Identifier("garage", self.table_name)

    @property
    def column_type(self) -> sql.Composed:
        kind = "halfvec" if self.storage == "halfvec" else "vector"
        return sql.SQL("{}({})").format(sql.SQL(kind), sql.Literal(self.stored_dims))


@dataclass(frozen=True, slots=True)
class PendingVector:
    """A passage without a current vector; `vector_sha256` identifies the exact text under this model."""

    chunk_id: int
    title: str
    heading_path: str | None
    text: str
    vector_sha256: bytes


def table_name(slug: str) -> str:
    """`emb_<slug>` with what Postgres would quote or cut replaced; where that may collide, a digest is added."""
    plain = "emb_" + re.sub(r"[^a-z0-9]", "_", slug)
    if len(plain) <= _NAME_LIMIT and re.fullmatch(r"[a-z0-9-]+", slug):
        return plain
    return plain[: _NAME_LIMIT - 9] + "_" + hashlib.sha256(slug.encode()).hexdigest()[:8]


def register(
    conn: Connection[Row], slug: str, *, dims: int, stored_dims: int, storage: str, fingerprint: str
) -> EmbeddingModel:
    """Makes a model's row and table, or returns them. Raises DimensionMismatch when its width is another one now.

    A new fingerprint (other weights or templates, same width) is recorded; its rows then differ from what is wanted and
    are redone by the work list.
    """
    found = model(conn, slug)
    if found is not None and (found.dims, found.stored_dims, found.storage) != (dims, stored_dims, storage):
        raise DimensionMismatch(
            f"The model {slug!r} gives {dims} dimensions, of which {stored_dims} are stored as {storage}; its table"
            f" was made for {found.dims}, of which {found.stored_dims} are stored as {found.storage}.",
            hint="Give the new model a slug of its own; the old one keeps answering until that is complete.",
            slug=slug,
            expected=found.stored_dims,
            got=stored_dims,
        )
    if found is not None and found.fingerprint == fingerprint:
        return found  # even a statement that finds its table there would wait for all who write to it
    with conn.transaction():
        conn.execute(
            "insert into embedding_models (slug, table_name, dims, stored_dims, storage, fingerprint)"
            " values (%s, %s, %s, %s, %s, %s) on conflict (slug) do update set fingerprint = excluded.fingerprint"
            " where embedding_models.fingerprint <> excluded.fingerprint",
            (slug, table_name(slug), dims, stored_dims, storage, fingerprint),
        )
        row = model(conn, slug)
        assert row is not None
        conn.execute(
            sql.SQL(
                "create table if not exists {table} ("
                "chunk_id bigint not null references garage.chunks on delete cascade,"
                " input_sha256 bytea not null, embedding {type} not null,"
                " primary key (chunk_id) include (input_sha256))"
            ).format(table=row.table, type=row.column_type)
        )
        conn.execute(
            sql.SQL("create index if not exists {} on {} using hash (input_sha256)").format(
                sql.Identifier(f"{row.table_name}_input"), row.table
            )
        )
    return row


def model(conn: Connection[Row], slug: str) -> EmbeddingModel | None:
    """A registered model, or None."""
    with conn.cursor(row_factory=class_row(EmbeddingModel)) as cursor:
        return cursor.execute(f"select {_COLUMNS} from embedding_models where slug = %s", (slug,)).fetchone()


def models(conn: Connection[Row]) -> list[EmbeddingModel]:
    """All registered models, by slug."""
    with conn.cursor(row_factory=class_row(EmbeddingModel)) as cursor:
        return cursor.execute(f"select {_COLUMNS} from embedding_models order by slug").fetchall()


def vector_sha256(fingerprint: str, input_sha256: bytes) -> bytes:
    """Identifies a vector: the model with its templates, and all that these may take of a passage.

    Equal exactly where the text given to the model is equal, and computed in SQL from the passage's own digest, so that
    a work list of a million passages reads no text.
    """
    return hashlib.sha256(fingerprint.encode() + input_sha256).digest()


# The same value as `vector_sha256`; both sides are tested against each other.
_WANTED = sql.SQL("sha256(convert_to(%(fingerprint)s, 'UTF8') || c.input_sha256)")
_MISSING = sql.SQL(
    " from chunks c left join {table} e on e.chunk_id = c.id"
    " where c.source_id = %(source)s and (%(rebuild)s or e.input_sha256 is distinct from {wanted})"
)


def _missing(row: EmbeddingModel) -> sql.Composed:
    return _MISSING.format(table=row.table, wanted=_WANTED)


def count_pending(conn: Connection[Row], row: EmbeddingModel, source_id: int, *, rebuild: bool = False) -> int:
    """Passages of a source without a current vector of this model."""
    parameters = {"fingerprint": row.fingerprint, "source": source_id, "rebuild": rebuild}
    result = conn.execute(sql.SQL("select count(*)") + _missing(row), parameters).fetchone()
    return int(result[0]) if result else 0


# Who deletes a document locks its passages in an order of its own: waiting for one of them could wait for ever, and one
# that is being deleted needs no vector. What is passed over and stays after all is pending in the next run.
_ALIVE = sql.SQL(" for key share of c skip locked")


def copy_known(conn: Connection[Row], row: EmbeddingModel, source_id: int) -> int:
    """Gives passages the vector that the same text has elsewhere in the table; the number of rows written."""
    parameters = {"fingerprint": row.fingerprint, "source": source_id, "rebuild": False}
    query = sql.SQL(
        "with alive as (select c.id, {wanted} as wanted {missing}"
        " and exists (select from {table} k where k.input_sha256 = {wanted}) {alive})"
        " insert into {table} (chunk_id, input_sha256, embedding)"
        " select id, wanted, (select k.embedding from {table} k where k.input_sha256 = wanted limit 1) from alive"
        " on conflict (chunk_id) do update set input_sha256 = excluded.input_sha256, embedding = excluded.embedding"
    ).format(table=row.table, wanted=_WANTED, missing=_missing(row), alive=_ALIVE)
    return conn.execute(query, parameters).rowcount


def pending_vectors(
    conn: Connection[Row], row: EmbeddingModel, source_id: int, *, batch: int, rebuild: bool
) -> Iterator[list[PendingVector]]:
    """Batches of passages to embed, in order of their ids."""
    last = 0
    query = (
        sql.SQL("select c.id as chunk_id, d.title, c.heading_path, c.text, {} as vector_sha256").format(_WANTED)
        + sql.SQL(" from chunks c join documents d on d.id = c.document_id left join {} e on e.chunk_id = c.id").format(
            row.table
        )
        + sql.SQL(
            " where c.source_id = %(source)s and c.id > %(last)s"
            " and (%(rebuild)s or e.input_sha256 is distinct from {}) order by c.id limit %(limit)s"
        ).format(_WANTED)
    )
    limit = batch * 16
    while True:
        with conn.cursor(row_factory=class_row(PendingVector)) as cursor:
            page = cursor.execute(
                query,
                {"fingerprint": row.fingerprint, "source": source_id, "rebuild": rebuild, "last": last, "limit": limit},
            ).fetchall()
        for start in range(0, len(page), batch):
            yield page[start : start + batch]
        if len(page) < limit:
            return
        last = page[-1].chunk_id


def put_vectors(conn: Connection[Row], row: EmbeddingModel, passages: Sequence[PendingVector], vectors: Vectors) -> int:
    """Writes a batch; passages deleted meanwhile are left out. Returns the rows written.

    Raises DimensionMismatch when the vectors are not as wide as the table.
    """
    if vectors.shape != (len(passages), row.stored_dims):
        raise DimensionMismatch(
            f"The model {row.slug!r} gave vectors of shape {vectors.shape}; its table takes {row.stored_dims}.",
            hint="Its file is not the one it was registered with: give it a slug of its own.",
            slug=row.slug,
            expected=row.stored_dims,
            got=vectors.shape[-1],
        )
    texts = ["[" + ",".join(map(repr, vector)) + "]" for vector in vectors.tolist()]
    # The lock keeps the passages until this commits; those that are gone simply do not join.
    query = sql.SQL(
        "with alive as (select c.id, n.input_sha256, n.embedding from unnest(%s::bigint[], %s::bytea[], %s::text[])"
        " as n(id, input_sha256, embedding) join chunks c on c.id = n.id {alive})"
        " insert into {table} (chunk_id, input_sha256, embedding)"
        " select id, input_sha256, embedding::{type} from alive"
        " on conflict (chunk_id) do update set input_sha256 = excluded.input_sha256, embedding = excluded.embedding"
    ).format(table=row.table, type=row.column_type, alive=_ALIVE)
    return conn.execute(query, ([p.chunk_id for p in passages], [p.vector_sha256 for p in passages], texts)).rowcount


def count_vectors(conn: Connection[Row], row: EmbeddingModel, source_id: int | None = None) -> int:
    """Vectors of a model, of one source or of all."""
    if source_id is None:
        query = sql.SQL("select count(*) from {}").format(row.table)
    else:
        query = sql.SQL("select count(*) from chunks c join {} e on e.chunk_id = c.id where c.source_id = %s").format(
            row.table
        )
    result = conn.execute(query, () if source_id is None else (source_id,)).fetchone()
    return int(result[0]) if result else 0


def pending_by_source(conn: Connection[Row], row: EmbeddingModel) -> dict[str, int]:
    """Passages without a current vector of this model, by active source; sources without any are left out."""
    query = sql.SQL(
        "select s.slug, count(*) from chunks c join sources s on s.id = c.source_id and s.active"
        " left join {table} e on e.chunk_id = c.id where e.input_sha256 is distinct from {wanted}"
        " group by s.slug order by s.slug"
    ).format(table=row.table, wanted=_WANTED)
    return dict(conn.execute(query, {"fingerprint": row.fingerprint}).fetchall())


def is_complete(conn: Connection[Row], row: EmbeddingModel) -> bool:
    """Whether every passage of every active source has a current vector of this model."""
    query = sql.SQL(
        "select not exists (select from chunks c join sources s on s.id = c.source_id and s.active"
        " left join {table} e on e.chunk_id = c.id where e.input_sha256 is distinct from {wanted})"
    ).format(table=row.table, wanted=_WANTED)
    result = conn.execute(query, {"fingerprint": row.fingerprint}).fetchone()
    return bool(result and result[0])


def build_index(conn: Connection[Row], row: EmbeddingModel) -> bool:
    """Builds the model's HNSW index after its first backfill; False when it is there. Needs autocommit mode."""
    if row.indexed_at is not None:
        return False
    name = sql.Identifier(f"{row.table_name}_hnsw")
    if row.storage == "bit":
        target = sql.SQL("((binary_quantize(embedding)::bit({})) bit_hamming_ops)").format(sql.Literal(row.stored_dims))
    else:
        target = sql.SQL("(embedding {})").format(sql.SQL(f"{row.storage}_cosine_ops"))
    query = sql.SQL("create index if not exists {} on {} using hnsw {} with (m = 16, ef_construction = 64)").format(
        name, row.table, target
    )
    try:
        _build(conn, row, query)
    except pg.DiskFull:
        # A server in a container often has too little shared memory for workers to build it together. A full disk
        # is one still.
        _build(conn, row, query, workers=0)
    return True


def _build(conn: Connection[Row], row: EmbeddingModel, query: sql.Composed, *, workers: int | None = None) -> None:
    with conn.transaction():
        conn.execute("set local maintenance_work_mem = '512MB'")
        if workers is not None:
            conn.execute(sql.SQL("set local max_parallel_maintenance_workers = {}").format(sql.Literal(workers)))
        conn.execute(query)
        conn.execute("update embedding_models set indexed_at = now() where id = %s", (row.id,))


def serve(conn: Connection[Row], slug: str) -> None:
    """Makes a model the one that answers searches."""
    with conn.transaction():
        conn.execute("update embedding_models set is_default = false where is_default and slug <> %s", (slug,))
        conn.execute("update embedding_models set is_default = true where slug = %s and not is_default", (slug,))


def serving(conn: Connection[Row]) -> EmbeddingModel | None:
    """The model that answers searches, or None before the first one is complete."""
    with conn.cursor(row_factory=class_row(EmbeddingModel)) as cursor:
        return cursor.execute(f"select {_COLUMNS} from embedding_models where is_default").fetchone()
