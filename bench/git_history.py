"""How fast are git histories read and stored? `python -m bench.git_history`.

60 repositories in which every file was committed several times, by several people. Git's own share of the time is that
of the same log written to nowhere, in turns with the reading of it.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.scratch import scratch_database
from garage.attribute import histories, history, repositories
from garage.attribute.git import command, streamed
from garage.attribute.histories import HistoryReport
from garage.config import Source
from garage.store import files, sources
from garage.store.database import Database
from garage.walk.walker import FileRecord

REPOSITORIES = 60
PATHS = 277_796
FILES_A_FOLDER = 12
FILES_A_COMMIT = 8
ROUNDS = 4  # how often a file is committed
PEOPLE = 25


def folder_of(number: int) -> str:
    """Where a repository lies below the root."""
    return f"group-{number % 7}/repository-{number:02}"


def paths_of(number: int) -> list[str]:
    """The tracked paths of one repository; all repositories together have `PATHS`."""
    count = PATHS // REPOSITORIES + (number < PATHS % REPOSITORIES)
    return [
        f"src/module-{file // FILES_A_FOLDER // 20:02}/part-{file // FILES_A_FOLDER % 20:02}/file_{file:05}.py"
        for file in range(count)
    ]


def commits(number: int) -> Iterator[bytes]:
    """A repository's history in the language of `git fast-import`."""
    rng = random.Random(number)
    paths = paths_of(number)
    made = 0
    yield b"blob\nmark :1\ndata 2\n1\nblob\nmark :2\ndata 2\n2\nblob\nmark :3\ndata 2\n3\nblob\nmark :4\ndata 2\n4\n"
    for turn in range(ROUNDS):
        for start in range(0, len(paths), FILES_A_COMMIT):
            person = min(int(rng.expovariate(0.3)), PEOPLE - 1)
            made += 1
            who = f"Person {person} <person{person}@example.org> {1_600_000_000 + made} +0000"
            lines = [f"commit refs/heads/main\nauthor {who}\ncommitter {who}\ndata 2\nx\n"]
            lines += [f"M 100644 :{turn + 1} {path}\n" for path in paths[start : start + FILES_A_COMMIT]]
            yield "".join(lines).encode()


def make_repository(folder: Path, number: int) -> None:
    """Makes one repository; its files are not written to the working tree, since nobody reads them."""
    subprocess.run(["git", "init", "-q", "-b", "main", str(folder)], check=True)
    with subprocess.Popen(["git", "-C", str(folder), "fast-import", "--quiet"], stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        for piece in commits(number):
            process.stdin.write(piece)
        process.stdin.close()
    if process.returncode:
        raise RuntimeError(f"git fast-import ended with status {process.returncode}")


def make_repositories(root: Path) -> None:
    """Makes all repositories."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda number: make_repository(root / folder_of(number), number), range(REPOSITORIES)))


def register(database: Database, root: Path) -> sources.Source:
    """A source on `root` whose walk saw every tracked file."""
    uris = (f"{folder_of(number)}/{path}" for number in range(REPOSITORIES) for path in paths_of(number))
    with database.transaction() as conn:
        sources.sync(conn, [Source(name="repositories", root=root)])
        row = sources.source(conn, "repositories")
        files.load(conn, (FileRecord(uri, 2, 1, inode, "code") for inode, uri in enumerate(uris)))
        files.apply(conn, row.id, delete=True)
    with database.connection() as conn:
        conn.execute("analyze source_files")
    return row


def commit_once(root: Path, number: int) -> None:
    """Adds a commit of one file to a repository."""
    program = "commit refs/heads/main\nauthor New <new@example.org> 1700000000 +0000\n"
    program += "committer New <new@example.org> 1700000000 +0000\ndata 1\nx\nfrom refs/heads/main^0\n"
    program += f"M 100644 inline {paths_of(number)[0]}\ndata 3\nnew\n"
    subprocess.run(
        ["git", "-C", str(root / folder_of(number)), "fast-import", "--quiet"], input=program.encode(), check=True
    )


def measure_log(root: Path, repetitions: int) -> dict[str, float]:
    """Time the log of one repository written to nowhere, read from memory, and streamed from git, in turns."""
    repository = repositories.find(root, [folder_of(0)])[0]
    state = repositories.state(repository)
    arguments = history.log(repository, state.head)
    with streamed(repository.tree, *arguments) as blocks:
        recorded = list(blocks)
    lines = history.counted(recorded).lines
    ways: dict[str, Callable[[], object]] = {
        "git": lambda: subprocess.run(command(repository.tree, *arguments), stdout=subprocess.DEVNULL, check=True),
        "parsing": lambda: history.counted(recorded),
        "both": lambda: history.read(repository, state),
    }
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(repetitions):
        for way, run in ways.items():
            gc.collect()
            started = time.perf_counter()
            run()
            seconds[way].append(time.perf_counter() - started)
    ratio = statistics.median(both / alone for both, alone in zip(seconds["both"], seconds["git"], strict=True))
    rates = {f"lines_per_s_{way}": round(lines / statistics.median(taken)) for way, taken in seconds.items()}
    return {"lines": lines, **rates, "ratio_to_git": ratio}


def measure(repetitions: int = 15) -> dict[str, object]:
    """Time one log by itself, then all repositories: read first, read again, and with a new commit in each.

    Returns: `log` with its lines, lines a second of git writing to nowhere, of parsing what lies in memory and of both
    as they are used, and the ratio of the last to git alone; `first`, `again` and `new_commits` with their seconds and
    what was read and written.
    """
    with tempfile.TemporaryDirectory(prefix="garage-bench-git-") as folder, scratch_database() as database:
        root = Path(folder)
        make_repositories(root)
        row = register(database, root)
        log = measure_log(root, repetitions)

        def refresh() -> HistoryReport:
            return histories.refresh(database, row)

        first, again = refresh(), refresh()
        for number in range(REPOSITORIES):
            commit_once(root, number)
        new = refresh()
        if (first.files, again.read, new.files) != (PATHS, 0, REPOSITORIES) or first.warnings:
            raise RuntimeError(f"not everything was read: {first} {again} {new}")
        return {"log": log, "first": figures(first), "again": figures(again), "new_commits": figures(new)}


def figures(report: HistoryReport) -> dict[str, float]:
    """What a pass read and wrote, and how long it took."""
    return {
        "seconds": report.seconds,
        "repositories": report.repositories,
        "commits": report.commits,
        "lines": report.lines,
        "files": report.files,
    }


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=15)
    for name, found in measure(parser.parse_args().repetitions).items():
        print(f"{name}: {found}")


if __name__ == "__main__":
    main()
