"""`garage source`: folders become sources, and sources go without touching a file."""

import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest

from garage.config import Config, load
from garage.serve.sources import slug_of
from garage.store import documents, sources
from garage.store.database import Database
from tests.builders.chat_db import ChatDatabase

CHECKOUT = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "My Notes"
    folder.mkdir()
    (folder / "a.md").write_text("# A\n", encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("Documents", "documents"),
        ("My Notes (2024)", "my-notes-2024"),
        ("Ärzte & Söhne", "arzte-sohne"),
        ("日本", "source"),
        ("", "source"),
        ("_x_", "x"),
        ("a" * 100, "a" * 63),
        ("a" * 62 + " b", "a" * 62),
    ],
)
def test_a_source_is_named_after_its_folder(name: str, slug: str) -> None:
    assert slug_of(name) == slug


def test_adding_a_folder_writes_it_down_and_registers_it(
    garage: Any, garage_home: Any, database: Database, folder: Path
) -> None:
    answer = garage("source", "add", folder, "--class", "communication", "--trust", "received",
                    "--egress", "lan", "--exclude", "drafts/")  # fmt: skip
    assert answer.code == 0
    assert load().sources[0].egress == "lan"
    assert f"Added the source 'my-notes': {folder}" in answer.out
    assert "garage update --source my-notes" in answer.out
    (source,) = load().sources
    assert (source.root, source.corpus_class, source.trust, source.exclude) == (
        folder,
        "communication",
        "received",
        ("drafts/",),
    )
    with database.connection() as conn:
        row = sources.source(conn, "my-notes")
    assert (row.root, row.active, row.default_class) == (str(folder), True, "communication")


def test_adding_into_a_home_that_does_not_exist_makes_its_configuration(
    garage: Any, garage_home: Any, folder: Path
) -> None:
    garage_home.config_path.unlink()
    assert garage("source", "add", folder).code == 0
    assert [source.name for source in load().sources] == ["my-notes"]


def test_a_configuration_that_was_named_is_made_too(
    garage: Any, garage_home: Any, folder: Path, tmp_path: Path
) -> None:
    path = tmp_path / "named.yaml"
    assert garage("source", "add", folder, "--config", path).code == 0
    assert [source.name for source in load(path).sources] == ["my-notes"]


def test_adding_the_same_folder_again_is_no_error_and_changes_nothing(
    garage: Any, garage_home: Any, folder: Path
) -> None:
    garage("source", "add", folder)
    before = garage_home.config_path.read_bytes()
    link = folder.parent / "link"
    link.symlink_to(folder)
    for again in (folder, f"{folder}/../{folder.name}/", link):
        answer = garage("source", "add", again, "--trust", "received")
        assert answer.code == 0
        assert "is already the source 'my-notes'" in answer.out
        assert "Its settings stay as they are" in answer.out
    assert garage_home.config_path.read_bytes() == before


def test_the_answer_in_json_says_whether_anything_was_added(garage: Any, garage_home: Any, folder: Path) -> None:
    first, second = (garage("source", "add", folder, "--json").data for _ in range(2))
    assert first == {"name": "my-notes", "root": str(folder), "added": True, "excluded": []}
    assert second == {**first, "added": False}


def test_a_second_folder_of_the_same_name_gets_a_number(garage: Any, garage_home: Any, folder: Path) -> None:
    other = folder.parent / "elsewhere" / folder.name
    other.mkdir(parents=True)
    garage("source", "add", folder)
    assert garage("source", "add", other, "--json").data["name"] == "my-notes-2"


def test_a_name_that_is_taken_is_refused(garage: Any, garage_home: Any, folder: Path) -> None:
    other = folder.parent / "other"
    other.mkdir()
    garage("source", "add", folder, "--name", "notes")
    answer = garage("source", "add", other, "--name", "notes")
    assert answer.code == 1
    assert f"The name 'notes' belongs to the source {folder}." in answer.err


@pytest.mark.parametrize("name", ["Notes", "a b", "../x", "a|b", ""])
def test_a_name_that_is_no_slug_is_a_bad_argument(garage: Any, garage_home: Any, folder: Path, name: str) -> None:
    answer = garage("source", "add", folder, "--name", name)
    assert answer.code == 2
    assert load().sources == ()


