"""Files as real folders hold them: whatever one of them is or does costs one outcome, and the run goes on."""

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from garage.uris import path_of


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


# Reading


def test_an_unreadable_file_is_tried_again_until_it_can_be_read(
    spine: Any, folder: Path, without_rights: Callable[[], Any]
) -> None:
    closed = write(folder / "closed.txt", "behind a door\n")
    write(folder / "open.txt", "for everybody\n")
    closed.chmod(0o000)
    with without_rights():
        assert spine.update()["documents"]["unreadable"] == 1
        assert spine.update()["documents"]["unreadable"] == 1
    assert spine.outcomes() == {"closed.txt": "unreadable", "open.txt": "ok"}
    assert spine.rows("select reason from ingest_outcomes where outcome = 'unreadable'") == [("Permission denied",)]
    closed.chmod(0o644)
    with without_rights():
        assert spine.update()["documents"]["documents_written"] == 1
    assert spine.outcomes() == {"closed.txt": "ok", "open.txt": "ok"}
    assert spine.update()["documents"] == {}


def test_a_file_that_becomes_unreadable_keeps_its_document(
    spine: Any, folder: Path, without_rights: Callable[[], Any]
) -> None:
    file = write(folder / "diary.txt", "the old version\n")
    spine.update()
    write(file, "the new version\n")
    file.chmod(0o000)
    with without_rights():
        spine.update()
    assert spine.outcomes() == {"diary.txt": "unreadable"}
    assert spine.found("version") == ["diary.txt"]
    assert spine.contents() == {"diary.txt": "the old version\n"}
    file.chmod(0o644)
    spine.update()
    assert spine.contents() == {"diary.txt": "the new version\n"}


def test_an_unreadable_folder_withholds_all_deletions_and_says_so(
    spine: Any, folder: Path, without_rights: Callable[[], Any]
) -> None:
    for number in range(9):
        write(folder / "letters" / f"{number}.txt", f"letter {number}\n")
    gone = write(folder / "gone.txt", "soon to go\n")
    spine.update()
    gone.unlink()
    write(folder / "new.txt", "newly come\n")
    (folder / "letters").chmod(0o000)
    with without_rights():
        walked = spine.walk()
        spine.read()
    assert walked.counts["withheld"] == 10
    assert walked.details["incomplete"] == "unreadable"
    assert walked.details["unreadable"] == ["letters"]
    assert len(spine.contents()) == 11
    (folder / "letters").chmod(0o755)
    assert spine.update()["source_files"]["deleted"] == 1
    assert "gone.txt" not in spine.contents()


def test_a_file_that_vanishes_between_walk_and_reading_is_an_outcome_and_then_forgotten(
    spine: Any, folder: Path
) -> None:
    for number in range(5):
        write(folder / f"{number}.txt", f"number {number}\n")
    spine.walk()
    (folder / "3.txt").unlink()
    assert spine.read().counts["unreadable"] == 1
    assert spine.rows("select uri, reason from ingest_outcomes where outcome <> 'ok'") == [
        ("3.txt", "it vanished after the walk saw it")
    ]
    spine.update()
    assert sorted(spine.outcomes()) == ["0.txt", "1.txt", "2.txt", "4.txt"]


@pytest.mark.parametrize("what", ["fifo", "folder", "link"])
def test_what_takes_a_files_place_between_walk_and_reading_is_not_read(
    spine: Any, folder: Path, tmp_path: Path, what: str
) -> None:
    secret = write(tmp_path / "secret.txt", "not part of the source\n")
    file = write(folder / "note.txt", "the good version\n")
    spine.update()
    write(file, "the next version, which nobody reads\n")
    spine.walk()
    kept = file.stat()
    aside = file.rename(tmp_path / "aside")
    match what:
        case "fifo":
            os.mkfifo(file)
        case "folder":
            file.mkdir()
        case _:
            file.symlink_to(secret)
    spine.read()
    assert spine.outcomes() == {"note.txt": "unreadable"}
    assert spine.contents() == {"note.txt": "the good version\n"}
    # The same file in its place again, with the stat that was already tried, is read.
    file.rmdir() if what == "folder" else file.unlink()
    aside.rename(file)
    assert file.stat().st_mtime_ns == kept.st_mtime_ns
    spine.update()
    assert spine.contents() == {"note.txt": "the next version, which nobody reads\n"}


