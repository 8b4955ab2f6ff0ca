"""Placeholders are read when they may be, within a budget, and never by accident.

The provider is a real file system here (provider.py); macOS's policy is exercised through a stand-in for its function.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from garage.config import Placeholders
from garage.extract import reading
from garage.extract.model import TooLarge
from garage.walk import materialize
from garage.walk.materialize import Budget, fetch

TEXT = "# A letter\n\nThe gate at the orchard needs a new hinge before winter.\n" + "And so on.\n" * 500


def letters(number: int, way: str = "deliver") -> dict[str, tuple[str, str]]:
    return {f"letter-{n}": (way, TEXT.replace("A letter", f"Letter {n}")) for n in range(number)}


# The budget


def took(budget: Budget, *sizes: int) -> list[bool]:
    return [budget.take(size) for size in sizes]


def test_nothing_is_fetched_unless_somebody_said_so() -> None:
    assert took(Budget(Placeholders()), 1, 0) == [False, False]


def test_a_budget_ends_with_its_files() -> None:
    assert took(Budget(Placeholders(materialize=True, limit=2)), 1, 1, 1) == [True, True, False]


def test_a_budget_closes_with_the_first_file_that_does_not_fit() -> None:
    assert took(Budget(Placeholders(materialize=True, max_bytes=10)), 6, 5, 1) == [True, False, False]


def test_the_first_file_of_a_run_always_fits_so_that_runs_come_to_an_end() -> None:
    assert took(Budget(Placeholders(materialize=True, max_bytes=10)), 600, 1) == [True, False]


def test_zero_is_no_limit() -> None:
    budget = Budget(Placeholders(materialize=True, limit=0, max_bytes=0))
    assert took(budget, *[1 << 40] * 3000) == [True] * 3000


def test_a_stub_counts_for_what_it_turned_out_to_be() -> None:
    budget = Budget(Placeholders(materialize=True, max_bytes=10))
    assert budget.take(0)
    budget.fetched(10)
    assert not budget.take(1)


def test_a_provider_that_is_silent_three_times_in_a_row_is_left_alone() -> None:
    budget = Budget(Placeholders(materialize=True))
    for silent in (True, True, False, True, True):
        assert budget.take(1)
        budget.fetched(timeout=silent)
    assert budget.take(1)
    budget.fetched(timeout=True)
    assert not budget.take(1)


# The right to fetch


def test_the_policy_is_off_but_for_the_one_read(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[tuple[int, int, int]] = []

    def setiopolicy(kind: int, scope: int, policy: int) -> int:
        said.append((kind, scope, policy))
        return 0

    monkeypatch.setattr(materialize, "_setiopolicy", lambda: setiopolicy)
    materialize.forbid.cache_clear()
    assert materialize.forbid()
    assert materialize.forbid()
    assert said == [(3, 0, 1)]  # dataless files; the process; off: said once
    assert fetch(lambda: said[1:], seconds=9) == [(3, 1, 2)]  # the reading process's thread; on
    assert len(said) == 1  # and nothing of it here
    materialize.forbid.cache_clear()


def test_a_system_without_such_a_policy_is_told_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(materialize, "_setiopolicy", lambda: None)
    materialize.forbid.cache_clear()
    assert not materialize.forbid()
    materialize.forbid.cache_clear()


# The reading process


def failing() -> None:
    raise TooLarge("it has 9 bytes; the limit is 5")


def ending() -> None:
    os._exit(3)


def test_what_was_read_comes_back_whole() -> None:
    data = os.urandom(5_000_000)
    assert fetch(lambda: data, seconds=30) == data


def test_what_the_read_raises_is_raised() -> None:
    with pytest.raises(TooLarge, match="the limit is 5"):
        fetch(failing, seconds=9)
    with pytest.raises(FileNotFoundError):
        fetch(lambda: Path("/nowhere/at/all").read_bytes(), seconds=9)


def test_a_read_that_takes_too_long_is_left() -> None:
    started = time.monotonic()
    with pytest.raises(TimeoutError, match=r"within 0\.2 seconds"):
        fetch(lambda: time.sleep(60), seconds=0.2)
    assert time.monotonic() - started < 5


def test_a_reading_process_that_dies_is_an_error() -> None:
    with pytest.raises(OSError, match="ended early"):
        fetch(ending, seconds=9)


def test_no_process_and_no_descriptor_stays_behind() -> None:
    def children() -> set[int]:
        return {child.pid for child in psutil.Process().children()}  # of other tests too, dead ones among them

    before, there = len(list(Path("/dev/fd").iterdir())), children()
    for _ in range(20):
        fetch(lambda: None, seconds=9)
    assert len(list(Path("/dev/fd").iterdir())) == before
    assert children() <= there


@pytest.fixture
def timer() -> Iterator[None]:
    """This process's timer at rest; the test runner's own goes on afterwards."""
    before, left = signal.signal(signal.SIGALRM, lambda *_: None), signal.setitimer(signal.ITIMER_REAL, 0)
    yield
    signal.signal(signal.SIGALRM, before)
    signal.setitimer(signal.ITIMER_REAL, *left)


def remaining() -> float:
    return signal.getitimer(signal.ITIMER_REAL)[0]


def test_a_worker_s_timer_stands_still_while_a_file_is_fetched(timer: None) -> None:
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    fetch(lambda: time.sleep(0.8), seconds=9)
    assert 0 < remaining() <= 0.5
    signal.setitimer(signal.ITIMER_REAL, 0)
    fetch(lambda: None, seconds=0)
    assert remaining() == 0


def test_only_one_place_lets_a_placeholder_be_fetched() -> None:
    package = Path(materialize.__file__).parents[1]
    using = [path for path in package.rglob("*.py") if "fetch(lambda: read(" in path.read_text(encoding="utf-8")]
    assert using == [Path(reading.__file__)]


# Whole runs on a provider's file system


def test_by_default_no_placeholder_is_opened(folder: Any, provider: Callable[..., Any]) -> None:
    cloud = provider(**letters(3))
    assert folder.walk()["placeholders"] == 3
    assert folder.read() == {"placeholder": 3}
    assert cloud.opened() == []
    assert folder.outcomes() == {f"letter-{n}.md": "placeholder" for n in range(3)}
    before = folder.rows("select ctid, xmin from ingest_outcomes order by uri")
    assert folder.update() == {"placeholder": 3}
    assert folder.rows("select ctid, xmin from ingest_outcomes order by uri") == before
    assert folder.documents() == {}


def test_runs_within_a_budget_come_to_every_file(folder: Any, provider: Callable[..., Any]) -> None:
    cloud = provider(**letters(5))
    folder.update()
    folder.settings(placeholders={"materialize": True, "limit": 2})
    seen = []
    for waiting in (3, 1, 0):
        counts = folder.update()
        seen += cloud.opened()
        assert counts.get("deferred", 0) == waiting
        assert sorted(folder.outcomes().values()) == sorted(["ok"] * (5 - waiting) + ["deferred"] * waiting)
    assert sorted(seen) == [f"letter-{n}.md" for n in range(5)]
    assert folder.update() == {}
    assert cloud.opened() == []


def test_a_budget_of_bytes_defers_as_well(folder: Any, provider: Callable[..., Any]) -> None:
    provider(**letters(3))
    folder.settings(placeholders={"materialize": True, "max_bytes": 2 * len(TEXT) + 10})
    assert folder.update()["deferred"] == 1
    assert "deferred" not in folder.update()


def test_a_provider_that_hangs_costs_that_file_alone(folder: Any, provider: Callable[..., Any]) -> None:
    provider(a=("deliver", TEXT), b=("hang", TEXT), c=("deliver", TEXT), d=("fail", TEXT), e=("short", TEXT))
    folder.settings(placeholders={"materialize": True, "timeout_seconds": 1})
    started = time.monotonic()
    folder.update()
    assert time.monotonic() - started < 30
    assert folder.outcomes() == {
        "a.md": "ok", "b.md": "timeout", "c.md": "ok", "d.md": "unreadable", "e.md": "unreadable",
    }  # fmt: skip
    (reason,) = folder.rows("select reason from ingest_outcomes where outcome = 'timeout'")[0]
    assert reason == "its cloud provider did not deliver it within 1 seconds"
    (reason,) = folder.rows("select reason from ingest_outcomes where uri = 'e.md'")[0]
    assert reason == f"its cloud provider delivered {len(TEXT) // 2} of {len(TEXT)} bytes"
    assert set(folder.documents()) == {"a.md", "c.md"}


def test_a_provider_that_cannot_even_be_interrupted_costs_that_file_alone(
    folder: Any, provider: Callable[..., Any]
) -> None:
    provider(a=("deliver", TEXT), b=("hang on opening", TEXT), c=("deliver", TEXT))
    folder.settings(placeholders={"materialize": True, "timeout_seconds": 1})
    started = time.monotonic()
    folder.update()
    assert time.monotonic() - started < 30
    assert folder.outcomes() == {"a.md": "ok", "b.md": "timeout", "c.md": "ok"}


def test_what_failed_is_tried_again_after_what_was_not_tried_yet(folder: Any, provider: Callable[..., Any]) -> None:
    cloud = provider(a=("fail", TEXT), b=("deliver", TEXT), c=("deliver", TEXT))
    folder.settings(placeholders={"materialize": True, "limit": 1})
    opened = []
    for _ in range(4):
        folder.update()
        opened.append(cloud.opened())
    assert opened == [["a.md"], ["b.md"], ["c.md"], ["a.md"]]
    assert folder.outcomes() == {"a.md": "unreadable", "b.md": "ok", "c.md": "ok"}


def test_a_silent_provider_is_left_alone_for_the_rest_of_the_run(folder: Any, provider: Callable[..., Any]) -> None:
    cloud = provider(**letters(20, "hang"))
    folder.settings(placeholders={"materialize": True, "timeout_seconds": 0.3})
    folder.update()
    tried = len(set(cloud.opened()))
    assert 3 <= tried <= 8  # a worker holds a few more when the third comes back
    kinds = list(folder.outcomes().values())
    assert kinds.count("timeout") == tried
    assert kinds.count("deferred") == 20 - tried


# Files that come and go; a sparse file stands for one that was evicted


def evict(path: Path, *, newer: bool = False) -> None:
    """Takes a file's bytes away: its size and time stay, as providers keep them."""
    status = path.stat()
    path.unlink()
    path.touch()
    os.truncate(path, status.st_size)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + newer))
    if path.stat().st_blocks:
        pytest.skip("this file system gives blocks to a file without data")


