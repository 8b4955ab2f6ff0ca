import pytest

from garage.extract.mime.mailparse import parse
from garage.extract.mime.message import Letter, document, letter
from garage.extract.mirror import canonical
from garage.extract.model import Extracted, NoText


def read(raw: str | bytes, name: str = "a.eml") -> Extracted:
    parsed, warnings = parse(raw.encode() if isinstance(raw, str) else raw)
    return document(letter(parsed), name=name, warnings=warnings)


def parts(found: Extracted) -> list[tuple[str | None, bool, str]]:
    return [(part.sender, part.quoted, found.content[part.start : part.end]) for part in found.parts]


MAIL = """\
Message-ID: <1@x.org>
In-Reply-To: <0@x.org>
References: <a@x.org> <0@x.org>
List-Id: Tea lovers <tea.x.org>
From: Ann Arbor <ann@x.org>
To: Bob <bob@y.org>, carol@z.org
Cc: Dan <dan@x.org>
Subject: Re: Tea
Date: Mon, 3 Mar 2025 10:00:00 +0100

Yes, at noon.

On Sun, 2 Mar 2025 at 09:00, Bob <bob@y.org> wrote:
> Shall we have tea?

--\x20
Ann
"""


def test_a_mail_is_a_header_block_and_its_body() -> None:
    found = read(MAIL)
    assert found.content.startswith(
        "Subject: Re: Tea\nFrom: Ann Arbor <ann@x.org>\nTo: Bob <bob@y.org>, carol@z.org\nCc: Dan <dan@x.org>\n"
        "Date: Mon, 3 Mar 2025 10:00:00 +0100\n\nYes, at noon.\n"
    )
    assert (found.title, found.kind, found.communication, found.record) == ("Re: Tea", "prose", True, "")
    assert found.content[found.body_start :].startswith("Yes, at noon.")


def test_the_metadata_says_who_to_whom_and_when_in_utc() -> None:
    assert read(MAIL).meta == {
        "message_id": "1@x.org",
        "in_reply_to": "0@x.org",
        "references": ["a@x.org", "0@x.org"],
        "list_id": "tea.x.org",
        "from": "Ann Arbor <ann@x.org>",
        "author": "Ann Arbor <ann@x.org>",
        "to": ["Bob <bob@y.org>", "carol@z.org"],
        "cc": ["Dan <dan@x.org>"],
        "date": "2025-03-03T09:00:00+00:00",
    }


def test_quoted_words_are_not_the_senders_and_the_signature_is() -> None:
    found = read(MAIL)
    assert [(sender, quoted) for sender, quoted, _ in parts(found)] == [
        ("Ann Arbor <ann@x.org>", False),
        (None, True),
        ("Ann Arbor <ann@x.org>", False),
    ]
    assert parts(found)[1][2] == "On Sun, 2 Mar 2025 at 09:00, Bob <bob@y.org> wrote:\n> Shall we have tea?\n\n"
    assert parts(found)[2][2] == "--\nAnn\n"
    assert [part.at for part in found.parts] == ["2025-03-03T09:00:00+00:00", None, "2025-03-03T09:00:00+00:00"]


def test_a_body_that_is_all_quoted_leaves_the_header_to_the_sender() -> None:
    found = read("From: ann@x.org\nSubject: Fwd\n\n> only this\n")
    assert parts(found) == [("ann@x.org", False, "Subject: Fwd\nFrom: ann@x.org\n\n"), (None, True, "> only this\n")]


def test_an_enclosed_mail_stands_once_below_with_its_own_header_and_is_quoted() -> None:
    outer = 'From: ann@x.org\nSubject: Outer\nContent-Type: multipart/mixed; boundary="b"\n\n--b\n\nsee\n--b\n'
    inner = "Content-Type: message/rfc822\n\nFrom: Bob <bob@y.org>\nSubject: Inner\n\ninner words\n"
    found = read(f"{outer}{inner}\n--b--\n")
    assert parts(found) == [
        ("ann@x.org", False, "Subject: Outer\nFrom: ann@x.org\n\nsee\n"),
        ("Bob <bob@y.org>", True, "Subject: Inner\nFrom: Bob <bob@y.org>\n\ninner words\n"),
    ]
    assert found.content.count("inner words") == 1


def test_a_mail_in_a_mail_in_a_mail_ends_somewhere() -> None:
    raw = "Subject: innermost\n\nwords\n"
    for level in range(20):
        raw = f"Subject: level {level}\nContent-Type: message/rfc822\n\n{raw}"
    found = read(raw)
    assert found.content.count("Subject: level") == 6
    assert "enclosed messages were left out" in found.warnings


def test_a_mail_with_only_a_subject_is_worth_finding() -> None:
    found = read("Subject: Call me\n\n")
    assert (found.content, found.title) == ("Subject: Call me\n", "Call me")
    assert [(part.start, part.end) for part in found.parts] == [(0, len(found.content))]


@pytest.mark.parametrize("raw", ["", "\n\n", "X-Mailer: x\nMIME-Version: 1.0\n\n\n", "Subject: \n\n \n"])
def test_a_mail_with_nothing_to_read_has_no_text(raw: str) -> None:
    with pytest.raises(NoText, match="empty"):
        read(raw)


def test_without_a_subject_the_first_words_or_the_file_name_are_the_title() -> None:
    assert read("From: ann@x.org\n\n> quoted\nWe meet at noon.\n").title == "We meet at noon."
    assert read("From: ann@x.org\n\n", "holiday.eml").title == "holiday.eml"
    long = read("From: ann@x.org\n\n" + "very long words " * 20).title
    assert long is not None
    assert long.endswith("…")
    assert len(long) <= 81


def test_nul_bytes_and_surrogates_reach_neither_text_nor_metadata() -> None:
    raw = b"From: Ann\x00 <a\x00nn@x.org>\nSubject: a\x00b \xff\nMessage-ID: <\x001\xfe@x>\n\nbe\x00fore \xff after\n"
    found = read(raw)
    assert found.content == canonical(found.content)
    everything = f"{found.content}{found.title}{found.meta}"
    assert "\x00" not in everything
    everything.encode()
    last = found.parts[-1]
    assert found.content[last.start : last.end].endswith("after\n")


def test_every_code_point_is_in_a_part_but_the_lines_between_mails() -> None:
    found = read(MAIL)
    assert "".join(text for _, _, text in parts(found)) == found.content


def test_a_header_block_lists_fifty_recipients_and_counts_the_others() -> None:
    found = document(Letter(subject="x", to=tuple(f"p{n}@x.org" for n in range(60))), name="a")
    assert "p49@x.org and 10 others\n" in found.content
    assert len(found.meta["to"] if isinstance(found.meta["to"], list) else []) == 60


def test_warnings_of_the_file_and_of_enclosed_mails_are_told() -> None:
    found = document(
        Letter(subject="x", warnings=("b",), enclosed=(Letter(body="y", warnings=("c",)),)), name="a", warnings=("a",)
    )
    assert found.warnings == ("a", "b", "c")
