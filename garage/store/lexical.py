"""The keyword side's indexes: BM25 where the server has pg_textsearch, else tsvectors.

Prose is stemmed as English, code is not; each has an index and statistics of its own.

A BM25 index is built whole and never written to. What pg_textsearch 1.0 is given later it keeps in shared memory: a
stopped server forgets it, a killed one loses it for good, and writers at the same time can hang for ever. So passages
are copied into segments, tables that are built beside the old ones and swapped: `base` holds most of them, `recent`
those stored since. A search ranks both together and leaves out what is stale by now.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
from psycopg import Connection, sql
from psycopg.rows import class_row

from garage.store.database import Row

_LOCK, _SWAP_LOCK = "garage/lexical", "garage/lexical/swap"
_DURABLE_SINCE = (1, 1)  # the first pg_textsearch whose indexes survive a crash without a checkpoint after the build
_BASE_ALONE = 10_000  # passages up to which everything is built anew at once: a second or two
_RECENT_SHARE = 5  # `recent` holds at most one fifth of the passages
# k1 of BM25. 1.5 beats pg_textsearch's own 1.2 on all collections of `bench.quality`, by half a point of nDCG@10.
_INDEXES = (("prose", "english"), ("code", "simple"))
_K1 = 1.5


@dataclass(frozen=True, slots=True)
class Segment:
    """A table of passages with BM25 indexes: those with `after` < lexical_seq <= `newest`."""

    name: str
    after: int
    newest: int
    passages: int

    @property
    def table(self) -> sql.Identifier:
        """`lexical_<name>`."""
        return sql.Identifier("garage", f"lexical_{self.name}")

    def index(self, column: str) -> sql.Literal:
        """The name of a column's index, as text, which is how a query names it."""
        return sql.Literal(f"garage.lexical_{self.name}_{column}")


def segments(conn: Connection[Row]) -> list[Segment]:
    """What keyword searches rank with BM25; nothing where tsvectors do the work."""
    with conn.cursor(row_factory=class_row(Segment)) as cursor:
        return cursor.execute(
            "select name, after, newest, passages from garage.lexical_segments"
            " where to_regclass('garage.lexical_' || name || '_code') is not null order by name"
        ).fetchall()


@contextmanager
def reading(conn: Connection[Row]) -> Iterator[list[Segment]]:
    """A transaction in which the segments stay what they are, with the plans that BM25 scores need.

    The score of a row is that of the scan's latest row, so nothing may gather or sort rows between the two.
    """
    with conn.transaction():
        conn.execute(
            "select pg_advisory_xact_lock_shared(hashtextextended(%s, 0)), set_config('enable_sort', 'off', true),"
            " set_config('enable_incremental_sort', 'off', true), set_config('enable_hashjoin', 'off', true),"
            " set_config('enable_mergejoin', 'off', true), set_config('enable_seqscan', 'off', true),"
            " set_config('enable_bitmapscan', 'off', true)",
            (_SWAP_LOCK,),
        )
        yield segments(conn)


def has_bm25(conn: Connection[Row]) -> bool:
    """Whether keyword searches of this database rank with BM25."""
    return bool(segments(conn))


def can_gain_bm25(conn: Connection[Row]) -> bool:
    """Whether the server has loaded pg_textsearch, and this database does not use it yet."""
    row = conn.execute(
        "select current_setting('pg_textsearch.library_version', true) is not null"
        " and to_regclass('garage.lexical_base_code') is null"
    ).fetchone()
    return row is not None and bool(row[0])


def ensure_lexical(conn: Connection[Row]) -> bool:
    """Makes the indexes that this server can have; True when they are BM25. Needs autocommit mode.

    A server that gained pg_textsearch gets the BM25 indexes at the next call; the tsvectors stay until then.
    """
    try:
        conn.execute("create extension if not exists pg_textsearch with schema public")
    except psycopg.Error:  # not installed, not preloaded or not allowed: the reason does not matter to what follows
        make_tsvectors(conn)
        return False
    if not _is_reliable(conn):
        make_tsvectors(conn)
        return False
    if not segments(conn):
        refresh(conn, first=True)
        conn.execute("alter table garage.chunks drop column if exists tsv")
    return True


def make_tsvectors(conn: Connection[Row]) -> None:
    """What keyword search uses on a server without pg_textsearch."""
    conn.execute("delete from garage.lexical_segments")
    conn.execute("drop table if exists garage.lexical_base, garage.lexical_recent")
    conn.execute(
        "alter table garage.chunks add column if not exists tsv tsvector generated always as (coalesce("
        "to_tsvector('english', lexical_prose), to_tsvector('simple', lexical_code))) stored"
    )
    conn.execute("create index if not exists chunks_tsv on garage.chunks using gin (tsv)")


