from collections.abc import Mapping

import pytest

from garage.config import Extraction
from garage.extract import epub
from garage.extract.model import Encrypted, Extracted, Malformed, NoText, TooLarge, Unsupported
from tests.builders.archives import zipped

CONTAINER = '<container xmlns="c"><rootfiles><rootfile full-path="OPS/book.opf"/></rootfiles></container>'
METADATA = (
    '<metadata xmlns:dc="d"><dc:title>The Book</dc:title><dc:creator>Ann</dc:creator><dc:creator>Bo</dc:creator>'
    "<dc:language>en</dc:language><dc:subject>a</dc:subject><dc:subject>b</dc:subject><dc:date>1949</dc:date></metadata>"
)


def page(body: str, title: str = "") -> str:
    return (
        '<?xml version="1.0" encoding="UTF-8"?><html xmlns="http://www.w3.org/1999/xhtml">'
        f"<head><title>{title}</title></head><body>{body}</body></html>"
    )


def opf(spine: str, *items: tuple[str, str]) -> str:
    manifest = "".join(f'<item id="{name}" href="{href}" properties=""/>' for name, href in items)
    references = "".join(f'<itemref idref="{name}"/>' for name in spine.split())
    return f'<package xmlns="p">{METADATA}<manifest>{manifest}</manifest><spine>{references}</spine></package>'


def book(files: Mapping[str, str | bytes | None]) -> bytes:
    """A book of two chapters whose files are in the other order; some of its parts replaced or (None) left out."""
    parts: dict[str, str | bytes | None] = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": CONTAINER,
        "OPS/a%2.xhtml": page("<h1>Second</h1><p>Two&nbsp;words</p>"),
        "OPS/text/b.xhtml": page("<h1>First</h1><ul><li>One</li></ul>"),
        "OPS/book.opf": opf("one two", ("two", "a%252.xhtml"), ("one", "text/b.xhtml#start")),
    }
    return zipped({name: text for name, text in (parts | dict(files)).items() if text is not None})


def read(raw: bytes) -> Extracted:
    return epub.extract(raw, name="a.epub", settings=Extraction())


def test_chapters_come_in_the_order_of_the_spine() -> None:
    found = read(book({}))
    assert found.content == "# First\n\n- One\n\n# Second\n\nTwo\u00a0words\n".replace("\u00a0", " ")
    assert (found.kind, found.title, found.warnings) == ("markdown", "The Book", ())
    assert found.meta == {"author": "Ann, Bo", "language": "en", "keywords": "a, b", "published": "1949"}


def test_a_page_without_a_heading_gets_its_title_unless_it_is_the_books() -> None:
    pages = {"OPS/a%2.xhtml": page("<p>Text</p>", "The Book"), "OPS/text/b.xhtml": page("<p>Words</p>", "Foreword")}
    assert read(book(pages)).content == "## Foreword\n\nWords\n\nText\n"


def test_the_table_of_contents_is_left_out() -> None:
    package = opf("one two", ("two", "a%252.xhtml"), ("one", "text/b.xhtml")).replace(
        'href="text/b.xhtml" properties=""', 'href="text/b.xhtml" properties="scripted nav"'
    )
    assert read(book({"OPS/book.opf": package})).content.startswith("# Second")


def test_a_page_that_is_lost_costs_that_page_only() -> None:
    found = read(book({"OPS/text/b.xhtml": None}))
    assert found.content.startswith("# Second")
    assert found.warnings == ("the part OPS/text/b.xhtml is missing",)


@pytest.mark.parametrize("damage", [{"META-INF/container.xml": "<x"}, {"META-INF/container.xml": None}])
def test_without_a_container_the_package_is_found_by_its_name(damage: dict[str, str | None]) -> None:
    assert read(book(damage)).content.startswith("# First")


@pytest.mark.parametrize("damage", [{"OPS/book.opf": "<x"}, {"OPS/book.opf": None}, {"OPS/book.opf": opf("")}])
def test_without_a_spine_pages_follow_by_their_names(damage: dict[str, str | None]) -> None:
    found = read(book(damage))
    assert found.content.startswith("# Second")
    assert any("order of its pages is lost" in warning for warning in found.warnings)


def encryption(algorithm: str, target: str) -> str:
    method = f'<EncryptionMethod Algorithm="{algorithm}"/>'
    reference = f'<CipherData><CipherReference URI="{target}"/></CipherData>'
    return f'<encryption xmlns="e"><EncryptedData>{method}{reference}</EncryptedData></encryption>'


def test_pages_that_open_with_a_key_of_the_seller_are_encrypted() -> None:
    locked = encryption("http://www.w3.org/2001/04/xmlenc#aes128-cbc", "OPS/text/b.xhtml")
    with pytest.raises(Encrypted):
        read(book({"META-INF/encryption.xml": locked}))


@pytest.mark.parametrize(
    "lock",
    [
        encryption("http://www.idpf.org/2008/embedding", "OPS/fonts/a.otf"),
        encryption("http://ns.adobe.com/pdf/enc#RC", "OPS/text/b.xhtml"),
        encryption("http://www.w3.org/2001/04/xmlenc#aes128-cbc", "OPS/cover.jpg"),
        "<damaged",
    ],
)
def test_fonts_that_are_scrambled_lock_nothing(lock: str) -> None:
    assert read(book({"META-INF/encryption.xml": lock})).content.startswith("# First")


def test_a_book_that_unpacks_without_end_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("garage.extract.office.archive.UNPACKED_BYTES", 1_000_000)
    with pytest.raises(TooLarge):
        read(book({"OPS/text/b.xhtml": page("x" * 2_000_000)}))
    hidden = opf("one", ("one", "text/b.bin"))
    with pytest.raises(TooLarge):
        read(book({"OPS/book.opf": hidden, "OPS/text/b.bin": page("x" * 2_000_000)}))


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        (b"plain text", Malformed),
        (zipped({"mimetype": "application/epub+zip"}), Unsupported),
        (book({"OPS/a%2.xhtml": page(" "), "OPS/text/b.xhtml": page("<img src='x.png'/>")}), NoText),
        (book({"OPS/a%2.xhtml": page(" "), "OPS/text/b.xhtml": None}), Malformed),
    ],
)
def test_files_that_hold_no_text(raw: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        read(raw)
