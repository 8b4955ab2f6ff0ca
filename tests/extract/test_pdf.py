import io
import logging
import os
import random
import shutil
import subprocess
import sys
import time
import tracemalloc
import zlib
from contextlib import suppress
from pathlib import Path

import pytest
from PIL import Image, ImageDraw, ImageFont
from pypdf import PdfReader, PdfWriter
from pypdf.generic import (
    ArrayObject,
    DecodedStreamObject,
    DictionaryObject,
    NameObject,
    NumberObject,
    PdfObject,
    TextStringObject,
)

from garage.config import Extraction
from garage.extract import pdf
from garage.extract.mirror import canonical
from garage.extract.model import Encrypted, Extracted, ExtractError, Malformed, NoText, Unsupported
from garage.extract.pages import pdf_text
from garage.extract.registry import extract

SENTENCE = "The quick brown fox jumps over the lazy dog"
needs_tesseract = pytest.mark.skipif(shutil.which("tesseract") is None, reason="Tesseract is not installed")
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


def read(raw: bytes, settings: Extraction = SETTINGS) -> Extracted:
    return pdf.extract(raw, name="a.pdf", settings=settings)


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


def scan(*texts: str) -> list[Image.Image]:
    """Pages as a scanner sees them."""
    pages = []
    for text in texts:
        page = Image.new("L", (850, 1100), 255)
        ImageDraw.Draw(page).text((80, 120), text, font=ImageFont.load_default(26), fill=0)
        pages.append(page)
    return pages


def scanned(*texts: str) -> bytes:
    first, *others = scan(*texts)
    out = io.BytesIO()
    first.save(out, "PDF", resolution=100, save_all=True, append_images=others)
    return out.getvalue()


def joined(*files: bytes) -> bytes:
    writer = PdfWriter()
    for raw in files:
        writer.append(io.BytesIO(raw))
    return written(writer)


def written(writer: PdfWriter) -> bytes:
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def drawing(content: str) -> bytes:
    """A page with that content stream; F1 is Helvetica."""
    raw = document("placeholder")
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(raw)))
    stream = DecodedStreamObject()
    stream.set_data(content.encode("cp1252"))
    writer.pages[0][NameObject("/Contents")] = writer._add_object(stream)
    return written(writer)


def cell(x: int, y: int, text: str, *, height: int = 20) -> str:
    """A framed cell of a table, in PDF's own words."""
    return f"{x} {y} 100 {height} re S BT /F1 10 Tf {x + 5} {y + height - 14} Td ({text}) Tj ET\n"


GRID = "".join(
    cell(50 + 100 * column, 600 - 20 * row, text)
    for row, texts in enumerate((("Fruit", "Price"), ("Apple", "1.20"), ("Pear | quince", "0.80")))
    for column, text in enumerate(texts)
)
ABOVE = "BT /F1 12 Tf 50 700 Td (Prices of this week are as follows) Tj ET\n"
BELOW = "BT /F1 12 Tf 50 500 Td (All of them with tax.) Tj ET\n"


def test_a_ruled_table_becomes_rows_where_it_stands() -> None:
    found = read(drawing(ABOVE + GRID + BELOW))
    assert found.content == (
        "Prices of this week are as follows\n\n"
        "| Fruit | Price |\n| --- | --- |\n| Apple | 1.20 |\n| Pear \\| quince | 0.80 |\n\n"
        "All of them with tax.\n"
    )
    assert found.content == canonical(found.content)


def test_lines_of_text_in_ruled_columns_are_rows() -> None:
    rows = [("Name", "Votes", "Share"), *((f"Person {number}", f"{number * 7}", "3 %") for number in range(14))]
    columns = [
        f"{50 + 100 * column} 300 100 300 re S BT /F1 10 Tf 20 TL {55 + 100 * column} 600 Td "
        + " ".join(f"T* ({row[column]}) Tj" for row in rows)
        + " ET\n"
        for column in range(3)
    ]
    content = read(drawing("".join(columns))).content
    assert "| Name | Votes | Share |\n| --- | --- | --- |\n| Person 0 | 0 | 3 % |\n| Person 1 | 7 | 3 % |\n" in content


