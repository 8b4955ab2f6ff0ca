"""The walk of a Messages database: its threads take the place of files, and everything after the walk is the same."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from garage.store.chat import snapshot, threads
from garage.uris import fits, uri_of
from garage.walk.root import RootState, unavailable
from garage.walk.walker import FileRecord, Walk, WalkStats

EXTRACTOR = "messages"


def walk_threads(path: Path, *, source: str = "", cancelled: Callable[[], bool] = lambda: False) -> Walk:
    """List the threads of the database at `path`, which is copied when the walk begins and never written.

    A record's `uri` is the file's name, '#' and the thread's GUID. Its `size` is the number of messages, its `mtime_ns`
    the time of the newest change and its `inode` the thread's signature, so that whatever changes a thread is noticed
    like a change of a file.

    Raises:
        SourceUnavailable: there is no such file, or it cannot be looked at.
        ChatDatabaseError: when the walk begins, if the file cannot be read or is no Messages database.
    """
    path = Path(os.path.abspath(path))
    try:
        status = os.stat(path)
    except OSError as error:
        raise unavailable(path, error, source=source) from error
    stats = WalkStats()
    return Walk(
        RootState(path=path, device=status.st_dev, inode=status.st_ino, empty=status.st_size == 0),
        stats,
        _records(path, stats, cancelled),
    )


def thread_of(path: Path, relative: bytes) -> str:
    """The GUID in the address of a thread of the database at `path`."""
    return os.fsdecode(relative[len(os.fsencode(path.name)) + 1 :])


def _records(path: Path, stats: WalkStats, cancelled: Callable[[], bool]) -> Iterator[FileRecord]:
    started = time.perf_counter()
    try:
        with snapshot(path) as copy:
            if copy.skipped:
                stats.skipped["message without a thread"] = copy.skipped
            for thread in threads(copy):
                stats.files_seen += 1
                uri = uri_of(os.fsencode(f"{path.name}#{thread.guid}"))
                if not fits(uri):
                    stats.skip("address too long")
                    continue
                if cancelled():
                    stats.incomplete_reason = "cancelled"
                    return
                stats.listed += 1
                yield FileRecord(uri, thread.messages, thread.changed_ns, thread.signature, EXTRACTOR)
        stats.incomplete_reason = None
    finally:
        stats.seconds = time.perf_counter() - started
