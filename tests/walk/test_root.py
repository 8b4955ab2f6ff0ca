import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from garage.walk.errors import SourceUnavailable
from garage.walk.root import open_root as look_at


def test_a_root_is_described_by_its_stat(tmp_path: Path) -> None:
    (tmp_path / "note.md").write_text("x")
    state = look_at(tmp_path)
    status = tmp_path.stat()
    assert (state.path, state.device, state.inode, state.empty) == (tmp_path, status.st_dev, status.st_ino, False)


def test_a_root_without_entries_is_empty(tmp_path: Path) -> None:
    assert look_at(tmp_path).empty


def test_a_root_given_relative_to_the_working_folder_is_made_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert look_at(Path()).path == tmp_path


def test_a_root_that_is_a_link_to_a_folder_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert look_at(tmp_path / "link").inode == (tmp_path / "real").stat().st_ino


@pytest.mark.parametrize(
    ("name", "reason"), [("gone", "does not exist"), ("file", "is not a folder"), ("dangling", "does not exist")]
)
def test_a_root_that_is_not_there_is_unavailable_and_says_that_nothing_was_deleted(
    tmp_path: Path, name: str, reason: str
) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "dangling").symlink_to("nowhere")
    with pytest.raises(SourceUnavailable) as caught:
        look_at(tmp_path / name, source="notes")
    error = caught.value
    assert (error.source, error.root, error.reason) == ("notes", tmp_path / name, reason)
    assert f"Source 'notes' is unavailable: {tmp_path / name} {reason}." in str(error)
    assert "Nothing was deleted" in error.hint
    assert pickle.loads(pickle.dumps(error)).root == tmp_path / name


def test_a_root_whose_name_is_not_utf8_can_be_shown(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailable, match="caf%E9 does not exist") as caught:
        look_at(tmp_path / os.fsdecode(b"caf\xe9"))
    str(caught.value).encode("utf-8")


@pytest.mark.parametrize("mode", [0o000, 0o444, 0o111])
def test_a_root_that_cannot_be_listed_or_entered_is_unavailable(
    open_root: Path, mode: int, walk_as_nobody: Any
) -> None:
    (open_root / "inner").mkdir()
    (open_root / "inner" / "note.md").write_text("x")
    (open_root / "inner").chmod(mode)
    report = walk_as_nobody(open_root / "inner")
    assert report["reason"] == "cannot be read (Permission denied)"
    assert "Source 'notes' is unavailable" in report["error"]
    assert not report["begun"]
