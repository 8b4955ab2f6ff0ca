import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from garage.uris import path_of
from garage.walk.errors import SourceUnavailable
from garage.walk.walker import FileRecord, Walk, walk

SUFFIXES = {".md": "markdown", ".txt": "text", ".py": "code", "readme": "text"}


def make(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.fsencode(name))


def uris(running: Walk) -> list[str]:
    return sorted(record.uri for record in running)


def open_descriptors() -> int:
    return len(list(Path("/dev/fd").iterdir()))


class Calls:
    """A question asked again and again; does something at the n-th time, and answers yes from the m-th on."""

    def __init__(self, *, at: int = 0, do: Callable[[], object] = lambda: None, yes_from: float = float("inf")) -> None:
        self.count, self.at, self.do, self.yes_from = 0, at, do, yes_from

    def __call__(self) -> bool:
        self.count += 1
        if self.count == self.at:
            self.do()
        return self.count >= self.yes_from


def test_every_wanted_file_is_listed_with_its_stat(tmp_path: Path) -> None:
    make(tmp_path, "a.md", "deep/down/b.txt", "README", "c.png", "d.py")
    running = walk(tmp_path, suffixes=SUFFIXES)
    records = {record.uri: record for record in running}
    status = (tmp_path / "deep/down/b.txt").stat()
    assert records["deep/down/b.txt"] == FileRecord(
        uri="deep/down/b.txt", size=status.st_size, mtime_ns=status.st_mtime_ns, inode=status.st_ino, extractor="text"
    )
    assert {uri: record.extractor for uri, record in records.items()} == {
        "a.md": "markdown",
        "deep/down/b.txt": "text",
        "README": "text",
    }
    stats = running.stats
    assert (stats.dirs, stats.files_seen, stats.listed, stats.skipped) == (3, 5, 3, {"extension": 1, "code": 1})
    assert stats.bytes == sum(record.size for record in records.values())
    assert stats.complete
    assert stats.devices == {tmp_path.stat().st_dev}
    assert stats.seconds > 0


def test_code_is_listed_when_asked_for(tmp_path: Path) -> None:
    make(tmp_path, "a.py", "b.md")
    assert uris(walk(tmp_path, suffixes=SUFFIXES, include_code=True)) == ["a.py", "b.md"]
    assert uris(walk(tmp_path, suffixes=SUFFIXES, code_extractors=("markdown",))) == ["a.py"]


def test_an_empty_root_is_walked_to_the_end(tmp_path: Path) -> None:
    running = walk(tmp_path, suffixes=SUFFIXES)
    assert uris(running) == []
    assert running.stats.complete
    assert running.root.empty


def test_an_excluded_subtree_is_never_entered(tmp_path: Path) -> None:
    make(tmp_path, "a.md", "node_modules/x/b.md", "logs/c.md", "go/pkg/mod/d.md", ".notes/e.md", "private/f.md")
    running = walk(tmp_path, suffixes=SUFFIXES, exclude=["private/"])
    assert uris(running) == ["a.md"]
    assert running.stats.skipped == {"dependency": 2, "diagnostic": 1, "hidden": 1, "pattern": 1}
    assert running.stats.dirs == 3  # the root, go and go/pkg
    assert running.stats.files_seen == 1


@pytest.mark.parametrize("name", ["build", ".notes", "go/pkg/mod"])
def test_a_root_is_walked_whatever_its_own_name(tmp_path: Path, name: str) -> None:
    make(tmp_path, f"{name}/a.md")
    assert uris(walk(tmp_path / name, suffixes=SUFFIXES)) == ["a.md"]


def test_hidden_entries_are_listed_when_asked_for(tmp_path: Path) -> None:
    make(tmp_path, ".notes/a.md", ".b.md")
    assert uris(walk(tmp_path, suffixes=SUFFIXES)) == []
    assert uris(walk(tmp_path, suffixes=SUFFIXES, include_hidden=True)) == [".b.md", ".notes/a.md"]


def test_ignore_files_in_the_tree_are_not_honoured(tmp_path: Path) -> None:
    make(tmp_path, "a.md")
    (tmp_path / ".gitignore").write_text("*.md\n")
    (tmp_path / ".ignore").write_text("*.md\n")
    assert uris(walk(tmp_path, suffixes=SUFFIXES)) == ["a.md"]


