"""The runner of stages: what is committed counts, in the unit of the list, and what is not does not."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from garage import worklist
from garage.config import Source
from garage.store import runs, sources
from garage.store.database import Database
from garage.store.runs import StageRun
from garage.worklist import Executor, Inline, Progress


@dataclass
class Batches:
    """A stage over batches of numbers, which it doubles; the commit of a batch in `refused` fails."""

    source_id: int
    batches: Sequence[tuple[int, ...]]
    refused: tuple[int, ...] = ()
    committed: list[tuple[int, ...]] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    name: str = "doubles"
    source: str = "notes"

    def count(self) -> int:
        return sum(map(len, self.batches))

    def pending(self) -> Iterator[tuple[int, ...]]:
        return iter(self.batches)

    @property
    def work(self) -> Callable[[tuple[int, ...]], tuple[int, ...]]:
        return lambda batch: tuple(2 * number for number in batch)

    def size(self, item: tuple[int, ...]) -> int:
        return len(item)

    def commit(self, item: tuple[int, ...], result: tuple[int, ...]) -> Mapping[str, int]:
        if item == self.refused:
            raise RuntimeError("the disk is full")
        self.committed.append(result)
        self.steps.append("commit")
        return {"written": len(result)}

    def finish(self) -> Mapping[str, int]:
        self.steps.append("finish")
        return {"removed": 1}

    def digest(self) -> str:
        self.steps.append("digest")
        return "abc"

    def executor(self) -> AbstractContextManager[Executor[tuple[int, ...], tuple[int, ...]]]:
        return nullcontext(Inline())


@pytest.fixture
def source_id(database: Database) -> int:
    with database.connection() as conn:
        sources.sync(conn, [Source(name="notes", root=Path("/notes"))])
        return sources.source(conn, "notes").id


def recorded(database: Database) -> StageRun:
    with database.connection() as conn:
        (run,) = runs.latest(conn)
    return run


def test_a_list_is_committed_in_its_order_and_counted_in_its_own_unit(database: Database, source_id: int) -> None:
    stage = Batches(source_id, [(1, 2, 3), (4,), (5, 6)])
    seen: list[Progress] = []
    report = worklist.run(database, stage, observe=seen.append)
    assert stage.committed == [(2, 4, 6), (8,), (10, 12)]
    assert stage.steps == ["commit", "commit", "commit", "finish", "digest"]
    assert (report.counts, report.data_version) == ({"written": 6, "removed": 1}, "abc")
    assert [(progress.done, progress.total) for progress in (seen[0], seen[-1])] == [(0, 6), (6, 6)]
    run = recorded(database)
    assert (run.done, run.total, run.counts, run.error) == (6, 6, report.counts, None)


def test_of_a_failed_run_what_was_committed_is_recorded_and_no_more(database: Database, source_id: int) -> None:
    stage = Batches(source_id, [(1, 2, 3), (4,), (5, 6)], refused=(4,))
    with pytest.raises(RuntimeError, match="disk is full"):
        worklist.run(database, stage)
    assert stage.steps == ["commit"]
    run = recorded(database)
    assert (run.done, run.total, run.counts, run.error) == (3, 6, {"written": 3}, "RuntimeError")


def test_an_empty_list_needs_no_executor_and_is_finished_all_the_same(
    database: Database, source_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Batches(source_id, [])
    monkeypatch.setattr(stage, "executor", lambda: pytest.fail("it was started"), raising=False)
    assert worklist.run(database, stage).counts == {"removed": 1}
    assert stage.steps == ["finish", "digest"]
