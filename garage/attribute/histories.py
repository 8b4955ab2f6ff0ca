"""The git histories of a source: each repository is read once, and from then on only what was committed since.

    report = histories.refresh(database, source, address=uri_of)

reads what is new and stores it (`garage.store.git` tells how a document finds the history of its file). A repository
that git cannot read is a warning of the report; what was known of it stays. Each is stored in one transaction.

A history is read from its beginning again when its last commit is no ancestor of the present one (it was rewritten), or
when something else that decides the outcome is not what it was: the code here, the repositories inside of this one, the
commits at which a shallow clone ends, the mailmap.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from garage.attribute import history, repositories, shares
from garage.attribute.git import GitFailed, GitUnavailable
from garage.attribute.repositories import Repository, State
from garage.fingerprint import code_digest
from garage.store import git as store
from garage.store.database import Database
from garage.store.git import RepositoryRow
from garage.store.sources import Source
from garage.worklist import HEARTBEAT_SECONDS, Progress

STAGE = "history"
_BULK = 10_000  # rows after which the planner is told of them


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


@dataclass(slots=True)
class _Tally:
    """What a pass has done so far."""

    read: int = 0
    commits: int = 0
    lines: int = 0
    files: int = 0
    warnings: list[str] = field(default_factory=list)


def refresh(
    database: Database,
    source: Source,
    *,
    address: Callable[[bytes], str],
    observe: Callable[[Progress], None] = lambda progress: None,
) -> HistoryReport:
    """Read what is new in the git repositories that the files of a source belong to.

    `address` makes the address of a path, as the walk of the source does (`garage.walk.uris.uri_of`). The files are
    those that the last walk recorded. Nothing that is wrong with a repository is raised.
    """
    started = time.monotonic()
    with database.connection() as conn:
        folders = store.folders(conn, source.id) if source.kind == "filesystem" else []
        known = store.repositories(conn, source.id)
    tally = _Tally()
    found = _found(source, folders, tally)
    beat = started

    def observed(done: int) -> None:
        nonlocal beat
        now = time.monotonic()
        if now - beat >= HEARTBEAT_SECONDS:
            beat = now
            observe(Progress(source.slug, STAGE, done, len(found), done / (now - started)))

    for done, repository in enumerate(found):
        reader = _Reader(database, source.id, repository, address, partial(observed, done))
        try:
            reader.refresh(known.get(repository.address), tally)
        except GitUnavailable as error:
            tally.warnings.append(str(error))
            break
        except (GitFailed, OSError) as error:
            reason = error.reason if isinstance(error, GitFailed) else str(error.strerror)
            tally.warnings.append(f"{reader.shown}: its history cannot be read ({reason})")
    _forget(database, source, known.keys() - {repository.address for repository in found}, folders)
    if tally.files >= _BULK:
        with database.connection() as conn:
            store.analyze(conn)
    seconds = time.monotonic() - started
    return HistoryReport(
        len(found), tally.read, tally.commits, tally.lines, tally.files, seconds, tuple(tally.warnings)
    )


def _found(source: Source, folders: list[str], tally: _Tally) -> list[Repository]:
    try:
        return repositories.find(Path(source.root), folders) if folders else []
    except OSError as error:
        tally.warnings.append(f"The folder of the source cannot be read ({error.strerror}); what git said stays.")
        return []


def _forget(database: Database, source: Source, missing: set[str], folders: list[str]) -> None:
    """Forgets repositories that are gone; one on a drive that is not connected is not."""
    gone = [path for path in missing if repositories.is_gone(Path(source.root), path, folders)]
    if gone:
        with database.transaction() as conn:
            store.forget(conn, source.id, gone)


class _Reader:
    """One repository on its way into the database."""

    def __init__(
        self,
        database: Database,
        source_id: int,
        repository: Repository,
        address: Callable[[bytes], str],
        observe: Callable[[], None],
    ) -> None:
        self._database, self._source_id, self._repository = database, source_id, repository
        self._address, self._observe = address, observe
        self.shown = repository.address or "The source's own repository"

    def refresh(self, known: RepositoryRow | None, tally: _Tally) -> None:
        """Brings what is recorded up to date. Raises GitFailed, GitUnavailable and OSError, with nothing changed."""
        state = repositories.state(self._repository)
        if state.boundary:
            tally.warnings.append(f"{self.shown}: a shallow clone, which does not tell who wrote what is older")
        if not state.head:
            if known is not None:
                with self._database.transaction() as conn:
                    store.forget(conn, self._source_id, [known.path])
            return
        version = self._version(state)
        since = known if known is not None and known.version == version else None
        if since is not None and since.head == state.head:
            return
        if since is not None and not repositories.continues(self._repository, since.head, state):
            since = None
        said = history.read(self._repository, state, since=since.head if since else "", observe=self._observe)
        written = self._record(said, RepositoryRow(0, self._repository.address, state.head, version, 0), since)
        tally.read += 1
        tally.commits += said.commits
        tally.lines += said.lines
        tally.files += written

    def _record(self, said: history.History, row: RepositoryRow, since: RepositoryRow | None) -> int:
        """Stores what a log said; returns how many files' rows were written."""
        with self._database.transaction() as conn:
            recorded = store.people(conn, since.id) if since else {}
            people = shares.People(recorded)
            files = shares.files(said.written, people, self._address)
            for path in said.cut:
                files.setdefault(self._address(path), ())
            if self._repository.inner:  # from before these files were another repository's
                others = tuple(f"{inner}/" for inner in self._repository.inner)
                files = {path: given for path, given in files.items() if not path.startswith(others)}
            if since:
                files = shares.added(store.shares(conn, since.id, list(files)), files)
            new = {number: person for number, person in people.by_number.items() if number not in recorded}
            row = replace(row, commits=said.commits + (since.commits if since else 0))
            stored = store.record(conn, self._source_id, row, new, files, since=since)
            return len(files) if stored else 0

    def _version(self, state: State) -> str:
        """What decides the outcome beside the commit."""
        described = {
            "below": self._repository.below,
            "inner": self._repository.inner,
            "boundary": sorted(commit.decode("ascii") for commit in state.boundary),
            "mailmap": state.mailmap,
        }
        return code_digest(__name__, self._address.__module__, parameters=described)