def test_a_pattern_applies_to_names_of_any_bytes(tmp_path: Path) -> None:
    make(tmp_path, "keep.txt", os.fsdecode(b"odd \xff/caf\xe9.md"), "two\nlines.md")
    running = walk(tmp_path, suffixes=SUFFIXES, exclude=["*.md"])
    assert uris(running) == ["keep.txt"]
    assert running.stats.skipped == {"pattern": 2}


def test_a_file_of_any_size_is_listed_so_that_growing_never_looks_like_vanishing(tmp_path: Path) -> None:
    with (tmp_path / "huge.md").open("wb") as file:
        file.truncate(2**40)
    (record,) = walk(tmp_path, suffixes=SUFFIXES)
    assert record.size == 2**40


def test_names_of_any_bytes_are_listed_under_addresses_that_lead_back(tmp_path: Path) -> None:
    names = [
        b"caf\xe9.md",
        b"two\nlines.md",
        b"100%.md",
        b"tab\there.md",
        "übung.md".encode(),
        b"\xff\xfe/inner.md",
        b" .md",
    ]
    for name in names:
        make(tmp_path, os.fsdecode(name))
    running = walk(tmp_path, suffixes=SUFFIXES)
    found = {path_of(record.uri): record for record in running}
    assert sorted(found) == sorted(names)
    for name, record in found.items():
        assert (tmp_path / os.fsdecode(name)).stat().st_ino == record.inode
        assert record.uri.isprintable()
    assert running.stats.complete


