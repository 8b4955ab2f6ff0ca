"""Tables `documents`, `chunks` and `ingest_outcomes`: their work lists, and the one transaction of a document."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from decimal import Decimal
from typing import Any

from psycopg import Connection
from psycopg.rows import class_row

from garage.passage import Part
from garage.store.database import Row

PAGE = 2000  # work list rows fetched at a time: memory stays flat, and no cursor holds a snapshot for hours


@dataclass(frozen=True, slots=True)
class PendingFile:
    """A file to open, with what is recorded of the last attempt (None: there was none).

    `kind` is that of `garage.walk.placeholders`.
    """

    uri: str
    size: int
    mtime_ns: int
    extractor: str
    fingerprint: str
    known_sha256: bytes | None
    same_version: bool  # the recorded attempt was made by this very extractor
    inode: Decimal | None = None  # unsigned 64 bits, which is more than a bigint takes
    kind: str = "file"


@dataclass(frozen=True, slots=True)
class PendingChunks:
    """A document whose passages were made from other content or by another chunker than the current ones."""

    document_id: int
    title: str
    kind: str
    body_start: int
    content: str
    content_sha256: bytes
    parts: Sequence[Part]


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """What is stored of a document: `content` is the canonical mirror, `uri` its file's address.

    `record` and `parts` are those of `garage.extract.model.Extracted`. `source_sha256` is over the file's bytes or, for
    a record, over all that was made of it.
    """

    uri: str
    title: str
    kind: str
    corpus_class: str
    trust_tier: str
    content: str
    body_start: int
    meta: Mapping[str, Any]
    source_sha256: bytes
    content_sha256: bytes
    byte_size: int
    mtime_ns: int
    extractor: str
    extractor_fingerprint: str
    record: str = ""
    parts: Sequence[Part] = ()


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """What is stored of a passage; `chunk_sha256` is over `text`, `input_sha256` over all a model may be given."""

    ord: int
    text: str
    char_start: int
    char_end: int
    start_line: int
    end_line: int
    heading_path: str | None
    token_count: int
    chunker: str
    chunk_sha256: bytes
    input_sha256: bytes
    lexical_prose: str | None
    lexical_code: str | None
    sender: str | None = None
    direction: str | None = None
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class ChunkSet:
    """All passages of a document, with the version they were made by and how many the cap dropped."""

    rows: Sequence[ChunkRow]
    version: str
    dropped: int


@dataclass(frozen=True, slots=True)
class ChunkCounts:
    """Rows kept, written and deleted by replacing a document's passages."""

    kept: int = 0
    written: int = 0
    deleted: int = 0


_PENDING_FILES = """
    from source_files f
    join unnest(%(extractors)s::text[], %(fingerprints)s::text[]) as now(extractor, fingerprint)
      on now.extractor = f.extractor
    left join ingest_outcomes o on o.source_id = f.source_id and o.uri = f.uri
    where f.source_id = %(source)s and case when f.kind = 'file' then
        %(rebuild)s or o.uri is null or o.outcome in ('unreadable', 'deferred', 'placeholder')
        or (o.outcome = 'timeout' and o.kind <> 'file') or o.inode <> f.inode
        or (o.size, o.mtime_ns, o.extractor_fingerprint) is distinct from (f.size, f.mtime_ns, now.fingerprint)
      else  -- what was read before it became a placeholder is not fetched again for another extractor, nor to rebuild
        %(materialize)s and (o.uri is null or o.outcome in ('unreadable', 'deferred', 'placeholder')
        or (o.outcome = 'timeout' and o.kind <> 'file') or o.mtime_ns <> f.mtime_ns
        or (f.kind = 'dataless' and o.size <> f.size)) end
"""
_PENDING_CHUNKS = """
    from documents d
    join unnest(%(kinds)s::text[], %(versions)s::text[]) as now(kind, version) on now.kind = d.kind
    where d.source_id = %(source)s
      and (%(rebuild)s or (d.chunked_as, d.chunked_sha256) is distinct from (now.version, d.content_sha256))
"""


