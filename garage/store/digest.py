"""Data versions: the digest of a partition's rows, computed where the rows are."""

import hashlib

from psycopg import Connection

from garage.store.database import Row

# A sum of two independent 64-bit hashes a row does not depend on the rows' order, so nothing is sorted or sent. The
# offset keeps the server from making the text of each row twice, once a sum.
_SUMS = (
    "select count(*), coalesce(sum(hashtextextended(row, 0)), 0), coalesce(sum(hashtextextended(row, 1)), 0)"
    " from (select {row} as row from {rows} offset 0) as text"
)

_PARTITIONS = {
    "source_files": ("uri || '|' || size || '|' || mtime_ns || '|' || extractor", "source_files where source_id = %s"),
    "documents": ("uri || '|' || encode(content_sha256, 'hex')", "documents where source_id = %s"),
    # What follows from it hangs on class and trust; how they came about is for people to read.
    "attribution": ("uri || '|' || corpus_class || '|' || trust_tier", "documents where source_id = %s"),
    "chunks": ("encode(input_sha256, 'hex')", "chunks where source_id = %s"),
}


def partition_digest(conn: Connection[Row], table: str, source_id: int) -> str:
    """The data version of what `source_id` has in `table`: 16 hex digits, equal for equal rows."""
    row, rows = _PARTITIONS[table]
    return _digest(conn, _SUMS.format(row=row, rows=rows), (source_id,))


def vectors_digest(conn: Connection[Row], emb_table: str, source_id: int) -> str:
    """The data version of a source's vectors in one model's table."""
    from psycopg import sql

    rows = "chunks c join {} e on e.chunk_id = c.id where c.source_id = %s"
    query = sql.SQL(_SUMS.format(row="encode(e.input_sha256, 'hex')", rows=rows)).format(sql.Identifier(emb_table))
    return _digest(conn, query, (source_id,))


def _digest(conn: Connection[Row], query: object, parameters: tuple[object, ...]) -> str:
    result = conn.execute(query, parameters).fetchone()  # type: ignore[call-overload]  # text or composed, as execute takes
    return hashlib.sha256(repr(result).encode()).hexdigest()[:16]


def text_digest(text: str) -> str:
    """The data version of something that fits into a string: 16 hex digits."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]