@pytest.mark.parametrize(
    "lines",
    [
        "40 650 520 60 re S\n",
        "".join(f"50 {y} m 550 {y} l S\n" for y in range(100, 700, 50)),
        "".join(f"{x} 100 2 2 re f\n" for x in range(50, 500, 3)),
        "50 100 500 600 re W n 60 110 480 580 re W n 70 120 40 40 re W n 150 120 40 40 re W n\n",
        "W n 1 re S (x) 2 3 l S\n",
    ],
    ids=["a frame", "rules across", "dots", "only clipping", "nonsense"],
)
def test_lines_that_rule_no_table_change_nothing(lines: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> str:
        raise AssertionError("it was looked at")

    monkeypatch.setattr("garage.extract.pages.pdf_tables._looked_at", fail)
    assert read(drawing(ABOVE + lines)).content == "Prices of this week are as follows\n"


def test_imitated_bold_type_is_read_once() -> None:
    twice = "".join(
        f"BT /F1 12 Tf 50 {y} Td (Heading number {y}) Tj ET BT /F1 12 Tf 50.3 {y} Td (Heading number {y}) Tj ET\n"
        for y in (700, 650, 600, 550)
    )
    assert read(drawing(twice)).content == "".join(f"Heading number {y}\n" for y in (700, 650, 600, 550))


def test_letters_drawn_as_one_shape_become_letters() -> None:
    assert (
        pdf_text.tidy("e\ufb03cient \ufb02ow  \n  \n\n\nof \ufee3\ufeae\ufea3\ufe92\ufe8e")
        == "efficient flow\n\nof مرحبا"
    )


@needs_tesseract
def test_scanned_pages_are_read_and_keep_their_place() -> None:
    raw = joined(document("A first page that is written, not scanned"), scanned(SENTENCE, "Second scan of the day"))
    found = read(raw)
    assert found.content == (f"A first page that is written, not scanned\n\n{SENTENCE}\n\nSecond scan of the day\n")
    assert found.meta["ocr_pages"] == [2, 3]
    assert found.meta["page_starts"] == [0, 43, 88]
    assert "likely_scanned" not in found.meta
    sure = found.meta["ocr_confidence"]
    assert isinstance(sure, float)
    assert sure > 80


@needs_tesseract
def test_a_stamp_on_a_scan_does_not_pass_for_its_text() -> None:
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(scanned(SENTENCE))))
    stamp = PdfReader(io.BytesIO(document("Envelope 0D7A9F3E-9B1C-4F6A-8E1D of 2024-05-01"))).pages[0]
    writer.pages[0].merge_page(stamp)
    found = read(written(writer))
    assert found.content.startswith("Envelope 0D7A9F3E-9B1C-4F6A-8E1D of 2024-05-01\n\n")
    assert found.content.endswith(f"{SENTENCE}\n")


@needs_tesseract
def test_a_scan_that_lies_on_its_side_is_read() -> None:
    page = scan("\n".join([SENTENCE] * 6))[0].rotate(90, expand=True)
    out = io.BytesIO()
    page.save(out, "PDF", resolution=100)
    assert read(out.getvalue()).content.count(SENTENCE) == 6


@needs_tesseract
def test_no_more_scanned_pages_are_read_than_allowed() -> None:
    raw = scanned(*[f"{SENTENCE} {word}" for word in ("one", "two", "three")])
    found = read(raw, Extraction(ocr_max_pages=1))
    assert found.content == f"{SENTENCE} one\n"
    assert found.meta["unread_pages"] == [2, 3]
    assert found.meta["likely_scanned"] is True
    assert found.warnings == ("2 pages were scanned and not read: no more than 1 of a file are",)
    with pytest.raises(NoText, match="scanned and were not read") as caught:
        read(raw, Extraction(ocr_max_pages=0))
    assert caught.value.meta["likely_scanned"] is True


@needs_tesseract
def test_a_file_ends_before_its_time_is_out() -> None:
    raw = joined(document("A first page that is written, not scanned"), scanned(*[SENTENCE] * 60))
    start = time.monotonic()
    found = read(raw, Extraction(seconds=4, ocr_max_pages=100))
    assert time.monotonic() - start < 4
    assert found.content.startswith("A first page")
    assert found.meta["unread_pages"]
    assert found.warnings[0].endswith("pages were scanned and not read: there was no time left")


def test_when_time_is_out_the_pages_read_so_far_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(1000))
    monkeypatch.setattr("garage.extract.pdf.time.monotonic", lambda: next(clock))
    found = read(
        document(*[f"The text of page number {number} of this file" for number in range(9)]), Extraction(seconds=8)
    )
    assert found.content.count("\n\n") == 2
    assert found.meta["pages"] == 9
    assert found.warnings[0] == "6 pages were left out at the end, for want of time"


def test_without_tesseract_scans_wait_for_it_and_text_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unsupported, match=r"its pages are scanned.*apt install tesseract-ocr"):
        read(scanned(SENTENCE))
    found = read(joined(document("A first page that is written, not scanned"), scanned(SENTENCE)))
    assert found.content == "A first page that is written, not scanned\n"
    assert found.meta["unread_pages"] == [2]
    assert "apt install tesseract-ocr" in found.warnings[0]


