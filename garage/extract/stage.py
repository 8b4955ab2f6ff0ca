"""Files -> documents with their passages: one transaction a document."""

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import astuple, dataclass
from pathlib import PurePosixPath

from garage.chunk import ChunkSettings
from garage.chunk.stage import passages
from garage.config import Extraction
from garage.extract.model import Extracted, ExtractError, Unsupported
from garage.extract.registry import EXTRACTORS, Raw, extract, fingerprint, read
from garage.isolation import Failure, Isolated
from garage.store import documents as store
from garage.store.database import Database, Session
from garage.store.digest import partition_digest
from garage.store.documents import ChunkSet, DocumentRow, PendingFile
from garage.store.lexical import refresh
from garage.store.sources import Source
from garage.worklist import Executor

STAGE = "documents"
_DELETED_AT_ONCE = 500  # documents of one transaction: a long delete must not hold its locks for minutes
# A file of these outcomes has no text worth showing now; any other failure leaves the good version stored before.
_WITHOUT_DOCUMENT = frozenset({"no_text", "rejected"})


@dataclass(frozen=True, slots=True)
class Task:
    """All that a worker process needs to read one file, which lies at `relative` below `root`."""

    root: bytes
    relative: bytes
    file: PendingFile
    corpus_class: str
    trust_tier: str
    max_bytes: int
    sizes: ChunkSettings
    settings: Extraction


@dataclass(frozen=True, slots=True)
class Outcome:
    """How reading one file ended. `unchanged`: its bytes are those of the recorded attempt, by the same extractor."""

    outcome: str
    reason: str = ""
    sha256: bytes | None = None
    unchanged: bool = False
    documents: tuple[tuple[DocumentRow, ChunkSet], ...] = ()


def read_file(task: Task) -> Outcome:
    """Reads, extracts and cuts one file; whatever a file can do wrong comes back as an outcome. Runs in a worker."""
    file = task.file
    if file.size > task.max_bytes:
        return Outcome("too_large", f"{file.size} bytes; the limit is {task.max_bytes}")
    if _leads_elsewhere(task):
        return Outcome("unreadable", "a folder on its way became a link after the walk saw it")
    try:
        raw = read(task.root + b"/" + task.relative, max_bytes=task.max_bytes)
    except Unsupported:  # what lies there is not what the walk saw, so the outcome must not outlast it
        return Outcome("unreadable", "it is no longer a regular file")
    except ExtractError as error:
        return Outcome(error.outcome, _reason(error))
    except FileNotFoundError:
        return Outcome("unreadable", "it vanished after the walk saw it")
    except OSError as error:
        return Outcome("unreadable", error.strerror or type(error).__name__)
    if file.same_version and raw.sha256 == file.known_sha256:
        return Outcome("ok", sha256=raw.sha256, unchanged=True)
    try:
        documents = tuple(_documents(task, raw))
    except ExtractError as error:
        return Outcome(error.outcome, _reason(error), raw.sha256)
    if not documents:
        return Outcome("no_text", "nothing is left beside its front matter", raw.sha256)
    return Outcome("ok", sha256=raw.sha256, documents=documents)


def _leads_elsewhere(task: Task) -> bool:
    """Whether the file's folder is reached through a link below the root; the walk follows none."""
    folder = task.relative.rpartition(b"/")[0]
    root = os.path.realpath(task.root).rstrip(b"/")
    return bool(folder) and os.path.realpath(root + b"/" + folder) != root + b"/" + folder


def _documents(task: Task, raw: Raw) -> Iterator[tuple[DocumentRow, ChunkSet]]:
    """Yield what the file holds, with passages; documents that leave none are left out."""
    file = task.file
    name = PurePosixPath(file.uri).name
    for found in extract(raw.data, extractor=file.extractor, name=name, settings=task.settings):
        document = DocumentRow(
            uri=file.uri,
            title=found.title or PurePosixPath(name).stem,
            kind=found.kind,
            corpus_class=_class(found) or task.corpus_class,
            trust_tier=task.trust_tier,
            content=found.content,
            body_start=found.body_start,
            meta=found.meta if not found.warnings else {**found.meta, "warnings": list(found.warnings)},
            source_sha256=_record_sha256(found) if found.record else raw.sha256,
            content_sha256=hashlib.sha256(found.content.encode()).digest(),
            byte_size=len(found.content.encode()) if found.record else len(raw.data),
            mtime_ns=file.mtime_ns,
            extractor=file.extractor,
            extractor_fingerprint=file.fingerprint,
            record=found.record,
            parts=found.parts,
        )
        cut = passages(
            document.content,
            title=document.title,
            kind=document.kind,
            body_start=document.body_start,
            parts=document.parts,
            sizes=task.sizes,
        )
        if cut.rows:
            yield document, cut


def _class(found: Extracted) -> str | None:
    if found.communication:
        return "communication"
    return "code" if found.kind.startswith("code:") else None


def _record_sha256(found: Extracted) -> bytes:
    """Digest of all that is stored of a record, so that those of a file that stayed are told from the others."""
    parts = [astuple(part) for part in found.parts]
    said = [found.title, found.kind, found.meta, found.body_start, parts, found.communication, found.warnings]
    return hashlib.sha256(json.dumps([found.content, *said], sort_keys=True).encode()).digest()


