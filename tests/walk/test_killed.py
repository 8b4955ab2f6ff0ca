"""A run that fetches, killed at any point and run again until nothing waits, ends as if nothing had happened."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PROGRAM = """
import importlib, os, signal, sys
from garage import stages, worklist
from garage.config import home, load
from garage.store.database import Database, Server

module, _, name = sys.argv[1].rpartition(".")
original, calls = getattr(importlib.import_module(module), name), 0

def killing(*arguments, **named):
    global calls
    result = original(*arguments, **named)
    calls += 1
    if calls == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    return result

setattr(importlib.import_module(module), name, killing)
config = load()
with Database(Server.of(home()).url()) as database:
    row = stages.source(database, config, "notes")
    stages.walk(database, config, row)
    worklist.run(database, stages.documents(database, config, row))
"""
POINTS = [
    ("garage.store.files.load", 1),
    ("garage.store.files.apply", 1),
    ("garage.store.sources.record_walk", 1),
    ("garage.store.documents.put_outcome", 1),
    ("garage.store.documents.put_document", 2),
    ("garage.store.outcomes.put_off", 1),
]


@pytest.mark.slow
@pytest.mark.parametrize(("point", "count"), POINTS)
def test_a_killed_run_that_fetches_leaves_nothing_behind(
    folder: Any, provider: Callable[..., Any], point: str, count: int
) -> None:
    texts = {f"letter-{n}": f"# Letter {n}\n\nThe gate needs a hinge.\n" + f"Line {n}.\n" * 600 for n in range(5)}
    provider(**{name: ("deliver", text) for name, text in texts.items()})
    folder.settings(placeholders={"materialize": True, "limit": 2})
    killed = subprocess.run(
        [sys.executable, "-c", PROGRAM, point, str(count)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert killed.returncode == -9, killed.stderr[-2000:]
    runs = 1
    while "deferred" in folder.update():
        runs += 1
    assert runs <= 3  # five files, two a run
    assert folder.outcomes() == {f"{name}.md": "ok" for name in texts}
    assert folder.documents() == {f"{name}.md": text for name, text in texts.items()}
    assert folder.rows(
        "select count(*) from documents d where not exists (select from chunks where document_id = d.id)"
    ) == [(0,)]
    assert folder.update() == {}
