"""The one runner of every stage: pending -> work -> commit -> report.

A stage says what is pending (one anti-join), how one item is done (a pure function), how it is committed (one
transaction) and what its rows' digest is. The runner does the rest: workers, progress, interruption, the record of the
run. Killed at any point, everything committed stays, and the next run's work list is simply shorter.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Generic, Protocol, Self, TypeVar

from garage.store import runs
from garage.store.database import Database

HEARTBEAT_SECONDS = 1.0
RECORD_SECONDS = 2.0  # for writing down that a stage failed: the server may be what did
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a stage is: items done of `total`, items a second since it began."""

    source: str
    stage: str
    done: int
    total: int
    rate: float

    @property
    def seconds_left(self) -> float | None:
        return (self.total - self.done) / self.rate if self.rate > 0 else None


@dataclass(frozen=True, slots=True)
class Report:
    """What a stage did: counts by name, and the digest of the partition's rows afterwards."""

    stage: str
    counts: Mapping[str, int]
    data_version: str
    seconds: float
    details: Mapping[str, object] = field(default_factory=dict)


class Executor(Protocol[T, R]):
    """Runs a function over items, at most `ahead` of them unfinished; results come in any order."""

    def map(self, function: Callable[[T], R], items: Iterable[T], *, ahead: int) -> Iterator[tuple[T, R]]: ...


class Stage(Protocol[T, R]):
    """One kind of work on one source."""

    @property
    def name(self) -> str:
        """The stage, as runs and reports name it."""

    @property
    def source_id(self) -> int:
        """Whose work it is."""

    @property
    def source(self) -> str:
        """Its slug."""

    def count(self) -> int:
        """Length of the work list now, in the unit of `size`."""

    def pending(self) -> Iterator[T]:
        """The work list; memory stays flat however long it is."""

    @property
    def work(self) -> Callable[[T], R]:
        """Does one item; touches no database."""

    def size(self, item: T) -> int:
        """How much of `count` an item is."""

    def commit(self, item: T, result: R) -> Mapping[str, int]:
        """Stores one result in one transaction; returns counts."""

    def finish(self) -> Mapping[str, int]:
        """What follows once the list is done (rows whose input is gone, an index); returns counts."""

    def digest(self) -> str:
        """The data version of what this source has now."""

    def executor(self) -> AbstractContextManager[Executor[T, R]]:
        """Where `work` runs; entered only when something is pending."""


class Inline(Generic[T, R]):
    """Runs the work in the calling thread, one item after another."""

    def map(self, function: Callable[[T], R], items: Iterable[T], *, ahead: int) -> Iterator[tuple[T, R]]:
        del ahead
        for item in items:
            yield item, function(item)


class Threads(Generic[T, R]):
    """Runs the work in threads: for work that releases the interpreter's lock, such as a model's.

    A context manager, which waits for what runs.
    """

    def __init__(self, workers: int) -> None:
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="work")
        self._workers = workers

    def map(self, function: Callable[[T], R], items: Iterable[T], *, ahead: int) -> Iterator[tuple[T, R]]:
        running: dict[Future[R], T] = {}
        try:
            for item in items:
                running[self._pool.submit(function, item)] = item
                while len(running) >= max(ahead, self._workers):
                    yield from self._finished(running)
            while running:
                yield from self._finished(running)
        finally:
            for future in running:
                future.cancel()

    def _finished(self, running: dict[Future[R], T]) -> Iterator[tuple[T, R]]:
        done, _ = wait(running, return_when=FIRST_COMPLETED)
        for future in done:
            yield running.pop(future), future.result()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)


def run(
    database: Database,
    stage: Stage[T, R],
    *,
    ahead: int = 64,
    run_id: str | None = None,
    observe: Callable[[Progress], None] = lambda progress: None,
) -> Report:
    """Runs a stage to the end of its work list. Errors leave what was committed and are recorded with the run."""
    started = time.monotonic()
    total = stage.count()
    counts: Counter[str] = Counter()
    done = 0
    with database.connection() as conn:
        stage_run = runs.begin(conn, stage.source_id, stage.name, run_id, total)
    try:
        if total:
            observe(Progress(stage.source, stage.name, 0, total, 0.0))
            beat = started
            with stage.executor() as executor:
                for item, result in executor.map(stage.work, stage.pending(), ahead=ahead):
                    counts.update(stage.commit(item, result))
                    done += stage.size(item)
                    now = time.monotonic()
                    if now - beat >= HEARTBEAT_SECONDS:
                        beat = now
                        with database.connection() as conn:
                            runs.heartbeat(conn, stage_run, done)
                        observe(Progress(stage.source, stage.name, done, total, done / (now - started)))
        counts.update(stage.finish())
        version = stage.digest()
    except BaseException as error:
        _record_failure(database, stage_run, done, counts, error)
        raise
    with database.connection() as conn:
        runs.finish(conn, stage_run, done=done, counts=counts, data_version=version)
    seconds = time.monotonic() - started
    if total:
        observe(Progress(stage.source, stage.name, done, total, done / seconds if seconds else 0.0))
    return Report(stage.name, dict(counts), version, seconds)


def _record_failure(
    database: Database, stage_run: int, done: int, counts: Mapping[str, int], error: BaseException
) -> None:
    reason = "interrupted" if not isinstance(error, Exception) else type(error).__name__
    try:
        with database.connection(wait=RECORD_SECONDS) as conn:
            runs.finish(conn, stage_run, done=done, counts=counts, error=reason)
    except Exception:  # noqa: BLE001  # the database may be what failed; the first error is the one to tell
        return
