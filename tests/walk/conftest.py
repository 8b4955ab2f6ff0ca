"""Walks without the rights of root, walks in a mount namespace of their own, whole readings of a folder."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from garage import stages, worklist
from garage.config import Config
from garage.store.database import Database

Child = Callable[..., dict[str, Any]]

CHECKOUT = Path(__file__).parents[2]
IMPOSSIBLE = 77
NOBODY = 65534

WALK = """
import json, os, sys
from pathlib import Path
from garage.walk.errors import SourceUnavailable
from garage.walk.exclusions import exclusions
from garage.walk.walker import walk

def report(root):
    running = None
    try:
        running = walk(Path(root), source="notes", suffixes={".md": "markdown"})
        uris = sorted(record.uri for record in running)
    except SourceUnavailable as error:
        return {"error": str(error), "reason": error.reason, "begun": running is not None}
    stats = running.stats
    return {
        "uris": uris, "complete": stats.complete, "why": stats.incomplete_reason, "unreadable": stats.unreadable,
        "unreadable_files": stats.unreadable_files, "examples": sorted(stats.unreadable_examples),
        "skipped": stats.skipped, "devices": len(stats.devices), "dirs": stats.dirs, "mounts": sorted(stats.mounts),
    }
"""

AS_NOBODY = f"""
exclusions()
if os.geteuid() == 0:
    try:
        os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})
    except PermissionError:
        sys.exit({IMPOSSIBLE})
print(json.dumps(report(sys.argv[1])))
"""

MOUNTED = f"""
import subprocess
for arguments in json.loads(sys.argv[2]):
    if subprocess.run(["mount", *arguments], capture_output=True).returncode:
        sys.exit({IMPOSSIBLE})
print(json.dumps(report(sys.argv[1])))
"""


def _run(command: list[str], impossible: str) -> dict[str, Any]:
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    if done.returncode == IMPOSSIBLE:
        pytest.skip(impossible)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.fixture
def open_root() -> Iterator[Path]:
    """A folder that every user of the machine may read; pytest's own are closed to others."""
    root = Path(tempfile.mkdtemp(prefix="garage-walk-"))
    root.chmod(0o755)
    yield root
    for folder, _, _ in os.walk(root):
        Path(folder).chmod(0o755)
    shutil.rmtree(root)


@pytest.fixture
def walk_as_nobody() -> Child:
    """Walk a root without the rights of root, to whom no folder is closed; returns the account."""

    def run(root: Path) -> dict[str, Any]:
        command = [sys.executable, "-c", WALK + AS_NOBODY, str(root)]
        return _run(command, "this process is root and may not become anybody else")

    return run


@pytest.fixture
def walk_mounted() -> Child:
    """Walk a root after mounts that only the walk sees; each is the arguments of a mount command."""

    def run(root: Path, *mounts: list[str]) -> dict[str, Any]:
        unshare = shutil.which("unshare")
        if unshare is None or subprocess.run([unshare, "-m", "true"], capture_output=True, check=False).returncode:
            pytest.skip("mounting needs the rights of root on Linux")
        command = [unshare, "-m", sys.executable, "-c", WALK + MOUNTED, str(root), json.dumps(mounts)]
        return _run(command, "this machine does not allow these mounts")

    return run


class Folder:
    """A source on a folder, read by its stages without Dagster; a further `settings` changes the configuration."""

    def __init__(self, root: Path, home: Any, database: Database) -> None:
        self.root, self.home, self.database = root, home, database
        self.config: Config = self.settings()

    def settings(self, **sections: object) -> Config:
        sections.setdefault("extraction", {"workers": 1})
        self.config = self.home.configure({"name": "notes", "root": self.root}, **sections)
        return self.config

    def walk(self, *, force: bool = False) -> dict[str, Any]:
        """Walks it; returns counts and details together."""
        row = stages.source(self.database, self.config, "notes")
        report = stages.walk(self.database, self.config, row, allow_deletes=force)
        return {**report.counts, **report.details}

    def read(self, *, rebuild: bool = False) -> dict[str, int]:
        """Reads what is pending; returns the counts that are not 0."""
        row = stages.source(self.database, self.config, "notes")
        report = worklist.run(self.database, stages.documents(self.database, self.config, row, rebuild=rebuild))
        return {name: number for name, number in report.counts.items() if number}

    def update(self) -> dict[str, int]:
        """Walks it and reads what is pending."""
        self.walk()
        return self.read()

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with self.database.connection() as conn:
            return conn.execute(query.encode()).fetchall()

    def outcomes(self) -> dict[str, str]:
        return dict(self.rows("select uri, outcome from ingest_outcomes order by uri"))

    def documents(self) -> dict[str, str]:
        return dict(self.rows("select uri, content from documents order by uri"))


@pytest.fixture
def folder(tmp_path: Path, garage_home: Any, database: Database) -> Folder:
    root = tmp_path / "notes"
    root.mkdir()
    return Folder(root, garage_home, database)


class Mounted:
    """A provider's file system (see provider.py), and what was opened on it since it was last asked."""

    def __init__(self, root: Path, log: Path) -> None:
        self.root, self.log, self._read = root, log, len("mounted\n")

    def opened(self) -> list[str]:
        text = self.log.read_text(encoding="utf-8")
        new, self._read = text[self._read :], len(text)
        return new.split()


@pytest.fixture
def provider(folder: Folder, tmp_path: Path) -> Iterator[Callable[..., Mounted]]:
    """Mounts a provider at the folder; skips where this process may not."""
    running: list[subprocess.Popen[str]] = []

    def mount(**plan: tuple[str, str]) -> Mounted:
        log = tmp_path / "provider.log"
        with log.open("w", encoding="utf-8") as out:
            process = subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("provider.py")), str(folder.root)],
                stdin=subprocess.PIPE, stdout=out, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
        running.append(process)
        assert process.stdin is not None
        files = {f"{name}.md": {"text": text, "way": way} for name, (way, text) in plan.items()}
        process.stdin.write(json.dumps(files))
        process.stdin.close()
        while not log.read_text(encoding="utf-8"):
            if process.poll() is not None:
                pytest.skip("this process may not mount a file system of its own (FUSE)")
            time.sleep(0.01)
        return Mounted(folder.root, log)

    yield mount
    for process in running:
        subprocess.run(["umount", "-l", str(folder.root)], capture_output=True, check=False)
        process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()
