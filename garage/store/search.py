"""The two engines of a search, their filters, and what a hit shows.

Filters run inside both engines, before any limit on candidates: a filter that few passages pass is scanned exactly,
others walk the vector index for as long as it takes (pgvector's iterative scans).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from psycopg import Connection, sql
from psycopg.rows import class_row

from garage.store.database import Row
from garage.store.embeddings import EmbeddingModel
from garage.store.lexical import Segment, reading

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


EVERYTHING = Filters()


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
    """Filters as SQL over a table of passages (and `documents d`), and the parameters they take."""

    joins: sql.SQL
    where: sql.SQL
    parameters: dict[str, Any]
    narrows: bool


def _scope(conn: Connection[Row], filters: Filters, *, of: str = "c") -> _Scope:
    """`of` is the alias of the table that has `source_id` and `document_id`. Retired sources are left out."""
    joins, where = "", "true"
    parameters: dict[str, Any] = {}
    known = conn.execute("select slug, id, active from sources").fetchall()
    allowed = [id_ for slug, id_, active in known if active and (not filters.sources or slug in filters.sources)]
    if len(allowed) < len(known):
        where += f" and {of}.source_id = any(%(sources)s)"
        parameters["sources"] = allowed
    if filters.on_documents:
        joins = f" join documents d on d.id = {of}.document_id"
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
    filters: Filters = EVERYTHING,
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
    if model.indexed_at is None or (scope.narrows and _eligible(conn, scope, most=exact_below) <= exact_below):
        # The sum keeps the planner from the index: this is the exact answer.
        query = sql.SQL(
            "select c.id, e.embedding <=> {target} as distance from chunks c {joins}"
            " join {table} e on e.chunk_id = c.id where {where}"
            " order by (e.embedding <=> {target}) + 0, c.id limit %(limit)s"
        ).format(target=target, joins=scope.joins, table=model.table, where=scope.where)
        return conn.execute(query, parameters).fetchall()
    with conn.transaction():
        conn.execute(sql.SQL("set local hnsw.iterative_scan = relaxed_order"))
        conn.execute(sql.SQL("set local hnsw.ef_search = {}").format(sql.Literal(max(ef_search, min(2 * limit, 1000)))))
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


def _eligible(conn: Connection[Row], scope: _Scope, *, most: int) -> int:
    """How many passages the filters leave, counted no further than matters."""
    query = sql.SQL("select count(*) from (select from chunks c {} where {} limit %(most)s) counted").format(
        scope.joins, scope.where
    )
    row = conn.execute(query, scope.parameters | {"most": most + 1}).fetchone()
    return int(row[0]) if row else 0


@dataclass(frozen=True, slots=True)
class Terms:
    """A query for the keyword engine: as prose and as code are indexed.

    `required` and `excluded` are patterns (Postgres's regular expressions, any case) that all passages must match, and
    none may.
    """

    prose: str
    code: str
    required: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ranked:
    """Passages with their scores, best first, ties by id; and what gave the scores."""

    hits: list[tuple[int, float]]
    by: Literal["bm25", "ts_rank"]


_HEEDED = " and coalesce(c.lexical_prose, c.lexical_code) ~* all(%(required)s::text[])"
_AVOIDED = " and not coalesce(c.lexical_prose, c.lexical_code) ~* any(%(excluded)s::text[])"


def by_terms(
    conn: Connection[Row],
    terms: Terms,
    *,
    limit: int,
    filters: Filters = EVERYTHING,
) -> Ranked:
    """The best passages by their terms, which are ORed."""
    parameters = {
        "prose": terms.prose,
        "code": terms.code,
        "required": list(terms.required),
        "excluded": list(terms.excluded),
        "limit": limit,
    }
    heeded = sql.SQL((_HEEDED if terms.required else "") + (_AVOIDED if terms.excluded else ""))
    with reading(conn) as segments:
        scope = _scope(conn, filters, of="l" if segments else "c")
        parameters |= scope.parameters
        found = [
            hit
            for segment in segments
            for column in ("prose", "code")
            for hit in _by_bm25(conn, segment, column, scope=scope, heeded=heeded, parameters=parameters)
        ]
    if segments:
        return Ranked(sorted(found, key=lambda hit: (-hit[1], hit[0]))[:limit], "bm25")
    return Ranked(_by_tsvector(conn, scope, heeded, parameters), "ts_rank")


def _by_bm25(
    conn: Connection[Row],
    segment: Segment,
    column: str,
    *,
    scope: _Scope,
    heeded: sql.SQL,
    parameters: dict[str, Any],
) -> list[tuple[int, float]]:
    """The best of one index. A passage whose text changed since is in a newer segment as well, and counts there."""
    query = sql.SQL(
        "select c.id, -bm25_get_current_score() from {table} l"
        " join chunks c on c.id = l.chunk_id and c.lexical_seq = l.lexical_seq {joins} where {where}{heeded}"
        " order by l.{column} <@> to_bm25query({text}, {index}) limit %(limit)s"
    ).format(
        table=segment.table,
        column=sql.Identifier(column),
        text=sql.SQL(f"%({column})s"),
        index=segment.index(column),
        joins=scope.joins,
        where=scope.where,
        heeded=heeded,
    )
    # A prepared statement's generic plan would not know the index that it is for.
    return conn.execute(query, parameters, prepare=False).fetchall()


def heeding(conn: Connection[Row], ids: Sequence[int], terms: Terms) -> list[int]:
    """Those of the passages that have all that `terms` requires and nothing that it excludes, in the same order."""
    clauses = (_HEEDED if terms.required else "") + (_AVOIDED if terms.excluded else "")
    found = conn.execute(
        sql.SQL("select c.id from chunks c where c.id = any(%(ids)s){}").format(sql.SQL(clauses)),
        {"ids": list(ids), "required": list(terms.required), "excluded": list(terms.excluded)},
    )
    kept = {id_ for (id_,) in found}
    return [id_ for id_ in ids if id_ in kept]


_ANY_TERM = (
    "(select array_to_string(array(select '''' || replace(replace(term, '\\', '\\\\'), '''', '''''') || ''''"
    " from unnest(tsvector_to_array(to_tsvector('{language}', %({text})s))) as term), ' | ')::tsquery)"
)


def _by_tsvector(
    conn: Connection[Row], scope: _Scope, heeded: sql.SQL, parameters: dict[str, Any]
) -> list[tuple[int, float]]:
    prose, code = _ANY_TERM.format(language="english", text="prose"), _ANY_TERM.format(language="simple", text="code")
    query = sql.SQL(
        f"with asked as materialized (select {prose} as prose, {code} as code)"
        " select c.id,"
        " ts_rank(c.tsv, case when c.lexical_prose is null then asked.code else asked.prose end, 1) as score"
        " from chunks c cross join asked {joins} where {where}"
        " and ((c.lexical_prose is not null and c.tsv @@ asked.prose)"
        " or (c.lexical_prose is null and c.tsv @@ asked.code))"
        "{heeded} order by score desc, c.id limit %(limit)s"
    ).format(joins=scope.joins, where=scope.where, heeded=heeded)
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
