"""Which repositories the files of a source belong to, and what state each is in."""

import os
import shutil
from pathlib import Path

import pytest

from garage.attribute import repositories
from garage.attribute.git import GitFailed
from garage.attribute.repositories import Repository, State
from garage.uris import uri_of
from tests.builders.git_tree import Tree


def found(root: Path) -> dict[str, tuple[str, tuple[str, ...]]]:
    """By address: the path of the root in the working tree, and the repositories inside."""
    folders = [
        uri_of(os.fsencode(Path(folder).relative_to(root))) if Path(folder) != root else ""
        for folder, _, files in os.walk(root)
        if files and ".git" not in Path(folder).parts
    ]
    return {one.address: (one.below, one.inner) for one in repositories.find(root, folders)}


def state(folder: Path) -> State:
    return repositories.state(Repository("", folder))


def test_every_folder_with_a_git_beside_it_is_a_repository(tmp_path: Path) -> None:
    for name in ("one", "two/deep", "50% caf\udce9"):
        Tree(tmp_path / name).commit({"notes/a.txt": "1"})
    (tmp_path / "loose").mkdir()
    (tmp_path / "loose/a.txt").write_text("1", encoding="utf-8")
    assert found(tmp_path) == {"one": ("", ()), "two/deep": ("", ()), "50%25 caf%E9": ("", ())}
    assert [one.tree for one in repositories.find(tmp_path, ["50%25 caf%E9"])] == [tmp_path / "50% caf\udce9"]


def test_a_repository_without_files_that_are_known_is_not_looked_at(tmp_path: Path) -> None:
    Tree(tmp_path / "node_modules/package").commit({"a.js": "1"})
    assert repositories.find(tmp_path, ["", "notes"]) == []


def test_a_bare_repository_holds_no_files(tmp_path: Path) -> None:
    Tree(tmp_path / "bare.git", options=("--bare",))
    assert found(tmp_path) == {}


def test_the_repository_that_the_root_lies_in_counts(tmp_path: Path) -> None:
    Tree(tmp_path / "work").commit({"docs/notes/a.txt": "1"})
    Tree(tmp_path / "work/docs/inner").commit({"b.txt": "1"})
    assert found(tmp_path / "work/docs") == {"": ("docs", ("inner",)), "inner": ("", ())}
    assert found(tmp_path / "work") == {"": ("", ("docs/inner",)), "docs/inner": ("", ())}


def test_a_root_that_is_a_link_lies_where_the_link_leads(tmp_path: Path) -> None:
    Tree(tmp_path / "work").commit({"docs/a.txt": "1"})
    Tree(tmp_path / "links").commit({"b.txt": "1"})
    (tmp_path / "links/docs").symlink_to(tmp_path / "work/docs")
    assert [(one.tree, one.below) for one in repositories.find(tmp_path / "links/docs", [""])] == [
        (tmp_path / "work", "docs")
    ]


def test_files_of_inner_repositories_are_theirs(tmp_path: Path) -> None:
    for name in ("", "a", "a/b", "ab"):
        Tree(tmp_path / "work" / name).commit({"x.txt": "1"})
    assert found(tmp_path / "work") == {
        "": ("", ("a", "a/b", "ab")),
        "a": ("", ("b",)),
        "a/b": ("", ()),
        "ab": ("", ()),
    }


def test_submodules_and_second_working_trees_are_repositories(tmp_path: Path) -> None:
    library = Tree(tmp_path / "library")
    commit = library.commit({"x.txt": "1"})
    work = Tree(tmp_path / "root/work")
    work.commit({"a.txt": "1"})
    work.git("submodule", "--quiet", "add", str(library.folder), "lib")
    work.git("worktree", "add", "-q", "--detach", str(tmp_path / "root/second"))
    assert found(tmp_path / "root") == {"work": ("", ("lib",)), "work/lib": ("", ()), "second": ("", ())}
    assert state(tmp_path / "root/work/lib").head == commit
    assert state(tmp_path / "root/second").head == work.git("rev-parse", "HEAD")


def test_a_repository_is_where_its_head_is(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    first = tree.commit({"a.txt": "1"})
    second = tree.commit({"a.txt": "2"})
    assert state(tmp_path) == State(second)
    tree.git("pack-refs", "--all")
    assert state(tmp_path) == State(second)
    tree.git("checkout", "-q", "--detach", first)
    assert state(tmp_path) == State(first)
    assert repositories.continues(Repository("", tmp_path), first, State(second))
    assert not repositories.continues(Repository("", tmp_path), second, State(first))
    assert not repositories.continues(Repository("", tmp_path), "0" * 40, State(first))


def test_before_the_first_commit_there_is_no_head_and_nothing_wrong(tmp_path: Path) -> None:
    Tree(tmp_path)
    assert state(tmp_path) == State("")


@pytest.mark.parametrize("text", ["", "garbage", "\0" * 41])
def test_a_branch_that_cannot_be_read_is_damage(tmp_path: Path, text: str) -> None:
    Tree(tmp_path).commit({"a.txt": "1"})
    (tmp_path / ".git/refs/heads/main").write_text(text, encoding="utf-8")
    with pytest.raises(GitFailed, match="bad revision 'HEAD'"):
        state(tmp_path)


@pytest.mark.parametrize("text", ["gitdir: /nowhere", "nonsense", ""])
def test_a_git_that_leads_nowhere_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / ".git").write_text(text, encoding="utf-8")
    with pytest.raises(GitFailed):
        state(tmp_path)


def test_a_shallow_clone_tells_where_it_ends(tmp_path: Path) -> None:
    tree = Tree(tmp_path / "tree")
    tree.commit({"a.txt": "1"})
    second = tree.commit({"a.txt": "2"})
    tree.git("clone", "-q", "--depth=1", f"file://{tree.folder}", str(tmp_path / "clone"))
    assert state(tmp_path / "clone") == State(second, frozenset({second.encode()}))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_whose_a_repository_is_does_not_matter(tmp_path: Path) -> None:
    head = Tree(tmp_path).commit({"a.txt": "1"})
    for folder, _, files in os.walk(tmp_path):
        for path in (Path(folder), *(Path(folder, name) for name in files)):
            os.chown(path, 12_345, 12_345)
    assert state(tmp_path).head == head


def test_the_environment_of_a_hook_does_not_lead_to_another_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = Tree(tmp_path / "one").commit({"a.txt": "1"})
    Tree(tmp_path / "two").commit({"b.txt": "1"})
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "two/.git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path / "two"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "two/.git/index"))
    assert state(tmp_path / "one").head == head


def test_a_repository_is_gone_when_its_folder_is_there_without_it(tmp_path: Path) -> None:
    (tmp_path / "removed").mkdir()
    (tmp_path / "removed/a.txt").write_text("1", encoding="utf-8")
    (tmp_path / "unplugged").mkdir()
    folders = ["removed", "unplugged/notes", "missing"]
    gone = {path: repositories.is_gone(tmp_path, path, folders) for path in ("removed", "unplugged", "missing", "x")}
    assert gone == {"removed": True, "unplugged": False, "missing": False, "x": True}


def test_a_root_that_is_not_there_is_an_error_and_not_an_absence_of_repositories(tmp_path: Path) -> None:
    Tree(tmp_path / "tree").commit({"a.txt": "1"})
    shutil.rmtree(tmp_path / "tree")
    with pytest.raises(FileNotFoundError):
        repositories.find(tmp_path / "tree", [""])