def test_what_is_not_a_readable_folder_is_a_bad_argument(garage: Any, garage_home: Any, folder: Path) -> None:
    for path, reason in ((folder / "none", "there is no such folder"), (folder / "a.md", "it is not a folder")):
        answer = garage("source", "add", path)
        assert answer.code == 2
        assert reason in answer.err


def test_a_folder_whose_path_is_not_utf8_is_refused_with_a_way_out(
    garage: Any, garage_home: Any, tmp_path: Path
) -> None:
    odd = os.fsencode(tmp_path) + b"/caf\xe9"
    os.mkdir(odd)  # noqa: PTH102 - a name that is bytes
    answer = garage("source", "add", os.fsdecode(odd))
    assert answer.code == 2
    assert "symbolic link" in answer.err
    os.rmdir(odd)  # noqa: PTH106 - a name that is bytes


def test_a_folder_inside_a_source_is_refused_until_the_source_leaves_it_out(
    garage: Any, garage_home: Any, folder: Path
) -> None:
    inner = folder / "mail" / "2024"
    inner.mkdir(parents=True)
    garage("source", "add", folder)
    answer = garage("source", "add", inner)
    assert answer.code == 1
    assert "read twice" in answer.err
    assert "'/mail/2024/'" in answer.err
    garage_home.configure({"name": "my-notes", "root": str(folder), "exclude": ["/mail/2024/"]})
    assert garage("source", "add", inner, "--name", "mail").code == 0


def test_a_folder_around_a_source_is_refused_until_it_leaves_it_out(
    garage: Any, garage_home: Any, folder: Path
) -> None:
    inner = folder / "mail"
    inner.mkdir()
    garage("source", "add", inner)
    answer = garage("source", "add", folder)
    assert answer.code == 1
    assert "--exclude '/mail/'" in answer.err
    assert garage("source", "add", folder, "--exclude", "/mail/").code == 0


def test_neighbours_whose_names_begin_alike_do_not_overlap(garage: Any, garage_home: Any, folder: Path) -> None:
    other = folder.parent / f"{folder.name} 2"
    other.mkdir()
    assert garage("source", "add", folder).code == 0
    assert garage("source", "add", other).code == 0


def test_a_source_leaves_garage_s_own_home_out(garage: Any, garage_home: Any) -> None:
    answer = garage("source", "add", garage_home.path.parent, "--name", "all")
    assert answer.code == 0
    assert load().sources[0].exclude == (f"/{garage_home.path.name}/",)
    assert "GARAGE_HOME lies in it" in answer.out


def test_garage_s_own_home_is_no_source(garage: Any, garage_home: Any) -> None:
    (garage_home.path / "logs").mkdir()
    for path in (garage_home.path, garage_home.path / "logs"):
        answer = garage("source", "add", path)
        assert answer.code == 2
        assert "GARAGE_HOME" in answer.err


def test_a_pattern_that_means_nothing_is_a_bad_argument(garage: Any, garage_home: Any, folder: Path) -> None:
    answer = garage("source", "add", folder, "--exclude", "!")
    assert answer.code == 2
    assert load().sources == ()


def test_the_list_says_what_each_source_has(garage: Any, stocked: Config) -> None:
    answer = garage("source", "list")
    assert answer.code == 0
    header, row = answer.out.splitlines()
    assert header.split() == ["NAME", "DOCUMENTS", "PASSAGES", "LAST", "WALK", "FOLDER"]
    assert row.split()[:4] == ["garden", "3", "3", "never"]
    (found,) = garage("source", "list", "--json").data["sources"]
    assert (found["name"], found["documents"], found["passages"]) == ("garden", 3, 3)


def test_an_empty_list_says_how_to_add_a_source(garage: Any, garage_home: Any) -> None:
    assert "garage source add" in garage("source", "list").out


def test_a_source_that_was_taken_out_by_hand_is_listed_while_it_has_documents(
    garage: Any, garage_home: Any, stocked: Config
) -> None:
    garage_home.configure()
    assert "garden (off)" in garage("source", "list").out
    assert garage("source", "remove", "garden", "--yes").code == 0
    assert "There are no sources yet" in garage("source", "list").out


def test_a_refusal_is_listed_with_the_command_that_lets_it_through(
    garage: Any, stocked: Config, database: Database
) -> None:
    from garage.store import runs

    with database.connection() as conn:
        row = sources.source(conn, "garden")
        runs.refuse(conn, row.id, cause="x", known=3, vanished=2, detail="Refused to delete 2 of 3 files.")
    out = garage("source", "list").out
    assert "Refused to delete 2 of 3 files." in out
    assert "garage update --source garden --force" in out


