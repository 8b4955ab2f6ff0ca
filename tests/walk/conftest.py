"""Walks in child processes: without the rights of root, and in a mount namespace of their own."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

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
        "skipped": stats.skipped, "devices": len(stats.devices), "dirs": stats.dirs,
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
