import pytest

from garage.config import Extraction
from garage.extract import text
from garage.extract.model import Unsupported

SETTINGS = Extraction()


def test_a_text_stands_as_it_is() -> None:
    found = text.extract(b"One  \r\n\r\n\r\n  two\tthree", name="notes.txt", settings=SETTINGS)
    assert found.content == "One  \n\n\n  two\tthree\n"
    assert (found.kind, found.title, found.body_start, found.meta, found.warnings) == ("prose", None, 0, {}, ())


def test_nul_bytes_are_removed_before_anything_is_counted() -> None:
    found = text.extract(b"be\x00fore after", name="notes.txt", settings=SETTINGS)
    assert found.content == "before after\n"
    assert found.content.index("after") == 7


def test_another_encoding_is_told() -> None:
    found = text.extract("Grüße".encode("utf-16"), name="notes.txt", settings=SETTINGS)
    assert (found.content, found.meta) == ("Grüße\n", {"encoding": "utf-16"})


def test_bytes_that_fit_no_encoding_are_warned_of() -> None:
    broken = text.extract(b"\xff\xfea\x00\x00\xd8", name="notes.txt", settings=SETTINGS)
    assert broken.content == "a\ufffd\n"
    assert broken.warnings == ("some bytes do not fit the encoding and were replaced",)


def test_a_binary_file_with_the_name_of_a_text_is_refused() -> None:
    with pytest.raises(Unsupported, match="binary"):
        text.extract(bytes(range(1, 256)) * 40, name="README", settings=SETTINGS)
