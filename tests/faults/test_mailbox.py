"""A mailbox is a file of many documents: each message is one, and a change of the file rewrites what changed in it."""

import os
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest


def message(number: int, text: str) -> bytes:
    mail = EmailMessage()
    mail["From"] = f"Person {number} <person{number}@example.org>"
    mail["To"] = "owner@example.org"
    mail["Subject"] = f"Pump number {number}"
    mail["Message-ID"] = f"<{number}@example.org>"
    mail["Date"] = "Mon, 06 May 2024 10:00:00 +0000"
    mail.set_content(text)
    return b"From person@example.org Mon May  6 10:00:00 2024\n" + bytes(mail) + b"\n"


TEXTS = {
    1: "The pump is dry.\n\nOn Sunday, May 5, 2024 Ben <ben@example.org> wrote:\n> Is the heron at the pond?\n",
    2: "A new filter has been ordered.\n",
    3: "The bill for the pelican house is attached.\n",
    4: "Thank you for all of it.\n",
}


def write(folder: Path, texts: dict[int, str]) -> None:
    (folder / "Inbox.mbox").write_bytes(b"".join(message(number, text) for number, text in texts.items()))


@pytest.fixture
def mailbox(spine: Any, folder: Path) -> Path:
    write(folder, TEXTS)
    spine.update()
    return folder


def test_every_message_is_a_document_of_its_own(spine: Any, mailbox: Path) -> None:
    assert spine.rows("select uri, title, corpus_class from documents order by uri") == [
        (f"Inbox.mbox#{number}@example.org", f"Pump number {number}", "communication") for number in TEXTS
    ]
    assert spine.outcomes() == {"Inbox.mbox": "ok"}
    assert spine.found("pelican", "keyword") == ["Inbox.mbox#3@example.org"]
    assert all(content[start:end] == text for content, start, end, text in spine.rows(
        "select d.content, c.char_start, c.char_end, c.text from chunks c join documents d on d.id = c.document_id"
    ))  # fmt: skip


def test_words_that_somebody_else_wrote_are_marked(spine: Any, mailbox: Path) -> None:
    quoted = dict(spine.rows("select text, quoted from chunks where document_id in (select id from documents"
                             " where title = 'Pump number 1')"))  # fmt: skip
    assert [marked for text, marked in quoted.items() if "heron" in text] == [True]
    assert [marked for text, marked in quoted.items() if "pump is dry" in text] == [False]


def test_a_message_more_leaves_the_others_untouched(spine: Any, mailbox: Path) -> None:
    before = dict(spine.rows("select uri, (id, ingested_at)::text from documents"))
    write(mailbox, TEXTS | {5: "The stork has landed.\n"})
    counts = spine.update()
    assert counts["documents"]["documents_written"] == 1
    assert counts["documents"]["documents_kept"] == 4
    assert counts["embeddings/all-minilm-l6-v2"] == {"embedded": counts["documents"]["chunks_written"]}
    after = dict(spine.rows("select uri, (id, ingested_at)::text from documents"))
    assert len(after) == 5
    assert before.items() <= after.items()


def test_a_message_less_takes_its_document_along_and_no_other(spine: Any, mailbox: Path) -> None:
    write(mailbox, {number: text for number, text in TEXTS.items() if number != 3})
    assert spine.update()["documents"] == {"documents_deleted": 1, "documents_kept": 3}
    assert spine.found("pelican", "keyword") == []
    assert len(spine.contents()) == 3


def test_a_mailbox_with_a_new_time_only_is_not_written_again(spine: Any, mailbox: Path) -> None:
    os.utime(mailbox / "Inbox.mbox", ns=(1, 1))
    assert spine.update()["documents"] == {"unchanged": 1}
    assert spine.rows("select distinct mtime_ns from documents") == [(1,)]


def test_a_mailbox_that_can_no_longer_be_read_keeps_its_documents(spine: Any, mailbox: Path) -> None:
    (mailbox / "Inbox.mbox").write_bytes(bytes(range(256)) * 300)
    spine.update()
    assert spine.outcomes()["Inbox.mbox"] != "ok"
    assert len(spine.contents()) == 4


def test_a_mailbox_that_is_gone_takes_all_of_its_documents_along(spine: Any, mailbox: Path) -> None:
    for number in range(9):
        (mailbox / f"note {number}.txt").write_text("a note beside\n", encoding="utf-8")
    spine.update()
    (mailbox / "Inbox.mbox").unlink()
    assert spine.update()["documents"] == {"documents_deleted": 4}
    assert len(spine.contents()) == 9
