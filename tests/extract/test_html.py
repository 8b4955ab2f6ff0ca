from pathlib import Path

import pytest

from garage.config import Extraction
from garage.extract import html
from garage.extract.mirror import canonical
from garage.extract.model import Extracted, Unsupported


def read(raw: bytes, name: str = "page.html") -> Extracted:
    return html.extract(raw, name=name, settings=Extraction())


def test_a_page_becomes_markdown_with_title_and_metadata() -> None:
    page = b'<title>Tea</title><meta name="author" content="Ann"><h1>On tea</h1><p>Green.</p><ul><li>hot</ul>'
    found = read(page)
    assert (found.content, found.kind, found.title) == ("# On tea\n\nGreen.\n\n- hot\n", "markdown", "Tea")
    assert found.meta == {"author": "Ann"}
    assert not found.communication


def test_without_a_title_the_first_heading_is_one() -> None:
    assert read(b"<h2>On tea</h2>").title == "On tea"
    assert read(b"<p>On tea</p>").title is None


def test_the_content_is_canonical() -> None:
    found = read("<p>Cafe\u0301</p>\r\n<pre>a\r\nb\x00\x07</pre>".encode())
    assert found.content == canonical(found.content)
    assert "Café" in found.content


def test_a_binary_file_with_the_name_of_a_page_is_refused() -> None:
    with pytest.raises(Unsupported, match="binary"):
        read(bytes(range(1, 256)) * 40)


ARCHIVE = b"""From: <Saved by a browser>
Snapshot-Content-Location: https://example.org/
MIME-Version: 1.0
Content-Type: multipart/related; type="text/html"; boundary="b"

--b
Content-Type: text/html; charset=koi8-r
Content-Transfer-Encoding: quoted-printable

<title>Tea</title><p>=D0=D2=C9=D7=C5=D4=
</p>
--b
Content-Type: image/png
Content-Transfer-Encoding: base64

iVBORw0KGgo=
--b--
"""


def test_of_an_archived_page_the_page_is_read() -> None:
    found = read(ARCHIVE, "page.mht")
    assert (found.content, found.title) == ("привет\n", "Tea")


def test_an_archive_without_a_page_is_refused() -> None:
    with pytest.raises(Unsupported, match="no page"):
        read(b"MIME-Version: 1.0\nContent-Type: image/png\n\nx", "page.mhtml")


def test_a_page_that_is_only_called_an_archive_is_read() -> None:
    assert read(b"<p>Tea", "page.mht").content == "Tea\n"


@pytest.mark.parametrize(
    ("name", "title", "phrase"),
    [
        ("testHTML_charset_utf16le.html", "Title", "This is a sample text"),
        ("testHTML_utf8.html", "Title : Tilte with UTF-8 chars öäå", "åäö"),
        ("boilerplate-whitespace.html", "Title", "有什么需要我帮你的"),
        ("testBoilerplateMissingSpace.html", "Blobfish - Wikipedia", "30 cm (12 in)"),
        ("tika434.html", "Finger Lakes Vacation Rental | Breezy Cove Wonderful Finger Lakes Honey!", "Lamoka Lake"),
    ],
)
def test_real_pages_are_read(shared: Path, name: str, title: str, phrase: str) -> None:
    found = read((shared / "corpus" / "html" / name).read_bytes(), name)
    assert found.title == title
    assert phrase in found.content