def test_no_link_is_followed_wherever_it_leads(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    make(root, "a.md", "sub/b.md")
    make(outside, "secret.md")
    (root / "sub" / "up").symlink_to("..")
    (root / "out").symlink_to(outside)
    (root / "out.md").symlink_to(outside / "secret.md")
    (root / "self.md").symlink_to("self.md")
    (root / "dangling.md").symlink_to("nowhere.md")
    (root / "inside.md").symlink_to("a.md")
    running = walk(root, suffixes=SUFFIXES)
    assert uris(running) == ["a.md", "sub/b.md"]
    assert running.stats.skipped == {"link": 6}
    assert running.stats.complete


def test_a_folder_replaced_by_a_link_after_it_was_listed_is_not_followed_out(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    make(root, "sub/a.md")
    make(outside, "secret.md")

    def swap() -> None:
        shutil.rmtree(root / "sub")
        (root / "sub").symlink_to(outside)

    running = walk(root, suffixes=SUFFIXES, cancelled=Calls(at=2, do=swap))
    assert uris(running) == []
    assert running.stats.vanished == 1


def test_a_hard_link_is_a_file_of_its_own(tmp_path: Path) -> None:
    make(tmp_path, "a.md")
    os.link(tmp_path / "a.md", tmp_path / "b.md")
    first, second = walk(tmp_path, suffixes=SUFFIXES)
    assert {first.uri, second.uri} == {"a.md", "b.md"}
    assert first.inode == second.inode


def test_what_is_neither_file_nor_folder_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "a.md")
    os.mkfifo(tmp_path / "pipe.md")
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.chdir(tmp_path)  # the path of a socket is short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket.md")
        running = walk(tmp_path, suffixes=SUFFIXES)
        assert uris(running) == ["a.md"]
    assert running.stats.skipped == {"special": 3}
    assert running.stats.complete


def test_a_limit_stops_the_walk_and_leaves_it_incomplete(tmp_path: Path) -> None:
    make(tmp_path, *(f"{n}.md" for n in range(5)))
    running = walk(tmp_path, suffixes=SUFFIXES, limit=3)
    assert len(uris(running)) == 3
    assert running.stats.listed == 3
    assert running.stats.incomplete_reason == "limit"


def test_a_limit_that_stopped_nothing_leaves_the_walk_complete(tmp_path: Path) -> None:
    make(tmp_path, "a.md", "sub/b.md")
    running = walk(tmp_path, suffixes=SUFFIXES, limit=2)
    assert len(uris(running)) == 2
    assert running.stats.complete


@pytest.mark.parametrize("answer", [1, 2, 4])
def test_a_cancelled_walk_stops_at_once_and_is_incomplete(tmp_path: Path, answer: int) -> None:
    make(tmp_path, *(f"{n}.md" for n in range(9)))
    running = walk(tmp_path, suffixes=SUFFIXES, cancelled=Calls(yes_from=answer))
    assert len(uris(running)) == max(0, answer - 2)  # the first question is about the root
    assert running.stats.incomplete_reason == "cancelled"


def test_a_walk_is_incomplete_until_it_has_ended(tmp_path: Path) -> None:
    make(tmp_path, "a.md", "b.md")
    running = walk(tmp_path, suffixes=SUFFIXES)
    assert running.stats.incomplete_reason == "unfinished"
    next(running)
    assert running.stats.listed == 1
    next(running)
    assert not running.stats.complete
    assert next(running, None) is None
    assert running.stats.complete


def test_a_walk_given_up_halfway_stays_incomplete_and_leaves_nothing_open(tmp_path: Path) -> None:
    make(tmp_path, "a.md", "b.md")
    before = open_descriptors()
    running = walk(tmp_path, suffixes=SUFFIXES)
    next(running)
    assert open_descriptors() > before
    stats = running.stats
    del running
    assert stats.incomplete_reason == "unfinished"
    assert open_descriptors() == before


def test_folders_that_vanish_before_their_turn_are_counted_and_the_walk_is_complete(tmp_path: Path) -> None:
    make(tmp_path, "one/a.md", "two/deep/b.md")

    def remove() -> None:
        shutil.rmtree(tmp_path / "one")
        shutil.rmtree(tmp_path / "two")

    running = walk(tmp_path, suffixes=SUFFIXES, cancelled=Calls(at=2, do=remove))
    assert uris(running) == []
    assert running.stats.vanished == 2
    assert running.stats.complete


def test_a_folder_that_vanishes_with_the_one_around_it_leaves_the_walk_complete(tmp_path: Path) -> None:
    make(tmp_path, "one/deep/a.md")
    running = walk(tmp_path, suffixes=SUFFIXES, cancelled=Calls(at=3, do=lambda: shutil.rmtree(tmp_path / "one")))
    assert uris(running) == []
    assert running.stats.vanished == 1
    assert running.stats.complete


def test_files_that_vanish_after_they_were_listed_are_counted_and_the_walk_is_complete(tmp_path: Path) -> None:
    make(tmp_path, "a.md", "b.md", "c.md")
    running = walk(tmp_path, suffixes=SUFFIXES)
    first = next(running).uri
    for path in tmp_path.iterdir():
        path.unlink()
    assert uris(running) == []
    assert first in {"a.md", "b.md", "c.md"}
    assert running.stats.vanished == 2
    assert running.stats.complete


def test_a_walk_that_cannot_tell_why_a_file_vanished_is_incomplete(tmp_path: Path) -> None:
    make(tmp_path, "one/a.md", "one/b.md")
    running = walk(tmp_path, suffixes=SUFFIXES)
    next(running)
    shutil.rmtree(tmp_path / "one")
    (tmp_path / "one").symlink_to("one")
    assert uris(running) == []
    assert running.stats.vanished == 1
    assert running.stats.incomplete_reason == "source changed"


def test_a_folder_replaced_by_a_file_has_vanished(tmp_path: Path) -> None:
    make(tmp_path, "one/a.md")

    def replace() -> None:
        shutil.rmtree(tmp_path / "one")
        (tmp_path / "one").write_text("a file now")

    running = walk(tmp_path, suffixes=SUFFIXES, cancelled=Calls(at=2, do=replace))
    assert uris(running) == []
    assert running.stats.vanished == 1
    assert running.stats.complete


@pytest.mark.parametrize("drive", ["", "drive"])
def test_a_drive_that_goes_away_under_the_walk_leaves_it_incomplete(tmp_path: Path, drive: str) -> None:
    root = tmp_path / "root"
    make(root / drive, "folder/a.md")

    def unplug() -> None:
        # What an unmount shows: the empty folder beneath the mount, a folder of its own.
        (root / drive).rename(tmp_path / "unplugged")
        (root / drive).mkdir()

    running = walk(root, suffixes=SUFFIXES, cancelled=Calls(at=3 if drive else 2, do=unplug))
    assert uris(running) == []
    assert running.stats.incomplete_reason == "source changed"


def test_a_root_removed_under_the_walk_leaves_it_incomplete(tmp_path: Path) -> None:
    root = tmp_path / "root"
    make(root, "one/a.md")
    running = walk(root, suffixes=SUFFIXES, cancelled=Calls(at=2, do=lambda: shutil.rmtree(root)))
    assert uris(running) == []
    assert running.stats.incomplete_reason == "source changed"


def test_a_missing_root_is_said_before_the_walk_begins(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailable, match="Source 'notes' is unavailable"):
        walk(tmp_path / "gone", source="notes", suffixes=SUFFIXES)


def test_a_root_that_goes_between_the_look_at_it_and_the_walk_is_unavailable(tmp_path: Path) -> None:
    root = tmp_path / "root"
    make(root, "a.md")
    gone, replaced = walk(root, source="notes", suffixes=SUFFIXES), walk(root, source="notes", suffixes=SUFFIXES)
    root.rename(tmp_path / "unplugged")
    with pytest.raises(SourceUnavailable, match="does not exist"):
        next(gone)
    root.mkdir()
    with pytest.raises(SourceUnavailable, match="was replaced"):
        next(replaced)
    assert not gone.stats.complete
    assert not replaced.stats.complete


@pytest.mark.parametrize("mode", [0o000, 0o444, 0o111])
def test_a_folder_that_cannot_be_listed_or_entered_leaves_the_walk_incomplete(
    open_root: Path, walk_as_nobody: Any, mode: int
) -> None:
    make(open_root, "a.md", "closed/b.md", "closed/deep/c.md", "open/d.md")
    (open_root / "closed").chmod(mode)
    report = walk_as_nobody(open_root)
    assert report["uris"] == ["a.md", "open/d.md"]
    assert (report["unreadable"], report["unreadable_files"], report["examples"]) == (1, 0, ["closed"])
    assert report["why"] == "unreadable"


def test_only_the_first_twenty_unreadable_folders_are_named(open_root: Path, walk_as_nobody: Any) -> None:
    for number in range(25):
        (open_root / f"closed {number}").mkdir(mode=0o000)
    report = walk_as_nobody(open_root)
    assert report["unreadable"] == 25
    assert len(report["examples"]) == 20


def test_a_file_that_may_not_be_read_is_listed_since_its_stat_may(open_root: Path, walk_as_nobody: Any) -> None:
    make(open_root, "secret.md")
    (open_root / "secret.md").chmod(0o000)
    report = walk_as_nobody(open_root)
    assert report["uris"] == ["secret.md"]
    assert report["complete"]


def test_a_folder_too_deep_to_be_named_leaves_the_walk_incomplete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path, "a.md")
    monkeypatch.chdir(tmp_path)
    name = "d" * 250
    for _ in range(20):
        Path(name).mkdir()
        os.chdir(name)
    running = walk(tmp_path, suffixes=SUFFIXES)
    assert uris(running) == ["a.md"]
    assert running.stats.incomplete_reason == "unreadable"
    assert running.stats.unreadable == 1
    monkeypatch.undo()
    subprocess.run(["rm", "-rf", tmp_path / name], check=True)  # deeper than Python's own removal can name


