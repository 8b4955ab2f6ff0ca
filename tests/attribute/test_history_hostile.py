"""A repository that somebody else made executes nothing, fetches nothing and keeps nobody waiting."""

import os
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from garage.attribute import git, history, repositories
from garage.attribute.git import GitFailed
from garage.attribute.history import History
from garage.attribute.repositories import Repository
from tests.builders.git_tree import Tree

Trap = Callable[[str], str]


@pytest.fixture
def sprung(tmp_path: Path) -> Path:
    """Where every program of the repository's leaves its name."""
    folder = tmp_path / "sprung"
    folder.mkdir()
    return folder


@pytest.fixture
def trap(tmp_path: Path, sprung: Path) -> Trap:
    """Makes a program that leaves its name; returns its path."""

    def make(name: str) -> str:
        program = tmp_path / "programs" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\ntouch '{sprung}/{name}'\nexit 1\n", encoding="utf-8")
        program.chmod(0o755)
        return str(program)

    return make


def names(sprung: Path) -> list[str]:
    return sorted(path.name for path in sprung.iterdir())


def read(folder: Path, *, below: str = "") -> History:
    """All that is ever asked of a repository."""
    repository = Repository("", folder, below)
    state = repositories.state(repository)
    repositories.continues(repository, state.head, state)
    return history.read(repository, state)


@pytest.fixture
def hostile(tmp_path: Path, trap: Trap) -> Tree:
    """A repository whose configuration names a program wherever one can be named."""
    tree = Tree(tmp_path / "tree")
    tree.commit({"a.txt": "1", ".gitattributes": "* diff=trap filter=trap merge=trap\n"})
    tree.commit({"a.txt": "2"})
    sign(tree)
    settings = {
        "core.fsmonitor": "fsmonitor",
        "core.sshCommand": "ssh",
        "core.gitProxy": "proxy",
        "core.pager": "pager",
        "pager.log": "pager-log",
        "core.editor": "editor",
        "core.askPass": "askpass",
        "core.alternateRefsCommand": "alternates",
        "credential.helper": "credential",
        "diff.external": "diff",
        "diff.trap.command": "diff-driver",
        "diff.trap.textconv": "textconv",
        "filter.trap.clean": "clean",
        "filter.trap.smudge": "smudge",
        "filter.trap.process": "process",
        "merge.trap.driver": "merge",
        "gpg.program": "gpg",
        "gpg.openpgp.program": "openpgp",
        "gpg.ssh.program": "ssh-keygen",
        "interactive.diffFilter": "filter",
        "uploadpack.packObjectsHook": "pack-objects",
        "gc.auto": "1",
    }
    for name, program in settings.items():
        tree.git("config", name, program if program.isdigit() else trap(program))
    for name in ("log.showSignature", "core.useBuiltinFSMonitor", "diff.renames", "log.mailmap", "log.follow"):
        tree.git("config", name, "true")
    for name in ("log", "rev-parse", "symbolic-ref", "merge-base"):
        tree.git("config", f"alias.{name}", f"!{trap('alias')}")
    for hook in ("pre-auto-gc", "post-checkout", "reference-transaction", "post-index-change", "fsmonitor-watchman"):
        (tree.folder / ".git/hooks" / hook).symlink_to(trap(f"hook-{hook}"))
    return tree


def sign(tree: Tree) -> None:
    """Makes the newest commit a signed one; whose signature it is does not matter."""
    raw = tree.git("cat-file", "commit", "HEAD") + "\n"
    head, _, message = raw.partition("\n\n")
    signed = f"{head}\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\n{message}"
    (tree.folder / "signed").write_text(signed, encoding="utf-8")
    commit = tree.git("hash-object", "-t", "commit", "-w", "signed")
    (tree.folder / "signed").unlink()
    tree.git("update-ref", "refs/heads/main", commit)


def test_no_program_that_a_repository_names_is_run(hostile: Tree, sprung: Path) -> None:
    said = read(hostile.folder)
    assert said.commits == 2
    assert names(sprung) == []


def test_git_left_to_itself_runs_some_of_them(hostile: Tree, sprung: Path) -> None:
    subprocess.run(["git", "log", "-p", "--ext-diff"], cwd=hostile.folder, capture_output=True, check=False)
    subprocess.run(["git", "status"], cwd=hostile.folder, capture_output=True, check=False)
    assert {"fsmonitor", "openpgp"} <= set(names(sprung))


@pytest.fixture
def partial(tmp_path: Path) -> Callable[[str], Tree]:
    """Makes a partial clone without the folders of its commits, which git would fetch from the address given."""

    def make(url: str) -> Tree:
        origin = Tree(tmp_path / "origin")
        origin.commit({"docs/a.txt": "1"})
        origin.commit({"docs/a.txt": "2"})
        origin.git("config", "uploadpack.allowFilter", "true")
        origin.git("clone", "-q", "--bare", "--filter=tree:0", f"file://{origin.folder}", str(tmp_path / "bare"))
        clone = Tree(tmp_path / "clone")
        (tmp_path / "clone/.git").rename(tmp_path / "unused")
        (tmp_path / "bare").rename(tmp_path / "clone/.git")
        clone.git("config", "core.bare", "false")
        clone.git("config", "remote.origin.url", url)
        return clone

    return make


