"""One pass of `git log`: read in blocks of any size, from repositories of every shape."""

import os
import subprocess
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garage.attribute import history, repositories
from garage.attribute.git import GitFailed
from garage.attribute.history import History, records
from garage.attribute.repositories import Repository
from tests.builders.git_tree import ADA, BEN, Tree

Counts = dict[str, dict[str, int]]

_pieces = st.binary(min_size=1, max_size=12).map(lambda text: text.replace(b"\0", b"-"))
_commits = st.tuples(_pieces, st.lists(_pieces, max_size=4))


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "tree")


def read(folder: Path, *, since: str = "", below: str = "") -> History:
    repository = Repository("", folder, below)
    return history.read(repository, repositories.state(repository), since=since)


def authors(said: History) -> Counts:
    """Commits by author and path."""
    found: Counts = {}
    for who, counts in said.written.items():
        name = who.decode("utf-8", "replace").split("\n")[0]
        for path, commits in counts.items():
            of_path = found.setdefault(os.fsdecode(path), {})
            of_path[name] = of_path.get(name, 0) + commits
    return found


@given(commits=st.lists(_commits, max_size=6), cuts=st.lists(st.integers(0, 120), max_size=8))
def test_a_log_is_put_together_again_wherever_its_blocks_end(
    commits: list[tuple[bytes, list[bytes]]], cuts: list[int]
) -> None:
    written = [b"".join([b"\0", header, b"\0", b"\n" if names else b""]) for header, names in commits]
    log = b"".join(
        head + b"".join(name + b"\0" for name in names) for head, (_, names) in zip(written, commits, strict=True)
    )
    ends = sorted({min(cut, len(log)) for cut in cuts} | {0, len(log)})
    blocks = [log[start:end] for start, end in pairwise(ends)]
    expected = [header + (b"\0\n" + b"\0".join(names) if names else b"") for header, names in commits]
    assert [record for record in records(blocks) if record] == expected


def test_a_commit_counts_for_its_author_and_once_for_each_file(tree: Tree) -> None:
    tree.commit({"a.txt": "1", "docs/b.txt": "1"})
    tree.commit({"a.txt": "2"}, BEN)
    tree.commit({"a.txt": "3"}, BEN)
    tree.commit({})
    said = read(tree.folder)
    assert authors(said) == {"a.txt": {"Ada Lovelace": 1, "Ben Okri": 2}, "docs/b.txt": {"Ada Lovelace": 1}}
    assert (said.commits, said.lines) == (4, 8)


def test_who_commits_for_another_is_told_from_the_author(tree: Tree) -> None:
    tree.commit({"a.txt": "1"}, BEN, ADA)
    assert read(tree.folder).written == {
        b"Ben Okri\nben@example.org\nAda Lovelace\nada@example.org": Counter({b"a.txt": 1})
    }


def test_only_what_was_committed_since_a_commit_is_read(tree: Tree) -> None:
    first = tree.commit({"a.txt": "1"})
    tree.commit({"b.txt": "1"}, BEN)
    assert authors(read(tree.folder, since=first)) == {"b.txt": {"Ben Okri": 1}}


def test_a_name_is_whatever_bytes_it_is(tree: Tree) -> None:
    names = [b"two\nlines", b"\nfirst", b"caf\xe9", "caf\u00e9".encode(), b'"quoted"', b"tab\there", b"-dash", b" "]
    folder = os.fsencode(tree.folder)
    for name in names:
        with open(os.path.join(folder, name), "wb") as file:  # noqa: PTH118, PTH123 - pathlib takes no bytes
            file.write(b"1")
    tree.commit({})
    assert sorted(next(iter(read(tree.folder).written.values()))) == sorted(names)


@pytest.mark.parametrize("encoding", ["ISO-8859-1", "UTF-8"])
def test_people_are_named_in_the_encoding_that_their_commit_says(tree: Tree, encoding: str) -> None:
    name = "Zo\u00eb".encode(encoding)
    config = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "i18n.commitEncoding", "GIT_CONFIG_VALUE_0": encoding}
    tree.commit({"a.txt": "1"}, (os.fsdecode(name), "zoe@example.org"), environment=config)
    assert authors(read(tree.folder)) == {"a.txt": {"Zo\u00eb": 1}}


def test_the_mailmap_says_which_names_are_one_person(tree: Tree) -> None:
    tree.commit({".mailmap": "Ada Lovelace <ada@example.org> <old@example.org>\n"})
    tree.commit({"a.txt": "1"}, ("lovelace", "old@example.org"))
    assert authors(read(tree.folder))["a.txt"] == {"Ada Lovelace": 1}


