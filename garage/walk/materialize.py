"""Fetching what a cloud provider keeps elsewhere: the one place where that is allowed, and what a run may spend on it.

On macOS the kernel itself is told never to fetch for this process but for the one read inside of `fetch`. Elsewhere
nothing but the stat before every read (`garage.walk.placeholders`) stands between a placeholder and its fetching.
"""

from __future__ import annotations

import ctypes
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TypeVar

from garage.config import Placeholders

T = TypeVar("T")

# From <sys/resource.h> of macOS.
_MATERIALIZE_DATALESS_FILES = 3
_PROCESS, _THREAD = 0, 1
_OFF, _ON = 1, 2
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

    In a worker of `garage.isolation` the worker's own timer gives way to one of `seconds` (0: none) for so long; what
    waits in the kernel for a provider that hangs is ended by it, with the worker.
    """
    left, _ = signal.getitimer(signal.ITIMER_REAL)
    if left:
        signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        with _allowed():
            return read()
    finally:
        if left:
            signal.setitimer(signal.ITIMER_REAL, left)


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