def _reason(error: ExtractError) -> str:
    return error.message[:500]


class _Recorded:
    """An executor over isolated workers that turns what kills a worker into that file's outcome."""

    def __init__(self, workers: Isolated) -> None:
        self._workers = workers

    def map(
        self, function: Callable[[Task], Outcome], items: Iterable[Task], *, ahead: int
    ) -> Iterator[tuple[Task, Outcome]]:
        for task, result in self._workers.map(function, items, ahead=ahead):
            if isinstance(result, Failure):
                kind = result.kind if result.kind in ("timeout", "memory") else "error"
                # Without a digest: the one on record is that of other bytes, which may come back.
                yield task, Outcome(kind, result.reason[:500])
            else:
                yield task, result


@dataclass(slots=True)
class DocumentsStage:
    """Reads every file whose stat or extractor differs from the last attempt; deletes documents whose file is gone."""

    database: Database
    source: str
    row: Source
    limits: Extraction
    max_bytes: int
    sizes: ChunkSettings
    rebuild: bool = False
    name: str = STAGE

    @property
    def source_id(self) -> int:
        return self.row.id

    def _versions(self) -> dict[str, str]:
        return {name: fingerprint(name, self.limits) for name in EXTRACTORS}

    def count(self) -> int:
        with self.database.connection() as conn:
            return store.count_pending_files(conn, self.source_id, self._versions(), rebuild=self.rebuild)

    def pending(self) -> Iterator[Task]:
        from garage.walk.uris import path_of

        root = os.fsencode(self.row.root)
        with self.database.connection() as conn:
            for file in store.pending_files(conn, self.source_id, self._versions(), rebuild=self.rebuild):
                yield Task(
                    root=root,
                    relative=path_of(file.uri),
                    file=file,
                    corpus_class=self.row.default_class,
                    trust_tier=self.row.default_trust,
                    max_bytes=self.max_bytes,
                    sizes=self.sizes,
                    settings=self.limits,
                )

    @property
    def work(self) -> Callable[[Task], Outcome]:
        return read_file

    def size(self, item: Task) -> int:
        del item
        return 1

    def commit(self, item: Task, result: Outcome) -> Mapping[str, int]:
        file = item.file
        with self.database.pipelined() as conn:
            if result.unchanged:
                store.refresh_outcome(conn, self.source_id, file)
                store.touch_document(conn, self.source_id, file.uri, mtime_ns=file.mtime_ns)
                return {"unchanged": 1}
            store.put_outcome(conn, self.source_id, file, result.outcome, reason=result.reason, sha256=result.sha256)
            if result.documents:
                return self._put(conn, file.uri, result.documents)
            dropped = 0
            if result.outcome in _WITHOUT_DOCUMENT:
                dropped = store.drop_document(conn, self.source_id, file.uri)
        return {result.outcome: 1, "documents_deleted": dropped}

    def _put(self, conn: Session, uri: str, documents: Sequence[tuple[DocumentRow, ChunkSet]]) -> Mapping[str, int]:
        """Writes what a file holds now; records that are stored as they are stay untouched."""
        done: Counter[str] = Counter()
        many = any(document.record for document, _ in documents)
        stored = store.records(conn, self.source_id, uri) if many and not self.rebuild else {}
        done["documents_deleted"] += store.drop_document(
            conn, self.source_id, uri, but=[d.record for d, _ in documents]
        )
        for document, chunks in documents:
            if stored.get(document.record) == (document.source_sha256, document.extractor_fingerprint, chunks.version):
                done["documents_kept"] += 1
                continue
            put = store.put_document(conn, self.source_id, document, chunks)
            done["documents_written"] += 1
            done["chunks_written"] += put.written
            done["chunks_kept"] += put.kept
            done["chunks_deleted"] += put.deleted
            done["chunks_dropped"] += chunks.dropped
        return done

    def finish(self) -> Mapping[str, int]:
        """Deletes what belongs to files that the last completed walk no longer saw."""
        deleted = 0
        while True:
            with self.database.transaction() as conn:
                gone = store.drop_vanished(conn, self.source_id, limit=_DELETED_AT_ONCE)
            deleted += gone
            if gone < _DELETED_AT_ONCE:
                break
        with self.database.transaction() as conn:
            store.drop_vanished_outcomes(conn, self.source_id)
        with self.database.connection() as conn:
            refresh(conn)
        return {"documents_deleted": deleted}

    def digest(self) -> str:
        with self.database.connection() as conn:
            return partition_digest(conn, "documents", self.source_id)

    @contextmanager
    def _workers(self) -> Iterator[Executor[Task, Outcome]]:
        workers = self.limits.workers or os.cpu_count() or 1
        with Isolated(workers=workers, seconds=self.limits.seconds, memory_bytes=self.limits.memory_bytes) as isolated:
            yield _Recorded(isolated)

    def executor(self) -> AbstractContextManager[Executor[Task, Outcome]]:
        return self._workers()
