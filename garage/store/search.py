"""The two engines of a search, their filters, and what a hit shows.

Filters run inside both engines, before any limit on candidates: a filter that few passages pass is scanned exactly,
others walk the vector index for as long as it takes (pgvector's iterative scans).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import Connection, sql
from psycopg.rows import class_row

from garage.store.database import Row
from garage.store.embeddings import EmbeddingModel
from garage.store.lexical import CODE_INDEX, PROSE_INDEX

EXACT_BELOW = 20_000
"""Passages that a filter may leave for an exact scan of their vectors: some 30 ms, and recall 1 by construction."""
_SCANNED_TUPLES = 200_000  # how far an iterative scan goes before it gives up on a filter
_OVERFETCH = 4  # candidates by signs for each one that is re-ranked by the whole vector


@dataclass(frozen=True, slots=True)
class Filters:
    """What hits must be; empty means anything. `sources` are slugs."""

    sources: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    trusts: tuple[str, ...] = ()

    @property
    def on_documents(self) -> bool:
        return bool(self.classes or self.trusts)


@dataclass(frozen=True, slots=True)
class Passage:
    """A stored passage as a hit shows it. Lines count from 1; offsets are code points of the document's content."""

    chunk_id: int
    document_id: int
    source: str
    uri: str
    title: str
    kind: str
    corpus_class: str
    trust_tier: str
    heading_path: str | None
    start_line: int
    end_line: int
    char_start: int
    char_end: int
    text: str


@dataclass(frozen=True, slots=True)
class _Scope:
    """Filters as SQL over `chunks c` (and `documents d`), and the parameters they take."""

    joins: sql.SQL
    where: sql.SQL
    parameters: dict[str, Any]
    narrows: bool


def _scope(conn: Connection[Row], filters: Filters) -> _Scope:
    joins, where, parameters = "", "true", {}
    allowed = {slug: id_ for slug, id_ in conn.execute("select slug, id from sources where active")}
    retired = conn.execute("select exists (select from sources where not active)").fetchone()
    if filters.sources or (retired and retired[0]):
        where += " and c.source_id = any(%(sources)s)"
        parameters["sources"] = [id_ for slug, id_ in allowed.items() if not filters.sources or slug in filters.sources]
    if filters.on_documents:
        joins = " join documents d on d.id = c.document_id"
        if filters.classes:
            where += " and d.corpus_class = any(%(classes)s)"
            parameters["classes"] = list(filters.classes)
        if filters.trusts:
            where += " and d.trust_tier = any(%(trusts)s)"
            parameters["trusts"] = list(filters.trusts)
    return _Scope(sql.SQL(joins), sql.SQL(where), parameters, narrows=bool(parameters))


def nearest(
    conn: Connection[Row],
    model: EmbeddingModel,
    vector: Sequence[float],
    *,
    limit: int,
    filters: Filters = Filters(),  # noqa: B008  # frozen
    ef_search: int = 100,
    exact_below: int = EXACT_BELOW,
) -> list[tuple[int, float]]:
    """The nearest passages of a model: (chunk id, cosine distance), nearest first, ties by id.

    A filter that leaves at most `exact_below` passages is answered exactly, others by the index.
    """
    scope = _scope(conn, filters)
    parameters = {
        **scope.parameters,
        "vector": "[" + ",".join(map(repr, map(float, vector))) + "]",
        "limit": limit,
    }
    target = sql.SQL("%(vector)s::{}").format(model.column_type)
    if model.indexed_at is None or (scope.narrows and _eligible(conn, scope) <= EXACT_BELOW):
        # The sum keeps the planner from the index: this is the exact answer.
        query = sql.SQL(
            "select c.id, e.embedding <=> {target} as distance from chunks c {joins} join {table} e on e.chunk_id = c.id"
            " where {where} order by (e.embedding <=> {target}) + 0, c.id limit %(limit)s"
        ).format(target=target, joins=scope.joins, table=model.table, where=scope.where)
        return conn.execute(query, parameters).fetchall()
    with conn.transaction():
        conn.execute(sql.SQL("set local hnsw.iterative_scan = relaxed_order"))
        conn.execute(sql.SQL("set local hnsw.ef_search = {}").format(sql.Literal(max(ef_search, min(limit, 1000)))))
        conn.execute(sql.SQL("set local hnsw.max_scan_tuples = {}").format(sql.Literal(_SCANNED_TUPLES)))
        if model.storage == "bit":
            return _nearest_by_signs(conn, model, scope, parameters)
        narrowing = (
            sql.SQL("join chunks c on c.id = e.chunk_id {} where {}").format(scope.joins, scope.where)
            if scope.narrows
            else sql.SQL("")
        )
        # Relaxed order finds more and sorts less: the outer query sorts.
        query = sql.SQL(
            "with found as materialized (select e.chunk_id, e.embedding <=> {target} as distance from {table} e"
            " {narrowing} order by e.embedding <=> {target} limit %(limit)s)"
            " select chunk_id, distance from found order by distance, chunk_id"
        ).format(target=target, table=model.table, narrowing=narrowing)
        return conn.execute(query, parameters).fetchall()


