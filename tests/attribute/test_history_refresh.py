"""The git histories of a source: read once, then only what is new, whatever happens in between."""

import os
import random
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from garage.attribute import histories, repositories
from garage.attribute.histories import HistoryReport
from garage.attribute.repositories import Repository, State
from garage.config import Source
from garage.store import files, sources
from garage.store.database import Database
from garage.uris import uri_of
from garage.worklist import Progress
from tests.builders.git_tree import ADA, BEN, Tree

Histories = dict[str, dict[str, int]]
CHECKOUT = Path(__file__).parents[2]


class Walked(NamedTuple):
    """What a walk records of a file."""

    uri: str
    size: int = 1
    mtime_ns: int = 1
    inode: int = 1
    extractor: str = "text"
    kind: str = "file"


class Folder:
    """A source on a folder whose files are known once it is walked."""

    def __init__(self, root: Path, database: Database) -> None:
        self.root, self.database = root, database
        with database.transaction() as conn:
            sources.sync(conn, [Source(name="notes", root=root)])
            self.source = sources.source(conn, "notes")

    def walk(self) -> None:
        seen = [
            Walked(uri_of(os.fsencode((Path(folder) / name).relative_to(self.root))))
            for folder, _, names in os.walk(self.root)
            for name in names
            if ".git" not in Path(folder).parts and name != ".git"
        ]
        with self.database.transaction() as conn:
            files.load(conn, seen)
            files.apply(conn, self.source.id, delete=True)

    def refresh(self, observe: Callable[[Progress], None] = lambda progress: None) -> HistoryReport:
        return histories.refresh(self.database, self.source, observe=observe)

    def update(self) -> HistoryReport:
        self.walk()
        return self.refresh()

    def histories(self) -> Histories:
        """Commits by person, by address of the file."""
        with self.database.connection() as conn:
            rows = conn.execute(
                "select ltrim(r.path || '/' || f.path, '/'), p.name, c.commits from git_repositories r"
                " join git_files f on f.repository_id = r.id"
                " left join lateral unnest(f.people, f.commits) as c(person, commits) on true"
                " left join git_people p on p.repository_id = r.id and p.id = c.person"
            ).fetchall()
        found: Histories = {}
        for uri, name, commits in rows:
            found.setdefault(uri, {}).update({name: commits} if name is not None else {})
        return found

    def state(self) -> list[tuple[object, ...]]:
        """All that is recorded, but for numbers and times that any other order of things would give."""
        with self.database.connection() as conn:
            return conn.execute(
                "select r.path, r.head, r.version, r.commits, f.path, f.people, f.commits"
                " from git_repositories r join git_files f on f.repository_id = r.id order by 1, 5"
            ).fetchall()

    def repositories(self) -> dict[str, tuple[str, int]]:
        with self.database.connection() as conn:
            rows = conn.execute("select path, head, commits from git_repositories").fetchall()
        return {path: (head, commits) for path, head, commits in rows}


@pytest.fixture
def folder(tmp_path: Path, database: Database) -> Folder:
    (tmp_path / "notes").mkdir()
    return Folder(tmp_path / "notes", database)


def test_a_history_is_read_once_and_then_only_what_is_new(folder: Folder) -> None:
    tree = Tree(folder.root / "work")
    tree.commit({"a.txt": "1", "b.txt": "1"})
    tree.commit({"a.txt": "2"}, BEN)
    report = folder.update()
    assert (report.repositories, report.read, report.commits, report.lines, report.files) == (1, 1, 2, 5, 2)
    assert (report.warnings, report.seconds > 0) == ((), True)
    assert folder.histories() == {
        "work/a.txt": {"Ada Lovelace": 1, "Ben Okri": 1},
        "work/b.txt": {"Ada Lovelace": 1},
    }
    report = folder.update()
    assert (report.repositories, report.read, report.commits, report.files) == (1, 0, 0, 0)
    head = tree.commit({"b.txt": "2", "c.txt": "1"}, BEN)
    report = folder.update()
    assert (report.read, report.commits, report.lines, report.files) == (1, 1, 3, 2)
    assert folder.histories() == {
        "work/a.txt": {"Ada Lovelace": 1, "Ben Okri": 1},
        "work/b.txt": {"Ada Lovelace": 1, "Ben Okri": 1},
        "work/c.txt": {"Ben Okri": 1},
    }
    assert folder.repositories() == {"work": (head, 3)}


