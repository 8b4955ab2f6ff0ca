"""Walks against the record: files that swapped places, drives below the root, what is told of a walk."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from garage.store import runs
from garage.walk import stage, walker
from garage.walk.errors import DeletionRefused

TEXTS = {name: f"# {name}\n\nThe {name} stands behind the barn, on the northern side.\n" for name in ("rake", "fork")}


def write(root: Path, *names: str, mtime: int = 1_700_000_000) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# {name}\n\nThis page is about {name} and about nothing else.\n")
        os.utime(path, (mtime, mtime))


def swap(a: Path, b: Path) -> None:
    aside = a.with_suffix(".aside")
    a.rename(aside)
    b.rename(a)
    aside.rename(b)


def test_two_files_that_swapped_names_are_read_again_by_their_inodes(folder: Any) -> None:
    for name, text in TEXTS.items():
        path = folder.root / f"{name}.md"
        path.write_text(text)
        os.utime(path, (1_700_000_000, 1_700_000_000))
    write(folder.root, *(f"other-{n}.md" for n in range(10)))
    folder.update()
    swap(folder.root / "rake.md", folder.root / "fork.md")
    assert folder.walk()["changed"] == 2
    assert folder.read()["documents_written"] == 2
    assert folder.documents()["rake.md"] == TEXTS["fork"]
    assert folder.walk()["changed"] == 0
    assert folder.read() == {}


def test_a_file_put_back_with_its_time_is_read_and_nothing_is_written(folder: Any) -> None:
    write(folder.root, *(f"page-{n}.md" for n in range(5)))
    folder.update()
    before = folder.rows("select ctid, xmin from chunks order by id")
    page = folder.root / "page-3.md"
    shutil.copy2(page, folder.root / "copy")
    (folder.root / "copy").rename(page)
    assert folder.walk()["changed"] == 1
    assert folder.read() == {"unchanged": 1}
    assert folder.rows("select ctid, xmin from chunks order by id") == before


def test_where_many_inodes_differ_at_once_they_tell_nothing(folder: Any) -> None:
    write(folder.root, *(f"page-{n}.md" for n in range(30)))
    folder.update()
    copies = folder.root.with_name("copies")
    shutil.copytree(folder.root, copies)
    shutil.rmtree(folder.root)
    copies.rename(folder.root)
    assert folder.walk()["changed"] == 0
    assert folder.read() == {}


def test_the_inodes_of_another_device_are_taken_over_unread(folder: Any) -> None:
    write(folder.root, "a.md", "b.md")
    folder.update()
    with folder.database.connection() as conn:
        conn.execute("update sources set root_device = root_device + 1")
        conn.execute("update source_files set inode = inode + 7")
        conn.execute("update ingest_outcomes set inode = inode + 7")
    assert folder.walk()["changed"] == 0
    assert folder.read() == {}
    found = folder.rows("select f.inode, o.inode from source_files f join ingest_outcomes o using (source_id, uri)")
    real = {(folder.root / name).stat().st_ino for name in ("a.md", "b.md")}
    assert {inode for row in found for inode in row} == real


@pytest.fixture
def drive(folder: Any) -> Iterator[Callable[[bool], None]]:
    """Connects and removes a drive at `disk` below the folder."""
    point = folder.root / "disk"
    point.mkdir()

    def unmount() -> None:
        subprocess.run(["umount", "-l", str(point)], capture_output=True, check=False)

    def set_drive(connected: bool) -> None:
        unmount()
        if connected:
            done = subprocess.run(["mount", "-t", "tmpfs", "none", str(point)], capture_output=True, check=False)
            if done.returncode:
                pytest.skip("mounting needs the rights of root on Linux")

    yield set_drive
    unmount()


def test_a_drive_below_the_root_that_is_gone_deletes_nothing(folder: Any, drive: Callable[[bool], None]) -> None:
    write(folder.root, *(f"page-{n}.md" for n in range(20)))
    drive(True)
    write(folder.root / "disk", "far-0.md", "far-1.md")
    folder.update()
    assert len(folder.documents()) == 22

    drive(False)
    (folder.root / "page-0.md").unlink()
    told = folder.walk()
    assert (told["deleted"], told["withheld"], told["lost_drives"]) == (1, 2, ["disk/"])
    folder.read()
    assert {uri for uri in folder.documents() if uri.startswith("disk/")} == {"disk/far-0.md", "disk/far-1.md"}
    assert folder.walk()["withheld"] == 2  # and it stays so

    drive(True)  # another drive, of course: it is empty
    assert folder.walk()["withheld"] == 2
    write(folder.root / "disk", "far-0.md", "far-1.md")
    assert folder.walk()["withheld"] == 0
    (folder.root / "disk" / "far-1.md").unlink()
    told = folder.walk()
    assert (told["deleted"], told["withheld"], told["lost_drives"]) == (1, 0, [])


def test_what_lay_on_a_drive_goes_when_somebody_says_so(folder: Any, drive: Callable[[bool], None]) -> None:
    write(folder.root, *(f"page-{n}.md" for n in range(4)))
    drive(True)
    write(folder.root / "disk", "far.md")
    folder.update()
    drive(False)
    assert folder.walk(force=True)["deleted"] == 1
    assert folder.rows("select mounts from sources") == [({},)]
    assert folder.walk()["withheld"] == 0


def test_a_drive_that_a_pattern_leaves_out_by_now_is_not_a_lost_one(folder: Any, drive: Callable[[bool], None]) -> None:
    write(folder.root, *(f"page-{n}.md" for n in range(20)))
    drive(True)
    write(folder.root / "disk", "far.md")
    folder.update()
    folder.settings(walk={"exclude": ["/disk/"]})
    told = folder.walk()
    assert (told["deleted"], told["lost_drives"]) == (1, [])


def test_too_many_files_missing_beside_a_lost_drive_are_still_refused(
    folder: Any, drive: Callable[[bool], None]
) -> None:
    write(folder.root, *(f"page-{n}.md" for n in range(4)))
    drive(True)
    write(folder.root / "disk", "far.md")
    folder.update()
    drive(False)
    for number in range(3):
        (folder.root / f"page-{number}.md").unlink()
    with pytest.raises(DeletionRefused, match="3 of 5"):
        folder.walk()


def test_a_walk_keeps_what_it_left_out_and_why(folder: Any) -> None:
    write(folder.root, "a.md", "b.xyz", "node_modules/c.md", "build/d.md", ".hidden.md", "e.py")
    folder.walk()
    with folder.database.connection() as conn:
        (run,) = [run for run in runs.latest(conn) if run.stage == "source_files"]
    expected = {"extension": 1, "dependency": 1, "build": 1, "hidden": 1, "code": 1}
    assert run.details["skipped"] == expected
    assert run.counts["skipped"] == 5
    assert run.details["incomplete"] == ""


def test_a_walk_that_stops_early_is_not_remembered_and_settles_no_refusal(
    folder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder.root, "a.md", "b.md", "c.md")
    folder.walk()
    for name in ("a.md", "b.md"):
        (folder.root / name).unlink()
    with pytest.raises(DeletionRefused, match="2 of 3"):
        folder.walk()
    state = "select root_device, walked_at, walk_seconds, (select vanished from refusals) from sources"
    before = folder.rows(state)
    assert before[0][-1] == 2
    monkeypatch.setattr(stage, "walk", partial(walker.walk, limit=0))
    assert folder.walk().get("deleted", 0) == 0
    assert folder.rows(state) == before
    assert folder.rows("select count(*) from source_files") == [(3,)]