def test_a_folder_that_becomes_a_link_between_walk_and_reading_leads_nowhere(
    spine: Any, folder: Path, tmp_path: Path
) -> None:
    write(tmp_path / "elsewhere" / "note.txt", "not part of the source\n")
    write(folder / "notes" / "note.txt", "part of the source\n")
    spine.walk()
    (folder / "notes").rename(tmp_path / "aside")
    (folder / "notes").symlink_to(tmp_path / "elsewhere")
    spine.read()
    assert spine.outcomes() == {"notes/note.txt": "unreadable"}
    assert spine.contents() == {}


def test_a_root_that_is_itself_a_link_is_read(spine: Any, folder: Path, tmp_path: Path) -> None:
    write(folder / "notes" / "note.txt", "reached through a link\n")
    (tmp_path / "way").symlink_to(folder)
    spine.configure({"name": "lib", "root": tmp_path / "way"})
    spine.update()
    assert spine.outcomes() == {"notes/note.txt": "ok"}


# Names and times


def test_names_of_any_bytes_become_addresses_that_lead_back_to_the_file(spine: Any, folder: Path) -> None:
    names = [
        b"not utf-8 \xff\xfe.txt",
        b"two\nlines.txt",
        b"100%25 sure%0A.txt",
        "emoji 🐝\u202etxt.exe.txt".encode(),
        "decomposed e\u0301.txt".encode(),
        "composed \u00e9.txt".encode(),
        b"x" * 251 + b".txt",
        b" leading and trailing .txt",
        b"back\\slash'quote\"and$(dollar).txt",
    ]
    for number, name in enumerate(names):
        with open(os.path.join(os.fsencode(folder), name), "wb") as file:  # noqa: PTH118, PTH123 - bytes
            file.write(f"file number {number}\n".encode())
    counts = spine.update()
    assert counts["documents"]["documents_written"] == len(names)
    stored = spine.contents()
    assert {path_of(uri): content for uri, content in stored.items()} == {
        name: f"file number {number}\n" for number, name in enumerate(names)
    }
    assert all(uri.isprintable() for uri in stored)
    assert sorted(spine.found("file number", "keyword")) == sorted(stored)
    assert spine.update()["documents"] == {}


def test_a_path_too_long_for_an_index_is_left_out_and_counted(spine: Any, folder: Path) -> None:
    write(folder / "short.txt", "a short way\n")
    here = Path.cwd()
    os.chdir(folder)  # the whole path would be longer than the system takes at once
    try:
        for number in range(12):
            name = f"{number:02}" + random.Random(number).randbytes(120).hex()  # nothing that compresses
            Path(name).mkdir()
            os.chdir(name)
        Path("deep.txt").write_text("at the end of a long way\n", encoding="utf-8")
    finally:
        os.chdir(here)
    walked = spine.walk()
    assert walked.details["skipped"] == {"address too long": 1}
    spine.read()
    assert spine.outcomes() == {"short.txt": "ok"}


@pytest.mark.parametrize("seconds", [-(2**31), 2**34])
def test_a_time_of_modification_beyond_what_is_stored_is_no_error(spine: Any, folder: Path, seconds: int) -> None:
    file = write(folder / "clock.txt", "the clock was wrong\n")
    os.utime(file, (seconds, seconds))
    assert spine.update()["documents"]["documents_written"] == 1
    assert spine.update()["documents"] == {}
    os.utime(file)
    assert spine.update()["documents"] == {"unchanged": 1}
