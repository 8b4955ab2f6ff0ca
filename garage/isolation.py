"""Work on files that nobody vouches for, in processes that may hang, grow or die without harm to anything else.

Every worker has a socket of its own, so one that is killed in the middle of an answer breaks no other's. (Pools whose
workers share a pipe do not survive that: with pebble 5.2.3 the death of one stopped all.) The limits are the kernel's:
an interval timer and an address space limit, set anew for each item, hold while an extension keeps the interpreter
busy and whether or not anybody is listening. Workers are started as new programs, never forked, because the parent has
threads and a model loaded; its end closes a pipe, which the kernel turns into a signal that ends them.
"""

import contextlib
import errno
import os
import pickle
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

from garage.errors import GarageError

T = TypeVar("T")
R = TypeVar("R")
FailureKind = Literal["timeout", "memory", "crash", "error"]

_START_SECONDS = 60.0  # for a worker to start on a machine that is short of everything
_EXIT_SECONDS = 2.0  # between hanging up and the end of the process
_LATE_SECONDS = 5.0  # beyond its limit: then not even the kernel's timer ended the worker
_STARTS = 3  # failed ones in a row
_PIPELINE = 4  # items that a worker may hold: it never waits for the next, and a slow one holds up few
_SMALL = 8 * 1024  # bytes; larger items are sent to an idle worker only, see `_Worker.takes`
_REASON = 500
_SCRATCH = "garage-work-"
_BOOT = "import sys; from garage.isolation import _serve; _serve(*map(int, sys.argv[1:]))"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an item has no result.

    `kind`: 'timeout' and 'memory' for the limits, 'crash' when the worker died of it (a fault in an extension, or the
    system was out of memory), 'error' when the function raised. `reason` is one line for a person; `trace` is the stack
    of an error, for the log.
    """

    kind: FailureKind
    reason: str
    trace: str = ""


class WorkersUnavailable(GarageError):
    """Worker processes cannot be started; `reason` says what the last one died of."""

    reason: str


@dataclass(slots=True)
class _Pending:
    """An item on its way, as it is and as it is sent."""

    item: Any
    message: bytes


@dataclass(slots=True, eq=False)
class _Worker:
    """A worker process and the items that it holds, the one that it works on first."""

    process: subprocess.Popen[bytes]
    connection: Connection
    lifeline: int
    held: deque[_Pending] = field(default_factory=deque)
    ready: bool = False
    since: float = 0.0  # when it began with the first item that it holds, or could have

    def takes(self, pending: _Pending, depth: int) -> bool:
        """Whether sending it the item now cannot block.

        A worker that holds nothing waits for its next message. Any other may itself be blocked on sending an answer, so
        what it is sent must fit into the socket's buffer, unread.
        """
        return not self.held or (len(self.held) < depth and len(pending.message) <= _SMALL)

    def give(self, pending: _Pending) -> bool:
        """Send it the item; False when it is no longer there to take it."""
        try:
            self.connection.send_bytes(pending.message)
        except (BrokenPipeError, ConnectionResetError):
            return False
        if not self.held:
            self.since = time.monotonic()
        self.held.append(pending)
        return True

    def end(self, *, patience: float = 0) -> int:
        """Kill the worker and all that it started; return its exit code, negative for a signal.

        One that hung up on its own accord is first given `patience` seconds to exit with the code that it means to. One
        that waits in the kernel for a file system that does not answer cannot be killed, and is left behind.
        """
        if patience:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(patience)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        try:
            code = self.process.wait(_EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            code = -signal.SIGALRM
        self.connection.close()
        os.close(self.lifeline)
        return code


class Isolated:
    """Worker processes for functions of one argument, each call within limits of time and memory.

    Used as a context manager, by one thread at a time. The function, the items and the results are pickled; the
    function must be importable by its name. Workers share nothing with the parent but standard error.

    Args:
        workers: How many processes, started when there is something to do.
        seconds: Time limit of one item.
        memory_bytes: How much the address space of a worker may grow by for one item, beyond what it has when it begins
            with it. Only Linux enforces it.
        initializer: Called in each worker when it starts, outside of the limits.
    """

    def __init__(
        self,
        *,
        workers: int,
        seconds: float,
        memory_bytes: int,
        initializer: Callable[[], object] | None = None,
    ) -> None:
        self._count = max(1, workers)
        self._seconds = seconds
        self._memory_bytes = memory_bytes
        self._initializer = initializer
        self._workers: list[_Worker] = []
        self._returned: deque[_Pending] = deque()
        self._failed_starts = 0
        self._scratch: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end(list(self._workers))
        if self._scratch is not None:
            self._scratch.cleanup()
            self._scratch = None

    def map(self, function: Callable[[T], R], items: Iterable[T], *, ahead: int) -> Iterator[tuple[T, R | Failure]]:
        """Yield each item with its result, or with why there is none, in the order in which they are done.

        At most `ahead` items are taken from `items` that have not been yielded, and results wait in the workers until
        they are asked for, so memory is flat however many there are. Closing the iterator, or any exception that leaves
        it, ends the workers that are busy at once.

        Raises:
            WorkersUnavailable: workers die before they are ready.
        """
        messages = (_Pending(item, pickle.dumps((function, item), pickle.HIGHEST_PROTOCOL)) for item in items)
        try:
            while True:
                self._feed(function, messages, max(1, ahead))
                busy: dict[object, _Worker] = {worker.connection: worker for worker in self._workers if worker.held}
                if not busy:
                    return
                heard = wait([worker.connection for worker in busy.values()], self._patience())
                for connection in heard:
                    yield from self._received(busy[connection])
                if not heard:
                    yield from self._abandoned()
        finally:
            self._returned.clear()
            self._end([worker for worker in self._workers if worker.held])

    def _patience(self) -> float | None:
        """Seconds until a worker is late; None when none is at work."""
        begun = [worker.since for worker in self._workers if worker.held and worker.ready]
        if not begun:
            return None
        return max(0.0, min(begun) + self._seconds + _LATE_SECONDS - time.monotonic())

    def _abandoned(self) -> Iterator[tuple[Any, Failure]]:
        """Give up the workers that are late, and with each the item that it works on."""
        latest = time.monotonic() - self._seconds - _LATE_SECONDS
        for worker in [one for one in self._workers if one.held and one.ready and one.since <= latest]:
            blamed = worker.held.popleft()
            self._bury(worker, patience=0.0)
            yield blamed.item, self._cause(-signal.SIGALRM)

    def _feed(self, function: Callable[[T], R], messages: Iterator[_Pending], ahead: int) -> None:
        """Hand out items until every worker has enough or `ahead` of them are on their way."""
        depth = max(1, min(_PIPELINE, ahead // self._count))
        while self._returned or sum(len(worker.held) for worker in self._workers) < ahead:
            pending = self._returned.popleft() if self._returned else next(messages, None)
            if pending is None:
                return
            worker = self._worker_for(pending, depth, function)
            if worker is not None and worker.give(pending):
                continue
            self._returned.appendleft(pending)
            if worker is None or worker.held:
                return  # a worker that died holding items is found out when it is read
            for _ in self._received(worker):  # it holds nothing, so this is its last word about itself, if any
                pass

    def _worker_for(self, pending: _Pending, depth: int, function: Callable[[T], R]) -> _Worker | None:
        """An idle worker, else a new one, else the least busy one if it may be given more."""
        for worker in self._workers:
            if not worker.held:
                return worker
        if len(self._workers) < self._count:
            return self._start(function)
        least = min(self._workers, key=lambda worker: len(worker.held))
        return least if least.takes(pending, depth) else None

    def _received(self, worker: _Worker) -> Iterator[tuple[Any, Any]]:
        """Read one message of a worker: a pair of item and result, unless it only tells of itself."""
        try:
            message = worker.connection.recv_bytes()
        except (EOFError, OSError):
            blamed = worker.held.popleft() if worker.ready and worker.held else None
            code = self._bury(worker)
            if blamed is not None:
                yield blamed.item, self._cause(code)
            return
        try:
            word, result = pickle.loads(message)  # noqa: S301 - from our own process
        except Exception as error:  # noqa: BLE001 - a class that pickles but does not come back
            word, result = "failed", Failure("error", _line(error), "".join(traceback.format_exception(error)))
        if word == "ready":
            worker.ready = True
            worker.since = time.monotonic()
            self._failed_starts = 0
        elif word == "unusable":
            raise _unavailable(result)
        elif word == "retired":
            self._bury(worker)
        else:
            if word == "memory":
                result = Failure("memory", f"it needs more than {self._memory_bytes // 2**20} MiB of memory")
            item = worker.held.popleft().item
            worker.since = time.monotonic()
            yield item, result

    def _bury(self, worker: _Worker, *, patience: float = _EXIT_SECONDS) -> int:
        """Forget a worker that is gone or of no more use, and take back the items that it had not begun with."""
        self._workers.remove(worker)
        self._returned.extendleft(reversed(worker.held))
        code = worker.end(patience=patience)
        if not worker.ready:
            self._failed_starts += 1
            if self._failed_starts >= _STARTS:
                raise _unavailable(f"the last one {_ending(code)}")
        return code

    def _cause(self, code: int) -> Failure:
        if code == -signal.SIGALRM:
            return Failure("timeout", f"it took longer than {self._seconds:g} seconds")
        return Failure("crash", f"the process that read it {_ending(code)}")

    def _start(self, function: Callable[[T], R]) -> _Worker:
        """Start a worker; it says when it is ready. It imports `function` first, which then costs no item its time."""
        ours, theirs = Pipe()
        lifeline_end, lifeline = os.pipe()
        arguments = [str(theirs.fileno()), str(lifeline_end)]
        if self._scratch is None:
            self._scratch = _scratch()
        environment = {"PYTHONPATH": os.pathsep.join(_search_path()), "TMPDIR": self._scratch.name}
        try:
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", _BOOT, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env={**os.environ, **environment},
                pass_fds=(theirs.fileno(), lifeline_end),
                start_new_session=True,  # an interrupt typed at the terminal is for the parent to act on
            )
        except OSError as error:
            ours.close()
            os.close(lifeline)
            raise _unavailable(_line(error)) from error
        finally:
            theirs.close()
            os.close(lifeline_end)
        worker = _Worker(process, ours, lifeline)
        self._workers.append(worker)
        settings = (self._initializer, function, self._seconds, self._memory_bytes)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            ours.send_bytes(pickle.dumps(settings))
        return worker

    def _end(self, workers: Iterable[_Worker]) -> None:
        for worker in workers:
            self._workers.remove(worker)
            worker.end()


def _scratch() -> tempfile.TemporaryDirectory[str]:
    """A folder for what workers leave behind when they are killed; those of killed parents are removed."""
    for left in Path(tempfile.gettempdir()).glob(f"{_SCRATCH}*"):
        pid = left.name.removeprefix(_SCRATCH).partition("-")[0]
        with contextlib.suppress(OSError):
            if pid.isdigit() and left.stat().st_uid == os.getuid() and not _is_alive(int(pid)):
                shutil.rmtree(left)
    return tempfile.TemporaryDirectory(prefix=f"{_SCRATCH}{os.getpid()}-", ignore_cleanup_errors=True)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _search_path() -> Iterator[str]:
    """Where this process finds its modules; and this package, which a host may have loaded from elsewhere."""
    for path in sys.path:
        yield path or str(Path.cwd())
    yield str(Path(__file__).parents[1])


def _unavailable(reason: str) -> WorkersUnavailable:
    return WorkersUnavailable(
        f"Worker processes for reading files cannot be started: {reason}.",
        hint="What they wrote to standard error says more.",
        reason=reason,
    )


def _ending(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    name = signal.Signals(-code).name
    return f"was killed by {name}" + (" (is the machine short of memory?)" if code == -signal.SIGKILL else "")


# What follows runs in the workers.


def _serve(connection_fd: int, lifeline_fd: int) -> None:
    """Answer items until the parent is gone."""
    _die_with_parent(lifeline_fd)
    signal.setitimer(signal.ITIMER_REAL, _START_SECONDS)
    connection = Connection(connection_fd)
    try:
        initializer, _, seconds, memory_bytes = pickle.loads(connection.recv_bytes())  # noqa: S301 - from our parent
        if initializer:
            initializer()
    except Exception as error:  # noqa: BLE001 - whatever it is, the parent tells it
        connection.send_bytes(pickle.dumps(("unusable", _line(error))))
        return
    signal.setitimer(signal.ITIMER_REAL, 0)
    connection.send_bytes(pickle.dumps(("ready", None)))
    baseline = space = _address_space()
    while space - baseline <= memory_bytes:
        try:
            message = connection.recv_bytes()
        except EOFError:
            return
        connection.send_bytes(_answer(message, seconds, space + memory_bytes if space else resource.RLIM_INFINITY))
        space = _address_space()
    # What a library never gives back would some day leave nothing to the machine: a new worker starts afresh.
    connection.send_bytes(pickle.dumps(("retired", None)))


def _die_with_parent(lifeline_fd: int) -> None:
    """Let the kernel end this process, and what it starts, when the parent's end of the pipe is closed.

    The parent cannot do it when it is killed, and a thread here could not while an extension holds the interpreter.
    """
    import fcntl
    import select

    for number in (signal.SIGIO, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    # A system that sends no such signals leaves the time limit and the end of the socket, which are later.
    with contextlib.suppress(OSError):
        fcntl.fcntl(lifeline_fd, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(lifeline_fd, fcntl.F_SETFL, fcntl.fcntl(lifeline_fd, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([lifeline_fd], [], [], 0)[0]:
        os._exit(1)  # it was closed before the signal was asked for
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _answer(message: bytes, seconds: float, address_space: int) -> bytes:
    """Do one item and return what became of it, pickled."""
    try:
        return _within_limits(message, seconds, address_space)
    except Exception as error:  # noqa: BLE001 - the parent tells what it was
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
            return pickle.dumps(("memory", None))
        trace = "".join(traceback.format_exception(error))
        return pickle.dumps(("failed", Failure("error", _line(error), trace)))


def _within_limits(message: bytes, seconds: float, address_space: int) -> bytes:
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    bounds = [bound for bound in (address_space, hard) if bound != resource.RLIM_INFINITY]
    signal.setitimer(signal.ITIMER_REAL, seconds)
    resource.setrlimit(resource.RLIMIT_AS, (min(bounds, default=resource.RLIM_INFINITY), hard))
    try:
        function, item = pickle.loads(message)  # noqa: S301 - from our parent
        return pickle.dumps(("done", function(item)), pickle.HIGHEST_PROTOCOL)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
        signal.setitimer(signal.ITIMER_REAL, 0)


def _line(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:_REASON]


def _address_space() -> int:
    """Bytes of address space of this process; 0 where the system does not say."""
    try:
        with open("/proc/self/statm", "rb") as stream:  # noqa: PTH123 - once for every file that is read
            return int(stream.read().split()[0]) * resource.getpagesize()
    except OSError:
        return 0