# A placeholder whose fetching failed before, which goes after those that were never tried.
_FAILED = "(f.kind <> 'file' and coalesce(o.outcome in ('timeout', 'unreadable'), false))"


def count_pending_files(
    conn: Connection[Row], source_id: int, versions: Mapping[str, str], *, rebuild: bool, fetch: int | None = 0
) -> int:
    """Length of `pending_files`, of which at most `fetch` are placeholders (None: any number)."""
    row = conn.execute(
        "select count(*) filter (where f.kind = 'file'), count(*) filter (where f.kind <> 'file')" + _PENDING_FILES,
        _files(source_id, versions, rebuild=rebuild, materialize=fetch != 0),
    ).fetchone()
    files, placeholders = row or (0, 0)
    return int(files + (placeholders if fetch is None else min(fetch, placeholders)))


def pending_files(
    conn: Connection[Row], source_id: int, versions: Mapping[str, str], *, rebuild: bool, materialize: bool = False
) -> Iterator[PendingFile]:
    """Files whose stat or whose extractor's fingerprint (`versions`, by extractor) differs from the last attempt's.

    `materialize`: placeholders as well, at the end those whose fetching failed in an earlier run.
    """
    began = conn.execute("select now()").fetchone()
    parameters = _files(source_id, versions, rebuild=rebuild, materialize=materialize)
    for failed in (False, True) if materialize else (False,):
        last = ""
        while True:
            with conn.cursor(row_factory=class_row(PendingFile)) as cursor:
                page = cursor.execute(
                    "select f.uri, f.size, f.mtime_ns, f.extractor, now.fingerprint, o.source_sha256 as known_sha256,"
                    " o.extractor_fingerprint is not distinct from now.fingerprint and not %(rebuild)s as same_version,"
                    " f.inode, f.kind"
                    + _PENDING_FILES
                    + f" and {_FAILED} = %(failed)s and (not %(failed)s or o.at < %(began)s)"
                    " and f.uri > %(last)s order by f.uri limit %(page)s",
                    parameters | {"failed": failed, "began": began and began[0], "last": last, "page": PAGE},
                ).fetchall()
            yield from page
            if len(page) < PAGE:
                break
            last = page[-1].uri


def _files(source_id: int, versions: Mapping[str, str], *, rebuild: bool, materialize: bool) -> dict[str, object]:
    names, prints = list(versions), list(versions.values())
    return {
        "source": source_id,
        "extractors": names,
        "fingerprints": prints,
        "rebuild": rebuild,
        "materialize": materialize,
    }


def document_kinds(conn: Connection[Row], source_id: int) -> list[str]:
    """The kinds that a source's documents have."""
    return [kind for (kind,) in conn.execute("select distinct kind from documents where source_id = %s", (source_id,))]


def count_pending_chunks(conn: Connection[Row], source_id: int, versions: Mapping[str, str], *, rebuild: bool) -> int:
    """Length of `pending_chunks`."""
    row = conn.execute("select count(*)" + _PENDING_CHUNKS, _kinds(source_id, versions, rebuild=rebuild)).fetchone()
    return int(row[0]) if row else 0


def pending_chunks(
    conn: Connection[Row], source_id: int, versions: Mapping[str, str], *, rebuild: bool
) -> Iterator[PendingChunks]:
    """Documents whose passages are not those of (their content, `versions` of their kind)."""
    last = 0
    while True:
        found = conn.execute(
            "select d.id, d.title, d.kind, d.body_start, d.content, d.content_sha256, d.parts"
            + _PENDING_CHUNKS
            + " and d.id > %(last)s order by d.id limit 50",
            _kinds(source_id, versions, rebuild=rebuild) | {"last": last},
        ).fetchall()
        page = [
            PendingChunks(number, title, kind, body_start, content, sha256, [Part(*part) for part in parts])
            for number, title, kind, body_start, content, sha256, parts in found
        ]
        yield from page
        if len(page) < 50:
            return
        last = page[-1].document_id


def _kinds(source_id: int, versions: Mapping[str, str], *, rebuild: bool) -> dict[str, object]:
    return {"source": source_id, "kinds": list(versions), "versions": list(versions.values()), "rebuild": rebuild}


