"""One pass of `git log` as a stream: who wrote how many commits of each file.

Merges are left out: who merges did not write what comes together. Renames are not followed. Authors and committers go
by the names that the repository's mailmap gives them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from garage.attribute.git import streamed
from garage.attribute.repositories import Repository, State

# An empty piece begins a commit: between two NUL there is nothing else, since no path is empty.
_FORMAT = "--format=%x00%H%n%aN%n%aE%n%cN%n%cE"


@dataclass(slots=True)
class History:
    """What a log said.

    Attributes:
        written: how often the commits of an author and a committer (the four lines of the log) name each path.
        cut: paths that a commit names at which a shallow clone ends; it names every file, whoever wrote them.
        commits: how many commits there were.
        lines: how many commits and paths.
    """

    written: dict[bytes, Counter[bytes]] = field(default_factory=dict)
    cut: set[bytes] = field(default_factory=set)
    commits: int = 0
    lines: int = 0


def read(
    repository: Repository, state: State, *, since: str = "", proceed: Callable[[], None] = lambda: None
) -> History:
    """Read the history of a repository from after the commit `since` ('': from its beginning) to `state`.

    `proceed` is called now and then; what it raises ends the reading. Paths are those below the root of the source, or
    below the working tree where that is the smaller one.

    Raises:
        GitFailed: an object is missing or damaged; nothing of what was read until then counts.
    """
    with streamed(repository.tree, *log(repository, f"{since}..{state.head}" if since else state.head)) as blocks:
        return counted(_proceeding(blocks, proceed), state.boundary)


def log(repository: Repository, commits: str) -> list[str]:
    """The log of some commits as a command of git."""
    options = ["--name-only", "-z", _FORMAT, "--no-merges", "--no-renames", "--no-color", "--no-decorate", "--no-notes"]
    options += ["--no-ext-diff", "--no-textconv", "--full-history"]
    within = [repository.below] if repository.below else []
    return ["log", *options, *(f"--relative={folder}/" for folder in within), commits, "--", *within]


def _proceeding(blocks: Iterable[bytes], proceed: Callable[[], None]) -> Iterator[bytes]:
    for block in blocks:
        proceed()
        yield block


def records(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield a log commit by commit: its header, a NUL and, where it names paths, a line feed and the paths between NUL.

    A commit of any size is put together once, and a separator that lies across two blocks is found.
    """
    held: list[bytes] = [b""]
    end = b"\0"  # the first separator is a NUL short
    for block in blocks:
        block = end + block  # noqa: PLW2901 - with the NUL that was kept
        end = b"\0" if block.endswith(b"\0") and not block.endswith(b"\0\0") else b""
        first, *rest = (block[:-1] if end else block).split(b"\0\0")
        held.append(first)
        if rest:
            yield b"".join(held)
            yield from rest[:-1]
            held = [rest[-1]]
    yield b"".join(held)


def counted(blocks: Iterable[bytes], boundary: frozenset[bytes] = frozenset()) -> History:
    """Count what a log says; `boundary` are the commits at which a shallow clone ends."""
    history = History()
    written = history.written
    for record in records(blocks):
        if not record:  # before the first separator, or of an empty history
            continue
        header, _, names = record.partition(b"\0")
        history.commits += 1
        history.lines += 1
        if not names:
            continue
        paths = names[1:].split(b"\0")
        history.lines += len(paths)
        commit, _, who = header.partition(b"\n")
        if commit in boundary:
            history.cut.update(paths)
            continue
        counter = written.get(who)
        if counter is None:
            counter = written[who] = Counter()
        counter.update(paths)
    return history
