"""Everything that is stored of one document or file, for the account that `garage explain` gives."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg import Connection, sql
from psycopg.rows import class_row

from garage.store.database import Row
from garage.store.embeddings import models, vector_sha256

_TWINS = 5  # documents of the same content that are named


@dataclass(frozen=True, slots=True)
class Found:
    """A document that a name may mean."""

    document_id: int
    source: str
    uri: str
    title: str


@dataclass(frozen=True, slots=True)
class Credited:
    """Somebody with a part in a document."""

    author_id: int
    name: str
    is_self: bool
    role: str
    confidence: float
    evidence: str


@dataclass(frozen=True, slots=True)
class Stored:
    """A row of `documents` without its text, with its source's slug; digests are hexadecimal.

    `passages` counts its chunks, `quoted` those that repeat somebody else's words.
    """

    document_id: int
    source_id: int
    source: str
    file_uri: str
    record: str
    uri: str
    title: str
    kind: str
    corpus_class: str
    trust_tier: str
    signals: list[dict[str, Any]]
    attributed_as: str | None
    source_sha256: str
    content_sha256: str
    byte_size: int
    characters: int
    mtime_ns: int
    ingested_at: datetime
    extractor: str
    extractor_fingerprint: str
    chunked_as: str | None
    chunked_current_content: bool
    passages: int
    quoted: int
    dropped: int


@dataclass(frozen=True, slots=True)
class Vectors:
    """Of one model: passages of the document with a current vector, with one of another text or model, without any."""

    model: str
    current: int
    outdated: int
    missing: int


@dataclass(frozen=True, slots=True)
class Listed:
    """What the last walk saw of a file."""

    size: int
    mtime_ns: int
    extractor: str
    kind: str


@dataclass(frozen=True, slots=True)
class Attempt:
    """How the last attempt at a file ended; `sha256` is hexadecimal, None where it was not read."""

    outcome: str
    reason: str
    at: datetime
    sha256: str | None
    extractor_fingerprint: str


@dataclass(frozen=True, slots=True)
class Run:
    """A run of a stage."""

    id: int
    stage: str
    run_id: str | None
    started_at: datetime
    finished_at: datetime | None
    error: str | None


@dataclass(frozen=True, slots=True)
class Records:
    """The documents of a file that holds many: how many, of which class and trust, and the first of them."""

    total: int
    classes: dict[str, int]
    trusts: dict[str, int]
    first: tuple[Found, ...]


_FOUND = (
    "select d.id as document_id, s.slug as source, d.uri, d.title from documents d join sources s on s.id = d.source_id"
)


def _found(conn: Connection[Row], where: str, *parameters: object) -> list[Found]:
    with conn.cursor(row_factory=class_row(Found)) as cursor:
        return cursor.execute(f"{_FOUND} where {where}".encode(), parameters).fetchall()


def by_id(conn: Connection[Row], document_id: int) -> list[Found]:
    """The document of an id, if there is one."""
    return _found(conn, "d.id = %s", document_id)


def by_uri(conn: Connection[Row], source_ids: Sequence[int], uri: str) -> list[Found]:
    """Documents of that very address: `file`, or `file#record`."""
    parts = uri.split("#")
    files = ["#".join(parts[: length + 1]) for length in range(len(parts))]
    where = "d.source_id = any(%s) and d.file_uri = any(%s) and d.uri = %s order by s.slug, d.id"
    return _found(conn, where, list(source_ids), files, uri)


def by_name(conn: Connection[Row], source_ids: Sequence[int], name: str, *, limit: int) -> list[Found]:
    """Documents whose file, or whose address, ends in `/name`."""
    where = (
        "d.source_id = any(%s) and (right(d.file_uri, %s) = %s or right(d.uri, %s) = %s)"
        " order by s.slug, d.uri, d.id limit %s"
    )
    tail = f"/{name}"
    return _found(conn, where, list(source_ids), len(tail), tail, len(tail), tail, limit)


def known_files(conn: Connection[Row], source_ids: Sequence[int], uri: str) -> list[int]:
    """The sources in which a file of that address is known: by a walk, an attempt, or documents in it."""
    rows = conn.execute(
        "select source_id from source_files where source_id = any(%(ids)s) and uri = %(uri)s"
        " union select source_id from ingest_outcomes where source_id = any(%(ids)s) and uri = %(uri)s"
        " union select source_id from documents where source_id = any(%(ids)s) and file_uri = %(uri)s order by 1",
        {"ids": list(source_ids), "uri": uri},
    )
    return [number for (number,) in rows]


def document(conn: Connection[Row], document_id: int) -> Stored | None:
    """All that is stored of a document but its text."""
    with conn.cursor(row_factory=class_row(Stored)) as cursor:
        return cursor.execute(
            "select d.id as document_id, d.source_id, s.slug as source, d.file_uri, d.record, d.uri, d.title, d.kind,"
            " d.corpus_class, d.trust_tier, d.signals, d.attributed_as,"
            " encode(d.source_sha256, 'hex') as source_sha256, encode(d.content_sha256, 'hex') as content_sha256,"
            " d.byte_size, length(d.content) as characters, d.mtime_ns, d.ingested_at, d.extractor,"
            " d.extractor_fingerprint, d.chunked_as,"
            " d.chunked_sha256 is not distinct from d.content_sha256 as chunked_current_content,"
            " c.passages, c.quoted, d.chunks_dropped as dropped"
            " from documents d join sources s on s.id = d.source_id cross join lateral"
            " (select count(*) as passages, count(*) filter (where quoted) as quoted from chunks"
            "  where document_id = d.id) c where d.id = %s",
            (document_id,),
        ).fetchone()


def credited(conn: Connection[Row], document_id: int) -> list[Credited]:
    """Who has a part in a document: authors and senders first, the surest of each role first."""
    with conn.cursor(row_factory=class_row(Credited)) as cursor:
        return cursor.execute(
            "select a.id as author_id, a.display_name as name, a.is_self, p.role, p.confidence, p.evidence"
            " from document_authors p join authors a on a.id = p.author_id where p.document_id = %s order by"
            " array_position(array['author', 'sender', 'recipient', 'cc', 'committer'], p.role), p.confidence desc,"
            " a.display_name, a.id",
            (document_id,),
        ).fetchall()


def vectors(conn: Connection[Row], document_id: int) -> list[Vectors]:
    """What each registered model has of a document's passages."""
    found = []
    for model in models(conn):
        rows = conn.execute(
            sql.SQL(
                "select c.input_sha256, e.input_sha256 from chunks c left join {} e on e.chunk_id = c.id"
                " where c.document_id = %s"
            ).format(model.table),
            (document_id,),
        ).fetchall()
        told = Counter(
            "missing" if held is None else "current" if held == vector_sha256(model.fingerprint, wanted) else "outdated"
            for wanted, held in rows
        )
        found.append(Vectors(model.slug, told["current"], told["outdated"], told["missing"]))
    return found