def put_document(conn: Connection[Row], source_id: int, document: DocumentRow, chunks: ChunkSet) -> ChunkCounts:
    """Writes a document with its passages; call it inside one transaction."""
    row = conn.execute(
        "insert into documents (source_id, file_uri, record, title, kind, corpus_class, trust_tier, content,"
        " body_start, meta, parts, source_sha256, content_sha256, byte_size, mtime_ns, extractor,"
        " extractor_fingerprint, chunked_as, chunked_sha256, chunks_dropped)"
        " values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
        " on conflict (source_id, file_uri, md5(record)) do update set title = excluded.title, kind = excluded.kind,"
        " corpus_class = excluded.corpus_class, trust_tier = excluded.trust_tier, content = excluded.content,"
        " body_start = excluded.body_start, meta = excluded.meta, parts = excluded.parts,"
        " source_sha256 = excluded.source_sha256,"
        " content_sha256 = excluded.content_sha256, byte_size = excluded.byte_size, mtime_ns = excluded.mtime_ns,"
        " extractor = excluded.extractor, extractor_fingerprint = excluded.extractor_fingerprint,"
        " chunked_as = excluded.chunked_as, chunked_sha256 = excluded.chunked_sha256,"
        " chunks_dropped = excluded.chunks_dropped, ingested_at = now(), attributed_as = null"
        " returning id, xmax = 0",
        (source_id, document.uri, document.record, document.title, document.kind, document.corpus_class,
         document.trust_tier, document.content, document.body_start, json.dumps(document.meta),
         json.dumps([[*astuple(part)] for part in document.parts]), document.source_sha256,
         document.content_sha256, document.byte_size, document.mtime_ns, document.extractor,
         document.extractor_fingerprint, chunks.version, document.content_sha256, chunks.dropped),
    ).fetchone()  # fmt: skip
    assert row is not None
    document_id, inserted = row
    if inserted:
        _insert(conn, source_id, document_id, chunks.rows)
        return ChunkCounts(written=len(chunks.rows))
    return _replace_chunks(conn, source_id, document_id, chunks)


def put_chunks(
    conn: Connection[Row], source_id: int, document_id: int, content_sha256: bytes, chunks: ChunkSet
) -> ChunkCounts:
    """Replaces a document's passages, unless its content is another one by now; call it inside one transaction."""
    current = conn.execute(
        "update documents set chunked_as = %s, chunked_sha256 = %s, chunks_dropped = %s"
        " where id = %s and content_sha256 = %s",
        (chunks.version, content_sha256, chunks.dropped, document_id, content_sha256),
    ).rowcount
    return _replace_chunks(conn, source_id, document_id, chunks) if current else ChunkCounts()


def _replace_chunks(conn: Connection[Row], source_id: int, document_id: int, chunks: ChunkSet) -> ChunkCounts:
    """A passage whose text and chunker match keeps its row, wherever it stands now, and so its vectors."""
    waiting: dict[tuple[bytes, str], list[int]] = {}
    old = conn.execute(
        "select id, chunk_sha256, chunker from chunks where document_id = %s order by ord desc", (document_id,)
    )
    for chunk_id, sha256, chunker in old:
        waiting.setdefault((sha256, chunker), []).append(chunk_id)
    kept: list[tuple[int, ChunkRow]] = []
    fresh: list[ChunkRow] = []
    for chunk in chunks.rows:
        ids = waiting.get((chunk.chunk_sha256, chunk.chunker))
        if ids:
            kept.append((ids.pop(), chunk))
        else:
            fresh.append(chunk)
    stale = [chunk_id for ids in waiting.values() for chunk_id in ids]
    if stale:
        conn.execute("delete from chunks where id = any(%s)", (stale,))
    if kept:
        _move(conn, kept)
    if fresh:
        _insert(conn, source_id, document_id, fresh)
    return ChunkCounts(len(kept), len(fresh), len(stale))