def test_a_folder_mounted_below_itself_is_walked_once(tmp_path: Path, walk_mounted: Any) -> None:
    make(tmp_path, "a.md", "sub/b.md")
    (tmp_path / "sub" / "loop").mkdir()
    report = walk_mounted(tmp_path, ["--rbind", str(tmp_path), str(tmp_path / "sub" / "loop")])
    assert report["uris"] == ["a.md", "sub/b.md"]
    assert report["skipped"] == {"loop": 1}
    assert report["complete"]


def test_a_folder_mounted_at_a_second_place_is_listed_at_both(tmp_path: Path, walk_mounted: Any) -> None:
    make(tmp_path, "one/a.md")
    (tmp_path / "two").mkdir()
    report = walk_mounted(tmp_path, ["--bind", str(tmp_path / "one"), str(tmp_path / "two")])
    assert report["uris"] == ["one/a.md", "two/a.md"]


def test_another_device_below_the_root_is_walked_and_named(tmp_path: Path, walk_mounted: Any) -> None:
    make(tmp_path, "a.md")
    (tmp_path / "drive").mkdir()
    report = walk_mounted(tmp_path, ["-t", "tmpfs", "none", str(tmp_path / "drive")])
    assert report["devices"] == 2
    assert report["dirs"] == 2
    assert report["complete"]


def test_a_walk_opens_folders_only(tmp_path: Path) -> None:
    make(tmp_path, "a.md", "sub/b.md", "sub/c.png")
    script = """
import json, os, sys
from pathlib import Path
from garage.walk.walker import walk
running = walk(Path(sys.argv[1]), suffixes={".md": "markdown"})
opened = []
sys.addaudithook(lambda event, arguments: event == "open" and opened.append(arguments[2] & os.O_DIRECTORY))
listed = len(list(running))
print(json.dumps([listed, opened]))
"""
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", script, tmp_path], cwd=root, capture_output=True, text=True, check=True
    )
    listed, opened = json.loads(done.stdout)
    assert listed == 2
    assert opened == [os.O_DIRECTORY] * 2
