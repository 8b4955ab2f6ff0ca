"""The two engines of a search, their filters, and what a hit shows.

Filters run inside both engines, before any limit on candidates: what a selective filter leaves is scanned exactly,
others walk the indexes for as long as it takes. How selective a filter is, the planner's statistics say well enough:
either way is right, only their speed differs.
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
EXACT_TERMS_BELOW = 500
"""Passages that a filter may leave for scoring the terms of each: a tenth of a millisecond apiece."""
_SCANNED_TUPLES = 200_000  # how far an iterative scan goes before it gives up on a filter
_POOL_LIMIT = 100_000  # as many candidates as pg_textsearch ever considers
_OVERFETCH = 4  # candidates by signs for each one that is re-ranked by the whole vector


@dataclass(frozen=True, slots=True)
class Filters:
    """What hits must be; empty means anything. `sources` are slugs, `authors` ids.

    Attributes:
        authors: who wrote or sent the document.
        speakers: of a conversation only messages of these, as it names them; None: all of it.
        owner_speaks: with `speakers`, the owner's messages as well.
        directions: sent or received, seen from the owner: of a message by itself, of a mail by its sender.
    """

    sources: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    trusts: tuple[str, ...] = ()
    authors: tuple[int, ...] = ()
    speakers: tuple[str, ...] | None = None
    owner_speaks: bool = False
    directions: tuple[str, ...] = ()

    @property
    def on_documents(self) -> bool:
        return bool(self.classes or self.trusts or self.directions or self.speakers is not None)


EVERYTHING = Filters()


@dataclass(frozen=True, slots=True)
class Passage:
    """A stored passage as a hit shows it. Lines count from 1; offsets are code points of the document's content.

    `authors` wrote or sent the document, the surest first; `sender` is who speaks, as the document says it. `direction`
    is None for what is neither a mail nor a message.
    """

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
    authors: list[str]
    sender: str | None
    direction: str | None
    quoted: bool


@dataclass(frozen=True, slots=True)
class _Scope:
    """Filters as SQL over `chunks c`, and the parameters they take.

    `of("l")` is the same for a copy called `l` beside it, where whatever the copy has as well is taken from it.
    """

    documents: bool
    conditions: tuple[str, ...]
    parameters: dict[str, Any]

    @property
    def narrows(self) -> bool:
        return bool(self.conditions)

    @property
    def joins(self) -> sql.SQL:
        return self.of("c")[0]

    @property
    def where(self) -> sql.SQL:
        return self.of("c")[1]

    def of(self, alias: str) -> tuple[sql.SQL, sql.SQL]:
        """Joins and conditions, for the table that `alias` stands for."""
        joins = f" join documents d on d.id = {alias}.document_id" if self.documents else ""
        return sql.SQL(joins), sql.SQL(" and ".join(("true", *self.conditions)).replace("$t.", f"{alias}."))


_BY_AUTHORS = (
    "exists (select from document_authors a where a.document_id = $t.document_id and a.author_id = any(%(authors)s)"
    " and a.role in ('author', 'sender'))"
)
_BY_SPEAKERS = (
    "(d.kind <> 'conversation' or c.sender = any(%(speakers)s) or (%(owner_speaks)s and c.direction = 'sent'))"
)
# What the sender's signal says of a mail, which is who it is from, whoever else was asked whose the document is.
_DIRECTION = """coalesce(c.direction, case
    when d.signals @> '[{"signal": "sender", "said": "authored"}]' then 'sent'
    when d.signals @> '[{"signal": "sender", "said": "received"}]' then 'received' end)"""


def _scope(conn: Connection[Row], filters: Filters) -> _Scope:
    """Retired sources are left out."""
    known = conn.execute("select slug, id, active from sources").fetchall()
    allowed = [id_ for slug, id_, active in known if active and (not filters.sources or slug in filters.sources)]
    wanted = {
        "$t.source_id = any(%(sources)s)": ("sources", allowed if len(allowed) < len(known) else None),
        "d.corpus_class = any(%(classes)s)": ("classes", list(filters.classes) or None),
        "d.trust_tier = any(%(trusts)s)": ("trusts", list(filters.trusts) or None),
        _BY_AUTHORS: ("authors", list(filters.authors) or None),
        _BY_SPEAKERS: ("speakers", None if filters.speakers is None else list(filters.speakers)),
        _by_direction(filters.directions): ("directions", list(filters.directions) or None),
    }
    parameters: dict[str, Any] = {name: value for name, value in wanted.values() if value is not None}
    return _Scope(
        documents=filters.on_documents,
        conditions=tuple(condition for condition, (_, value) in wanted.items() if value is not None),
        parameters=parameters | {"owner_speaks": filters.owner_speaks},
    )


def _by_direction(directions: Sequence[str]) -> str:
    """Apart for each, since the planner knows how often a condition on a column holds, and not an expression."""
    said = {"sent": "authored", "received": "received"}
    mails = (f"""d.signals @> '[{{"signal": "sender", "said": "{said[one]}"}}]'""" for one in directions)
    return f"(c.direction = any(%(directions)s) or (c.direction is null and ({' or '.join(mails)})))"


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
    if model.indexed_at is None or (scope.narrows and _estimate(conn, scope) <= exact_below):
        # The sum keeps the planner from the index: this is the exact answer.
        query = sql.SQL(
            "select c.id, e.embedding <=> {target} as distance from chunks c {joins}"
            " join {table} e on e.chunk_id = c.id where {where}"
            " order by (e.embedding <=> {target}) + 0, c.id limit %(limit)s"
        ).format(target=target, joins=scope.joins, table=model.table, where=scope.where)
        return conn.execute(query, parameters).fetchall()
    wanted = limit * (_OVERFETCH if model.storage == "bit" else 1)
    narrowing: sql.Composable = sql.SQL("")
    if scope.narrows:
        narrowing = sql.SQL("join chunks c on c.id = e.chunk_id {} where {}").format(scope.joins, scope.where)
    with conn.transaction():
        conn.execute(
            "select set_config('hnsw.iterative_scan', 'relaxed_order', true), set_config('hnsw.ef_search', %s, true),"
            " set_config('hnsw.max_scan_tuples', %s, true), set_config('hnsw.scan_mem_multiplier', '4', true)",
            # Twice the candidates: of the last ones that a scan returns, many are not the nearest.
            (str(max(ef_search, min(2 * wanted, 1000))), str(_SCANNED_TUPLES)),
        )
        if model.storage == "bit":
            query = _nearest_by_signs(model, narrowing)
        else:
            # Relaxed order finds more and sorts less: the outer query sorts. Without the sum the planner would leave
            # that out, for it takes the inner order for what it says.
            query = sql.SQL(
                "with found as materialized (select e.chunk_id, e.embedding <=> {target} as distance from {table} e"
                " {narrowing} order by e.embedding <=> {target} limit %(wanted)s)"
                " select chunk_id, distance from found order by distance + 0, chunk_id"
            ).format(target=target, table=model.table, narrowing=narrowing)
        return conn.execute(query, parameters | {"wanted": wanted}).fetchall()


def _nearest_by_signs(model: EmbeddingModel, narrowing: sql.Composable) -> sql.Composed:
    """Candidates by Hamming distance of the signs, re-ranked by the whole vectors."""
    return sql.SQL(
        "with found as materialized (select e.chunk_id, e.embedding from {table} e {narrowing}"
        " order by binary_quantize(e.embedding)::bit({width}) <~>"
        " binary_quantize(%(vector)s::{type})::bit({width}) limit %(wanted)s)"
        " select chunk_id, embedding <=> %(vector)s::{type} as distance from found"
        " order by distance, chunk_id limit %(limit)s"
    ).format(
        table=model.table,
        narrowing=narrowing,
        width=sql.Literal(model.stored_dims),
        type=model.column_type,
    )


def _estimate(conn: Connection[Row], scope: _Scope) -> int:
    """About how many passages the filters leave, without looking at any."""
    query = sql.SQL("explain (format json) select from chunks c {} where {}").format(scope.joins, scope.where)
    row = conn.execute(query, scope.parameters).fetchone()
    return int(row[0][0]["Plan"]["Plan Rows"]) if row else 0


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
    scope = _scope(conn, filters)
    parameters |= scope.parameters
    with reading(conn) as segments:
        # How many passages hold one that the filters leave.
        rarity = 1.0
        if scope.narrows:
            rarity = sum(segment.passages for segment in segments) / max(_estimate(conn, scope), 1)
        found = [
            hit
            for segment in segments
            for column in ("prose", "code")
            for hit in _by_bm25(conn, segment, column, scope=scope, heeded=heeded, rarity=rarity, parameters=parameters)
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
    rarity: float,
    parameters: dict[str, Any],
) -> list[tuple[int, float]]:
    """The best of one index. A passage whose text changed since is in a newer segment as well, and counts there."""
    pool = parameters["limit"] if rarity <= 1 else int(1.5 * parameters["limit"] * rarity)
    scored = scope.narrows and (segment.passages / rarity <= EXACT_TERMS_BELOW or pool > _POOL_LIMIT)
    joins, where = scope.of("c" if scored else "l")
    # What stands within `offset 0` is planned by itself: a scan in order of the scores, for as long as rows are wanted.
    # It first ranks as many candidates as the setting says, and begins anew with twice as many when these do not do.
    query = sql.SQL(
        "select id, score from (select c.id, {score} as score from {table} l"
        " join chunks c on c.id = l.chunk_id and c.lexical_seq = l.lexical_seq {joins}"
        " where l.{column} is not null and {where}{heeded} {order} offset 0) candidates {best} limit %(limit)s"
    ).format(
        score=sql.SQL("-({})").format(_distance(segment, column)) if scored else sql.SQL("-bm25_get_current_score()"),
        table=segment.table,
        column=sql.Identifier(column),
        joins=joins,
        where=where,
        heeded=heeded,
        order=sql.SQL("") if scored else sql.SQL("order by {}").format(_distance(segment, column)),
        best=sql.SQL("where score > 0 order by score desc, id" if scored else ""),
    )
    conn.execute("select set_config('pg_textsearch.default_limit', %s, true)", (str(min(max(pool, 1), _POOL_LIMIT)),))
    # A prepared statement's generic plan would not know the index that it is for.
    return conn.execute(query, parameters, prepare=False).fetchall()


def _distance(segment: Segment, column: str) -> sql.Composed:
    return sql.SQL("l.{} <@> to_bm25query({}, {})").format(
        sql.Identifier(column), sql.SQL(f"%({column})s"), segment.index(column)
    )


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
            " d.trust_tier, c.heading_path, c.start_line, c.end_line, c.char_start, c.char_end, c.text,"
            " array(select n.display_name from (select a.author_id, max(a.confidence) as confidence"
            "  from document_authors a where a.document_id = d.id and a.role in ('author', 'sender') group by 1) a"
            "  join authors n on n.id = a.author_id order by a.confidence desc, n.display_name, n.id) as authors,"
            f" c.sender, {_DIRECTION} as direction, c.quoted"
            " from chunks c join documents d on d.id = c.document_id join sources s on s.id = c.source_id"
            " where c.id = any(%s)",
            (list(ids),),
        )
        return {passage.chunk_id: passage for passage in found}
