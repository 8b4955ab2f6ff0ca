"""Who a file names as its author, and what is only the name of a program."""

import time

import pytest

from garage.attribute.identity import mailboxes
from garage.attribute.names import authors, looks_like_tool_name, names


@pytest.mark.parametrize(
    "name",
    [
        *("python-docx", "python-pptx", "openpyxl", "Apache POI", "LibreOffice", "LibreOffice 7.3", "LibreOffice User"),
        *("Microsoft Office User", "Microsoft User", "Microsoft-Konto", "Microsoft® Word 2016", "Adobe InDesign CC"),
        *(
            "Administrator",
            "Admin",
            "admin",
            "root",
            "user",
            "User",
            "Owner",
            "unknown",
            "anonymous",
            "sample",
            "Unknown",
        ),
        *(
            "PScript5.dll Version 5.2.2",
            "Acrobat PDFMaker 11 pour Word",
            "pdfTeX-1.40.21",
            "LaTeX with hyperref",
            "TeX",
        ),
        *("Skia/PDF m103 Google Docs Renderer", "GPL Ghostscript 9.10", "pandoc", "wkhtmltopdf 0.12.5", "Writer"),
        *("C:\\Users\\ada\\report.docx", "/home/ada", "https://imagemagick.org", "file:///tmp/x"),
        *("scanner@office.example", "scan2@office.example", "noreply@example.org", "do-not-reply@ncs.example"),
        *("MFP@office.example", "{8B1F3F9E-1C2D-4E5F-8A9B-0C1D2E3F4A5B}", "deadbeefdeadbeef", "$$$.$$$", "", "-", "x"),
        *("DESKTOP-4F7K2L9", "adas-macbook.local", "dependabot[bot]", "Mail Delivery Subsystem", "用户", "1234"),
    ],
)
def test_programs_machines_and_shared_accounts_are_tools(name: str) -> None:
    assert looks_like_tool_name(name)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "Ada Lovelace",
            "Steve Canny",
            "Anton Trekin",
            "Allison, Timothy B.",
            "KP-E",
            "CHMP",
            "Gábor",
            "권종욱",
            "VMazel",
        ),
        *(
            "Cisco Employee",
            "Bibliotheque",
            "Supreme",
            "e516160",
            "garribas",
            "Tika Developers",
            "Rentalo.com",
            "George",
        ),
        *("Rootham, Jane", "Admin Nistrator-Jones", "Wordsworth", "Userius Maximus", "Prince Rogers Nelson-Adobeson"),
        *(
            "Latexa Moreau",
            "Pandocia Reyes",
            "Scott Scanlon",
            "Ada <ada@example.org>",
            "info-desk",
            "Li",
            "Adobeman Smith",
        ),
    ],
)
def test_people_and_organisations_are_no_tools(name: str) -> None:
    assert not looks_like_tool_name(name)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Ada Lovelace", ["Ada Lovelace"]),
        ("Lovelace, Ada", ["Ada Lovelace"]),
        ("van Gogh, Vincent", ["Vincent van Gogh"]),
        ("Allison, Timothy B.", ["Timothy B. Allison"]),
        ("Ada Lovelace, Charles Babbage", ["Ada Lovelace", "Charles Babbage"]),
        ("Ada Lovelace, Charles Babbage, and Mary Somerville", ["Ada Lovelace", "Charles Babbage", "Mary Somerville"]),
        ("Ada Lovelace and Charles Babbage", ["Ada Lovelace", "Charles Babbage"]),
        ("Ada Lovelace & Charles Babbage", ["Ada Lovelace", "Charles Babbage"]),
        ("Lovelace, Ada; Babbage, Charles", ["Ada Lovelace", "Charles Babbage"]),
        ("Lovelace, Ada, Babbage, Charles", ["Ada Lovelace", "Charles Babbage"]),
        ("Ada Lovelace, Ph.D., Charles Babbage, FRS", ["Ada Lovelace, Ph.D.", "Charles Babbage", "FRS"]),
        ("by Ada Lovelace", ["Ada Lovelace"]),
        ("Ada Lovelace et al.", ["Ada Lovelace"]),
        ("Smith and Sons Ltd", ["Smith and Sons Ltd"]),
        ("University of Oxford and Partners", ["University of Oxford and Partners"]),
        ("Byron", ["Byron"]),
        ("Sanderson", ["Sanderson"]),
        ("", []),
    ],
)
def test_a_line_of_names_is_taken_apart(text: str, found: list[str]) -> None:
    assert names(text) == found


def test_addresses_are_identities_and_tools_are_left_out() -> None:
    found = authors("Ada Lovelace <ada@example.org>; python-docx")
    assert [str(person.identities[0]) for person in found.people] == ["email:ada@example.org"]
    assert found.people[0].name == "Ada Lovelace"
    assert found.tools == ("python-docx",)
    assert [str(p.identities[0]) for p in authors("ada@example.org (Ada Lovelace)").people] == ["email:ada@example.org"]
    assert [str(p.identities[0]) for p in authors("ada@example.org").people] == ["email:ada@example.org"]


@pytest.mark.parametrize("field", [None, 7, {}, [], [None], ""])
def test_what_is_no_text_names_nobody(field: object) -> None:
    assert authors(field).people == ()


def test_lines_part_people_too() -> None:
    assert names("Ada Lovelace\nBabbage, Charles\r\n") == ["Ada Lovelace", "Charles Babbage"]


@pytest.mark.parametrize(
    "text", [" " * 10_000, "a " * 5_000, "," * 10_000, "<" * 10_000, "a@" * 5_000, "et al " * 1_500]
)
def test_a_field_that_is_an_attack_costs_no_time(text: str) -> None:
    start = time.process_time()
    authors(text)
    authors(text + "x")
    mailboxes([text + "x"])
    assert time.process_time() - start < 1


def test_a_list_is_read_piece_by_piece_and_ends_somewhere() -> None:
    assert [p.name for p in authors(["Ada Lovelace", "Babbage, Charles"]).people] == ["Ada Lovelace", "Charles Babbage"]
    assert (
        len(authors("; ".join(f"Author Number{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(500))).people) == 30
    )