def _nearest_by_signs(
    conn: Connection[Row], model: EmbeddingModel, scope: _Scope, parameters: dict[str, Any]
) -> list[tuple[int, float]]:
    """Candidates by Hamming distance of the signs, re-ranked by the whole vectors."""
    width = sql.Literal(model.stored_dims)
    query = sql.SQL(
        "with found as materialized (select e.chunk_id, e.embedding from {table} e join chunks c on c.id = e.chunk_id"
        " {joins} where {where} order by binary_quantize(e.embedding)::bit({width}) <~>"
        " binary_quantize(%(vector)s::{type})::bit({width}) limit %(limit)s * {overfetch})"
        " select chunk_id, embedding <=> %(vector)s::{type} as distance from found"
        " order by distance, chunk_id limit %(limit)s"
    ).format(
        table=model.table,
        joins=scope.joins,
        where=scope.where,
        width=width,
        type=model.column_type,
        overfetch=sql.Literal(_OVERFETCH),
    )
    return conn.execute(query, parameters).fetchall()


def _eligible(conn: Connection[Row], scope: _Scope) -> int:
    """How many passages the filters leave, counted no further than matters."""
    query = sql.SQL("select count(*) from (select from chunks c {} where {} limit %(most)s) counted").format(
        scope.joins, scope.where
    )
    row = conn.execute(query, scope.parameters | {"most": EXACT_BELOW + 1}).fetchone()
    return int(row[0]) if row else 0


@dataclass(frozen=True, slots=True)
class Terms:
    """A query for the keyword engine: as prose and as code are indexed; `deliberate` is websearch syntax to heed."""

    prose: str
    code: str
    deliberate: str | None = None


def by_terms(
    conn: Connection[Row],
    terms: Terms,
    *,
    limit: int,
    bm25: bool,
    filters: Filters = Filters(),  # noqa: B008  # frozen
) -> list[tuple[int, float]]:
    """The best passages by their terms: (chunk id, score), best first, ties by id; terms are ORed."""
    scope = _scope(conn, filters)
    parameters = {
        **scope.parameters,
        "prose": terms.prose,
        "code": terms.code,
        "deliberate": terms.deliberate,
        "limit": limit,
    }
    if not bm25:
        return _by_tsvector(conn, scope, parameters, deliberate=terms.deliberate is not None)
    found: list[tuple[int, float]] = []
    for column, index, language in (("lexical_prose", PROSE_INDEX, "english"), ("lexical_code", CODE_INDEX, "simple")):
        name = sql.Identifier("c", column)
        heeded = (
            sql.SQL(" and to_tsvector({language}, {name}) @@ websearch_to_tsquery({language}, %(deliberate)s)").format(
                language=sql.Literal(language), name=name
            )
            if terms.deliberate is not None
            else sql.SQL("")
        )
        query = sql.SQL(
            "select c.id, -({name} <@> to_bm25query({text}, {index})) from chunks c {joins}"
            " where {name} is not null and {where}{heeded}"
            " order by {name} <@> to_bm25query({text}, {index}) limit %(limit)s"
        ).format(
            name=name,
            text=sql.SQL("%(prose)s" if column == "lexical_prose" else "%(code)s"),
            index=sql.Literal(f"garage.{index}"),
            joins=scope.joins,
            where=scope.where,
            heeded=heeded,
        )
        found += [(id_, score) for id_, score in conn.execute(query, parameters) if score > 0]
    return sorted(found, key=lambda hit: (-hit[1], hit[0]))[:limit]


_ANY_TERM = (
    "(select array_to_string(array(select '''' || replace(replace(term, '\\', '\\\\'), '''', '''''') || ''''"
    " from unnest(tsvector_to_array(to_tsvector('{language}', %({text})s))) as term), ' | ')::tsquery)"
)


def _by_tsvector(
    conn: Connection[Row], scope: _Scope, parameters: dict[str, Any], *, deliberate: bool
) -> list[tuple[int, float]]:
    prose, code = _ANY_TERM.format(language="english", text="prose"), _ANY_TERM.format(language="simple", text="code")
    heeded = (
        " and c.tsv @@ case when c.lexical_prose is null then websearch_to_tsquery('simple', %(deliberate)s)"
        " else websearch_to_tsquery('english', %(deliberate)s) end"
        if deliberate
        else ""
    )
    query = sql.SQL(
        f"with asked as materialized (select {prose} as prose, {code} as code)"
        " select c.id, ts_rank(c.tsv, case when c.lexical_prose is null then asked.code else asked.prose end, 1) as score"
        " from chunks c cross join asked {joins} where {where}"
        " and ((c.lexical_prose is not null and c.tsv @@ asked.prose) or (c.lexical_prose is null and c.tsv @@ asked.code))"
        f"{heeded} order by score desc, c.id limit %(limit)s"
    ).format(joins=scope.joins, where=scope.where)
    return conn.execute(query, parameters).fetchall()


def passages(conn: Connection[Row], ids: Sequence[int]) -> dict[int, Passage]:
    """The passages of these ids that are still there."""
    with conn.cursor(row_factory=class_row(Passage)) as cursor:
        found = cursor.execute(
            "select c.id as chunk_id, c.document_id, s.slug as source, d.uri, d.title, d.kind, d.corpus_class,"
            " d.trust_tier, c.heading_path, c.start_line, c.end_line, c.char_start, c.char_end, c.text"
            " from chunks c join documents d on d.id = c.document_id join sources s on s.id = c.source_id"
            " where c.id = any(%s)",
            (list(ids),),
        )
        return {passage.chunk_id: passage for passage in found}