def twins(conn: Connection[Row], document_id: int) -> tuple[int, list[Found]]:
    """How many other documents have the same content, and the first of them."""
    same = "d.content_sha256 = (select content_sha256 from documents where id = %s) and d.id <> %s"
    row = conn.execute(f"select count(*) from documents d where {same}".encode(), (document_id, document_id)).fetchone()
    total = int(row[0]) if row else 0
    first = _found(conn, f"{same} order by s.slug, d.id limit %s", document_id, document_id, _TWINS) if total else []
    return total, first


def listed(conn: Connection[Row], source_id: int, uri: str) -> Listed | None:
    """What the last walk saw of a file; None: nothing."""
    with conn.cursor(row_factory=class_row(Listed)) as cursor:
        return cursor.execute(
            "select size, mtime_ns, extractor, kind from source_files where source_id = %s and uri = %s",
            (source_id, uri),
        ).fetchone()


def attempt(conn: Connection[Row], source_id: int, uri: str) -> Attempt | None:
    """How the last attempt at a file ended; None: there was none."""
    with conn.cursor(row_factory=class_row(Attempt)) as cursor:
        return cursor.execute(
            "select outcome, reason, at, encode(source_sha256, 'hex') as sha256, extractor_fingerprint"
            " from ingest_outcomes where source_id = %s and uri = %s",
            (source_id, uri),
        ).fetchone()


def records(conn: Connection[Row], source_id: int, uri: str, *, limit: int) -> Records:
    """The documents of a file. The threads of a database of messages are files of their own, `uri#thread`."""
    inside = "d.source_id = %s and (d.file_uri = %s or starts_with(d.file_uri, %s || '#'))"
    classes, trusts = Counter[str](), Counter[str]()
    for corpus_class, trust, number in conn.execute(
        f"select corpus_class, trust_tier, count(*) from documents d where {inside} group by 1, 2".encode(),
        (source_id, uri, uri),
    ):
        classes[corpus_class] += number
        trusts[trust] += number
    first = _found(conn, f"{inside} order by d.id limit %s", source_id, uri, uri, limit)
    return Records(classes.total(), dict(classes.most_common()), dict(trusts.most_common()), tuple(first))


def lineage(conn: Connection[Row], source_id: int, ingested_at: datetime) -> list[Run]:
    """The runs that made a document, as far as they are on record.

    The run of `documents` in which it was written, the last walk before that one, and of every later stage the first
    run that ended after it: that one found it on its work list.
    """
    with conn.cursor(row_factory=class_row(Run)) as cursor:
        return cursor.execute(
            "with runs as (select * from stage_runs where source_id = %(source)s),"
            " written as (select * from runs where stage = 'documents' and started_at <= %(at)s"
            "   and coalesce(finished_at, heartbeat_at + interval '1 hour') >= %(at)s order by id desc limit 1),"
            " walked as (select r.* from runs r, written w where r.stage = 'source_files' and r.error is null"
            "   and r.finished_at <= w.started_at order by r.id desc limit 1),"
            " later as (select distinct on (stage) * from runs where stage not in ('source_files', 'documents')"
            "   and finished_at >= %(at)s and error is null order by stage, id)"
            " select id, stage, run_id, started_at, finished_at, error from"
            " (select * from walked union all select * from written union all select * from later) r order by id",
            {"source": source_id, "at": ingested_at},
        ).fetchall()