def test_removing_a_source_deletes_what_it_contributed_and_no_file(
    garage: Any, garage_home: Any, stocked: Config, database: Database
) -> None:
    root = stocked.sources[0].root
    (root / "mine.md").write_text("# Mine\n", encoding="utf-8")
    answer = garage("source", "remove", "garden", "--yes", "--json")
    assert answer.data == {"name": "garden", "documents": 3, "passages": 3}
    assert load().sources == ()
    assert (root / "mine.md").exists()
    with database.connection() as conn:
        row = sources.source(conn, "garden")
        assert not row.active
        assert documents.counts(conn, row.id) == (0, 0)
    with psycopg.connect(garage_home.database_url) as conn:
        assert conn.execute("select count(*) from garage.emb_all_minilm_l6_v2").fetchone() == (0,)


def test_removing_without_a_terminal_needs_a_yes(garage: Any, stocked: Config, database: Database) -> None:
    answer = garage("source", "remove", "garden")
    assert answer.code == 1
    assert "3 documents and 3 passages of 'garden'" in answer.err
    assert "--yes" in answer.err
    with database.connection() as conn:
        assert sources.source(conn, "garden").active


@pytest.mark.parametrize(("reply", "left"), [("n\n", 1), ("y\n", 0)])
def test_a_person_at_a_terminal_is_asked(stocked: Config, reply: str, left: int) -> None:
    controller, terminal = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "garage", "source", "remove", "garden"],
        cwd=CHECKOUT,
        stdin=terminal,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        os.write(controller, reply.encode())
        out, err = process.communicate(timeout=120)
    os.close(terminal)
    os.close(controller)
    assert "Delete 3 documents and 3 passages of 'garden' from Garage?" in err
    assert process.returncode == (1 if left else 0)
    assert ("Removed 'garden'" in out) is not bool(left)
    assert len(load().sources) == left


def test_removing_what_never_was_names_what_there_is(garage: Any, stocked: Config) -> None:
    answer = garage("source", "remove", "gardn", "--yes")
    assert answer.code == 2
    assert "Known sources: garden" in answer.err


def test_a_source_that_a_run_works_on_is_not_removed_under_it(garage: Any, stocked: Config, database: Database) -> None:
    with database.exclusive("ingest/garden"):
        answer = garage("source", "remove", "garden", "--yes")
    assert answer.code == 1
    assert "Another run is working on 'garden'" in answer.err
    assert len(load().sources) == 1


def test_a_removed_folder_can_be_added_again(garage: Any, stocked: Config, database: Database) -> None:
    root = stocked.sources[0].root
    garage("source", "remove", "garden", "--yes")
    assert garage("source", "add", root).code == 0
    with database.connection() as conn:
        assert sources.source(conn, "garden").active


def test_a_database_of_messages_is_added_by_its_file(
    garage: Any, garage_home: Any, database: Database, tmp_path: Path
) -> None:
    path = tmp_path / "chat.db"
    with ChatDatabase(path) as chats:
        chats.message(chats.chat("iMessage;-;+1555", "+1555"), "hello", sender="+1555")
    assert garage("source", "add", path, "--name", "phone", "--kind", "messages").code == 0
    assert [(source.name, source.root, source.kind) for source in load().sources] == [("phone", path, "messages")]
    with database.connection() as conn:
        assert sources.source(conn, "phone").kind == "messages"


def test_a_database_of_messages_named_as_a_folder_says_how_to_add_it(
    garage: Any, garage_home: Any, tmp_path: Path
) -> None:
    (tmp_path / "chat.db").write_bytes(b"")
    answer = garage("source", "add", tmp_path / "chat.db")
    assert answer.code != 0
    assert "--kind messages" in answer.err


@pytest.mark.parametrize("name", ["folder", "missing.db", "notes.db"])
def test_what_is_no_database_of_messages_is_not_registered(
    garage: Any, garage_home: Any, tmp_path: Path, name: str
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "notes.db").write_text("notes", encoding="utf-8")
    answer = garage("source", "add", tmp_path / name, "--kind", "messages")
    assert answer.code != 0
    assert name in answer.err
    assert load().sources == ()