def test_reading_bit_by_bit_ends_like_reading_at_once(
    tmp_path: Path, database: Database, another_database: Callable[[], str]
) -> None:
    rng = random.Random(7)
    people = [(f"Person {number}", f"{number}@example.org") for number in range(4)]
    bit_by_bit = Folder(tmp_path / "notes", database)
    tree = Tree(tmp_path / "notes")
    expected: dict[str, Counter[str]] = {}
    for turn in range(24):
        names = rng.sample([f"{number}.txt" for number in range(9)], rng.randint(1, 4))
        author, committer = rng.choice(people), rng.choice(people)
        tree.commit({name: f"{turn} {name}" for name in names}, author, committer)
        for name in names:
            expected.setdefault(name, Counter()).update({committer[0]: 0, author[0]: 1})
        if rng.random() < 0.3:
            bit_by_bit.update()
    bit_by_bit.update()
    assert bit_by_bit.histories() == expected
    with Database(another_database()) as other:
        at_once = Folder(tmp_path / "notes", other)
        assert at_once.update().commits == 24
        assert at_once.state() == bit_by_bit.state()


def test_a_history_that_was_rewritten_is_read_again(folder: Folder) -> None:
    tree = Tree(folder.root)
    first = tree.commit({"a.txt": "1"})
    tree.commit({"a.txt": "2"}, BEN)
    tree.commit({"b.txt": "1"}, BEN)
    folder.update()
    tree.git("reset", "-q", "--hard", first)
    report = folder.update()
    assert (report.read, report.commits) == (1, 1)
    assert folder.histories() == {"a.txt": {"Ada Lovelace": 1}}
    assert folder.repositories() == {"": (first, 1)}


def test_a_repository_in_the_place_of_another_is_read_from_its_beginning(folder: Folder) -> None:
    Tree(folder.root).commit({"a.txt": "1"})
    folder.update()
    shutil.rmtree(folder.root / ".git")
    Tree(folder.root).commit({"b.txt": "1"}, BEN)
    folder.update()
    assert folder.histories() == {"a.txt": {"Ben Okri": 1}, "b.txt": {"Ben Okri": 1}}


def test_a_mailmap_renames_the_people_of_old_commits(folder: Folder) -> None:
    tree = Tree(folder.root)
    tree.commit({"a.txt": "1"}, ("ada", "old@example.org"))
    folder.update()
    (folder.root / ".mailmap").write_text("Ada Lovelace <ada@example.org> <old@example.org>\n", encoding="utf-8")
    folder.update()
    assert folder.histories() == {"a.txt": {"Ada Lovelace": 1}}


def test_files_that_became_another_repositorys_are_told_by_that_one(folder: Folder) -> None:
    outer = Tree(folder.root)
    outer.commit({"a.txt": "1", "lib/x.txt": "1", "library.txt": "1"})
    folder.update()
    inner = Tree(folder.root / "lib")
    inner.commit({"y.txt": "1"}, BEN)
    (folder.root / "lib/x.txt").touch()
    folder.update()
    assert folder.histories() == {
        "a.txt": {"Ada Lovelace": 1},
        "library.txt": {"Ada Lovelace": 1},
        "lib/x.txt": {"Ben Okri": 1},
        "lib/y.txt": {"Ben Okri": 1},
    }
    shutil.rmtree(folder.root / "lib/.git")
    folder.update()
    assert folder.histories()["lib/x.txt"] == {"Ada Lovelace": 1}


def test_addresses_are_those_of_the_walk(folder: Folder) -> None:
    names = ["100%.txt", "two\nlines.txt", "caf\udce9.txt", "back\\slash.txt", "tab\t.txt", "e\u0301.txt", "\\N.txt"]
    tree = Tree(folder.root / "50% off")
    tree.commit(dict.fromkeys(names, "1"))
    folder.update()
    with folder.database.connection() as conn:
        walked = {uri for (uri,) in conn.execute("select uri from source_files").fetchall()}
    assert set(folder.histories()) == walked
    assert len(walked) == len(names)
    tree.commit(dict.fromkeys(names, "2"))
    folder.update()
    assert all(commits == {"Ada Lovelace": 2} for commits in folder.histories().values())


