import codecs
import datetime as dt
import json
import math
import unicodedata
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from garage.extract.mirror import (
    canonical,
    clean_line,
    clean_metadata,
    clean_text,
    decode,
    has_text,
    looks_binary,
)

ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()))
HOSTILE = st.text(st.sampled_from("a\u0301\r\n\t \x00\x85\ufeff\ud83d\ude00\udc80e\u1100\u1161\u0958\x0c"))


@pytest.mark.parametrize(
    ("text", "mirror"),
    [
        ("", "\n"),
        ("a", "a\n"),
        ("a\n\n\n", "a\n"),
        ("a\r\nb\rc\n", "a\nb\nc\n"),
        ("a\n\r\nb", "a\n\nb\n"),
        ("\ufeffa", "a\n"),
        ("a\ufeffb", "a\ufeffb\n"),
        ("a\x00b\x07c\x1bd\x7fe\x9ff\x85g", "abcdefg\n"),
        ("a\tb", "a\tb\n"),
        ("  a  \n\n\n\n  b  ", "  a  \n\n\n\n  b  \n"),
        ("e\u0301", "\u00e9\n"),
        ("e\x00\u0301", "\u00e9\n"),
        ("\ud83d\ude00", "\U0001f600\n"),
        ("a\ud800b", "a\ufffdb\n"),
        ("a\u2028b", "a\u2028b\n"),
        ("\u00a0\u200ba", "\u00a0\u200ba\n"),
    ],
)
def test_the_mirror_of_a_text(text: str, mirror: str) -> None:
    assert canonical(text) == mirror


@given(ANY_TEXT | HOSTILE)
@example("\ufeff\ufeffa")
@example("\x00\ufeffa")
@example("\r\x00\n")
@example("\udc80\ud83d\ude00")
def test_the_mirror_of_a_mirror_is_itself(text: str) -> None:
    mirror = canonical(text)
    assert canonical(mirror) == mirror


@given(ANY_TEXT | HOSTILE)
def test_a_mirror_can_be_stored_and_ends_with_one_line_feed(text: str) -> None:
    mirror = canonical(text)
    mirror.encode()  # no surrogates
    assert "\r" not in mirror
    assert mirror.endswith("\n")
    assert not mirror.endswith("\n\n")
    assert unicodedata.is_normalized("NFC", mirror)
    assert {char for char in mirror if unicodedata.category(char) == "Cc"} <= {"\n", "\t"}


@given(st.lists(st.text(st.characters(exclude_categories=("Cc", "Cs"))), min_size=1))
def test_lines_stay_the_lines_of_the_editor(lines: list[str]) -> None:
    mirror = canonical("\r\n".join([*lines, "end"]))
    assert mirror.count("\n") == len(lines) + 1


@given(st.lists(HOSTILE))
def test_mirrors_joined_at_line_feeds_are_a_mirror(texts: list[str]) -> None:
    pages = [page for page in (canonical(text).strip("\n") for text in texts) if page]
    joined = "\n\n".join(pages) + "\n"
    assert canonical(joined) == joined.lstrip("\ufeff")


@pytest.mark.parametrize("text", ["a", "   x  ", "{", "👍", "\u200bख"])
def test_what_a_person_can_see_is_text(text: str) -> None:
    assert has_text(canonical(text))


@pytest.mark.parametrize("text", ["", " \n\t\n", "\u200b\u00ad", "\ue000\uf0b7", "\ufffd\ufffd", "\u00a0\u3000"])
def test_what_nobody_can_see_is_no_text(text: str) -> None:
    assert not has_text(canonical(text))


@pytest.mark.parametrize(
    ("raw", "text", "encoding"),
    [
        (b"", "", "utf-8"),
        ("Grüße".encode(), "Grüße", "utf-8"),
        (codecs.BOM_UTF8 + "Grüße".encode(), "Grüße", "utf-8-sig"),
        ("Grüße".encode("utf-16"), "Grüße", "utf-16"),
        (codecs.BOM_UTF16_BE + "Grüße".encode("utf-16-be"), "Grüße", "utf-16"),
        ("Grüße".encode("utf-32"), "Grüße", "utf-32"),
        (codecs.BOM_UTF32_BE + "Grüße".encode("utf-32-be"), "Grüße", "utf-32"),
        ("Grüße aus Köln".encode("utf-16-le"), "Grüße aus Köln", "utf-16-le"),
        ("Grüße aus Köln".encode("utf-16-be"), "Grüße aus Köln", "utf-16-be"),
        (b"hello\x00world", "hello\x00world", "utf-8"),
    ],
)
def test_decoding_by_mark_and_by_shape(raw: bytes, text: str, encoding: str) -> None:
    assert decode(raw) == (text, encoding)


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("café", "cp1252"),
        ("naïve résumé", "cp1252"),
        ("Zürich 5°", "cp1252"),
        ("Die Straße führt über Brücken, an größten Plätzen vorbei und schließlich nach Köln.", "cp1252"),
        ("L'été dernier, ma sœur a mangé une crêpe à la forêt où l'âne brait; ça coûte 5 €.", "cp1252"),
        ("A informação não está à disposição dos cidadãos; amanhã às três você irá ao avião.", "cp1252"),
        ("El niño pequeño comió una piña mañana por la mañana, ¿verdad? Según él, está aquí.", "cp1252"),
        ("Zażółć gęślą jaźń, proszę państwa, będzie się działo więcej niż kiedykolwiek.", "cp1250"),
        ("Съешь же ещё этих мягких французских булок, да выпей чаю сегодня вечером.", "cp1251"),
        ("Съешь же ещё этих мягких французских булок, да выпей чаю сегодня вечером.", "koi8_r"),
        ("吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。", "shift_jis"),
        ("这是一个中文文本，用来测试编码检测。今天天气很好，我们去公园散步吧。", "gb18030"),
        ("모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다.", "euc_kr"),
    ],
)
def test_old_encodings_are_recognised(text: str, encoding: str) -> None:
    assert decode(text.encode(encoding))[0] == text


