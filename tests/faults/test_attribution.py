"""Killed at any point and run again, attribution ends as an undisturbed run does, and a third run does nothing."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from garage.store.database import Database
from tests.faults.drivers import run_once

POINTS = [
    ("garage.store.git.record", 1),
    ("garage.store.authors.set_owner", 1),
    ("garage.store.authors._insert", 1),
    ("garage.store.authors._insert", 3),
    ("garage.store.authors._rename", 2),
    ("garage.store.attribution._put_credits", 1),
    ("garage.store.attribution._put_credits", 2),
    ("garage.store.attribution.put", 3),
    ("garage.store.authors.prune", 1),
    ("garage.attribute.stage.partition_digest", 1),
    ("garage.store.runs.finish", 1),
]
_TABLES = ("documents", "document_authors", "authors", "author_identities", "git_repositories", "git_files")


def attribute(*arguments: str) -> int:
    return run_once("attribute_once.py", *arguments)


def state(url: str) -> dict[str, list[Any]]:
    """Everything that attribution stores, by names instead of surrogate keys."""
    with Database(url) as database, database.connection() as conn:
        return {
            "documents": conn.execute(
                "select uri, corpus_class, trust_tier, attributed_as, signals::text from documents order by 1"
            ).fetchall(),
            "people": conn.execute(
                "select a.display_name, a.is_self, i.kind, i.value from authors a"
                " left join author_identities i on i.author_id = a.id order by 3, 4, 1"
            ).fetchall(),
            "parts": conn.execute(
                "select d.uri, a.display_name, p.role, p.confidence, p.evidence from document_authors p"
                " join documents d on d.id = p.document_id join authors a on a.id = p.author_id order by 1, 2, 3, 5"
            ).fetchall(),
            "git": conn.execute("select path, people, commits from git_files order by 1").fetchall(),
        }


def places(url: str) -> list[Any]:
    """Moves when a row is so much as written again."""
    with Database(url) as database, database.connection() as conn:
        query = "select count(*), coalesce(sum(hashtext(ctid::text || xmin::text)), 0) from "
        return [conn.execute((query + table).encode()).fetchone() for table in _TABLES]


def commit(repository: Path, name: str, text: str) -> None:
    """Writes and commits a file under a name."""
    who = {
        f"GIT_{role}_{what}": said
        for role in ("AUTHOR", "COMMITTER")
        for what, said in (("NAME", name), ("EMAIL", f"{name.lower()}@example.org"))
    }
    environment = {"PATH": os.environ["PATH"], "HOME": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", **who}
    commands = [["add", "-A"], ["commit", "-q", "-m", "words"]]
    if not repository.exists():
        repository.mkdir()
        commands.insert(0, ["init", "-q"])
    (repository / "README.md").write_text(f"# Mill\n\n{text}\n", encoding="utf-8")
    for command in commands:
        subprocess.run(["git", *command], cwd=repository, check=True, capture_output=True, env=environment)


@pytest.fixture
def furnished(library: Path) -> Path:
    """The small library with a repository of two people, and mails."""
    commit(library / "mill", "Ada", "It grinds.")
    commit(library / "mill", "Charles", "It grinds, and well.")
    for number in range(5):
        (library / f"{number}.eml").write_text(
            f"From: Person {number % 3} <p{number % 3}@example.org>\nTo: ada@example.org\nSubject: Pump {number}\n\n"
            f"The pump of garden {number} is dry.\n",
            encoding="utf-8",
        )
    for file in sorted(library.rglob("*")):
        if ".git" not in file.parts:
            os.utime(file, (1_700_000_000, 1_700_000_000))
    return library


@pytest.mark.slow
@pytest.mark.parametrize(("point", "count"), POINTS, ids=[f"{p.rpartition('.')[2]}-{n}" for p, n in POINTS])
def test_a_killed_run_and_another_end_like_an_undisturbed_one(
    garage_home: Any,
    furnished: Path,
    point: str,
    count: int,
    another_database: Callable[[], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    garage_home.configure(
        {"name": "lib", "root": furnished},
        extraction={"workers": 1},
        identity={"name": "Ada", "identities": ["email:ada@example.org"]},
    )
    assert attribute("lib", point, str(count)) == -9, "the run ended before it came to the point"
    assert attribute("lib") == 0
    ended = state(garage_home.database_url)
    assert all(version for _, _, _, version, _ in ended["documents"])
    assert ("README.md", [1, 1]) in [(path, commits) for path, _, commits in ended["git"]]
    before = places(garage_home.database_url)
    assert attribute("lib") == 0
    assert places(garage_home.database_url) == before
    url = another_database()
    monkeypatch.setenv("GARAGE_DATABASE_URL", url)
    assert attribute("lib") == 0
    assert ended == state(url)