def test_a_path_that_is_too_long_for_any_address_is_left_out(folder: Folder) -> None:
    tree = Tree(folder.root)
    tree.commit({"a.txt": "1"})
    path = "/".join(["x" * 200] * 14)
    blob = tree.git("hash-object", "-w", "a.txt")
    tree.git("update-index", "--add", "--cacheinfo", f"100644,{blob},{path}")
    tree.git("commit", "-q", "-m", "long")
    assert folder.update().commits == 2
    assert folder.histories() == {"a.txt": {"Ada Lovelace": 1}}


def test_names_that_are_no_text_are_stored_as_what_can_be_shown(folder: Folder) -> None:
    people = [(b"\xff\x1b[31m red\t", b"x" * 5_000), (b"a\\N", b"back\\slash\\N"), (b"", b"")]
    stream = b""
    for name, email in people:
        stream += b"commit refs/heads/main\ncommitter %b <%b> 1 +0000\ndata 1\nx\n" % (name, email)
        stream += b"M 100644 inline a.txt\ndata %d\n%b\n" % (len(email), email)
    Tree(folder.root)
    subprocess.run(["git", "fast-import", "--quiet"], cwd=folder.root, input=stream, check=True)
    (folder.root / "a.txt").write_text("1", encoding="utf-8")
    folder.update()
    with folder.database.connection() as conn:
        stored = dict(conn.execute("select name, email from git_people").fetchall())
    assert stored == {"\ufffd [31m red": "x" * 200, "a\\N": "back\\slash\\N", "": ""}


def test_a_shallow_clone_is_read_to_where_it_ends_and_further_once_it_is_deeper(folder: Folder, tmp_path: Path) -> None:
    origin = Tree(tmp_path / "origin")
    origin.commit({"old.txt": "1"})
    origin.commit({"new.txt": "1"}, BEN)
    origin.commit({"newest.txt": "1"}, BEN)
    origin.git("clone", "-q", "--depth=2", f"file://{origin.folder}", str(folder.root / "clone"))
    report = folder.update()
    assert [warning.split(":")[0] for warning in report.warnings] == ["clone"]
    assert "shallow clone" in report.warnings[0]
    assert folder.histories() == {"clone/old.txt": {}, "clone/new.txt": {}, "clone/newest.txt": {"Ben Okri": 1}}
    assert (folder.refresh().read, folder.refresh().warnings) == (0, report.warnings)
    Tree(folder.root / "clone", make=False).git("fetch", "-q", "--unshallow")
    report = folder.update()
    assert (report.read, report.commits, report.warnings) == (1, 3, ())
    assert folder.histories()["clone/old.txt"] == {"Ada Lovelace": 1}


def test_a_repository_without_commits_has_no_history_and_is_nothing_to_warn_of(folder: Folder) -> None:
    tree = Tree(folder.root / "new")
    (tree.folder / "a.txt").write_text("1", encoding="utf-8")
    report = folder.update()
    assert (report.repositories, report.read, report.warnings, folder.histories()) == (1, 0, (), {})
    tree.commit({})
    folder.update()
    assert folder.histories() == {"new/a.txt": {"Ada Lovelace": 1}}
    tree.git("checkout", "-q", "--orphan", "other")
    folder.update()
    assert (folder.histories(), folder.repositories()) == ({}, {})


def test_a_damaged_repository_keeps_what_was_known_and_costs_the_others_nothing(folder: Folder) -> None:
    for name in ("damaged", "sound"):
        Tree(folder.root / name).commit({"a.txt": "1"})
    folder.update()
    tree = Tree(folder.root / "damaged", make=False)
    head = tree.commit({"a.txt": "2", "b.txt": "1"}, BEN)
    Tree(folder.root / "sound", make=False).commit({"a.txt": "2"}, BEN)
    name = tree.git("rev-parse", f"{head}^{{tree}}")
    lost = folder.root / "damaged/.git/objects" / name[:2] / name[2:]
    whole = lost.read_bytes()
    lost.chmod(0o600)
    lost.write_bytes(b"")
    report = folder.update()
    assert [warning.split(":")[0] for warning in report.warnings] == ["damaged"]
    assert folder.histories() == {
        "damaged/a.txt": {"Ada Lovelace": 1},
        "sound/a.txt": {"Ada Lovelace": 1, "Ben Okri": 1},
    }
    lost.write_bytes(whole)
    assert folder.update().warnings == ()
    assert folder.histories()["damaged/b.txt"] == {"Ben Okri": 1}


