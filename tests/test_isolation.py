import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from garage import isolation
from garage.isolation import Failure, Isolated, WorkersUnavailable

MIB = 2**20
ROOT = Path(__file__).resolve().parent.parent


def isolated(*, workers: int = 2, seconds: float = 30, memory_bytes: int = 256 * MIB, **options: Any) -> Isolated:
    return Isolated(workers=workers, seconds=seconds, memory_bytes=memory_bytes, **options)


def outcomes(workers: Isolated, function: Callable[[Any], Any], items: list[Any]) -> dict[Any, Any]:
    return dict(workers.map(function, items, ahead=8))


def kinds(results: dict[Any, Any]) -> dict[Any, str]:
    return {item: result.kind for item, result in results.items() if isinstance(result, Failure)}


def gone(pid: int, *, within: float = 10) -> bool:
    """Whether a process ends in time; one that waits for its parent to notice has ended."""
    end = time.monotonic() + within
    while time.monotonic() < end:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.02)
    return False


# Functions for the workers.


def double(number: int) -> int:
    return 2 * number


def process_of(_: object) -> int:
    return os.getpid()


def hang_in_c(number: int) -> int:
    if number == 3:
        re.fullmatch("(a+)+", "a" * 50 + "b")  # holds the interpreter's lock for years
    return number


def grow(mebibytes: int) -> int:
    return len(bytearray(mebibytes * MIB))


KEPT: list[bytearray] = []


def keep(_: int) -> int:
    KEPT.append(bytearray(40 * MIB))
    return os.getpid()


def die(how: str) -> str:
    match how:
        case "fault":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "exit":
            sys.exit(3)
        case "abort":
            os.abort()
    return how


def die_while_answering(number: int) -> bytes:
    if number == 1:
        main = threading.main_thread().ident or 0

        def watch() -> None:
            while True:
                frame = sys._current_frames().get(main)
                while frame:
                    if frame.f_code.co_name == "_send_bytes":
                        os.kill(os.getpid(), signal.SIGKILL)
                    frame = frame.f_back

        threading.Thread(target=watch, daemon=True).start()
        return bytes(30 * MIB)
    return b""


def fail(text: str) -> str:
    raise ValueError(text)


def echo(data: bytes) -> bytes:
    return data


def unpicklable(_: int) -> Callable[[], None]:
    return lambda: None


class OneWay:
    """Pickles, and does not come back."""

    def __reduce__(self) -> tuple[Any, ...]:
        return refuse, ()


def refuse() -> None:
    raise RuntimeError("does not come back")


def one_way(_: int) -> OneWay:
    return OneWay()


def sleep_beside(path: str) -> None:
    with subprocess.Popen(["sleep", "600"]) as child:
        Path(path).write_text(str(child.pid))


def note_and_hang(folder: str, number: int) -> int:
    if number:
        (Path(folder) / str(os.getpid())).touch()
        re.fullmatch("(a+)+", "a" * 50 + "b")
    return number


def speak(text: str) -> str:
    sys.stdout.write(text)
    sys.stdout.flush()
    subprocess.run(["echo", text], check=True)
    return text


MARK: list[str] = []


def prepare(word: str) -> None:
    MARK.append(word)


def prepared(_: int) -> list[str]:
    return MARK


def raise_at_start() -> None:
    raise LookupError("nothing to start with")


def exit_at_start() -> None:
    os._exit(9)


def test_every_item_comes_back_with_its_result() -> None:
    with isolated() as workers:
        assert outcomes(workers, double, list(range(500))) == {number: 2 * number for number in range(500)}


def test_workers_serve_one_map_after_another() -> None:
    with isolated(workers=1) as workers:
        first = set(outcomes(workers, process_of, [1, 2, 3]).values())
        assert set(outcomes(workers, process_of, [4, 5]).values()) == first
        assert len(first) == 1


def test_an_item_that_hangs_inside_an_extension_costs_itself_only() -> None:
    with isolated(seconds=1) as workers:
        results = outcomes(workers, hang_in_c, list(range(12)))
    assert kinds(results) == {3: "timeout"}
    assert results[3].reason == "it took longer than 1 seconds"
    assert {item: result for item, result in results.items() if item != 3} == {n: n for n in range(12) if n != 3}


def test_the_time_limit_is_that_of_one_item() -> None:
    with isolated(workers=1, seconds=2) as workers:
        assert outcomes(workers, time.sleep, [0.9, 0.91, 0.92]) == {0.9: None, 0.91: None, 0.92: None}


def test_an_item_that_takes_a_little_longer_is_ended_at_its_limit() -> None:
    with isolated(workers=1, seconds=1) as workers:
        assert kinds(outcomes(workers, time.sleep, [1.8])) == {1.8: "timeout"}


def test_an_item_that_needs_too_much_memory_costs_itself_only() -> None:
    with isolated(workers=1, memory_bytes=100 * MIB) as workers:
        results = outcomes(workers, grow, [10, 400, 20])
    assert kinds(results) == {400: "memory"}
    assert results[400].reason == "it needs more than 100 MiB of memory"
    assert (results[10], results[20]) == (10 * MIB, 20 * MIB)