def test_what_is_filled_in_noted_and_attached_is_read() -> None:
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(document("An application", "Nothing here"))))
    page = writer.pages[0]

    def note(**entries: object) -> DictionaryObject:
        made = DictionaryObject({NameObject("/Type"): NameObject("/Annot")})
        for key, value in entries.items():
            made[NameObject("/" + key)] = value if isinstance(value, PdfObject) else TextStringObject(str(value))
        return made

    def field(kind: str, **entries: object) -> DictionaryObject:
        return note(Subtype=NameObject("/Widget"), FT=NameObject(kind), **entries)

    text, comment = NameObject("/Text"), NameObject("/Popup")
    page[NameObject("/Annots")] = ArrayObject(
        [
            field("/Tx", T="name", TU="Full name", V="Ann  Lee\0"),
            field("/Tx", T="empty", V=""),
            field("/Tx", T="pin", V="1234", Ff=NumberObject(1 << 13)),
            field("/Ch", T="towns", V=ArrayObject([TextStringObject("Rome"), TextStringObject("Bonn")])),
            field("/Btn", T="member", AS=NameObject("/Yes")),
            field("/Btn", T="guest", AS=NameObject("/Off")),
            field("/Btn", T="send", V="x", Ff=NumberObject(1 << 16)),
            field("/Sig", T="signed", V="x"),
            note(Subtype=text, Contents="Please check", T="Bob"),
            note(Subtype=text, Contents="Please check", T="Bob"),
            note(Subtype=comment, Contents="Please check"),
            note(Subtype=text, Contents=NumberObject(5)),
            NumberObject(3),
        ]
    )
    writer.add_attachment("plan.xlsx", b"bytes")
    writer.add_outline_item(title="Part one", page_number=0)
    found = read(written(writer))
    assert found.content == (
        "An application\n\nFull name: Ann  Lee\n\ntowns: Rome, Bonn\n\nmember: Yes\n\nNote by Bob: Please check\n\n"
        "Nothing here\n\nAttachments: plan.xlsx\n"
    )
    assert found.meta["attachments"] == ["plan.xlsx"]
    assert found.meta["outline"] == ["Part one"]
    starts = found.meta["page_starts"]
    assert isinstance(starts, list)
    assert isinstance(starts[1], int)
    assert found.content[starts[1] :].startswith("Nothing here")


def test_a_long_file_of_tables_is_read_in_bounded_memory(tmp_path: Path) -> None:
    if not Path("/proc/self/status").exists():
        pytest.skip("this system does not tell the peak of a process")
    path = tmp_path / "long.pdf"
    page = drawing(ABOVE + GRID + BELOW)
    writer = PdfWriter()
    for _ in range(200):
        writer.append(io.BytesIO(page))
    path.write_bytes(written(writer))
    peaks = []
    for pages in ("1", "200"):
        script = (
            "import sys\nfrom pathlib import Path\nfrom garage.config import Extraction\n"
            "from garage.extract import pdf\nraw = Path(sys.argv[1]).read_bytes()\n"
            "found = pdf.extract(raw, name='a.pdf', settings=Extraction(seconds=600))\n"
            "peak = Path('/proc/self/status').read_text().partition('VmHWM:')[2].split()[0]\n"
            "print(peak, found.content.count('| Apple |'))\n"
        )
        given = path if pages == "200" else tmp_path / "short.pdf"
        if pages == "1":
            given.write_bytes(page)
        done = subprocess.run([sys.executable, "-c", script, given], capture_output=True, check=True, text=True)
        peak, tables = done.stdout.split()
        assert tables == pages
        peaks.append(int(peak))
    assert peaks[1] - peaks[0] < 40_000  # KiB


def test_damaged_copies_end_in_an_outcome() -> None:
    raw = joined(
        drawing(ABOVE + GRID + BELOW), document("Second page of text", "Third"), locked(document("x"), user="")
    )
    chance = random.Random(11)
    slowest = 0.0
    for _ in range(60):
        damaged = bytearray(raw[: chance.randrange(20, len(raw))] if chance.random() < 0.4 else raw)
        for _ in range(chance.randrange(1, 40)):
            damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
        start = time.monotonic()
        with suppress(ExtractError):
            assert extract(bytes(damaged), extractor="pdf", name="a.pdf", settings=SETTINGS)
        slowest = max(slowest, time.monotonic() - start)
    assert slowest < 20
