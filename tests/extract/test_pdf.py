import io
import logging
import os
import tracemalloc
import zlib

import pytest
from pypdf import PdfReader, PdfWriter

from garage.config import Extraction
from garage.extract import pdf
from garage.extract.mirror import canonical
from garage.extract.model import Encrypted, Malformed, NoText
from garage.extract.registry import extract

SETTINGS = Extraction()

RED_DOT = b"<</Type/XObject/Subtype/Image/Width 1/Height 1/ColorSpace/DeviceRGB/BitsPerComponent 8/Length 3>>"


def document(*pages: str, info: str = "", image: bool = False, padding: bytes = b"") -> bytes:
    """A PDF with one line of text a page; an empty string makes a page without any, with a picture when asked for."""
    out = bytearray(b"%PDF-1.4\n")
    offsets: list[int] = []

    def add(body: bytes) -> None:
        offsets.append(len(out))
        out.extend(b"%d 0 obj\n%b\nendobj\n" % (len(offsets), body))

    kids = b" ".join(b"%d 0 R" % (6 + 2 * number) for number in range(len(pages)))
    add(b"<</Type/Catalog/Pages 2 0 R>>")
    add(b"<</Type/Pages/Kids[%b]/Count %d>>" % (kids, len(pages)))
    add(b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>")
    add(RED_DOT + b"\nstream\n\xff\x00\x00\nendstream")
    add(b"<<%b>>" % info.encode("latin-1"))
    for number, text in enumerate(pages):
        shown = (
            b"BT /F1 12 Tf 50 700 Td (%b) Tj ET\n" % text.encode("cp1252") if text else b"q 9 0 0 9 0 0 cm /I Do Q\n"
        )
        content = zlib.compress(shown + padding)
        objects = b"/XObject<</I 4 0 R>>" if image else b""
        add(
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Resources<</Font<</F1 3 0 R>>%b>>/Contents %d 0 R>>"
            % (objects, 7 + 2 * number)
        )
        add(b"<</Length %d/Filter/FlateDecode>>\nstream\n%b\nendstream" % (len(content), content))
    start = len(out)
    out.extend(b"xref\n0 %d\n0000000000 65535 f \n" % (len(offsets) + 1))
    out.extend(b"".join(b"%010d 00000 n \n" % offset for offset in offsets))
    out.extend(b"trailer<</Size %d/Root 1 0 R/Info 5 0 R>>\nstartxref\n%d\n%%%%EOF" % (len(offsets) + 1, start))
    return bytes(out)


def locked(raw: bytes, *, user: str) -> bytes:
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(raw)))
    writer.encrypt(user, "the owner's", algorithm="AES-256")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def test_pages_stand_one_after_another_with_a_blank_line_between() -> None:
    found = pdf.extract(document("First page", "Grüße", "Third"), name="a.pdf", settings=SETTINGS)
    assert found.content == "First page\n\nGrüße\n\nThird\n"
    assert (found.kind, found.title, found.body_start) == ("prose", None, 0)
    assert found.meta == {"pages": 3, "page_starts": [0, 12, 19]}


def test_every_page_begins_where_it_is_said_to() -> None:
    pages = ["", "Second", "", "", "Fifth", "Sixth", ""]
    found = pdf.extract(document(*pages), name="a.pdf", settings=SETTINGS)
    starts = found.meta["page_starts"]
    assert isinstance(starts, list)
    assert starts == [0, 0, 8, 8, 8, 15, 20]
    for text, start in zip(pages, starts, strict=True):
        assert isinstance(start, int)
        assert found.content[start:].startswith(text)
    assert found.meta["pages_without_text"] == [1, 3, 4, 7]
    assert found.content == canonical(found.content)


def test_what_the_file_says_of_itself_is_metadata() -> None:
    info = "/Title(A  Title\\000)/Author(Ann)/CreationDate(D:20240501120000+02'00')/Keywords(k\\000)/Producer(Tool)"
    found = pdf.extract(document("Text", info=info), name="a.pdf", settings=SETTINGS)
    assert found.title == "A Title"
    del found.meta["page_starts"]
    assert found.meta == {
        "pages": 1,
        "author": "Ann",
        "created": "2024-05-01T12:00:00+02:00",
        "keywords": "k",
        "producer": "Tool",
    }