@pytest.mark.parametrize("way", ["ext", "upload-pack", "ssh", "helper"])
def test_what_a_partial_clone_lacks_is_not_fetched_by_a_program_of_its_choice(
    partial: Callable[[str], Tree], trap: Trap, sprung: Path, tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = trap("fetched")
    clone = partial(f"ext::{program}" if way == "ext" else "ssh://host/x" if way == "ssh" else str(tmp_path / "origin"))
    clone.git("config", "protocol.allow", "always")
    clone.git("config", "core.sshCommand", program)
    if way == "upload-pack":
        clone.git("config", "remote.origin.uploadpack", program)
    if way == "helper":
        (tmp_path / "programs/git-remote-trap").symlink_to(program)
        clone.git("config", "remote.origin.vcs", "trap")
        monkeypatch.setenv("PATH", str(tmp_path / "programs"), prepend=os.pathsep)
    with pytest.raises(GitFailed):
        read(clone.folder)
    assert names(sprung) == []
    # The trap works: git left to itself runs the program.
    subprocess.run(["git", "log", "--name-only"], cwd=clone.folder, capture_output=True, check=False)
    assert names(sprung) == ["fetched"]


def test_nothing_is_asked_of_a_server(partial: Callable[[str], Tree]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        clone = partial(f"git://127.0.0.1:{server.getsockname()[1]}/x")
        with pytest.raises(GitFailed):
            read(clone.folder)
        with pytest.raises(TimeoutError):
            server.accept()


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    made = Tree(tmp_path / "tree")
    made.commit({"a.txt": "1"})
    return made


@pytest.mark.parametrize("name", ["mailmap.file", "diff.orderFile", "core.attributesFile", "core.excludesFile"])
def test_a_file_without_an_end_is_not_read(
    tree: Tree, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "endless")
    tree.git("config", name, str(tmp_path / "endless"))
    monkeypatch.setattr(git, "PATIENCE", 5.0)
    assert read(tree.folder).commits == 1


def test_a_mailmap_is_read_from_the_working_tree_alone(tree: Tree) -> None:
    tree.commit({"people": "Somebody Else <ada@example.org>\n"})
    tree.git("config", "mailmap.blob", "HEAD:people")
    tree.git("config", "mailmap.file", str(tree.folder / "people"))
    assert [who.split(b"\n")[0] for who in read(tree.folder).written] == [b"Ada Lovelace"]


def test_a_mailmap_without_an_end_is_not_read(tree: Tree) -> None:
    (tree.folder / ".mailmap").symlink_to("/dev/zero")
    assert read(tree.folder).commits == 1


def test_a_pipe_in_place_of_a_file_keeps_nobody_waiting(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    (tree.folder / ".git/config").unlink()
    os.mkfifo(tree.folder / ".git/config")
    monkeypatch.setattr(git, "PATIENCE", 0.5)
    with pytest.raises(GitFailed):
        read(tree.folder)


def test_a_working_tree_elsewhere_is_not_believed(tree: Tree, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere"
    other.mkdir()
    (other / ".mailmap").write_text("Somebody Else <else@example.org> <ada@example.org>\n", encoding="utf-8")
    tree.git("config", "core.worktree", str(other))
    assert [who.split(b"\n")[0] for who in read(tree.folder).written] == [b"Ada Lovelace"]


@pytest.mark.parametrize("below", ["", "docs"])
def test_settings_of_the_log_do_not_change_what_is_read(tree: Tree, below: str) -> None:
    tree.commit({"docs/b.txt": "1", ".mailmap": "Ada L. <ada@example.org>\n"})
    tree.commit({"docs/c.txt": "1"})
    before = read(tree.folder, below=below)
    settings = {
        "color.ui": "always",
        "core.quotePath": "true",
        "diff.relative": "true",
        "diff.renames": "copies",
        "diff.ignoreSubmodules": "all",
        "format.pretty": "oneline",
        "i18n.logOutputEncoding": "UTF-16",
        "log.date": "human",
        "log.decorate": "full",
        "log.diffMerges": "separate",
        "log.follow": "true",
        "log.graphColors": "red",
        "log.mailmap": "false",
        "log.showRoot": "false",
        "notes.displayRef": "*",
    }
    for name, value in settings.items():
        tree.git("config", name, value)
    assert read(tree.folder, below=below) == before


def test_configuration_that_git_cannot_read_is_not_asked_for(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "home/.gitconfig"
    broken.parent.mkdir()
    broken.write_text("[broken", encoding="utf-8")
    monkeypatch.setenv("HOME", str(broken.parent))
    assert read(tree.folder).commits == 1
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", str(broken))
    assert read(tree.folder).commits == 1


def test_a_commit_that_is_to_be_taken_for_another_is_not(tree: Tree) -> None:
    first = tree.git("rev-parse", "HEAD")
    second = tree.commit({"b.txt": "1"})
    before = read(tree.folder)
    tree.git("replace", "--graft", second)
    assert read(tree.folder) == before
    tree.git("replace", "-d", second)
    (tree.folder / ".git/info").mkdir(exist_ok=True)
    (tree.folder / ".git/info/grafts").write_text(f"{second}\n", encoding="ascii")
    assert tree.git("log", "--format=%H") == second
    assert read(tree.folder) == before
    assert before.commits == len({first, second})


def test_nothing_is_written_to_a_repository(tree: Tree) -> None:
    def files() -> dict[str, tuple[int, int]]:
        found = [Path(folder) / name for folder, _, names in os.walk(tree.folder) for name in names]
        return {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in found}

    before = files()
    read(tree.folder)
    assert files() == before


def test_words_of_a_repository_do_not_reach_a_terminal_as_they_are(tree: Tree) -> None:
    (tree.folder / ".git").rename(tree.folder / "moved")
    (tree.folder / ".git").write_text("gitdir: /reads \u202esdrawkcab", encoding="utf-8")
    with pytest.raises(GitFailed, match="not a git repository") as caught:
        read(tree.folder)
    assert str(caught.value).isprintable()
