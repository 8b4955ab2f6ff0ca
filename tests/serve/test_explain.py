"""`garage explain`: whose a document is and why, what it is made of, and why a file is no document."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from garage import stages, worklist
from garage.config import Config, load
from garage.store.database import Database
from tests.builders.chat_db import ChatDatabase

OWNER = {"name": "Ada Byron", "identities": ["email:ada@example.org"]}
ONE = {"workers": 1}
LETTER = (
    "From: Mary Somerville <mary@example.net>\r\nTo: Ada Byron <ada@example.org>\r\nSubject: The comet\r\n"
    "Date: Mon, 3 Feb 2025 10:00:00 +0000\r\nMessage-ID: <{number}@example.net>\r\n\r\n"
    "The comet stood above the observatory on night {number}, and its tail reached the second star.\r\n\r\n"
    "On Sunday Ada wrote:\r\n> Did you see the comet from your garden?\r\n"
)


def run(database: Database, config: Config, name: str, *, run_id: str | None = None) -> None:
    """Everything but the vectors, as the pipeline does it."""
    row = stages.source(database, config, name)
    stages.walk(database, config, row, allow_deletes=True, run_id=run_id)
    row = stages.source(database, config, name)
    made: list[Any] = [stages.documents, stages.attribution, stages.chunks]
    for make in made:
        worklist.run(database, make(database, config, row), run_id=run_id)


@pytest.fixture
def study(garage_home: Any, database: Database, library: Path) -> Config:
    """A source with notes, letters, a mailbox and files that a walk leaves out, read once."""
    (library / "letter.eml").write_text(LETTER.format(number=1), newline="")
    box = "".join(f"From mary@example.net Mon Feb  3 10:00:0{n} 2025\n{LETTER.format(number=n)}\n" for n in (2, 3))
    (library / "old.mbox").write_text(box.replace("\r", ""))
    (library / "empty.md").write_text("\n")
    (library / "Books").mkdir()
    (library / "Books" / "optics.md").write_text("# Optics\n\nLight is bent where it enters the glass of a prism.\n")
    (library / "copy.txt").write_bytes((library / "boiler.txt").read_bytes())
    (library / "node_modules" / "pad").mkdir(parents=True)
    (library / "node_modules" / "pad" / "README.md").write_text("# Pad\n\nPads a text.\n")
    (library / ".secret.md").write_text("# Secret\n\nNobody walks here.\n")
    (library / "tool.py").write_text("print('hello')\n")
    (library / "draft.bak.md").write_text("# Draft\n\nNot yet.\n")
    (library / "link.md").symlink_to("boiler.txt")
    garage_home.configure(
        {"name": "study", "root": library, "trust": "received", "exclude": ["*.bak.md"]}, identity=OWNER, extraction=ONE
    )
    config = load()
    run(database, config, "study", run_id="run-1")
    return config


def document(answer: Any) -> Any:
    assert answer.code == 0, answer.err
    return answer.data["document"]


def test_a_letter_is_explained_top_to_bottom(garage: Any, study: Config, library: Path) -> None:
    answer = garage("explain", "study:letter.eml")
    assert answer.code == 0
    out = answer.out
    assert out.startswith("The comet  (document ")
    assert f"{library}/letter.eml (" in out
    assert "class  communication, because of class:shape:mail" in out
    assert "trust  received, because of message-sender:mary@example.net" in out
    signals = [line.split()[0:3] for line in out.splitlines() if line.startswith("    ") and "silent" in line]
    assert ["git", "silent", "git-log:untracked"] in signals
    assert ["path", "silent", "path-rule:none"] in signals
    assert "->  sender  received  message-sender:mary@example.net" in out
    assert "sender     Mary Somerville  1.00" in out
    assert "recipient  Ada Byron (you)  1.00" in out
    assert "1 quoted" in out
    assert "extractor       mail, current" in out
    assert "source_files  run " in out
    assert "run-1" in out
    assert len(out.splitlines()) <= 40


def test_the_same_in_json(garage: Any, study: Config, library: Path) -> None:
    found = document(garage("explain", "letter.eml", "--json"))
    stored = found["stored"]
    assert (stored["corpus_class"], stored["trust_tier"], stored["record"]) == ("communication", "received", "")
    assert [signal["signal"] for signal in stored["signals"] if signal["won"]] == ["sender", "class"]
    assert {len(stored["source_sha256"]), len(stored["content_sha256"])} == {64}
    assert stored["passages"] == stored["quoted"] + 1
    assert [step["run"]["stage"] for step in found["lineage"]] == ["source_files", "documents", "attribution", "chunks"]
    assert {step["run"]["run_id"] for step in found["lineage"]} == {"run-1"}
    assert {step["url"] for step in found["lineage"]} == {""}
    assert found["extractor_current"]
    assert found["chunker_current"]


@pytest.mark.parametrize("spelling", ["{id}", "study:Books/optics.md", "Books/optics.md", "optics.md", "{path}"])
def test_a_document_answers_to_all_its_names(garage: Any, study: Config, library: Path, spelling: str) -> None:
    number = document(garage("explain", "study:Books/optics.md", "--json"))["stored"]["document_id"]
    name = spelling.format(id=number, path=library / "Books" / "optics.md")
    found = document(garage("explain", name, "--json"))
    assert found["stored"]["document_id"] == number
    assert found["stored"]["trust_tier"] == "reference"


def test_a_path_is_taken_from_the_current_folder_and_through_links(
    garage: Any, study: Config, library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "way").symlink_to(library)
    monkeypatch.chdir(library / "Books")
    for name in ("./optics.md", "../Books/optics.md", str(tmp_path / "way" / "Books" / "optics.md")):
        assert document(garage("explain", name, "--json"))["stored"]["uri"] == "Books/optics.md", name
    (library / "Books" / "boiler.txt").write_text("Another boiler.\n")
    assert garage("explain", "boiler.txt", "--json").data["file"]["uri"] == "Books/boiler.txt"
    monkeypatch.chdir(tmp_path)
    assert document(garage("explain", "boiler.txt", "--json"))["stored"]["uri"] == "boiler.txt"


def test_a_mailbox_lists_what_is_in_it_and_a_record_is_a_document(garage: Any, study: Config) -> None:
    answer = garage("explain", "old.mbox")
    assert answer.code == 0
    assert "It holds 2 documents: communication 2, received 2" in answer.out
    data = garage("explain", "old.mbox", "--json").data
    assert data["document"] is None
    first = data["file"]["records"]["first"][0]
    assert first["uri"].startswith("old.mbox#")
    for name in (f"study:{first['uri']}", first["uri"], str(first["document_id"])):
        assert document(garage("explain", name, "--json"))["stored"]["document_id"] == first["document_id"]


def test_a_record_is_found_by_its_file_s_path(garage: Any, study: Config, library: Path) -> None:
    uri = garage("explain", "old.mbox", "--json").data["file"]["records"]["first"][0]["uri"]
    record = uri.partition("#")[2]
    found = document(garage("explain", f"{library}/old.mbox#{record}", "--json"))
    assert found["stored"]["uri"] == uri


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("empty.md", "reading  ended"),
        ("node_modules/pad/README.md", "leaves it out at node_modules/ (dependency: packages that a tool installed)"),
        (".secret.md", "leaves it out at .secret.md (hidden: its name begins with a dot)"),
        ("tool.py", "leaves it out at tool.py (code: "),
        ("draft.bak.md", "leaves it out at draft.bak.md (pattern: an `exclude` pattern of yours)"),
        ("link.md", "leaves it out at link.md (link: links are not followed)"),
        ("Books", "it is a folder"),
        ("archive.xyz", "leaves it out at archive.xyz (extension: no reader for such files)"),
        ("new.md", "has not seen it yet"),
    ],
)
def test_a_file_without_a_document_tells_why(garage: Any, study: Config, library: Path, name: str, said: str) -> None:
    for later in ("archive.xyz", "new.md"):
        (library / later).write_text("# Later\n\nThis came after the walk.\n")
    answer = garage("explain", library / name)
    assert answer.code == 0, answer.err
    assert said in answer.out
    assert garage("explain", library / name, "--json").data["document"] is None


def test_documents_of_the_same_content_name_each_other(garage: Any, study: Config) -> None:
    found = document(garage("explain", "boiler.txt", "--json"))
    assert [twin["uri"] for twin in found["same_content"]] == ["copy.txt"]
    assert found["same_content_total"] == 1
    assert "The same content\n" in garage("explain", "boiler.txt").out


def test_a_name_that_several_documents_bear_lists_them(
    garage: Any, garage_home: Any, database: Database, study: Config, library: Path, tmp_path: Path
) -> None:
    other = tmp_path / "attic"
    (other / "Books").mkdir(parents=True)
    (other / "Books" / "optics.md").write_text("# Optics again\n\nAnother text about the glass of a prism.\n")
    garage_home.configure({"name": "study", "root": library}, {"name": "attic", "root": other}, extraction=ONE)
    run(database, load(), "attic")
    answer = garage("explain", "optics.md")
    assert answer.code == 2
    assert "attic:Books/optics.md" in answer.err
    assert "study:Books/optics.md" in answer.err
    assert "Name one by its id" in answer.err
    error = garage("explain", "Books/optics.md", "--json").data["error"]
    assert [candidate["source"] for candidate in error["candidates"]] == ["attic", "study"]
    found = document(garage("explain", "optics.md", "--source", "attic", "--json"))
    assert found["stored"]["title"] == "Optics again"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere.md"], "There is no document and no file 'nowhere.md'."),
        (["999999"], "There is no document and no file '999999'."),
        (["study:nowhere.md"], "There is no document and no file"),
        (["\udcff"], "There is no document and no file"),
        (["a\0b"], "There is no document and no file"),
        (["~nobody-of-that-name/x.md"], "There is no document and no file"),
        (["optics.md", "--source", "nowhere"], "There is no source 'nowhere'."),
        (["/"], "/ is in no source."),
    ],
)
def test_what_is_unknown_is_said_with_what_to_do(garage: Any, study: Config, arguments: list[str], said: str) -> None:
    answer = garage("explain", *arguments)
    assert answer.code == 2
    assert said in answer.err
    assert len(answer.err.splitlines()) >= 2
    assert "Traceback" not in answer.err


def test_what_is_out_of_date_is_marked(garage: Any, garage_home: Any, database: Database, study: Config) -> None:
    with database.connection() as conn:
        conn.execute("update documents set extractor_fingerprint = 'old', chunked_as = 'old', attributed_as = null")
    out = garage("explain", "optics.md").out
    assert "the next `garage update` reads it again" in out
    assert "the next `garage update` cuts it again" in out
    assert "the next `garage update` decides again" in out


def test_vectors_are_counted_by_model(garage: Any, stocked: Config) -> None:
    found = document(garage("explain", "people.md", "--json"))
    assert found["vectors"] == [{"model": "all-minilm-l6-v2", "current": 1, "outdated": 0, "missing": 0}]
    assert "all-minilm-l6-v2: 1 of 1" in garage("explain", "people.md").out


def test_a_file_that_changed_after_the_walk_is_marked(garage: Any, study: Config, library: Path) -> None:
    assert "saw it before it changed" not in garage("explain", "boiler.txt").out
    (library / "boiler.txt").write_text("The boiler is new.\n")
    assert "saw it before it changed; the next `garage update` reads it again" in garage("explain", "boiler.txt").out


def test_threads_of_a_messages_database_are_explained_and_counted(
    garage: Any, garage_home: Any, database: Database, tmp_path: Path
) -> None:
    with ChatDatabase(tmp_path / "chat.db") as made:
        chat = made.chat("iMessage;-;+15550100", "+15550100")
        made.message(chat, "Did you see the comet over the observatory?", sender="+15550100")
        made.message(chat, "I did, from the roof of the barn.")
    garage_home.configure({"name": "chat", "kind": "messages", "root": tmp_path / "chat.db"}, identity=OWNER)
    run(database, load(), "chat")
    answer = garage("explain", tmp_path / "chat.db")
    assert "It holds 1 document: communication 1, received 1" in answer.out
    out = garage("explain", "chat.db#iMessage;-;+15550100").out
    assert "->  sender  received  conversation:self-messages:1/2" in out
    assert "Ada Byron (you)" in out


def test_a_document_whose_file_is_gone_is_still_explained(garage: Any, study: Config, library: Path) -> None:
    (library / "boiler.txt").unlink()
    out = garage("explain", "boiler.txt").out
    assert "not there now" in out


def test_a_name_that_is_no_text_reaches_its_file(garage: Any, database: Database, study: Config, library: Path) -> None:
    path = os.fsencode(library) + b"/caf\xe9.md"
    Path(os.fsdecode(path)).write_text("# Coffee\n\nA house where one reads the papers all day.\n")
    run(database, study, "study")
    assert document(garage("explain", os.fsdecode(path), "--json"))["stored"]["uri"] == "caf%E9.md"


def test_the_dagster_run_is_linked_while_its_interface_runs(
    garage: Any, study: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    from garage.serve.processes import Service

    web = Service("webserver", 1, 0.0, (), "", "", "http://127.0.0.1:3999")
    found: Callable[..., Service] = lambda home, name: web  # noqa: E731 - a stand-in of one line
    monkeypatch.setattr("garage.serve.processes.running", found)
    assert "http://127.0.0.1:3999/runs/run-1" in garage("explain", "optics.md").out