def stub(path: Path) -> None:
    status = path.stat()
    path.write_bytes(b"")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.parametrize("allowed", [False, True])
@pytest.mark.parametrize("way", [evict, stub])
def test_an_indexed_file_that_becomes_a_placeholder_keeps_its_text(
    folder: Any, way: Callable[[Path], None], allowed: bool
) -> None:
    cloud = folder.root / "Dropbox"
    cloud.mkdir()
    (cloud / "letter.md").write_text(TEXT)
    folder.update()
    before = folder.rows("select id, text from chunks order by id")
    assert before
    way(cloud / "letter.md")
    folder.settings(placeholders={"materialize": allowed})
    assert folder.walk()["placeholders"] == 1
    assert folder.read() == {}
    assert folder.read(rebuild=True) == {}
    assert folder.rows("select id, text from chunks order by id") == before
    assert folder.outcomes() == {"Dropbox/letter.md": "ok"}


def test_a_new_version_that_is_a_placeholder_keeps_the_old_text_until_it_is_here(folder: Any) -> None:
    letter = folder.root / "letter.md"
    letter.write_text(TEXT)
    folder.update()
    evict(letter, newer=True)
    assert folder.update() == {"placeholder": 1}
    assert folder.outcomes() == {"letter.md": "placeholder"}
    assert folder.documents() == {"letter.md": TEXT}
    status = letter.stat()
    letter.write_text(TEXT.replace("hinge", "latch"))
    os.utime(letter, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert folder.update()["documents_written"] == 1
    assert "latch" in folder.documents()["letter.md"]
    assert folder.update() == {}


def test_a_stub_that_delivers_nothing_does_not_take_the_text_away(folder: Any) -> None:
    cloud = folder.root / "Dropbox"
    cloud.mkdir()
    (cloud / "letter.md").write_text(TEXT)
    folder.update()
    (cloud / "letter.md").write_bytes(b"")
    folder.settings(placeholders={"materialize": True})
    assert folder.update() == {"no_text": 1}
    assert folder.documents() == {"Dropbox/letter.md": TEXT}
    assert folder.update() == {}


def test_an_empty_file_outside_of_a_provider_s_folder_has_no_text_any_more(folder: Any) -> None:
    (folder.root / "letter.md").write_text(TEXT)
    folder.update()
    (folder.root / "letter.md").write_bytes(b"")
    assert folder.update() == {"no_text": 1, "documents_deleted": 1}


def test_a_file_that_is_evicted_after_the_walk_is_not_opened(folder: Any) -> None:
    letter = folder.root / "letter.md"
    letter.write_text(TEXT)
    folder.walk()
    evict(letter)
    assert folder.read() == {"placeholder": 1}
    assert folder.documents() == {}


def test_a_placeholder_beyond_the_size_limit_is_not_fetched(folder: Any) -> None:
    letter = folder.root / "letter.md"
    letter.touch()
    os.truncate(letter, 100_000)
    folder.settings(placeholders={"materialize": True, "limit": 1}, walk={"max_file_bytes": 50_000})
    assert folder.update() == {"too_large": 1}
    assert folder.update() == {}