def test_utf8_with_a_few_damaged_bytes_is_still_utf8() -> None:
    text = "Die Straße führt über Brücken, an größten Plätzen vorbei."
    damaged = text.encode()[:30] + b"\xff" + text.encode()[30:]
    assert decode(damaged) == (damaged.decode("utf-8", "replace"), "utf-8")
    assert decode("Grüße über Köln öfter".encode()[:-1] + b"\xe2\x82")[1] == "utf-8"  # cut in the middle


@given(st.binary(max_size=400))
@example(b"\xff\xfe")
@example(b"\xff\xfe\x00\x00")
@example(b"\xff\xfe\x00\xd8\x41")
@example(b"\x00\xd8\x00\xd8")
@example(b"+/v9\xff")
def test_decoding_never_raises_and_its_mirror_can_be_stored(raw: bytes) -> None:
    text, encoding = decode(raw)
    codecs.lookup(encoding)
    canonical(text).encode()


def test_a_few_control_characters_do_not_make_a_text_binary() -> None:
    assert not looks_binary(b"hello\x00world\x01\x02")
    assert not looks_binary(b"\x1b[31mred\x1b[0m\n" * 1000)
    assert not looks_binary(b"a line of a log\n" * 100 + bytes(50_000))
    assert not looks_binary("中文文本在这里。".encode("utf-16") * 1000)
    assert not looks_binary("日本語のテキスト".encode("iso2022_jp") * 1000)


def test_compressed_data_is_binary() -> None:
    import random

    assert looks_binary(random.Random(1).randbytes(10_000))
    assert looks_binary(b"G@\x00\x10\x00" + random.Random(2).randbytes(187) * 40)


def test_metadata_can_be_stored_as_json() -> None:
    value = {
        "title": "a\x00b\ud800",
        1: [dt.date(2024, 5, 1), dt.datetime(2024, 5, 1, 12, tzinfo=dt.UTC), dt.time(8)],
        "numbers": (1, 2.5, math.nan, math.inf, 10**30, True, None, Decimal("1.5")),
        b"raw": b"caf\xc3\xa9\x00",
        "set": {"x"},
    }
    cleaned = clean_metadata(value)
    assert cleaned == {
        "title": "ab\ufffd",
        "1": ["2024-05-01", "2024-05-01T12:00:00+00:00", "08:00:00"],
        "numbers": [1, 2.5, None, None, hex(10**30), True, None, "1.5"],
        "raw": "café",
        "set": ["x"],
    }


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT | st.binary(max_size=20) | st.dates(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT | st.integers(), inner, max_size=4),
        max_leaves=12,
    )
)
def test_any_metadata_becomes_json_that_postgres_takes(value: object) -> None:
    written = json.dumps(clean_metadata(value), allow_nan=False, ensure_ascii=False)
    written.encode()
    assert "\x00" not in written
    assert "\\u0000" not in written


def test_metadata_without_end_is_bounded() -> None:
    deep: list[object] = []
    deep.append(deep)
    json.dumps(clean_metadata(deep))
    assert len(json.dumps(clean_metadata(["x" * 10**6]))) < 20_000
    assert len(json.dumps(clean_metadata(list(range(10**5))))) < 20_000
    assert len(json.dumps(clean_metadata(1 << 10**6))) < 20_000


def test_a_title_is_one_visible_line() -> None:
    assert clean_line(" A\x00 title \n over two\tlines ") == "A title over two lines"
    assert clean_line(" \u200b ") is None
    assert clean_line(None) is None
    assert clean_line(17) is None


def test_clean_text_has_no_final_line_feed() -> None:
    assert clean_text("two\r\nlines\n\n") == "two\nlines"
