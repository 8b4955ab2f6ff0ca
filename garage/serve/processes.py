"""Processes that outlive the command that started them, and are stopped by another.

A record beside the logs names each one. It is believed only while a process of that number has the recorded command and
start time, so a number that the system gave to somebody else is never signalled.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from garage.serve.environment import replace_file

# The start time is computed from the wall clock, which may be set in between; the command must be the same anyhow.
_CLOCK_TOLERANCE = 60.0
_KEPT_LOG_BYTES = 10 << 20


@dataclass(frozen=True, slots=True)
class Service:
    """A process that was started: `fingerprint` is of all that it was started with, `url` where it answers."""

    name: str
    pid: int
    started: float
    command: tuple[str, ...]
    fingerprint: str
    log: str
    url: str = ""


def record_path(home: Path, name: str) -> Path:
    """Where a service's record is kept."""
    return home / "services" / f"{name}.json"


def running(home: Path, name: str) -> Service | None:
    """The service of that name while it runs; None when it was never started, has ended, or the record is not ours."""
    try:
        raw = json.loads(record_path(home, name).read_text(encoding="utf-8"))
        service = Service(**{**raw, "command": tuple(raw["command"])})
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return service if is_alive(service) else None


def is_alive(service: Service) -> bool:
    """Whether the very process that was started still runs."""
    try:
        process = psutil.Process(service.pid)
        with process.oneshot():
            return (
                process.status() != psutil.STATUS_ZOMBIE
                and abs(process.create_time() - service.started) < _CLOCK_TOLERANCE
                and tuple(process.cmdline()[1:]) == service.command[1:]  # an interpreter may go by another name
            )
    except psutil.Error:
        return False


def start(
    home: Path,
    name: str,
    command: Sequence[str],
    *,
    environment: dict[str, str],
    log: Path,
    fingerprint: str,
    url: str = "",
) -> Service:
    """Starts a service in a session of its own, in `home`, writing to `log`; records it and returns at once."""
    log.parent.mkdir(parents=True, exist_ok=True)
    if log.exists() and log.stat().st_size > _KEPT_LOG_BYTES:
        log.replace(log.with_name(log.name + ".1"))
    with log.open("ab") as output, interruptible_children():
        process = subprocess.Popen(
            list(command),
            cwd=home,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    process.returncode = 0  # it is not this process's to wait for
    started = psutil.Process(process.pid).create_time()
    service = Service(name, process.pid, started, tuple(command), fingerprint, str(log), url)
    replace_file(record_path(home, name), json.dumps(asdict(service), indent=1) + "\n", mode=0o600)
    return service


@contextmanager
def interruptible_children() -> Iterator[None]:
    """Processes started within listen to SIGINT, whatever this one does.

    A script's background job ignores SIGINT and hands that on; Dagster takes SIGTERM for SIGINT, and would then heed
    neither.
    """
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def stop(home: Path, services: Iterable[Service], *, grace: float = 15.0, with_children: bool = True) -> None:
    """Ends services: SIGTERM, up to `grace` seconds for a clean end, then SIGKILL.

    `with_children` ends what they started as well (code servers and the runs in them), which gets a SIGTERM of its own.
    """
    ending = list(services)
    leaders: list[psutil.Process] = []
    members: list[psutil.Process] = []
    for service in ending:
        with suppress(psutil.NoSuchProcess):
            members += list(_session(service.pid)) if with_children else []
            leaders.append(psutil.Process(service.pid))
    _end(leaders, grace=grace)
    _end([member for member in members if member not in leaders], grace=10.0)
    for service in ending:
        record_path(home, service.name).unlink(missing_ok=True)


def _end(processes: Sequence[psutil.Process], *, grace: float) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.terminate()
    _, left = psutil.wait_procs(processes, timeout=grace)
    for process in left:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(left, timeout=5.0)


def _session(leader: int) -> Iterator[psutil.Process]:
    """Every process of the session that `leader` began."""
    for process in psutil.process_iter():
        with suppress(ProcessLookupError, PermissionError):
            if os.getsid(process.pid) == leader:
                yield process


def wait_until_ended(service: Service, *, seconds: float) -> bool:
    """Whether a service ends within `seconds`."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not is_alive(service):
            return True
        time.sleep(0.1)
    return False


def last_words(log: Path, *, lines: int = 3) -> str:
    """The end of a log, for the message that says why its process ended."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 8192))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    return "\n".join([line for line in text.splitlines() if line.strip()][-lines:])