def test_a_merge_counts_for_nobody_and_what_it_brings_for_those_who_wrote_it(tree: Tree) -> None:
    tree.commit({"a.txt": "1"})
    tree.git("checkout", "-q", "-b", "side")
    tree.commit({"b.txt": "1"}, BEN)
    tree.git("checkout", "-q", "main")
    tree.commit({"a.txt": "2"})
    tree.git("merge", "-q", "--no-ff", "-m", "merge", "side")
    said = read(tree.folder)
    assert authors(said) == {"a.txt": {"Ada Lovelace": 2}, "b.txt": {"Ben Okri": 1}}
    assert said.commits == 3


def test_a_renamed_file_begins_anew_and_a_deleted_one_is_remembered(tree: Tree) -> None:
    tree.commit({"old.txt": "the very same text\n"})
    tree.commit({"old.txt": None, "new.txt": "the very same text\n"}, BEN)
    assert authors(read(tree.folder)) == {"old.txt": {"Ada Lovelace": 1, "Ben Okri": 1}, "new.txt": {"Ben Okri": 1}}


def test_of_a_larger_repository_only_what_lies_below_the_root_is_read(tree: Tree) -> None:
    tree.commit({"docs/[a]/x.txt": "1", "other.txt": "1", "docs/a/x.txt": "1"})
    tree.git("checkout", "-q", "-b", "side")
    tree.commit({"docs/[a]/x.txt": "2"}, BEN)
    tree.git("checkout", "-q", "main")
    tree.git("merge", "-q", "--no-ff", "-s", "ours", "-m", "merge", "side")
    said = read(tree.folder, below="docs/[a]")
    assert authors(said) == {"x.txt": {"Ada Lovelace": 1, "Ben Okri": 1}}


def test_a_shallow_clone_does_not_make_its_last_author_that_of_every_file(tree: Tree, tmp_path: Path) -> None:
    tree.commit({"old.txt": "1", "both.txt": "1"})
    tree.commit({"mine.txt": "1"}, BEN)
    tree.commit({"both.txt": "2", "new.txt": "1"}, BEN)
    tree.git("clone", "-q", "--depth=2", f"file://{tree.folder}", str(tmp_path / "clone"))
    said = read(tmp_path / "clone")
    assert authors(said) == {"both.txt": {"Ben Okri": 1}, "new.txt": {"Ben Okri": 1}}
    assert said.cut == {b"old.txt", b"both.txt", b"mine.txt"}


def test_a_repository_whose_commits_have_longer_names_is_read(tmp_path: Path) -> None:
    tree = Tree(tmp_path / "tree", options=("--object-format=sha256",))
    tree.commit({"a.txt": "1"})
    assert authors(read(tree.folder)) == {"a.txt": {"Ada Lovelace": 1}}


def test_a_commit_of_a_hundred_thousand_files_is_read_at_once(tree: Tree) -> None:
    files = "".join(
        f"M 100644 :1 folder-{number % 300}/a file of some length {number}.txt\n" for number in range(100_000)
    )
    program = f"blob\nmark :1\ndata 1\nx\ncommit refs/heads/main\ncommitter A <a@b> 1 +0000\ndata 1\nx\n{files}"
    subprocess.run(["git", "fast-import", "--quiet"], cwd=tree.folder, input=program.encode(), check=True)
    started = time.process_time()
    said = read(tree.folder)
    assert time.process_time() - started < 5
    assert (said.commits, said.lines) == (1, 100_001)
    assert len(authors(said)) == 100_000


def test_damage_is_an_error_and_never_half_a_history(tree: Tree) -> None:
    first = tree.commit({"a.txt": "1"})
    tree.commit({"a.txt": "2"})
    (tree.folder / ".git/objects" / first[:2] / first[2:]).unlink()
    with pytest.raises(GitFailed, match="Failed to traverse parents"):
        read(tree.folder)


def test_reading_ends_when_it_is_asked_to(tree: Tree) -> None:
    tree.commit({"a.txt": "1"})
    repository = Repository("", tree.folder)

    def proceed() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        history.read(repository, repositories.state(repository), proceed=proceed)


def test_a_git_that_says_nothing_is_given_up(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.commit({"a.txt": "1"})
    state = repositories.state(Repository("", tree.folder))
    (tree.folder / ".mailmap").unlink(missing_ok=True)
    os.mkfifo(tree.folder / ".mailmap")
    monkeypatch.setattr("garage.attribute.git.PATIENCE", 0.5)
    with pytest.raises(GitFailed, match="said nothing"):
        history.read(Repository("", tree.folder), state)