def test_memory_that_a_library_keeps_is_not_taken_from_the_next_item() -> None:
    with isolated(workers=1, memory_bytes=64 * MIB) as workers:
        results = outcomes(workers, keep, list(range(6)))
    assert kinds(results) == {}
    assert len(set(results.values())) > 1  # a worker that has grown too much is replaced


@pytest.mark.parametrize(
    ("how", "reason"),
    [("fault", "SIGSEGV"), ("kill", "SIGKILL"), ("abort", "SIGABRT"), ("exit", "exit code 3")],
)
def test_a_worker_that_dies_costs_exactly_one_item(how: str, reason: str) -> None:
    items = [*map(str, range(6)), how, *map(str, range(6, 12))]
    with isolated() as workers:
        results = outcomes(workers, die, items)
        assert outcomes(workers, die, ["again"]) == {"again": "again"}
    assert kinds(results) == {how: "crash"}
    assert reason in results[how].reason
    assert sorted(results) == sorted(items)


def test_a_worker_killed_in_the_middle_of_an_answer_costs_exactly_one_item() -> None:
    with isolated() as workers:
        results = outcomes(workers, die_while_answering, list(range(20)))
    assert kinds(results) == {1: "crash"}
    assert len(results) == 20


def test_an_idle_worker_that_is_killed_costs_nothing() -> None:
    with isolated(workers=1) as workers:
        (pid,) = outcomes(workers, process_of, [0]).values()
        os.kill(pid, signal.SIGKILL)
        assert gone(pid)
        (other,) = outcomes(workers, process_of, [0]).values()
    assert isinstance(other, int)
    assert other != pid


def test_an_exception_is_told_in_one_line_and_with_its_stack() -> None:
    with isolated(workers=1) as workers:
        results = outcomes(workers, fail, ["two\nlines"])
    failure = results["two\nlines"]
    assert (failure.kind, failure.reason) == ("error", "ValueError: two lines")
    assert "in fail" in failure.trace


@pytest.mark.parametrize(("function", "word"), [(unpicklable, "pickle"), (one_way, "does not come back")])
def test_a_result_that_cannot_travel_is_an_error_of_its_item(function: Callable[[int], Any], word: str) -> None:
    with isolated(workers=1) as workers:
        results = outcomes(workers, function, [1, 2])
    assert kinds(results) == {1: "error", 2: "error"}
    assert word in results[1].reason


def test_large_items_and_large_results_do_not_wait_for_each_other() -> None:
    items = [os.urandom(16) * 40_000 for _ in range(12)]
    with isolated() as workers:
        results = list(workers.map(echo, items, ahead=16))
    assert sorted(item for item, _ in results) == sorted(items)
    assert all(result == item for item, result in results)


@pytest.mark.parametrize("ahead", [1, 2, 7, 64])
def test_no_more_items_are_taken_than_may_be_under_way(ahead: int) -> None:
    taken = yielded = most = 0

    def numbers() -> Iterator[int]:
        nonlocal taken, most
        for number in range(300):
            taken += 1
            most = max(most, taken - yielded)
            yield number

    with isolated() as workers:
        for _ in workers.map(double, numbers(), ahead=ahead):
            yielded += 1
    assert (taken, yielded) == (300, 300)
    assert most <= ahead


def test_closing_the_iterator_ends_busy_workers_at_once(tmp_path: Path) -> None:
    with isolated(workers=1) as workers:
        iterator = workers.map(partial(note_and_hang, str(tmp_path)), [0, 1], ahead=2)
        assert next(iterator) == (0, 0)
        pid = _first_note(tmp_path)
        iterator.close()  # type: ignore[attr-defined]  # it is a generator
        assert gone(pid, within=0.5)
        assert outcomes(workers, double, [4]) == {4: 8}


def test_leaving_the_block_ends_idle_workers() -> None:
    with isolated() as workers:
        pids = set(outcomes(workers, process_of, list(range(50))).values())
    assert all(gone(pid, within=0.5) for pid in pids)


def test_an_error_of_the_consumer_ends_busy_workers(tmp_path: Path) -> None:
    def consume() -> None:
        with isolated(workers=1) as workers:
            for _ in workers.map(partial(note_and_hang, str(tmp_path)), [0, 1], ahead=2):
                _first_note(tmp_path)
                raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        consume()
    assert gone(_first_note(tmp_path), within=0.5)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_workers_end_with_a_parent_that_is_killed_or_interrupted(tmp_path: Path, number: signal.Signals) -> None:
    program = (
        "from functools import partial\n"
        "from garage.isolation import Isolated\n"
        "from tests.test_isolation import note_and_hang\n"
        "with Isolated(workers=2, seconds=600, memory_bytes=2**28) as workers:\n"
        f"    list(workers.map(partial(note_and_hang, {str(tmp_path)!r}), [1, 2], ahead=2))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-c", program], env=environment, stderr=subprocess.DEVNULL) as parent:
        pids = [_first_note(tmp_path, more_than=1), *(int(path.name) for path in tmp_path.iterdir())]
        parent.send_signal(number)
        assert parent.wait(timeout=20) != 0
    assert len(set(pids)) == 2
    assert all(gone(pid, within=2) for pid in pids)


