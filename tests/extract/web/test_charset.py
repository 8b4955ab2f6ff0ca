import pytest

from garage.extract.web.charset import codec, declared, decode_as


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("ISO-8859-1", "cp1252"),
        ("us-ascii", "cp1252"),
        ('"UTF-8"', "utf-8"),
        ("gb2312", "gb18030"),
        ("ks_c_5601-1987", "cp949"),
        ("Shift_JIS", "cp932"),
        ("windows-1251", "cp1251"),
    ],
)
def test_a_label_means_what_the_programs_that_wrote_it_meant(label: str, name: str) -> None:
    assert codec(label) == name


@pytest.mark.parametrize(
    "label", [None, "", "unknown", "x-unknown", "rot13", "base64", "utf-8\0", "ü", "idna", "x" * 500]
)
def test_what_names_no_encoding_of_text_is_none(label: str | None) -> None:
    assert codec(label) is None


def test_valid_utf8_goes_before_a_wrong_label() -> None:
    assert decode_as("Envoyé".encode(), "iso-8859-1") == ("Envoyé", "utf-8", False)


def test_a_label_decides_what_is_not_utf8() -> None:
    assert decode_as("привет".encode("koi8-r"), "koi8-r") == ("привет", "koi8-r", False)
    assert decode_as("“quoted”".encode("cp1252"), "iso-8859-1")[0] == "“quoted”"
    assert decode_as("すみません".encode("iso-2022-jp"), "iso-2022-jp")[0] == "すみません"


def test_an_unknown_label_falls_back_to_the_likeliest() -> None:
    assert decode_as("Grüße aus Köln".encode("cp1252"), "unknown")[0] == "Grüße aus Köln"


def test_one_damaged_character_does_not_make_a_label_wrong() -> None:
    text, name, damaged = decode_as("これはテストです。".encode("cp932") * 20 + b"\x81", "shift_jis")
    assert (text[:5], name, damaged) == ("これはテス", "cp932", True)


def test_a_mark_goes_before_a_label() -> None:
    assert decode_as("Grüße".encode("utf-16"), "iso-8859-1")[0] == "Grüße"


@pytest.mark.parametrize(
    ("page", "name"),
    [
        (b'<meta charset="windows-1251">', "cp1251"),
        (b'<meta http-equiv="Content-Type" content="text/html; charset=iso-8859-2">', "iso8859-2"),
        (b'<?xml version="1.0" encoding="koi8-r"?><html>', "koi8-r"),
        (b'<meta charset="utf-16">', "utf-8"),
        (b"<meta charset=nonsense>", None),
        (b"<html><body>no word of it", None),
    ],
)
def test_a_page_declares_its_encoding(page: bytes, name: str | None) -> None:
    assert declared(page) == name
