import datetime as dt
import struct
from pathlib import Path
from typing import TypeAlias

import pytest

from garage.config import Extraction
from garage.extract import outlook
from garage.extract.model import Extracted, NoText, Unsupported

Tree: TypeAlias = "dict[str, bytes | Tree]"
Stream: TypeAlias = "tuple[str, bytes | Tree]"
SECTOR, FREE, END, FAT = 512, 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD
LEAST = 4096  # shorter streams would be kept elsewhere; the NULs that fill them up mean nothing to what reads them


def compound(tree: Tree) -> bytes:
    """A compound file of the older programs of Microsoft, with the storages and streams of a tree."""
    entries: list[bytes] = []
    data = bytearray()
    fat: list[int] = []

    def stored(content: bytes) -> int:
        first, count = len(fat), -(-len(content) // SECTOR)
        fat.extend([*range(first + 1, first + count), END])
        data.extend(content.ljust(count * SECTOR, b"\0"))
        return first

    def entry(name: str, kind: int, following: int, child: int, start: int, size: int) -> bytes:
        encoded = (name + "\0").encode("utf-16-le")
        head = encoded.ljust(64, b"\0") + struct.pack("<HBBIII", len(encoded), kind, 1, FREE, following, child)
        return head + bytes(36) + struct.pack("<IQ", start, size)

    def write(content: Tree) -> int:
        following = FREE
        for name, value in sorted(content.items(), key=lambda item: (len(item[0]), item[0].upper()), reverse=True):
            if isinstance(value, bytes):
                padded = value.ljust(LEAST, b"\0")
                made = entry(name, 2, following, FREE, stored(padded), len(padded))
            else:
                made = entry(name, 1, following, write(value), 0, 0)
            entries.append(made)
            following = len(entries)
        return following

    first = write(tree)
    directory = stored(b"".join([entry("Root Entry", 5, FREE, first, END, 0), *entries]))
    table = len(fat)
    sectors = -(-(table + 8) // 128)
    fat.extend([FAT] * sectors)
    fat.extend([FREE] * (sectors * 128 - len(fat)))
    data.extend(struct.pack(f"<{len(fat)}I", *fat))
    difat = [*range(table, table + sectors), *[FREE] * (109 - sectors)]
    head = (
        outlook.SIGNATURE
        + bytes(16)
        + struct.pack("<HHHHH6xIIIIIIIII", 0x3E, 3, 0xFFFE, 9, 6, 0, sectors, directory, 0, LEAST, END, 0, END, 0)
    )
    return head + struct.pack("<109I", *difat) + bytes(data)


def properties(header: int, *fixed: tuple[int, int, int]) -> bytes:
    return bytes(header) + b"".join(struct.pack("<HHIQ", kind, identity, 6, value) for identity, kind, value in fixed)


def text(identity: int, value: str) -> tuple[str, bytes]:
    return f"__substg1.0_{identity:04X}001F", value.encode("utf-16-le")


AT = dt.datetime(2025, 3, 3, 9, tzinfo=dt.UTC) - dt.datetime(1601, 1, 1, tzinfo=dt.UTC)
SENT = (0x0039, 0x0040, int(AT.total_seconds()) * 10**7)


def item(*more: Stream, fixed: tuple[tuple[int, int, int], ...] = (SENT,), header: int = 32) -> Tree:
    return dict([("__properties_version1.0", properties(header, *fixed)), *more])


def person(number: int, name: str, address: str, role: int) -> tuple[str, Tree]:
    streams = dict([text(0x3001, name), text(0x39FE, address)])
    return f"__recip_version1.0_#{number:08X}", {
        "__properties_version1.0": properties(8, (0x0C15, 3, role)),
        **streams,
    }


def attached(number: int, tree: Tree) -> tuple[str, Tree]:
    return f"__attach_version1.0_#{number:08X}", {"__properties_version1.0": properties(8), **tree}


def read(tree: Tree) -> Extracted:
    return outlook.extract(compound(tree), name="a.msg", settings=Extraction())


MAIL = (
    text(0x001A, "IPM.Note"),
    text(0x0037, "Tea"),
    text(0x0C1A, "Ann Arbor"),
    text(0x0C1F, "/o=Exchange/cn=ann"),
    text(0x5D01, "ann@x.org"),
    text(0x1035, "<1@x.org>"),
    text(0x1000, "At noon.\r\n\r\n-----Original Message-----\r\nFrom: Bob\r\n\r\nTea?\r\n"),
    person(0, "Bob", "bob@y.org", 1),
    person(1, "carol@z.org", "carol@z.org", 2),
    attached(0, dict([text(0x3707, "menü.pdf")])),
)


def test_a_mail_of_outlook_reads_like_any_other() -> None:
    found = read(item(*MAIL))
    assert found.content == (
        "Subject: Tea\nFrom: Ann Arbor <ann@x.org>\nTo: Bob <bob@y.org>\nCc: carol@z.org\nDate: 2025-03-03 09:00 UTC\n"
        "Attachments: menü.pdf\n\nAt noon.\n\n-----Original Message-----\nFrom: Bob\n\nTea?\n"
    )
    assert (found.title, found.communication) == ("Tea", True)
    assert found.meta["date"] == "2025-03-03T09:00:00+00:00"
    assert found.meta["message_id"] == "1@x.org"
    assert [part.quoted for part in found.parts] == [False, True]


def test_the_headers_that_came_by_mail_are_preferred() -> None:
    headers = text(
        0x007D, "From: Ann <ann@internet.org>\r\nDate: Mon, 3 Mar 2025 10:00:00 +0100\r\nTo: all@x.org\r\n\r\n"
    )
    found = read(item(text(0x0037, "Tea"), headers))
    assert "From: Ann <ann@internet.org>\nTo: all@x.org\nDate: Mon, 3 Mar 2025 10:00:00 +0100\n" in found.content


def test_a_body_in_html_is_converted() -> None:
    html = ("__substg1.0_10130102", "<p>grüne <b>Blätter</b></p>".encode("cp1252"))
    found = read(item(text(0x0037, "Tee"), html, fixed=(SENT, (0x3FDE, 3, 1252))))
    assert found.content.endswith("\n\ngrüne Blätter\n")


def test_a_body_in_rtf_only_is_unpacked() -> None:
    rich = b"{\\rtf1\\ansi tea at {\\b noon}}"
    stored = struct.pack("<II4sI", len(rich) + 12, len(rich), b"MELA", 0) + rich
    assert read(item(text(0x0037, "Tea"), ("__substg1.0_10090102", stored))).content.endswith("tea at noon\n")
    broken = read(item(text(0x0037, "Tea"), ("__substg1.0_10090102", b"x" * 100)))
    assert broken.warnings == ("its body cannot be read",)


def test_strings_of_older_versions_are_read_in_their_code_page() -> None:
    subject = ("__substg1.0_0037001E", "Чай".encode("cp1251"))
    assert read(item(subject, fixed=((0x3FFD, 3, 1251),))).title == "Чай"


def test_a_mail_within_a_mail_has_its_own_header() -> None:
    inner = item(text(0x0037, "Inner"), text(0x1000, "inner words"), header=24)
    found = read(item(text(0x0037, "Outer"), text(0x1000, "see"), attached(0, {"__substg1.0_3701000D": inner})))
    assert found.content.endswith("see\n\nSubject: Inner\nDate: 2025-03-03 09:00 UTC\n\ninner words\n")
    assert [part.quoted for part in found.parts] == [False, True]


def test_an_appointment_says_when_and_where() -> None:
    names: Tree = {"__substg1.0_00030102": struct.pack("<IHHIHH", 0x820D, 6, 0, 0x8208, 6, 1)}
    begins = (0x8000, 0x0040, SENT[2])
    found = read(
        item(
            text(0x001A, "IPM.Appointment"), text(0x0037, "Tea"), text(0x8001, "Garden"),
            ("__nameid_version1.0", names),
            fixed=(SENT, begins),
        )
    )  # fmt: skip
    assert "Begins: 2025-03-03 09:00 UTC\nLocation: Garden\n" in found.content
    assert found.meta["item"] == "appointment"


def test_other_files_are_refused_and_a_mail_with_the_wrong_name_is_read() -> None:
    with pytest.raises(Unsupported, match="no file of Outlook"):
        outlook.extract(b"%PDF-1.4 binary", name="a.msg", settings=Extraction())
    with pytest.raises(Unsupported, match="another program"):
        read({"WordDocument": b"x"})
    with pytest.raises(NoText):
        read(item(text(0x001A, "IPM.Note"), fixed=()))
    plain = outlook.extract(b"Subject: Tea\nFrom: ann@x.org\n\nnoon\n", name="a.msg", settings=Extraction())
    assert plain.title == "Tea"


def test_damaged_files_end_in_a_document_or_an_error() -> None:
    whole = compound(item(*MAIL))
    for length in range(0, len(whole), 1_777):
        try:
            found = outlook.extract(whole[:length], name="a.msg", settings=Extraction())
        except Exception:  # noqa: BLE001 - whatever the library raises is recorded as damage
            continue
        assert found.communication


@pytest.mark.parametrize(
    ("name", "title", "phrase"),
    [
        ("test-outlook.msg", "Microsoft Outlook Express 6", "La réponse à vos attentes en matière de messagerie"),
        (
            "test-outlook2003.msg",
            "Welcome to Microsoft Office Outlook 2003",
            "Thank you for using Microsoft® Office Outlook®",
        ),
        ("testMSG.msg", "MIME registry use cases", "I've been working on making the type detection code more"),
        ("testMSG_Appointment.msg", "Quick brown fox", "Location: under lazy dog"),
        ("testMSG_Contact.msg", "Quick Brown Fox Jr", "quickbrown@gmail.com"),
    ],
)
def test_real_items_of_outlook_are_read(shared: Path, name: str, title: str, phrase: str) -> None:
    found = outlook.extract((shared / "corpus" / "mail" / "msg" / name).read_bytes(), name=name, settings=Extraction())
    assert found.title == title
    assert phrase in found.content