def test_what_a_worker_started_ends_with_it(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    with isolated(workers=1, seconds=2) as workers:
        results = outcomes(workers, sleep_beside, [str(note)])
    assert kinds(results) == {str(note): "timeout"}
    assert gone(int(note.read_text()), within=2)


def test_workers_outlive_the_thread_that_started_them() -> None:
    with isolated(workers=1) as workers:
        seen: list[dict[Any, Any]] = []
        thread = threading.Thread(target=lambda: seen.append(outcomes(workers, process_of, [1])))
        thread.start()
        thread.join()
        assert outcomes(workers, process_of, [1]) == seen[0]


def test_what_workers_print_does_not_reach_our_output(capfd: pytest.CaptureFixture[str]) -> None:
    with isolated(workers=1) as workers:
        assert outcomes(workers, speak, ["hello"]) == {"hello": "hello"}
    assert capfd.readouterr().out == ""


def test_a_worker_is_prepared_before_its_first_item() -> None:
    with isolated(workers=1, initializer=partial(prepare, "ready")) as workers:
        assert outcomes(workers, prepared, [1, 2]) == {1: ["ready"], 2: ["ready"]}


@pytest.mark.parametrize("item", [b"small", bytes(5 * MIB)])
def test_preparation_that_fails_is_told_at_once(item: bytes) -> None:
    with isolated(initializer=raise_at_start) as workers:
        with pytest.raises(WorkersUnavailable, match="LookupError: nothing to start with") as caught:
            outcomes(workers, echo, [item])
        assert caught.value.reason == "LookupError: nothing to start with"


def test_workers_that_die_at_their_start_are_not_started_for_ever() -> None:
    with isolated(initializer=exit_at_start) as workers, pytest.raises(WorkersUnavailable, match="exit code 9"):
        outcomes(workers, double, [1, 2, 3, 4, 5])


def test_a_function_that_cannot_travel_is_refused_before_anything_starts() -> None:
    with isolated() as workers:
        with pytest.raises(Exception, match="pickle"):
            outcomes(workers, lambda number: number, [1])
        assert workers._workers == []


def test_nothing_to_do_starts_nothing() -> None:
    with isolated() as workers:
        assert outcomes(workers, double, []) == {}
        assert workers._workers == []


def _first_note(folder: Path, *, more_than: int = 0) -> int:
    """The process that wrote a note first, once more than so many have."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        notes = sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime)
        if len(notes) > more_than:
            return int(notes[0].name)
        time.sleep(0.01)
    raise AssertionError("no worker has begun")


def test_workers_find_this_package_when_the_search_path_no_longer_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path not in ("", str(ROOT))])
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.chdir("/")
    with Isolated(workers=1, seconds=10, memory_bytes=1 << 28) as workers:
        assert [result for _, result in workers.map(os.path.basename, ["/a/b"], ahead=1)] == ["b"]


def deaf(item: int) -> int:
    """Ignores the timer that would end it, as a process does that waits in the kernel for a file system."""
    if item == 3:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
        time.sleep(600)
    return item


def test_a_worker_that_its_timer_cannot_end_is_given_up_with_the_item_it_works_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(isolation, "_LATE_SECONDS", 0.5)
    with Isolated(workers=2, seconds=1, memory_bytes=256 << 20) as workers:
        results = dict(workers.map(deaf, range(20), ahead=8))
    failed = {item: result for item, result in results.items() if isinstance(result, Failure)}
    assert [(item, failure.kind) for item, failure in failed.items()] == [(3, "timeout")]
    assert len(results) == 20


def leave_a_file(item: int) -> str:
    handle, name = tempfile.mkstemp()
    os.close(handle)
    if item == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return name


def test_what_a_killed_worker_leaves_in_its_folder_for_such_files_goes_with_the_workers() -> None:
    with Isolated(workers=1, seconds=30, memory_bytes=256 << 20) as workers:
        results = dict(workers.map(leave_a_file, range(3), ahead=1))
        folder = Path(str(results[0])).parent
        assert len(list(folder.iterdir())) == 3
    assert not folder.exists()


def test_the_folder_of_a_parent_that_was_killed_goes_when_the_next_one_starts_workers() -> None:
    script = (
        "import os, signal\nfrom garage.isolation import Isolated\nimport tests.test_isolation as t\n"
        "with Isolated(workers=1, seconds=30, memory_bytes=1 << 28) as workers:\n"
        "    print(list(workers.map(t.leave_a_file, [0], ahead=1))[0][1], flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    left = Path(killed.stdout.strip()).parent
    assert left.is_dir()
    with isolated(workers=1) as workers:
        outcomes(workers, leave_a_file, [0])
        assert not left.exists()
