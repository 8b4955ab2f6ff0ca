"""`garage update`: the job that the Dagster UI runs as well, started in a process of its own and watched.

The library does not know Dagster; `garage_assets.launch` runs the job and prints a line of JSON for each source.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import IO, Any

from garage.config import Config
from garage.errors import GarageError
from garage.serve.environment import ensure_dagster_database, prepare_folders, subprocess_environment
from garage.serve.opening import opened, require_sources
from garage.serve.processes import interruptible_children, last_words
from garage.store import runs, sources
from garage.store.database import Database
from garage.store.errors import DatabaseUnavailable, UnknownSource
from garage.store.runs import StageRun

LAUNCH = (sys.executable, "-m", "garage_assets.launch")
POLL_SECONDS = 0.5
_INTERRUPT_GRACE = 20.0
# What counts as written, by the name that a stage counts it under.
_WRITTEN = {
    "documents": ("documents_written",),
    "passages": ("chunks_written",),
    "vectors": ("embedded", "copied"),
}

# In the order of their work; what follows stands in that of its name.
_FIRST = ("source_files", "documents", "attribution", "chunks")

Watch = Callable[[Sequence[StageRun]], None]


class NoSources(GarageError):
    """There is nothing to update."""


class RunFailed(GarageError):
    """The process that runs the job ended without an account of what it did (`log`)."""


@dataclass(frozen=True, slots=True)
class SourceUpdate:
    """How the run of one source ended: success, refused, failed or busy; `stages` are counts by stage and name."""

    source: str
    run_id: str | None
    status: str
    message: str
    stages: Mapping[str, Mapping[str, int]]

    @property
    def succeeded(self) -> bool:
        return self.status == "success"


@dataclass(frozen=True, slots=True)
class Updated:
    """What an update did, source by source, and what it wrote in all."""

    sources: tuple[SourceUpdate, ...]
    written: Mapping[str, int]

    @property
    def succeeded(self) -> bool:
        return all(source.succeeded for source in self.sources)


def update(
    config: Config,
    names: Sequence[str],
    *,
    force: bool = False,
    rebuild: bool = False,
    watch: Watch = lambda running: None,
    starting: Callable[[], None] = lambda: None,
    launch: Sequence[str] = LAUNCH,
) -> Updated:
    """Runs the whole job for the named sources, or for all that are active; `watch` sees its stages as they go on.

    `force` lets deletions past the guard, `rebuild` redoes what is current. Raises UnknownSource, NoSources and
    RunFailed.
    """
    with opened(config, starting=starting) as database:
        require_sources(database, names)
        _require_something_to_do(database, names)
        ensure_dagster_database(config)
        prepare_folders(config)
        command = [*launch]
        for name in names:
            command += ["--source", name]
        command += ["--force"] * force + ["--rebuild"] * rebuild
        log = config.logs_dir / "update.log"
        with _launched(command, config, log) as process:
            lines = _Lines(process)
            before = _stages(database)
            while not lines.ended(POLL_SECONDS):
                # A server that went away is for the run to tell of; watching it must not end it.
                with suppress(DatabaseUnavailable):
                    watch([run for key, run in _stages(database).items() if key not in before])
            code = process.wait()
    done = tuple(_parsed(line) for line in lines.read)
    if not done or (code and all(source.succeeded for source in done)):
        raise RunFailed(
            f"The run ended early: {last_words(log, lines=1) or f'exit code {code}'}",
            hint=f"What was committed before is safe. Its log is {log}.",
            log=log,
        )
    return Updated(done, written(done))


def _require_something_to_do(database: Database, names: Sequence[str]) -> None:
    with database.connection() as conn:
        active = {row.slug for row in sources.sources(conn, active=True)}
    if off := [name for name in names if name not in active]:
        raise UnknownSource(
            f"The source '{off[0]}' is switched off.", hint="Set `enabled: true` for it in garage.yaml.", source=off[0]
        )
    if not active:
        raise NoSources("There are no sources yet.", hint="`garage source add FOLDER` registers one.")


def written(done: Iterable[SourceUpdate]) -> dict[str, int]:
    """Documents, passages and vectors written, added up over sources and stages."""
    counts = [stage for source in done for stage in source.stages.values()]
    return {what: sum(stage.get(name, 0) for stage in counts for name in names) for what, names in _WRITTEN.items()}


def _stages(database: Database) -> dict[tuple[str, str, datetime], StageRun]:
    with database.connection() as conn:
        return {(run.source, run.stage, run.started_at): run for run in runs.latest(conn)}


def _parsed(line: str) -> SourceUpdate:
    said: dict[str, Any] = json.loads(line)
    return SourceUpdate(
        source=said["source"],
        run_id=said.get("run_id"),
        status=said["status"],
        message=said.get("message") or "",
        stages=dict(sorted((said.get("stages") or {}).items(), key=lambda item: (_place(item[0]), item[0]))),
    )


def _place(stage: str) -> int:
    return _FIRST.index(stage) if stage in _FIRST else len(_FIRST)


class _Lines:
    """The lines of JSON on a process's standard output, read as they come so that the pipe never fills."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.read: list[str] = []
        assert process.stdout is not None
        self._thread = threading.Thread(target=self._collect, args=(process.stdout,), daemon=True)
        self._thread.start()

    def _collect(self, stream: IO[str]) -> None:
        self.read += [line for line in stream if line.startswith("{")]

    def ended(self, seconds: float) -> bool:
        """Whether the output ends within `seconds`."""
        self._thread.join(seconds)
        return not self._thread.is_alive()


@contextmanager
def _launched(command: Sequence[str], config: Config, log: Path) -> Iterator[subprocess.Popen[str]]:
    """The process that runs the job; it ends with the block, cleanly where it can.

    In a session of its own, so that a Ctrl-C reaches it once, from here, and its run ends as canceled.
    """
    with log.open("wb") as errors, interruptible_children(), _terminable():
        process = subprocess.Popen(
            list(command),
            cwd=config.home,
            env=subprocess_environment(config),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )
        with process:
            try:
                yield process
            except BaseException:
                process.send_signal(signal.SIGINT)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_INTERRUPT_GRACE)
                raise
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)


@contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM interrupts like Ctrl-C: the process that runs the job must not stay behind."""

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
