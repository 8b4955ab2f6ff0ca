"""The terms that keyword search sees of a passage."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from garage.passage import (
    asked_as_code,
    asked_as_prose,
    input_sha256,
    is_code,
    lexical,
    with_bigrams,
    with_parts,
)


def prose(text: str, title: str = "", heading: str | None = None) -> str:
    terms = lexical("prose", title, heading, text)
    assert terms.code is None
    assert terms.prose is not None
    return terms.prose


def test_prose_and_code_have_terms_of_their_own() -> None:
    assert prose("plain words") == "plain words"
    for kind in ("code:python", "code:text"):
        terms = lexical(kind, "", None, "plain words")
        assert (terms.prose, terms.code) == (None, "plain words")
        assert is_code(kind)
    for kind in ("prose", "markdown", "tabular"):
        assert lexical(kind, "", None, "x").prose == "x"
        assert not is_code(kind)


def test_the_title_counts_twice_and_the_heading_once() -> None:
    assert prose("text", "Title", "A > B").split("\n") == ["Title", "Title", "A > B", "text"]
    assert prose("text", "", None) == "text"


def test_a_long_title_or_heading_does_not_swell_every_passage() -> None:
    assert len(prose("text", "t " * 100_000, "h " * 100_000)) < 2000


@pytest.mark.parametrize(
    ("compound", "parts"),
    [
        ("getUserName", ["get", "User", "Name"]),
        ("HTTPServer", ["HTTP", "Server"]),
        ("max_chunk_size", ["max", "chunk", "size"]),
        ("numpy.ndarray", ["numpy", "ndarray"]),
        ("std::vector", ["std", "vector"]),
        ("/usr/lib/python3.11", ["usr", "lib", "python", "3", "11"]),
        ("SHA-256", ["SHA", "256"]),
        ("2024-01-05", ["2024", "01", "05"]),
        ("someone@example.org", ["someone", "example", "org"]),
        ("utf8", ["utf", "8"]),
    ],
)
def test_a_compound_is_also_there_in_parts(compound: str, parts: list[str]) -> None:
    assert with_parts(f"the {compound} here").split("\n") == [f"the {compound} here", " ".join(parts)]
    assert with_parts(f"the {compound} here") in prose(f"the {compound} here")


@pytest.mark.parametrize(
    "text", ["well-known", "Don't", "Jean-Luc", "naïve", "Müller", "straße", "word", "ACRONYM", "e.g. i.e."]
)
def test_words_that_are_no_compounds_stay_alone(text: str) -> None:
    assert with_parts(text) == text


def test_parts_are_given_once_however_often_the_compound_stands() -> None:
    assert with_parts("aB.cd aB.cd aB.cd").count("cd") == 4


def test_chinese_japanese_and_korean_become_pairs() -> None:
    assert with_bigrams("冷链温控").split() == ["冷链", "链温", "温控"]
    assert with_bigrams("リンゴ").split() == ["リン", "ンゴ"]
    assert with_bigrams("검색엔진").split() == ["검색", "색엔", "엔진"]
    assert with_bigrams("佐々木").split() == ["佐々", "々木"]
    assert with_bigrams("𠮷野家").split() == ["𠮷野", "野家"]
    assert with_bigrams("使用API文档").split() == ["使用", "API", "文档"]


def test_a_single_character_can_be_looked_for() -> None:
    assert asked_as_prose("猫").split() == ["猫"]
    assert "猫" in prose("白い猫がいる").split()
    assert "猫" not in asked_as_prose("白い猫").split()


@given(some.text(alphabet="abc 12.,-_", max_size=100))
def test_text_in_other_scripts_is_not_touched_by_pairs(text: str) -> None:
    assert with_bigrams(text) == text


def test_what_looks_the_same_is_the_same() -> None:
    assert asked_as_prose("ＡＣＣＴ－９９") == "ACCT-99"
    assert prose("eﬃcient oﬃce") == "efficient office"
    assert prose("ｶﾀｶﾅ") == prose("カタカナ")


def test_a_query_for_code_asks_for_parts_and_one_for_prose_does_not() -> None:
    assert asked_as_code("getUserName") == "getUserName\nget User Name"
    assert asked_as_prose("getUserName") == "getUserName"


@given(some.text(max_size=300), some.text(max_size=40), some.none() | some.text(max_size=40))
def test_any_text_has_terms(text: str, title: str, heading: str | None) -> None:
    for kind in ("prose", "code:python"):
        terms = lexical(kind, title, heading, text)
        assert (terms.prose is None) != (terms.code is None)


def test_the_digest_of_an_input_tells_its_parts_apart() -> None:
    digests = {
        input_sha256("a", "b", "c"),
        input_sha256("ab", "", "c"),
        input_sha256("a", None, "bc"),
        input_sha256("", "a", "bc"),
        input_sha256('a","b', "", "c"),
    }
    assert len(digests) == 5
    assert input_sha256("a", None, "b") == input_sha256("a", "", "b")
    assert all(len(digest) == 32 for digest in digests)
