"""Fetching what a cloud provider keeps elsewhere: the one place where that is allowed, and what a run may spend on it.

On macOS the kernel itself is told never to fetch for this process but for the one read inside of `fetch`. Elsewhere
nothing but the stat before every read (`garage.walk.placeholders`) stands between a placeholder and its fetching.
"""

from __future__ import annotations

import ctypes
import errno
import os
import pickle
import select
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import NoReturn, TypeVar, cast

from garage.config import Placeholders

T = TypeVar("T")

# From <sys/resource.h> of macOS.
_MATERIALIZE_DATALESS_FILES = 3
_PROCESS, _THREAD = 0, 1
_OFF, _ON = 1, 2
_DESCRIPTORS = 1 << 16  # more than a worker has open
_REAPED_WITHIN = 100  # milliseconds
_TIMEOUTS = 3  # in a row: the provider does not answer, and each further file would wait as long


class Budget:
    """What one run may still fetch, and whether it goes on trying.

    Once a file does not fit, the run fetches no other, so that the next one begins with it: whatever the sizes, runs
    that follow each other come to every file. For the same reason the first file of a run always fits.
    """

    def __init__(self, limits: Placeholders) -> None:
        self._limits = limits
        self._files = self._bytes = self._timeouts = 0
        self._closed = not limits.materialize

    def take(self, size: int) -> bool:
        """Whether a file of `size` bytes may be fetched; if so, it counts. A stub's size is not known before."""
        limit, max_bytes = self._limits.limit, self._limits.max_bytes
        if (limit and self._files >= limit) or (max_bytes and self._files and self._bytes + size > max_bytes):
            self._closed = True
        if self._closed:
            return False
        self._files += 1
        self._bytes += size
        return True

    def fetched(self, more: int = 0, *, timeout: bool = False) -> None:
        """Take account of how a fetch ended: `more` bytes than were taken, or nothing in the time there was."""
        self._bytes += more
        self._timeouts = self._timeouts + 1 if timeout else 0
        self._closed = self._closed or self._timeouts >= _TIMEOUTS


def fetch(read: Callable[[], T], *, seconds: float) -> T:
    """Call `read`, which opens a placeholder, with the right to have it fetched, and return what it returns.

    It is called in a process of its own: one that waits in the kernel for a provider that hangs may be beyond killing,
    and only that one is left behind then. The timer of a worker of `garage.isolation` stands still meanwhile.

    Raises:
        TimeoutError: it took longer than `seconds` (0: however long).
        OSError: the process ended without a result.
        Exception: whatever `read` raises.
    """
    left, _ = signal.setitimer(signal.ITIMER_REAL, 0)
    ours, theirs = os.pipe()
    child = _fork()
    if child == 0:
        _deliver(read, theirs)
    os.close(theirs)
    try:
        message = _received(ours, seconds)
    finally:
        os.close(ours)
        _leave(child)
        signal.setitimer(signal.ITIMER_REAL, left)
    if not message:
        raise OSError(errno.EIO, "the process that read it ended early")
    result, error = pickle.loads(message)  # noqa: S301 - from our own process
    if error is not None:
        raise error
    return cast("T", result)


def _fork() -> int:
    with warnings.catch_warnings():
        # Python warns of other threads, whose locks the child might wait for; it does nothing but read and write.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _deliver(read: Callable[[], object], pipe: int) -> NoReturn:
    """The child: read, write the result to the pipe, and be gone without a word."""
    # Should this process outlive the worker, nobody must wait for the worker's end of a connection because of it.
    os.closerange(3, pipe)
    os.closerange(pipe + 1, _DESCRIPTORS)
    try:
        with _allowed():
            message = pickle.dumps((read(), None))
    except BaseException as error:  # noqa: BLE001 - the parent raises it
        message = pickle.dumps((None, error))
    try:
        sent = 0
        while sent < len(message):
            sent += os.write(pipe, memoryview(message)[sent:])
    finally:
        os._exit(0)


def _received(pipe: int, seconds: float) -> bytearray:
    """All that is written to the pipe, within so many seconds."""
    deadline = time.monotonic() + seconds
    message = bytearray()
    while True:
        wait = max(0.0, deadline - time.monotonic()) if seconds else None
        if not select.select([pipe], [], [], wait)[0]:
            raise TimeoutError(errno.ETIMEDOUT, f"its cloud provider did not deliver it within {seconds:g} seconds")
        part = os.read(pipe, 1 << 20)
        if not part:
            return message
        message += part


def _leave(child: int) -> None:
    """End the child. One that cannot be killed now dies when the kernel lets go of it."""
    with suppress(ProcessLookupError, ChildProcessError):
        os.kill(child, signal.SIGKILL)
        for _ in range(_REAPED_WITHIN):
            if os.waitpid(child, os.WNOHANG)[0]:
                return
            time.sleep(0.001)


@cache
def forbid() -> bool:
    """Tell the kernel that this process never means to fetch a file by opening it; False where it takes no such word.

    What is opened all the same then fails with EDEADLK instead of being fetched.
    """
    return _policy(_PROCESS, _OFF)


@contextmanager
def _allowed() -> Iterator[None]:
    _policy(_THREAD, _ON)
    try:
        yield
    finally:
        _policy(_THREAD, _OFF)


def _policy(scope: int, policy: int) -> bool:
    function = _setiopolicy()
    return function is not None and function(_MATERIALIZE_DATALESS_FILES, scope, policy) == 0


@cache
def _setiopolicy() -> Callable[[int, int, int], int] | None:
    """The system's function, which only macOS has."""
    return getattr(ctypes.CDLL(None), "setiopolicy_np", None)
