"""Why a walk leaves a path out: the same as what the walk does, told for one path."""

import os
from collections import Counter
from pathlib import Path

import pytest

from garage.config import Config, parse
from garage.extract.registry import SUFFIXES
from garage.serve.unlisted import Fate, fate
from garage.store.sources import Source
from garage.uris import uri_of
from garage.walk.walker import walk

EXCLUDE = ["*.bak.md", "/drafts/", "!build/", "!.notes/", "!/.kept.md"]
FILES = [
    *("a.md", "A.MD", "b.pdf", "tool.py", "x.xyz", "noext", ".hidden.md", ".kept.md", "y.bak.md", "Makefile"),
    *("node_modules/p/README.md", "build/made.md", "build/node_modules/q.md", ".notes/n.md", ".git/config.md"),
    *("drafts/d.md", "sub/drafts/e.md", "sub/.hidden/f.md", "sub/deep/er/g.md", "Library/Caches/c.md", "~$lock.docx"),
    *("sub/y.bak.md", "site-packages/z.md", "go/pkg/mod/m.md", "100%.md", "new\nline.md"),
]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Files that every kind of rule has something to say about, links and a pipe among them."""
    root = tmp_path / "tree"
    for name in FILES:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("text")
    (root / "linked.md").symlink_to("a.md")
    (root / "linked").symlink_to("sub")
    os.mkfifo(root / "pipe.md")
    (root / os.fsdecode(b"caf\xe9.md")).write_text("text")
    return root


def source(root: Path, *, include_code: bool) -> Source:
    return Source(
        id=1,
        slug="tree",
        kind="filesystem",
        root=str(root),
        default_class="document",
        default_trust="authored",
        egress="local_only",
        settings={"include_code": include_code, "exclude": EXCLUDE},
        active=True,
        root_device=None,
        walked_at=None,
        walk_seconds=None,
        mounts={},
    )


@pytest.fixture
def config() -> Config:
    return parse("walk: {exclude: ['b.*']}", Path("garage.yaml"))


@pytest.mark.parametrize("include_code", [False, True])
def test_every_file_meets_the_fate_that_a_walk_has_for_it(tree: Path, config: Config, include_code: bool) -> None:
    walked = walk(tree, suffixes=SUFFIXES, include_code=include_code, exclude=["b.*", *EXCLUDE])
    expected = {record.uri: record.extractor for record in walked}
    told: dict[str, str] = {}
    # A walk counts an entry once, a folder with all that it holds.
    left_out: dict[str, str] = {}
    for folder, folders, names in os.walk(tree):
        for path in (Path(folder, name) for name in [*names, *folders]):
            if path.is_dir() and not path.is_symlink():
                continue
            relative = os.fsencode(path.relative_to(tree))
            found = fate(config, source(tree, include_code=include_code), relative)
            if found.reason:
                left_out[found.decided_at] = found.reason
            else:
                told[uri_of(relative)] = found.extractor
    assert told == expected
    assert Counter(left_out.values()) == Counter(walked.stats.skipped)


def test_what_lies_below_a_link_is_left_out_at_the_link(tree: Path, config: Config) -> None:
    found = fate(config, source(tree, include_code=False), b"linked/deep/er/g.md")
    assert found == Fate(reason="link", decided_at="linked")


def test_a_folder_is_no_file(tree: Path, config: Config) -> None:
    assert fate(config, source(tree, include_code=False), b"sub/deep").reason == "folder"
    assert fate(config, source(tree, include_code=False), b"node_modules/p").decided_at == "node_modules/"


def test_a_path_where_nothing_is_has_a_fate_all_the_same(tree: Path, config: Config) -> None:
    assert fate(config, source(tree, include_code=False), b"later.md") == Fate(extractor="markdown")


def test_an_address_that_no_table_takes_is_left_out(tree: Path, config: Config) -> None:
    found = fate(config, source(tree, include_code=False), b"/".join([b"f" * 200] * 14) + b"/a.md")
    assert found.reason == "address too long"