@pytest.mark.parametrize(
    "info", ["/CreationDate(yesterday)", "/Title 17", "/Title()", "/Title(untitled)/Author(anonymous)"]
)
def test_metadata_that_says_nothing_costs_nothing(info: str) -> None:
    found = pdf.extract(document("Text", info=info), name="a.pdf", settings=SETTINGS)
    assert (found.content, found.title) == ("Text\n", None)
    assert set(found.meta) == {"pages", "page_starts"}


def test_a_file_that_only_forbids_printing_is_read() -> None:
    assert pdf.extract(locked(document("Readable"), user=""), name="a.pdf", settings=SETTINGS).content == "Readable\n"


def test_a_file_with_a_password_is_encrypted() -> None:
    with pytest.raises(Encrypted) as caught:
        pdf.extract(locked(document("Secret"), user="secret"), name="a.pdf", settings=SETTINGS)
    assert caught.value.outcome == "encrypted"


@pytest.mark.parametrize("image", [True, False])
def test_pages_without_text_or_with_a_speck_of_a_picture_are_no_text(image: bool) -> None:
    with pytest.raises(NoText) as caught:
        pdf.extract(document("", "", image=image), name="a.pdf", settings=SETTINGS)
    assert caught.value.outcome == "no_text"
    assert caught.value.meta == {"pages": 2}


@pytest.mark.parametrize(
    "raw", [b"%PDF-1.7\n", b"not a PDF at all", document("Text")[:200], b"%PDF-1.4\n" + bytes(500)]
)
def test_a_damaged_file_is_malformed_and_names_the_class(raw: bytes) -> None:
    with pytest.raises(Malformed, match=r"it cannot be read: \w+(Error|Exception)?:") as caught:
        extract(raw, extractor="pdf", name="a.pdf", settings=SETTINGS)
    assert caught.value.outcome == "error"


def test_a_damaged_page_costs_that_page_only() -> None:
    raw = document("First", "Second", "Third")
    broken = raw.replace(b"/Contents 9 0 R", b"/Contents(xyz) ")
    found = pdf.extract(broken, name="a.pdf", settings=SETTINGS)
    assert found.content == "First\n\nThird\n"
    assert found.meta["pages_without_text"] == [2]


def test_a_file_of_damaged_pages_is_malformed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> str:
        raise RecursionError("too deep")

    monkeypatch.setattr("pypdf.PageObject.extract_text", fail)
    monkeypatch.setattr("pdfplumber.page.Page.extract_words", fail)
    with pytest.raises(Malformed, match=r"page 1 was left out: RecursionError"):
        pdf.extract(document("First", "Second"), name="a.pdf", settings=SETTINGS)


def test_want_of_memory_is_not_taken_for_a_damaged_page(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> str:
        raise MemoryError

    monkeypatch.setattr("pypdf.PageObject.extract_text", fail)
    with pytest.raises(MemoryError):
        pdf.extract(document("First"), name="a.pdf", settings=SETTINGS)


def test_complaints_of_the_library_become_warnings_and_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    raw = document("Text").replace(b"startxref\n", b"startxref\n1")
    with caplog.at_level(logging.DEBUG):
        found = pdf.extract(raw, name="a.pdf", settings=SETTINGS)
    assert found.content == "Text\n"
    assert found.warnings
    assert all(len(warning) <= 200 for warning in found.warnings)
    assert caplog.records == []


def test_the_library_logs_again_afterwards() -> None:
    logger = logging.getLogger("pypdf")
    before = (list(logger.handlers), logger.propagate, logger.level)
    with pytest.raises(Exception, match=r"\w"):
        pdf.extract(b"no", name="a.pdf", settings=SETTINGS)
    assert (list(logger.handlers), logger.propagate, logger.level) == before


def test_pages_are_let_go_one_by_one() -> None:
    pixels = os.urandom(100_000).replace(b"E", b"e")
    padding = b"q BI /W 1000 /H 100 /BPC 8 /CS /G ID %b EI Q\n" % pixels
    raw = document(*["Page text"] * 200, padding=padding)  # 20 MB of contents, twice that when the reader keeps them
    pdf.extract(document("Page text"), name="first.pdf", settings=SETTINGS)
    tracemalloc.start()
    try:
        found = pdf.extract(raw, name="a.pdf", settings=SETTINGS)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.content.count("Page text") == 200
    assert peak < len(raw) + 6 * 2**20
