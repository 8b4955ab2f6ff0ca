"""Placeholders are told from stat alone; macOS's flag through a stand-in for its stat result."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from garage.walk.placeholders import Kind, kind_of
from garage.walk.walker import walk


@dataclass(frozen=True)
class Stat:
    st_size: int
    st_blocks: int


@dataclass(frozen=True)
class MacStat(Stat):
    st_flags: int


@pytest.mark.parametrize(
    ("size", "blocks", "path", "kind"),
    [
        (5_000, 16, "/home/me/a.md", "file"),
        (5_000, 0, "/home/me/a.md", "dataless"),
        (4_096, 0, "/home/me/a.md", "file"),  # some file systems keep so little beside the name
        (12, 0, "/home/me/a.md", "file"),
        (12, 0, "/home/me/OneDrive - Work/deep/a.md", "dataless"),
        (12, 8, "/home/me/OneDrive - Work/deep/a.md", "file"),
        (0, 0, "/home/me/a.md", "file"),
        (0, 0, "/home/me/Dropbox/deep/a.md", "stub"),
        (0, 0, "/home/me/Dropbox (Family)/a.md", "stub"),
        (0, 0, "/Users/me/Library/CloudStorage/GoogleDrive-me/a.md", "stub"),
        (0, 0, "/Users/me/Library/Mobile Documents/a.md", "stub"),
        (0, 0, "/home/me/Dropboxes/a.md", "file"),
        (0, 0, "/home/me/Boxes/a.md", "file"),
        (0, 0, "/home/me/Dropbox", "file"),  # a file called so, not a folder
    ],
)
def test_a_file_is_told_by_its_size_blocks_and_place(size: int, blocks: int, path: str, kind: Kind) -> None:
    assert kind_of(Stat(size, blocks), os.fsencode(path)) == kind


@pytest.mark.parametrize(
    ("size", "blocks", "flags", "kind"),
    [
        (5_000, 0, 0x4000_0000, "dataless"),
        (12, 0, 0x4000_0020, "dataless"),
        (5_000, 8, 0x4000_0000, "dataless"),  # partly here
        (5_000, 0, 0x20, "file"),  # compressed by the file system: its bytes are in an attribute
    ],
)
def test_where_the_system_has_a_flag_the_flag_decides(size: int, blocks: int, flags: int, kind: Kind) -> None:
    assert kind_of(MacStat(size, blocks, flags), b"/Users/me/a.md") == kind


def test_a_walk_tells_placeholders_by_their_stat(tmp_path: Path) -> None:
    (tmp_path / "Dropbox").mkdir()
    (tmp_path / "Dropbox" / "stub.md").touch()
    (tmp_path / "empty.md").touch()
    (tmp_path / "real.md").write_text("real")
    (tmp_path / "away.md").touch()
    os.truncate(tmp_path / "away.md", 100_000)
    if (tmp_path / "away.md").stat().st_blocks:
        pytest.skip("this file system gives blocks to a file without data")
    running = walk(tmp_path, suffixes={".md": "markdown"})
    kinds = {record.uri: record.kind for record in running}
    assert kinds == {"Dropbox/stub.md": "stub", "empty.md": "file", "real.md": "file", "away.md": "dataless"}
    assert running.stats.placeholders == 2


@pytest.mark.skipif(sys.platform != "linux", reason="Python sets extended attributes on Linux only")
@pytest.mark.parametrize(("attribute", "kind"), [("user.com.dropbox.attrs", "stub"), ("user.author", "file")])
def test_an_empty_file_with_an_attribute_of_dropbox_is_a_stub(tmp_path: Path, attribute: str, kind: Kind) -> None:
    path = tmp_path / "a.md"
    path.touch()
    try:
        os.setxattr(path, attribute, b"x")
    except OSError:
        pytest.skip("this file system keeps no extended attributes")
    assert kind_of(path.stat(), os.fsencode(path)) == kind