def refresh(conn: Connection[Row], *, first: bool = False) -> bool:
    """Brings the BM25 segments up to date with the passages; False when they were. Needs autocommit mode.

    Costs a count when nothing changed. Searches go on meanwhile; writers wait for the copy, not for the indexes.
    """
    if not first and not has_bm25(conn):
        return False
    with _alone(conn):
        built = segments(conn)
        base = next((segment for segment in built if segment.name == "base"), None)
        newest = max((segment.newest for segment in built), default=0)
        counted = conn.execute(
            "select count(*), coalesce(max(lexical_seq), 0), count(*) filter (where lexical_seq > %s)"
            " from garage.chunks",
            (base.newest if base else 0,),
        ).fetchone()
        total, latest, fresh = counted or (0, 0, 0)
        gone = base.passages - (total - fresh) if base else 0
        bearable = total // _RECENT_SHARE if total > _BASE_ALONE else 0
        if base is None or max(fresh, gone) > bearable:
            _build(conn, "base", after=0)
        elif latest > newest:
            _build(conn, "recent", after=base.newest)
        else:
            return False
    return True


@contextmanager
def _alone(conn: Connection[Row]) -> Iterator[None]:
    conn.execute("select pg_advisory_lock(hashtextextended(%s, 0))", (_LOCK,))
    try:
        yield
    finally:
        conn.execute("select pg_advisory_unlock(hashtextextended(%s, 0))", (_LOCK,))


def _build(conn: Connection[Row], name: str, *, after: int) -> None:
    with conn.transaction():
        # Nobody is in the middle of storing a passage whose number is lower than that of one already visible.
        conn.execute("lock table garage.chunks in share mode")
        conn.execute("drop table if exists garage.lexical_building")
        conn.execute(
            sql.SQL(
                "create table garage.lexical_building with (autovacuum_enabled = false) as select id as chunk_id,"
                " lexical_seq, source_id, document_id, lexical_prose as prose, lexical_code as code"
                " from garage.chunks where lexical_seq > {} order by id"
            ).format(sql.Literal(after))
        )
    for column, language in _INDEXES:
        conn.execute(
            sql.SQL(
                "create index {} on garage.lexical_building using bm25 ({}) with (text_config = {}, k1 = {})"
            ).format(
                sql.Identifier(f"lexical_building_{column}"),
                sql.Identifier(column),
                sql.Literal(language),
                sql.Literal(_K1),
            )
        )
    conn.execute("create index lexical_building_chunk on garage.lexical_building (chunk_id)")
    conn.execute("analyze garage.lexical_building, garage.chunks, garage.documents")
    if _version(conn) < _DURABLE_SINCE:
        conn.execute("checkpoint")
    _swap(conn, name, after)


def _swap(conn: Connection[Row], name: str, after: int) -> None:
    """The segment that was built takes the place of its predecessor, a base that of everything."""
    with conn.transaction():
        conn.execute("set local synchronous_commit = on")
        conn.execute("select pg_advisory_xact_lock(hashtextextended(%s, 0))", (_SWAP_LOCK,))
        conn.execute("delete from garage.lexical_segments where name = %s or %s = 'base'", (name, name))
        if name == "base":
            conn.execute("drop table if exists garage.lexical_recent")
        conn.execute(sql.SQL("drop table if exists {}").format(sql.Identifier("garage", f"lexical_{name}")))
        conn.execute(
            sql.SQL("alter table garage.lexical_building rename to {}").format(sql.Identifier(f"lexical_{name}"))
        )
        for column in ("chunk", *(column for column, _ in _INDEXES)):
            conn.execute(
                sql.SQL("alter index {} rename to {}").format(
                    sql.Identifier("garage", f"lexical_building_{column}"),
                    sql.Identifier(f"lexical_{name}_{column}"),
                )
            )
        conn.execute(
            sql.SQL(
                "insert into garage.lexical_segments (name, after, newest, passages)"
                " select %s, %s, coalesce(max(lexical_seq), %s), count(*) from {}"
            ).format(sql.Identifier("garage", f"lexical_{name}")),
            (name, after, after),
        )


def _version(conn: Connection[Row]) -> tuple[int, ...]:
    row = conn.execute("select extversion from pg_extension where extname = 'pg_textsearch'").fetchone()
    return tuple(int(part) for part in row[0].split("-")[0].split(".")[:2]) if row else (0, 0)


def _is_reliable(conn: Connection[Row]) -> bool:
    """Whether an index will survive a crash: of itself, or because this role may have a checkpoint made."""
    if _version(conn) >= _DURABLE_SINCE:
        return True
    row = conn.execute("select pg_has_role(current_user, 'pg_checkpoint', 'usage')").fetchone()
    return row is not None and bool(row[0])
