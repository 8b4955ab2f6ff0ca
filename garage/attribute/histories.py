"""The git histories of a source: each repository is read once, and from then on only what was committed since.

    report = histories.refresh(database, source)

reads what is new and stores it (`garage.store.git` tells how a document finds the history of its file). A repository
that git cannot read is a warning of the report, and what was known of it stays. Each is stored in one transaction.

A history is read from its beginning again when its last commit is no ancestor of the present one (it was rewritten), or
when something else that decides the outcome is not what it was: the code here, the repositories inside of this one, the
commits at which a shallow clone ends, the mailmap.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from garage.attribute import history, repositories, shares
from garage.attribute.git import GitFailed, is_available
from garage.attribute.history import History
from garage.attribute.repositories import Repository, State
from garage.fingerprint import code_digest
from garage.store import git as store
from garage.store.database import Database
from garage.store.git import RepositoryRow
from garage.store.sources import Source
from garage.worklist import HEARTBEAT_SECONDS, Progress

STAGE = "history"
READERS = 2
"""Repositories read at the same time; git is a process of its own, and so is the server that stores another one."""

_BULK = 10_000  # rows after which the planner is told of them
_NO_GIT = "There is no git on this machine: who committed a file is not known. Install git, and it will be."


@dataclass(frozen=True, slots=True)
class HistoryReport:
    """What a pass over the repositories of a source did.

    Attributes:
        repositories: how many there are.
        read: how many of them had something new.
        commits: how many commits were read.
        lines: how many commits and paths that is.
        files: how many files' histories were written.
        seconds: how long it took.
        warnings: the repositories that could not be read, or not to their beginning, and why.
    """

    repositories: int
    read: int
    commits: int
    lines: int
    files: int
    seconds: float
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Reading:
    """One repository as it is now: with what was said since the row `since` (None: ever), if there is anything new."""

    repository: Repository
    row: RepositoryRow | None = None
    since: RepositoryRow | None = None
    said: History | None = None
    warning: str = ""
    has_commits: bool = True


def refresh(
    database: Database,
    source: Source,
    *,
    observe: Callable[[Progress], None] = lambda progress: None,
) -> HistoryReport:
    """Read what is new in the git repositories that the files of a source belong to.

    The files are those that the last walk recorded. Nothing that is wrong with a repository is raised.
    """
    started = time.monotonic()
    with database.connection() as conn:
        folders = store.folders(conn, source.id) if source.kind == "filesystem" else []
        known = store.repositories(conn, source.id)
    found, warnings = _found(source, folders)
    missing = known.keys() - {repository.address for repository in found}
    forgotten = [path for path in missing if repositories.is_gone(Path(source.root), path, folders)]
    read = commits = lines = files = 0

    def beat(done: int) -> None:
        seconds = time.monotonic() - started
        observe(Progress(source.slug, STAGE, done, len(found), done / seconds if seconds else 0.0))

    for reading in _readings(found, known, beat) if not warnings else ():
        warnings += [reading.warning] if reading.warning else []
        forgotten += [] if reading.has_commits else [reading.repository.address]
        if reading.said is not None:
            files += _record(database, source.id, reading, reading.said)
            read, commits, lines = read + 1, commits + reading.said.commits, lines + reading.said.lines
    with database.transaction() as conn:
        store.forget(conn, source.id, forgotten)
        if files >= _BULK:
            store.analyze(conn)
    return HistoryReport(len(found), read, commits, lines, files, time.monotonic() - started, tuple(warnings))


def _found(source: Source, folders: list[str]) -> tuple[list[Repository], list[str]]:
    """The repositories of a source, and why none of them can be read."""
    try:
        found = repositories.find(Path(source.root), folders) if folders else []
    except OSError as error:
        return [], [f"The folder of the source cannot be read ({error.strerror}); what git said of it stays."]
    return found, [_NO_GIT] if found and not is_available() else []


def _readings(
    found: list[Repository],
    known: Mapping[str, RepositoryRow],
    beat: Callable[[int], None],
) -> Iterator[_Reading]:
    """Reads repositories in threads, few ahead of their turn; left early, it ends what it began."""
    stop = threading.Event()

    def proceed() -> None:
        if stop.is_set():
            raise CancelledError

    def begin(repository: Repository) -> Future[_Reading]:
        return pool.submit(_read, repository, known.get(repository.address), proceed)

    waiting = iter(found)
    with ThreadPoolExecutor(READERS, thread_name_prefix="git") as pool:
        running = deque(begin(repository) for repository in islice(waiting, READERS))
        try:
            for done in range(len(found)):
                beat(done)
                while not wait([running[0]], timeout=HEARTBEAT_SECONDS).done:
                    beat(done)
                reading = running.popleft().result()
                running += [begin(repository) for repository in islice(waiting, 1)]
                yield reading
            beat(len(found))
        finally:
            stop.set()
            for future in running:
                future.cancel()


def _read(
    repository: Repository,
    known: RepositoryRow | None,
    proceed: Callable[[], None],
) -> _Reading:
    """Reads what is new of one repository; touches no database."""
    shown = repository.address or "The folder of the source"
    try:
        state = repositories.state(repository)
        if not state.head:
            return _Reading(repository, has_commits=False)
        warning = f"{shown}: a shallow clone; who wrote what is older is not known" if state.boundary else ""
        row = RepositoryRow(0, repository.address, state.head, _version(repository, state), 0)
        since = known if known is not None and known.version == row.version else None
        if since is not None and since.head == state.head:
            return _Reading(repository, warning=warning)
        if since is not None and not repositories.continues(repository, since.head, state):
            since = None
        said = history.read(repository, state, since=since.head if since else "", proceed=proceed)
        return _Reading(repository, row, since, said, warning)
    except GitFailed as error:
        return _Reading(repository, warning=f"{shown}: its history cannot be read: {error.reason}")
    except Exception as error:  # noqa: BLE001  # whatever is wrong with one repository must not cost the others
        reason = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
        return _Reading(repository, warning=f"{shown}: its history cannot be read: {reason}")


def _version(repository: Repository, state: State) -> str:
    """What decides the outcome beside the commit."""
    described = {
        "below": repository.below,
        "inner": repository.inner,
        "boundary": sorted(commit.decode("ascii") for commit in state.boundary),
        "mailmap": state.mailmap,
    }
    return code_digest(__name__, parameters=described)


def _record(database: Database, source_id: int, reading: _Reading, said: History) -> int:
    """Stores what a log said in one transaction; returns how many files' rows were written."""
    since, row = reading.since, reading.row
    assert row is not None
    with database.transaction() as conn:
        recorded = store.people(conn, since.id) if since else {}
        people = shares.People(recorded)
        files = shares.files(said.written, said.cut, people)
        if reading.repository.inner:  # what was committed here before it became another repository's
            theirs = tuple(f"{inner}/" for inner in reading.repository.inner)
            files = {path: given for path, given in files.items() if not path.startswith(theirs)}
        if since:
            files = shares.added(store.shares(conn, since.id, list(files)), files)
        row = replace(row, commits=said.commits + (since.commits if since else 0))
        new = {number: person for number, person in people.by_number.items() if number not in recorded}
        stored = store.record(conn, source_id, row, new, files, since=since)
    return len(files) if stored else 0