def _move(conn: Connection[Row], kept: Sequence[tuple[int, ChunkRow]]) -> None:
    """Kept rows take their new place; only those that differ are written."""
    rows = [chunk for _, chunk in kept]
    conn.execute(
        "update chunks c set ord = n.ord, char_start = n.char_start, char_end = n.char_end, start_line = n.start_line,"
        " end_line = n.end_line, heading_path = n.heading_path, input_sha256 = n.input_sha256,"
        " sender = n.sender, direction = n.direction, quoted = n.quoted,"
        " lexical_prose = n.prose, lexical_code = n.code, lexical_seq = case"
        "   when (c.lexical_prose, c.lexical_code) is not distinct from (n.prose, n.code) then c.lexical_seq"
        "   else nextval('lexical_changes') end"
        " from unnest(%s::bigint[], %s::int[], %s::int[], %s::int[], %s::int[], %s::int[], %s::text[], %s::bytea[],"
        " %s::text[], %s::text[], %s::text[], %s::text[], %s::bool[]) as n(id, ord, char_start, char_end, start_line,"
        " end_line, heading_path, input_sha256, prose, code, sender, direction, quoted)"
        " where c.id = n.id"
        " and (c.ord, c.char_start, c.char_end, c.start_line, c.end_line, c.heading_path, c.input_sha256,"
        " c.lexical_prose, c.lexical_code, c.sender, c.direction, c.quoted) is distinct from (n.ord, n.char_start,"
        " n.char_end, n.start_line, n.end_line, n.heading_path, n.input_sha256, n.prose, n.code, n.sender, n.direction,"
        " n.quoted)",
        ([chunk_id for chunk_id, _ in kept], [c.ord for c in rows], [c.char_start for c in rows],
         [c.char_end for c in rows], [c.start_line for c in rows], [c.end_line for c in rows],
         [c.heading_path for c in rows], [c.input_sha256 for c in rows],
         [c.lexical_prose for c in rows], [c.lexical_code for c in rows], [c.sender for c in rows],
         [c.direction for c in rows], [c.quoted for c in rows]),
    )  # fmt: skip


def _insert(conn: Connection[Row], source_id: int, document_id: int, rows: Sequence[ChunkRow]) -> None:
    conn.execute(
        "insert into chunks (document_id, source_id, ord, text, char_start, char_end, start_line, end_line,"
        " heading_path, token_count, chunker, chunk_sha256, input_sha256, lexical_prose, lexical_code,"
        " sender, direction, quoted)"
        " select %s, %s, n.* from unnest(%s::int[], %s::text[], %s::int[], %s::int[], %s::int[], %s::int[],"
        " %s::text[], %s::int[], %s::text[], %s::bytea[], %s::bytea[], %s::text[], %s::text[], %s::text[], %s::text[],"
        " %s::bool[]) as n",
        (document_id, source_id, [c.ord for c in rows], [c.text for c in rows], [c.char_start for c in rows],
         [c.char_end for c in rows], [c.start_line for c in rows], [c.end_line for c in rows],
         [c.heading_path for c in rows], [c.token_count for c in rows], [c.chunker for c in rows],
         [c.chunk_sha256 for c in rows], [c.input_sha256 for c in rows],
         [c.lexical_prose for c in rows], [c.lexical_code for c in rows], [c.sender for c in rows],
         [c.direction for c in rows], [c.quoted for c in rows]),
    )  # fmt: skip


def records(conn: Connection[Row], source_id: int, uri: str) -> dict[str, tuple[bytes, str, str | None]]:
    """What is stored of the documents of one file, by record: digest, extractor's fingerprint, chunker's version."""
    found = conn.execute(
        "select record, source_sha256, extractor_fingerprint, chunked_as from documents"
        " where source_id = %s and file_uri = %s",
        (source_id, uri),
    )
    return {record: (sha256, fingerprint, version) for record, sha256, fingerprint, version in found}


def touch_document(conn: Connection[Row], source_id: int, uri: str, *, mtime_ns: int) -> None:
    """The file's bytes are the same under a new stat: its documents follow."""
    conn.execute(
        "update documents set mtime_ns = %s where source_id = %s and file_uri = %s", (mtime_ns, source_id, uri)
    )


