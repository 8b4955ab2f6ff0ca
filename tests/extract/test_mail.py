import random
from pathlib import Path

import pytest

from garage.config import Extraction
from garage.extract import mail
from garage.extract.mirror import canonical
from garage.extract.model import Extracted, ExtractError, Unsupported

MESSAGE = (
    b"From: Ann <ann@x.org>\nSubject: Tea\nContent-Type: text/plain; charset=utf-8\n\nGr\xc3\xbcne Bl\xc3\xa4tter.\n"
)
PLIST = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN">\n'
    b"<plist><dict><key>flags</key><integer>1</integer></dict></plist>\n"
)


def read(raw: bytes, name: str = "a.eml") -> Extracted:
    return mail.extract(raw, name=name, settings=Extraction())


def test_a_mail_is_read() -> None:
    found = read(MESSAGE)
    assert (found.title, found.communication) == ("Tea", True)
    assert found.content == "Subject: Tea\nFrom: Ann <ann@x.org>\n\nGrüne Blätter.\n"


@pytest.mark.parametrize(
    "raw",
    [
        b"%d\n" % len(MESSAGE) + MESSAGE + PLIST,
        b"%d      \n" % len(MESSAGE) + MESSAGE + PLIST,
        b"%d\n" % len(MESSAGE) + MESSAGE,
        b"7\n" + MESSAGE + PLIST,
        b"999999\n" + MESSAGE + PLIST,
        b"999999\n" + MESSAGE,
        MESSAGE,
    ],
)
def test_the_message_of_apple_mail_is_found_whatever_its_length_line_says(raw: bytes) -> None:
    assert read(raw, "1.emlx").content == read(MESSAGE).content


def test_a_first_header_that_no_program_expects_changes_nothing() -> None:
    for first in (b"MIME-Version: 1.0\n", b"X-Mozilla-Status: 0001\n", b"X-Priority: 3\n"):
        assert read(first + MESSAGE).content == read(MESSAGE).content


def test_a_binary_file_with_the_name_of_a_mail_is_refused() -> None:
    with pytest.raises(Unsupported, match="binary"):
        read(bytes(range(1, 256)) * 40)


def test_a_file_without_any_header_is_read_as_a_body() -> None:
    assert read(b"Hello Ann,\n\nwe meet at noon.\n").content == "Hello Ann,\n\nwe meet at noon.\n"


@pytest.mark.parametrize(
    ("name", "title", "phrases"),
    [
        ("eml/japanese_shift_jis.eml", "test", ["このメールはテスト用のメールです"]),
        ("eml/ks_c_5601-1987.eml", "test", ["스티해"]),
        ("eml/bad_encoded_subject.eml", "TEST", []),
        ("eml/attachment_nonascii_filename.eml", "testing", ["Attachments: ciële.txt"]),
        ("eml/raw_email5.eml", "Test test. Hi. Waving. m", ["Envoyé par le service"]),
        ("eml/testGroupWiseEml.eml", "test333", ["Subject: test2", "Neues Textdokument.txt"]),
        (
            "raw/mail_outlook_1.eml",
            "Newsletter Prüfung Personalwesen / Prüfung Eröffnungsbilanz",
            ["NueblingV@w-vwa.de"],
        ),
        ("raw/mail_test_7.eml", "I: Ordine", ["20170609091403417.pdf"]),
    ],
)
def test_real_mails_are_read(shared: Path, name: str, title: str, phrases: list[str]) -> None:
    found = read((shared / "corpus" / "mail" / name).read_bytes(), name)
    assert found.title == title
    assert [phrase for phrase in phrases if phrase not in found.content] == []


def test_no_real_mail_fails_or_yields_encoded_data(shared: Path) -> None:
    for path in sorted((shared / "corpus" / "mail").rglob("*.eml")):
        found = read(path.read_bytes(), path.name)
        assert not any(
            len(word) > 300 and word.isalnum() for word in found.content.split()[:5_000] if "http" not in word
        ) or (
            path.name == "content_transfer_encoding_empty.eml"  # its author hid a number of 326 digits in it
        )


RICH = (
    b'From: =?utf-8?q?J=C3=B6hn?= <j@x.org>\nTo: A: b@x.org, "C, D" <d@x.org>;\n'
    b"Subject: =?iso-2022-jp?B?GyRCJUYlOSVIGyhC?=\n"
    b'Date: Mon, 3 Mar 2025 10:00:00 +0100\nContent-Type: multipart/mixed; boundary="b"\n\n--b\n'
    b'Content-Type: multipart/alternative; boundary="c"\n\n--c\n'
    b"Content-Type: text/plain; format=flowed\n\nHi \nall\n> old\n"
    b"--c\nContent-Type: text/html; charset=koi8-r\nContent-Transfer-Encoding: quoted-printable\n\n"
    b"<table><tr><td>=D0=D2<td>x<tr><td>1<td>2</table><ul><li>a<li>b</ul>\n--c--\n--b\nContent-Type: message/rfc822\n\n"
    b"From: k@x.org\nSubject: inner\n\nOn Mon, 3 Mar 2025, j@x.org wrote:\n> y\n--b\n"
    b"Content-Type: application/pdf\nContent-Disposition: attachment; filename*0*=utf-8''%c3%bc; filename*1=.pdf\n"
    b"Content-Transfer-Encoding: base64\n\nJVBERi0xLjQK\n--b--\n"
)


def test_damaged_copies_end_in_a_document_or_in_a_reason() -> None:
    dice = random.Random(20250303)
    for _ in range(400):
        copy = bytearray(RICH[: dice.randrange(len(RICH) // 2, len(RICH) + 1)])
        for _ in range(dice.randrange(20)):
            copy[dice.randrange(len(copy))] ^= 1 << dice.randrange(8)
        try:
            found = read(bytes(copy))
        except ExtractError:
            continue
        assert found.content == canonical(found.content)
        ends = [0, *(part.end for part in found.parts)]
        assert all(part.start >= end for part, end in zip(found.parts, ends, strict=False))
        assert ends[-1] <= len(found.content)
