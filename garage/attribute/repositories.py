"""The git repositories that the files of a source belong to, and the state each is in."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from garage.attribute.git import GitFailed, ask
from garage.uris import path_of


@dataclass(frozen=True, slots=True)
class Repository:
    """A working tree with files of a source in it.

    Attributes:
        address: where it lies below the root of the source; '' is the root, or a folder above it.
        tree: the same as a path.
        below: the path of the source's root in the working tree where that is the larger one, else "".
        inner: addresses, below the working tree or the root, of the repositories in it: their files are theirs.
    """

    address: str
    tree: Path
    below: str = ""
    inner: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class State:
    """What a repository holds now.

    Attributes:
        head: its commit; '' before the first one.
        boundary: the commits at which a shallow clone ends.
        mailmap: digest of the file that says which names are one person's; '' without one.
    """

    head: str
    boundary: frozenset[bytes] = frozenset()
    mailmap: str = ""


def find(root: Path, folders: Iterable[str]) -> list[Repository]:
    """Return the repositories that hold the files in `folders`, addresses below `root`; outer ones first.

    Nothing is listed: a `.git` beside a file, or beside a folder above it, tells a repository. A bare one holds no
    files. That of a submodule or of a second working tree is a file.
    """
    root = root.resolve()  # what lies above a link to a folder is not what lies above the folder
    trees = {address: _path(root, address) for address in _with_those_above(folders)}
    found = sorted(address for address, tree in trees.items() if _is_tree(tree))
    repositories = []
    if "" not in found and (outer := _above(root)) is not None:
        repositories.append(Repository("", outer, str(root.relative_to(outer)), tuple(found)))
    for address in found:
        start = f"{address}/" if address else ""
        inner = tuple(other[len(start) :] for other in found if other != address and other.startswith(start))
        repositories.append(Repository(address, Path(trees[address]), "", inner))
    return repositories


def _with_those_above(folders: Iterable[str]) -> set[str]:
    everything = {""}
    for folder in folders:
        above = folder
        while above not in everything:
            everything.add(above)
            above = above.rpartition("/")[0]
    return everything


def _path(root: Path, address: str) -> str:
    """The path of an address; most are what they stand for."""
    return f"{root}/{os.fsdecode(path_of(address)) if '%' in address else address}"


def _is_tree(folder: str) -> bool:
    return os.path.lexists(f"{folder}/.git")


def _above(root: Path) -> Path | None:
    """The working tree that a folder lies in; as with git, another file system above it is not searched."""
    device = root.stat().st_dev
    for folder in root.parents:
        if folder.stat().st_dev != device:
            return None
        if _is_tree(str(folder)):
            return folder
    return None


def state(repository: Repository) -> State:
    """Ask git for the commit that a repository is at.

    Raises:
        GitFailed: it is no repository, or a damaged one.
        OSError: a file beside its objects cannot be read.
    """
    tree = repository.tree
    status, out, complaint = ask(tree, "rev-parse", "--is-shallow-repository", "--git-path", "shallow", "HEAD", "--")
    if status:
        # Before the first commit HEAD names a branch that is not there; of a damaged one git does not tell the name.
        if ask(tree, "symbolic-ref", "--quiet", "HEAD")[0] == 0:
            return State("")
        raise GitFailed(f"The repository cannot be read: {complaint}.", reason=complaint)
    shallow, *path, head, _, _ = out.split(b"\n")
    commits = Path(os.fsdecode(b"\n".join(path))).read_bytes().split() if shallow == b"true" else []
    return State(head.decode("ascii"), frozenset(commits), _mailmap(tree))


def continues(repository: Repository, commit: str, state: State) -> bool:
    """Whether the history of a repository contains a commit that it was at before."""
    status, _, _ = ask(repository.tree, "merge-base", "--is-ancestor", commit, state.head)
    return status == 0


def is_gone(root: Path, address: str, folders: Iterable[str]) -> bool:
    """Whether there is no repository any more at an address where `find` found none.

    Where files are known but their folder is missing or empty, a drive is not connected.
    """
    if address not in _with_those_above(folders):
        return True
    try:
        with os.scandir(_path(root, address)) as entries:
            return any(True for _ in entries)
    except OSError:
        return False


def _mailmap(tree: Path) -> str:
    file = tree / ".mailmap"
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() and not file.is_symlink() else ""