def put_outcome(
    conn: Connection[Row], source_id: int, file: PendingFile, outcome: str, *, reason: str, sha256: bytes | None
) -> None:
    """Remembers how an attempt ended, so that the file is not opened again until something changes."""
    conn.execute(
        "insert into ingest_outcomes (source_id, uri, outcome, reason, size, mtime_ns, inode, kind, source_sha256,"
        " extractor_fingerprint) values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s) on conflict (source_id, uri)"
        " do update set outcome = excluded.outcome, reason = excluded.reason, size = excluded.size,"
        " mtime_ns = excluded.mtime_ns, inode = excluded.inode, kind = excluded.kind,"
        " source_sha256 = excluded.source_sha256, extractor_fingerprint = excluded.extractor_fingerprint, at = now()",
        (
            source_id,
            file.uri,
            outcome,
            reason,
            file.size,
            file.mtime_ns,
            file.inode,
            file.kind,
            sha256,
            file.fingerprint,
        ),
    )


def refresh_outcome(conn: Connection[Row], source_id: int, file: PendingFile) -> None:
    """The bytes are those of the recorded attempt: only its stat moves, its outcome stands."""
    conn.execute(
        "update ingest_outcomes set size = %s, mtime_ns = %s, inode = %s, kind = %s where source_id = %s and uri = %s",
        (file.size, file.mtime_ns, file.inode, file.kind, source_id, file.uri),
    )


def drop_document(conn: Connection[Row], source_id: int, uri: str, *, but: Sequence[str] = ()) -> int:
    """Deletes what a file holds, but for some records, with passages and vectors; returns how many documents."""
    # Returned rows and not the row count, which a pipeline does not know yet.
    gone = conn.execute(
        "delete from documents where source_id = %s and file_uri = %s and record <> all(%s) returning id",
        (source_id, uri, list(but)),
    )
    return len(gone.fetchall())


def drop_vanished(conn: Connection[Row], source_id: int, *, limit: int) -> int:
    """Deletes up to `limit` documents whose file the last walk no longer saw; the number deleted."""
    return conn.execute(
        "delete from documents where id in (select d.id from documents d where d.source_id = %s and not exists"
        " (select from source_files f where f.source_id = d.source_id and f.uri = d.file_uri) order by d.id limit %s)",
        (source_id, limit),
    ).rowcount


def drop_vanished_outcomes(conn: Connection[Row], source_id: int) -> None:
    """Forgets attempts at files that are no longer there."""
    conn.execute(
        "delete from ingest_outcomes o where o.source_id = %s and not exists"
        " (select from source_files f where f.source_id = o.source_id and f.uri = o.uri)",
        (source_id,),
    )


def outcome_counts(conn: Connection[Row], source_id: int) -> dict[str, int]:
    """How many files of a source ended in which outcome."""
    return dict(
        conn.execute(
            "select outcome, count(*) from ingest_outcomes where source_id = %s group by outcome order by outcome",
            (source_id,),
        ).fetchall()
    )


def outcomes_by_source(conn: Connection[Row]) -> dict[str, dict[str, int]]:
    """How many files ended in which outcome, by active source."""
    found: dict[str, dict[str, int]] = {}
    for slug, outcome, files in conn.execute(
        "select s.slug, o.outcome, count(*) from ingest_outcomes o join sources s on s.id = o.source_id and s.active"
        " group by s.slug, o.outcome order by s.slug, o.outcome"
    ):
        found.setdefault(slug, {})[outcome] = files
    return found


def count(conn: Connection[Row], source_id: int) -> int:
    """Documents of a source."""
    row = conn.execute("select count(*) from documents where source_id = %s", (source_id,)).fetchone()
    return int(row[0]) if row else 0


def counts(conn: Connection[Row], source_id: int) -> tuple[int, int]:
    """Documents and passages of a source."""
    row = conn.execute(
        "select (select count(*) from documents where source_id = %(s)s),"
        " (select count(*) from chunks where source_id = %(s)s)",
        {"s": source_id},
    ).fetchone()
    return (row[0], row[1]) if row else (0, 0)
