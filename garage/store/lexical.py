"""The keyword side's indexes: BM25 where the server has pg_textsearch, else tsvectors.

Prose is stemmed as English, code is not; each chunk fills one of the two lexical columns, so each kind has an index and
statistics of its own.
"""

import psycopg
from psycopg import Connection, sql

from garage.store.database import Row

PROSE_INDEX, CODE_INDEX = "chunks_prose_bm25", "chunks_code_bm25"
_INDEXES = ((PROSE_INDEX, "lexical_prose", "english"), (CODE_INDEX, "lexical_code", "simple"))


def has_bm25(conn: Connection[Row]) -> bool:
    """Whether keyword searches of this database rank with BM25."""
    row = conn.execute("select to_regclass('garage.chunks_code_bm25') is not null").fetchone()
    return row is not None and bool(row[0])


def can_gain_bm25(conn: Connection[Row]) -> bool:
    """Whether the server has pg_textsearch by now, and this database does not use it yet."""
    row = conn.execute(
        "select current_setting('pg_textsearch.library_version', true) is not null"
        " and to_regclass('garage.chunks_code_bm25') is null"
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
    with conn.transaction():
        for index, column, language in _INDEXES:
            conn.execute(
                sql.SQL(
                    "create index if not exists {} on garage.chunks using bm25 ({}) with (text_config = {})"
                ).format(sql.Identifier(index), sql.Identifier(column), sql.Literal(language))
            )
        conn.execute("alter table garage.chunks drop column if exists tsv")
    return True


def make_tsvectors(conn: Connection[Row]) -> None:
    """What keyword search uses on a server without pg_textsearch."""
    conn.execute(
        "alter table garage.chunks add column if not exists tsv tsvector generated always as (coalesce("
        "to_tsvector('english', lexical_prose), to_tsvector('simple', lexical_code))) stored"
    )
    conn.execute("create index if not exists chunks_tsv on garage.chunks using gin (tsv)")
