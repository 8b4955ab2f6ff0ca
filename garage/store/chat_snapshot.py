"""A private copy of somebody else's SQLite database, taken while its owner goes on writing.

SQLite cannot read a database in WAL mode and leave no trace. Tried with 3.40: `mode=ro` writes to the -shm file, and
creates one where there is none; `immutable=1` does not see what is still in the write-ahead log; `readonly_shm=1` sees
it without a write, but fails where the owner is not running, and its lock keeps the owner from emptying the log. So
the database and its log are read as plain files, and SQLite only ever sees the copy.
"""

import contextlib
import errno
import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from garage.store.errors import StoreError

_PREFIX = "garage-messages-"
_LOCK = "lock"
_TRIES = 12
_PAUSE = 0.025  # seconds before the second try; twice as long before each further one, up to _LONGEST
_LONGEST = 1.0
# A write leaves no trace in the time of change when one came before it in the same tick of the clock (10 ms at most).
_TICK_NS = 20_000_000
_BLOCK = 8 * 1024 * 1024
_MAGIC = b"SQLite format 3\0"
_WAL_HEADER = 32


class ChatDatabaseError(StoreError):
    """A database of messages that cannot be read.

    `path` names it; `reason` is 'missing', 'forbidden', 'foreign' (no such database), 'damaged', 'busy' or 'full'.
    """

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Copied:
    """A consistent copy: `path` is the database in a folder that nobody else may enter."""

    path: Path


@contextlib.contextmanager
def copied(source: Path, *, folder: Path | None = None) -> Iterator[Copied]:
    """Copy a database with what its log holds into a private folder below `folder`, which ends with the block.

    Nothing is written beside `source`, and no lock of SQLite is taken. Copies that a killed process left behind are
    removed first, since they hold somebody's messages.

    Raises:
        ChatDatabaseError: it cannot be read, is no SQLite database, or kept changing while it was copied.
    """
    base = Path(folder or tempfile.gettempdir())
    _remove_abandoned(base)
    with contextlib.ExitStack() as stack:
        place = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base))
        stack.callback(shutil.rmtree, place, ignore_errors=True)
        lock = os.open(place / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        stack.callback(os.close, lock)
        fcntl.flock(lock, fcntl.LOCK_EX)
        target = place / "chat.db"
        try:
            _copy_consistently(source, target)
        except OSError as error:
            raise _explained(error, source) from error
        yield Copied(target)


def _remove_abandoned(base: Path) -> None:
    for place in base.glob(f"{_PREFIX}*"):
        try:
            lock = os.open(place / _LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:  # of another user, or not yet locked
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            continue
        else:
            shutil.rmtree(place, ignore_errors=True)
        finally:
            os.close(lock)


def _copy_consistently(source: Path, target: Path) -> None:
    """Copy until nothing moved meanwhile that would make the copy a mixture of two states.

    The log may grow: its frames carry checksums, so what was not complete is not part of the copy. The database must
    not change, and the log must not begin anew, for then it lacks what the database got from it after being read. A
    database without a log keeps its old pages in a journal while it is written to, which is copied likewise.
    """
    for attempt in range(_TRIES):
        if attempt:
            time.sleep(min(_PAUSE * 2 ** (attempt - 1), _LONGEST))
        before = _state(source)
        if _just_written(before):
            continue
        _copy(source, target, required=True)
        for suffix in ("-wal", "-journal"):
            _copy(_beside(source, suffix), _beside(target, suffix), required=False)
        if _state(source) == before:
            _check(target, source)
            return
    raise ChatDatabaseError(
        f"{source} kept changing while it was copied.",
        hint="Try again when Messages has finished its synchronisation.",
        path=str(source),
        reason="busy",
    )


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


_State = tuple[tuple[int, int, int, int], bytes | None, tuple[int, int, int, int] | None]


def _state(source: Path) -> _State:
    """All that must be the same before and after: the database's stat, the log's header, the journal's stat."""
    try:
        journal = _stat(_beside(source, "-journal"))
    except FileNotFoundError:
        journal = None
    return _stat(source), _wal_header(_beside(source, "-wal")), journal


def _stat(path: Path) -> tuple[int, int, int, int]:
    status = path.stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _wal_header(path: Path) -> bytes | None:
    """The log's first bytes, which hold the salt that is new whenever it begins anew; None without a log."""
    try:
        with path.open("rb") as stream:
            return stream.read(_WAL_HEADER)
    except FileNotFoundError:
        return None


def _just_written(state: _State) -> bool:
    times = [stated[3] for stated in (state[0], state[2]) if stated]
    return any(abs(time.time_ns() - changed) < _TICK_NS for changed in times)


def _copy(source: Path, target: Path, *, required: bool) -> None:
    target.unlink(missing_ok=True)
    try:
        # Without O_NONBLOCK a pipe in the database's place would be waited for.
        reading = os.open(source, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        if required:
            raise
        return
    try:
        if not stat.S_ISREG(os.fstat(reading).st_mode):
            raise _foreign(source)
        writing = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            _copy_bytes(reading, writing)
        finally:
            os.close(writing)
    finally:
        os.close(reading)


def _copy_bytes(reading: int, writing: int) -> None:
    try:
        while os.copy_file_range(reading, writing, _BLOCK):  # shares the blocks where the file system can
            pass
    except (AttributeError, OSError):  # not on every system, not between every two file systems
        os.lseek(reading, 0, os.SEEK_SET)
        os.lseek(writing, 0, os.SEEK_SET)
        os.ftruncate(writing, 0)
        while block := os.read(reading, _BLOCK):
            view = memoryview(block)
            while view:
                view = view[os.write(writing, view) :]


def _check(target: Path, source: Path) -> None:
    with target.open("rb") as stream:
        if stream.read(len(_MAGIC)) != _MAGIC:
            raise _foreign(source)


def _foreign(source: Path) -> ChatDatabaseError:
    return ChatDatabaseError(
        f"{source} is not a database of Messages.",
        hint="Name the file chat.db, which macOS keeps in ~/Library/Messages.",
        path=str(source),
        reason="foreign",
    )


def damaged(path: str, detail: str) -> ChatDatabaseError:
    """The error for a database that SQLite cannot make sense of, in its words."""
    return ChatDatabaseError(
        f"{path} is damaged ({detail}).",
        hint="If Messages still shows its conversations, quit and reopen it, then try again.",
        path=path,
        reason="damaged",
    )


def _explained(error: OSError, source: Path) -> ChatDatabaseError:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return ChatDatabaseError(f"{source} does not exist.", path=str(source), reason="missing")
    if isinstance(error, IsADirectoryError):
        return _foreign(source)
    if isinstance(error, PermissionError):
        return ChatDatabaseError(
            f"{source} may not be read by this program.",
            hint=(
                "On macOS, allow the terminal (or whatever starts Garage) Full Disk Access in System Settings, "
                "Privacy & Security; elsewhere, check the file's permissions."
            ),
            path=str(source),
            reason="forbidden",
        )
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return ChatDatabaseError(
            f"There is no space for a copy of {source}, which is read instead of the original.",
            hint="Free as much space as the file has.",
            path=str(source),
            reason="full",
        )
    return ChatDatabaseError(
        f"{source} cannot be read ({error.strerror or type(error).__name__}).", path=str(source), reason="forbidden"
    )
