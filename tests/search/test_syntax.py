"""What is an operator in a query, and what is a word."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as some

from garage.search.syntax import parse, plain


def matches(pattern: str, text: str) -> bool:
    r"""As Postgres would: \m and \M are the beginning and the end of a word there."""
    return re.search(pattern.replace(r"\m", r"\b").replace(r"\M", r"\b"), text, re.IGNORECASE) is not None


@pytest.mark.parametrize(
    "query", ["apple", "apple butter recipe", "what is well-known?", "5 - 3", "a -- b", "e-mail", "C++", "oregano or"]
)
def test_words_are_words(query: str) -> None:
    assert not parse(query).is_deliberate
    assert parse(query).words == query


def test_a_quoted_phrase_is_required_word_for_word() -> None:
    asked = parse('honey "apple  butter" jar')
    assert asked.words == "honey apple butter jar"
    (pattern,) = asked.terms.required
    assert matches(pattern, "An Apple\nButter pot")
    assert not matches(pattern, "apple buttercup")
    assert not matches(pattern, "butter apple")
    assert not matches(pattern, "pineapple butter")


def test_a_leading_minus_excludes_a_word_or_a_phrase() -> None:
    asked = parse('python -java -"visual basic" -c++ well-known')
    assert asked.words == "python well-known"
    assert asked.terms.required == ()
    java, basic, cpp = asked.terms.excluded
    assert matches(java, "Java and others")
    assert not matches(java, "javascript")
    assert matches(basic, "in Visual  Basic.")
    assert matches(cpp, "written in C++")
    assert not matches(cpp, "written in C")


def test_or_is_no_word_to_look_for() -> None:
    assert parse("apple OR pear").words == "apple pear"
    assert not parse("apple OR pear").is_deliberate
    assert parse("ORpheus fOR ORegon").words == "ORpheus fOR ORegon"


@pytest.mark.parametrize("query", ["-java", '-"visual basic"', '""', '"" -x', "OR", "- -", '"', "-", '"?!"'])
def test_operators_alone_are_taken_for_words(query: str) -> None:
    assert parse(query) == plain(query)


@pytest.mark.parametrize("query", ['an "open phrase', 'say "" twice', 'odd " quote " here "'])
def test_quotes_without_words_between_them_require_nothing_that_is_not_there(query: str) -> None:
    asked = parse(query)
    for pattern in asked.terms.required:
        assert matches(pattern, query)


def test_prose_with_quotation_marks_is_no_command() -> None:
    prose = (
        'I would like to find articles about systems of which people say "what you see is what you get", if there are'
        " any that were written by people who use them"
    )
    assert parse(prose) == plain(prose)


def test_a_quoted_phrase_in_chinese_is_found_inside_a_run() -> None:
    asked = parse('"冷链温控"')
    (pattern,) = asked.terms.required
    assert matches(pattern, "处置 北辰 辰冷 冷链 链温 温控 控报 报警")
    assert not matches(pattern, "冷链 链运 运输")


@given(some.text(max_size=200))
def test_any_text_can_be_a_query(text: str) -> None:
    asked = parse(text)
    for pattern in (*asked.terms.required, *asked.terms.excluded):
        re.compile(pattern.replace(r"\m", r"\b").replace(r"\M", r"\b"))