def test_whatever_is_wrong_with_one_repository_costs_the_others_nothing(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("1", "2", "3"):
        Tree(folder.root / name).commit({"a.txt": "1"})
    ask = repositories.state

    def state(repository: Repository) -> State:
        if repository.address == "2":
            raise ValueError("an answer that nobody foresaw")
        return ask(repository)

    monkeypatch.setattr(repositories, "state", state)
    assert folder.update().warnings == ("2: its history cannot be read: ValueError: an answer that nobody foresaw",)
    assert set(folder.repositories()) == {"1", "3"}


def test_without_git_on_this_machine_what_was_known_stays(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    Tree(folder.root).commit({"a.txt": "1"})
    folder.update()
    before = folder.state()
    monkeypatch.setenv("PATH", "/nowhere")
    report = folder.update()
    assert [warning.partition(":")[0] for warning in report.warnings] == ["There is no git on this machine"]
    assert folder.state() == before != []


def test_a_source_without_repositories_needs_no_git(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder.root / "a.txt").write_text("1", encoding="utf-8")
    monkeypatch.setenv("PATH", "/nowhere")
    report = folder.update()
    assert (report.repositories, report.warnings) == (0, ())


def test_a_repository_that_is_no_more_is_forgotten(folder: Folder) -> None:
    for name in ("kept", "removed", "emptied"):
        Tree(folder.root / name).commit({"a.txt": "1"})
    folder.update()
    shutil.rmtree(folder.root / "removed")
    shutil.rmtree(folder.root / "emptied/.git")
    folder.update()
    assert set(folder.repositories()) == {"kept"}
    with folder.database.connection() as conn:
        assert conn.execute("select count(*) from git_people").fetchone() == (1,)


def test_a_drive_that_is_not_connected_takes_nothing_along(folder: Folder, tmp_path: Path) -> None:
    for name in ("drive/work", "other"):
        Tree(folder.root / name).commit({"a.txt": "1"})
    folder.update()
    before = folder.state()
    (folder.root / "drive/work").rename(tmp_path / "unplugged")
    assert folder.refresh().warnings == ()
    assert folder.state() == before
    folder.root.rename(tmp_path / "all of it")
    assert ["cannot be read" in warning for warning in folder.refresh().warnings] == [True]
    assert folder.state() == before


def test_how_far_it_is_is_told_along_the_way(folder: Folder) -> None:
    for number in range(4):
        Tree(folder.root / f"{number}").commit({"a.txt": "1"})
    folder.walk()
    seen: list[Progress] = []
    folder.refresh(seen.append)
    assert [(progress.source, progress.stage, progress.done, progress.total) for progress in seen[:1]] == [
        ("notes", "history", 0, 4)
    ]
    assert [progress.done for progress in seen] == sorted(progress.done for progress in seen)
    assert max(progress.done for progress in seen) == 4


def test_what_observes_can_end_it_and_what_is_stored_stays(folder: Folder) -> None:
    for number in range(6):
        Tree(folder.root / f"{number}").commit({"a.txt": "1"})
    folder.walk()

    def enough(progress: Progress) -> None:
        if progress.done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        folder.refresh(enough)
    assert set(folder.repositories()) == {"0", "1", "2"}
    assert folder.refresh().read == 3


KILLED = """
import sys
from garage.attribute import histories
from garage.store import sources
from garage.store.database import Database
with Database(sys.argv[1]) as database:
    with database.connection() as conn:
        source = sources.source(conn, "notes")
    histories.refresh(database, source, observe=lambda progress: print(progress.done, flush=True))
"""


@pytest.mark.parametrize("stored", [0, 2])
def test_killed_at_any_point_it_ends_like_an_undisturbed_run(folder: Folder, database_url: str, stored: int) -> None:
    trees = [Tree(folder.root / f"{number}") for number in range(5)]
    for tree in trees:
        for turn in range(3):
            tree.commit({f"{number}.txt": f"{turn}" for number in range(200)}, BEN if turn == 1 else ADA)
    folder.walk()
    command = [sys.executable, "-c", KILLED, database_url]
    with subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if int(line) >= stored:
                process.send_signal(signal.SIGKILL)
                break
    whole = {path: commits for path, (_, commits) in folder.repositories().items()}
    assert set(whole.values()) <= {3}
    assert len(folder.state()) == 200 * len(whole)
    report = folder.refresh()
    assert report.read == 5 - len(whole)
    assert len(folder.state()) == 1_000
    assert {str(commits) for *_, commits in folder.state()} == {"[2, 1]"}
