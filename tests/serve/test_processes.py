"""Processes that outlive their starter, and are ended only when they are the ones that were started."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import psutil
import pytest

from garage.serve import processes
from garage.serve.processes import Service

SLEEP = "import time; print('ready', flush=True); time.sleep(600)"
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SLEEP}"
PARENT = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {SLEEP!r}]); {SLEEP}"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    for record in (tmp_path / "services").glob("*.json"):
        if service := processes.running(tmp_path, record.stem):
            processes.stop(tmp_path, [service], grace=0.1)


def start(home: Path, program: str, name: str = "one") -> Service:
    """A real process, once it is past its first line."""
    log = home / "logs" / f"{name}.log"
    service = processes.start(
        home, name, [sys.executable, "-c", program], environment=dict(os.environ), log=log, fingerprint="f"
    )
    deadline = time.monotonic() + 60
    while "ready" not in log.read_text(encoding="utf-8") and time.monotonic() < deadline:
        time.sleep(0.02)
    return service


def test_a_started_process_is_found_again_by_its_name(home: Path) -> None:
    service = start(home, SLEEP)
    assert processes.running(home, "one") == service
    assert processes.running(home, "two") is None


def test_it_has_a_session_of_its_own_and_runs_in_the_home(home: Path) -> None:
    service = start(home, SLEEP)
    assert os.getsid(service.pid) == service.pid
    assert psutil.Process(service.pid).cwd() == str(home)


def test_it_ends_with_a_sigterm_and_its_record_goes(home: Path) -> None:
    service = start(home, SLEEP)
    processes.stop(home, [service])
    assert not processes.is_alive(service)
    assert not processes.record_path(home, "one").exists()


def test_one_that_ignores_sigterm_is_killed_after_the_grace(home: Path) -> None:
    service = start(home, STUBBORN)
    processes.stop(home, [service], grace=0.3)
    assert not processes.is_alive(service)


def test_what_it_started_ends_with_it(home: Path) -> None:
    service = start(home, PARENT)
    (child,) = psutil.Process(service.pid).children()
    processes.stop(home, [service])
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE


def test_what_it_started_can_be_left_running(home: Path) -> None:
    service = start(home, PARENT)
    (child,) = psutil.Process(service.pid).children()
    processes.stop(home, [service], with_children=False)
    assert child.is_running()
    child.kill()


def test_a_process_that_ended_by_itself_is_not_running(home: Path) -> None:
    service = start(home, "print('ready', flush=True)")
    assert processes.wait_until_ended(service, seconds=60)
    assert processes.running(home, "one") is None


def test_a_process_that_goes_on_is_waited_for_no_longer_than_asked(home: Path) -> None:
    assert not processes.wait_until_ended(start(home, SLEEP), seconds=0.2)


@pytest.mark.parametrize("change", [{"command": ("something", "else")}, {"started": 1.0}])
def test_a_number_that_was_given_to_another_process_is_not_believed(home: Path, change: dict[str, object]) -> None:
    service = start(home, SLEEP)
    path = processes.record_path(home, "one")
    path.write_text(json.dumps({**asdict(service), **change}), encoding="utf-8")
    assert processes.running(home, "one") is None
    path.write_text(json.dumps(asdict(service)), encoding="utf-8")


def test_a_clock_that_was_set_does_not_lose_a_process(home: Path) -> None:
    service = start(home, SLEEP)
    assert processes.is_alive(replace(service, started=service.started + 20))


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}', '{"name": "x", "command": 3}'])
def test_a_record_that_cannot_be_read_is_no_process(home: Path, text: str) -> None:
    path = processes.record_path(home, "one")
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    assert processes.running(home, "one") is None
    path.unlink()


def test_a_script_that_ignores_sigint_does_not_hand_that_on(tmp_path: Path) -> None:
    # What `garage up &` in a script does: the shell starts it with SIGINT ignored.
    program = (
        "import os, signal, subprocess, sys; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "from garage.serve.processes import interruptible_children\n"
        "code = 'import signal; print(signal.getsignal(signal.SIGINT) == signal.SIG_IGN)'\n"
        "subprocess.run([sys.executable, '-c', code])\n"
        "with interruptible_children(): subprocess.run([sys.executable, '-c', code])\n"
        "print(signal.getsignal(signal.SIGINT) == signal.SIG_IGN, flush=True)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["True", "False", "True"]
    assert signal.getsignal(signal.SIGINT) is not signal.SIG_IGN


def test_a_long_log_is_put_aside_at_the_next_start(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_KEPT_LOG_BYTES", 10)
    log = home / "logs" / "one.log"
    log.parent.mkdir()
    log.write_text("a long story\n", encoding="utf-8")
    start(home, SLEEP)
    assert log.read_text(encoding="utf-8") == "ready\n"
    assert (home / "logs" / "one.log.1").read_text(encoding="utf-8") == "a long story\n"


def test_the_last_words_of_a_log_are_its_last_lines(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    assert processes.last_words(log) == ""
    log.write_text("x" * 20_000 + "\none\n\ntwo\nthree\n", encoding="utf-8")
    assert processes.last_words(log, lines=2) == "two\nthree"
