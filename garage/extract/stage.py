"""Files -> documents with their passages: one transaction a document."""

import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from garage.chunk import ChunkSettings
from garage.config import Extraction, Placeholders
from garage.extract.reading import Outcome, Task, read_file, versions
from garage.isolation import Failure, Isolated
from garage.store import documents as store
from garage.store import outcomes
from garage.store.chat import ChatSnapshot, snapshot
from garage.store.database import Database, Session
from garage.store.digest import partition_digest
from garage.store.documents import ChunkSet, DocumentRow
from garage.store.lexical import refresh
from garage.store.sources import Source
from garage.uris import path_of
from garage.walk.materialize import Budget
from garage.worklist import Executor

STAGE = "documents"
_OUT_OF_ORDER = 512  # results that may wait for a slow file before them: memory stays flat
_DELETED_AT_ONCE = 500  # documents of one transaction: a long delete must not hold its locks for minutes
# A file of these outcomes has no text worth showing now; any other failure leaves the good version stored before.
_WITHOUT_DOCUMENT = frozenset({"no_text", "rejected"})


class _Recorded:
    """An executor over isolated workers that turns what kills a worker into that file's outcome.

    Results come in the order of the work list, whichever worker is done first: two runs over the same files commit the
    same rows in the same order.
    """

    def __init__(self, workers: Isolated) -> None:
        self._workers = workers

    def map(
        self, function: Callable[[Task], Outcome], items: Iterable[Task], *, ahead: int
    ) -> Iterator[tuple[Task, Outcome]]:
        rest = iter(items)
        waiting: deque[Task] = deque()
        done: dict[int, Outcome | Failure] = {}

        def taken() -> Iterator[Task]:
            while len(waiting) < _OUT_OF_ORDER and (item := next(rest, None)) is not None:
                waiting.append(item)
                yield item

        while True:
            for finished, found in self._workers.map(function, taken(), ahead=ahead):
                done[id(finished)] = found
                while waiting and id(waiting[0]) in done:
                    task = waiting.popleft()
                    yield task, self._outcome(done.pop(id(task)))
            if (item := next(rest, None)) is None:
                return
            rest = chain([item], rest)

    @staticmethod
    def _outcome(result: Outcome | Failure) -> Outcome:
        if isinstance(result, Outcome):
            return result
        kind = result.kind if result.kind in ("timeout", "memory") else "error"
        # Without a digest: the one on record is that of other bytes, which may come back.
        return Outcome(kind, result.reason[:500])


@dataclass(slots=True)
class DocumentsStage:
    """Reads every file whose stat or extractor differs from the last attempt; deletes documents whose file is gone.

    A placeholder is read within the budget of `placeholders`; what is beyond waits as 'deferred' for the next run. What
    was read before a file became one stays.
    """

    database: Database
    source: str
    row: Source
    limits: Extraction
    max_bytes: int
    sizes: ChunkSettings
    gate: bool
    rebuild: bool = False
    placeholders: Placeholders = field(default_factory=Placeholders)
    name: str = STAGE
    _budget: Budget = field(init=False)
    _chat: ChatSnapshot | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._budget = Budget(self.placeholders)

    @property
    def source_id(self) -> int:
        return self.row.id

    def _versions(self) -> dict[str, str]:
        return versions(self.limits, gate=self.gate)

    def count(self) -> int:
        fetched = (self.placeholders.limit or None) if self.placeholders.materialize else 0
        with self.database.connection() as conn:
            return store.count_pending_files(
                conn, self.source_id, self._versions(), rebuild=self.rebuild, fetch=fetched
            )

    def pending(self) -> Iterator[Task]:
        root = os.fsencode(self.row.root)
        materialize = self.placeholders.materialize
        with self.database.connection() as conn:
            for file in store.pending_files(
                conn, self.source_id, self._versions(), rebuild=self.rebuild, materialize=materialize
            ):
                # One that is too large is told without being fetched.
                if file.kind != "file" and file.size <= self.max_bytes and not self._budget.take(file.size):
                    continue
                yield Task(
                    root=root,
                    relative=path_of(file.uri),
                    file=file,
                    corpus_class=self.row.default_class,
                    trust_tier=self.row.default_trust,
                    max_bytes=self.max_bytes,
                    sizes=self.sizes,
                    settings=self.limits,
                    gate=self.gate,
                    fetch_seconds=self.placeholders.timeout_seconds,
                    chat=self._chat,
                )

    @property
    def work(self) -> Callable[[Task], Outcome]:
        return read_file

    def size(self, item: Task) -> int:
        del item
        return 1

    def commit(self, item: Task, result: Outcome) -> Mapping[str, int]:
        file = item.file
        if file.kind != "file":
            self._budget.fetched(max(0, result.size - file.size), timeout=result.outcome == "timeout")
        with self.database.pipelined() as conn:
            if result.unchanged:
                store.refresh_outcome(conn, self.source_id, file)
                store.touch_document(conn, self.source_id, file.uri, mtime_ns=file.mtime_ns)
                return {"unchanged": 1}
            store.put_outcome(conn, self.source_id, file, result.outcome, reason=result.reason, sha256=result.sha256)
            if result.documents:
                return self._put(conn, file.uri, result.documents)
            dropped = 0
            empty_stub = file.kind == "stub" and result.sha256 is None  # which tells nothing of the file
            if result.outcome in _WITHOUT_DOCUMENT and not empty_stub:
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
            put_off = "deferred" if self.placeholders.materialize else "placeholder"
            waiting = outcomes.put_off(conn, self.source_id, self._versions(), put_off)
        with self.database.connection() as conn:
            refresh(conn)
        return {"documents_deleted": deleted, **({put_off: waiting} if waiting else {})}

    def digest(self) -> str:
        with self.database.connection() as conn:
            return partition_digest(conn, "documents", self.source_id)

    @contextmanager
    def _workers(self) -> Iterator[Executor[Task, Outcome]]:
        workers = self.limits.workers or os.cpu_count() or 1
        isolated = Isolated(workers=workers, seconds=self.limits.seconds, memory_bytes=self.limits.memory_bytes)
        with ExitStack() as opened:
            if self.row.kind == "messages":
                self._chat = opened.enter_context(snapshot(Path(self.row.root)))
            yield _Recorded(opened.enter_context(isolated))

    def executor(self) -> AbstractContextManager[Executor[Task, Outcome]]:
        return self._workers()
