"""Files are committed in the order of the work list, however long each of them takes."""

import time
from dataclasses import dataclass
from typing import Any

import pytest

from garage.extract import stage
from garage.extract.reading import Outcome
from garage.isolation import Isolated


@dataclass(frozen=True)
class Job:
    number: int
    seconds: float


def work(job: Job) -> Any:
    """Runs in a worker."""
    time.sleep(job.seconds)
    if job.number == 7:
        raise RuntimeError("this one cannot be read")
    return Outcome("ok", str(job.number))


WORK: Any = work


@pytest.mark.parametrize("out_of_order", [512, 5])
def test_results_come_in_the_order_of_the_work_list(monkeypatch: pytest.MonkeyPatch, out_of_order: int) -> None:
    monkeypatch.setattr(stage, "_OUT_OF_ORDER", out_of_order)
    jobs: list[Any] = [Job(number, 0.5 if number in (0, 9) else 0.0) for number in range(40)]
    with Isolated(workers=2, seconds=30, memory_bytes=256 << 20) as workers:
        results: list[tuple[Any, Outcome]] = list(stage._Recorded(workers).map(WORK, jobs, ahead=8))
    assert [job.number for job, _ in results] == list(range(40))
    assert [outcome.outcome for _, outcome in results] == ["ok"] * 7 + ["error"] + ["ok"] * 32


def test_no_more_results_wait_for_a_slow_file_than_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "_OUT_OF_ORDER", 10)
    handed_out = 0

    def jobs() -> Any:
        nonlocal handed_out
        for number in range(200):
            handed_out += 1
            yield Job(number, 1.0 if number == 0 else 0.0)

    with Isolated(workers=2, seconds=30, memory_bytes=256 << 20) as workers:
        results = stage._Recorded(workers).map(WORK, jobs(), ahead=8)
        next(results)
        assert handed_out <= 11
        assert sum(1 for _ in results) == 199
