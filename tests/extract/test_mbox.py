import time
from email.message import Message
from pathlib import Path

import pytest

from garage.config import Extraction
from garage.extract import mbox
from garage.extract.mime import message as mails
from garage.extract.model import Extracted, NoText, Unsupported

FROM = b"From ann@x.org Mon Mar  3 10:00:00 2025\n"


def message(number: int, body: bytes = b"words\n", identity: bytes | None = None) -> bytes:
    known = b"<%d@x.org>" % number if identity is None else identity
    return b"Message-ID: %s\nFrom: ann@x.org\nSubject: Mail %d\n\n%s" % (known, number, body)


def read(raw: bytes) -> list[Extracted]:
    return mbox.extract(raw, name="tea.mbox", settings=Extraction())


def test_each_message_is_a_document_addressed_by_its_identity() -> None:
    found = read(FROM + message(1) + b"\n" + FROM + message(2) + b"\n")
    assert [(one.title, one.record, one.communication) for one in found] == [
        ("Mail 1", "1@x.org", True),
        ("Mail 2", "2@x.org", True),
    ]
    assert found[0].content == "Subject: Mail 1\nFrom: ann@x.org\n\nwords\n"


def test_an_identity_that_is_repeated_gets_a_number_and_one_that_is_missing_a_digest() -> None:
    first = read(
        FROM + message(1) + b"\n" + FROM + message(2, identity=b"<1@x.org>") + b"\n" + FROM + message(3, identity=b"")
    )
    assert [one.record for one in first[:2]] == ["1@x.org", "1@x.org#2"]
    assert len(first[2].record) == 32
    assert read(FROM + message(3, identity=b""))[0].record == first[2].record


def test_escaped_lines_are_unescaped_once() -> None:
    found = read(FROM + message(1, b">From the hill\n>>From deeper\n> From a reply\n") + b"\n")
    assert found[0].content.endswith("\n\nFrom the hill\n>From deeper\n> From a reply\n")


def test_a_line_of_a_body_that_begins_with_from_begins_no_message() -> None:
    assert len(read(FROM + message(1, b"Hello\n\nFrom here on it is easy.\nSee you\n"))) == 1
    assert len(read(FROM + message(1, b"At the hill\nFrom where we came\nSubject: none\n"))) == 1


def test_lines_between_messages_may_lack_a_time_or_a_blank_line() -> None:
    assert len(read(b"From MAILER-DAEMON\n" + message(1) + b"\nFrom ???@???\n" + message(2))) == 2
    assert len(read(FROM + message(1) + FROM + message(2))) == 2
    assert len(read((FROM + message(1) + b"\n" + FROM + message(2)).replace(b"\n", b"\r\n"))) == 2
    assert len(read((FROM + message(1) + b"\n" + FROM + message(2)).replace(b"\n", b"\r"))) == 2


def test_messages_that_are_deleted_but_still_in_the_file_are_left_out() -> None:
    deleted = b"X-Mozilla-Status: 0009\n" + message(2)
    kept = b"X-Mozilla-Status: 0001\n" + message(1)
    internal = b"Subject: DON'T DELETE THIS MESSAGE -- FOLDER INTERNAL DATA\nFrom: x@y\n\nThis is not mail\n"
    found = read(FROM + kept + b"\n" + FROM + deleted + b"\n" + FROM + internal)
    assert [one.title for one in found] == ["Mail 1"]
    assert found[0].warnings == ()


def test_a_message_that_cannot_be_read_costs_itself_only(monkeypatch: pytest.MonkeyPatch) -> None:
    letter = mails.letter

    def stumbles(parsed: Message) -> mails.Letter:
        if "Mail 2" in str(parsed):
            raise ZeroDivisionError
        return letter(parsed)

    monkeypatch.setattr(mails, "letter", stumbles)
    found = read(b"\n".join(FROM + message(number) for number in range(1, 4)))
    assert [one.title for one in found] == ["Mail 1", "Mail 3"]
    assert found[0].warnings == ("1 of 3 messages: cannot be read",)


def test_empty_messages_are_counted() -> None:
    found = read(FROM + b"X-Mailer: x\n\n\n\n" + FROM + message(1))
    assert found[0].warnings == ("1 of 2 messages: is empty",)
    with pytest.raises(NoText):
        read(FROM + b"X-Mailer: x\n\n\n")


def test_a_single_mail_with_the_name_of_a_mailbox_is_read_and_anything_else_refused() -> None:
    assert [one.title for one in read(message(1))] == ["Mail 1"]
    for raw in (bytes(range(256)) * 40, b"just words\n"):
        with pytest.raises(Unsupported, match="no message begins"):
            read(raw)


def test_mailboxes_of_the_university_of_washington_are_read() -> None:
    one, two = message(1).replace(b"\n", b"\r\n"), message(2).replace(b"\n", b"\r\n")
    lines = [b" 3-Mar-2025 10:00:00 +0000,%d;000000000001-0000000%d\r\n" % (len(one), number) for number in (1, 2)]
    raw = (b"*mbx*\r\n" + b"x" * 2041) + lines[0] + one + lines[1] + two
    assert [found.title for found in read(raw)] == ["Mail 1", "Mail 2"]


def test_a_large_mailbox_takes_linear_time() -> None:
    def seconds(count: int) -> float:
        raw = b"\n".join(FROM + message(number, b"words and more words\n" * 50) for number in range(count))
        began = time.perf_counter()
        assert len(read(raw)) == count
        return time.perf_counter() - began

    seconds(100)
    assert seconds(4_000) < 12 * max(seconds(1_000), 0.05)


def test_hostile_lines_take_linear_time() -> None:
    began = time.perf_counter()
    for raw in (b"From " * 400_000, FROM * 50_000, (FROM + b"X") * 20_000, b"From x 1:11\n>From " * 50_000):
        try:
            read(raw)
        except (NoText, Unsupported):
            continue
    assert time.perf_counter() - began < 60


@pytest.mark.parametrize(
    ("name", "titles"),
    [
        ("complex.mbox", ["Re: question about when shuffle/sort start working"] * 3),
        ("testMBOX_complex.mbox", ["xxxxxxx"]),
        ("testMBOX_lengthy_x-headers.mbox", ["RE: Var simulation"]),
    ],
)
def test_real_mailboxes_are_read(shared: Path, name: str, titles: list[str]) -> None:
    assert [one.title for one in read((shared / "corpus" / "mail" / "mbox" / name).read_bytes())] == titles
