"""Headings are those that a CommonMark parser finds at the top level of the document."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from garage.chunk.headings import TITLE_LENGTH, heading_title, markdown_headings

MARKDOWN_IT = MarkdownIt("commonmark").enable("table")

LINES = [
    *("# a", "## b ##", "### c", "#### d", "#no", "    # code", "   # ind", "text", "more text", "===", "---", "", ""),
    *("- item", "  # in item", "- # h", "1. one", "2. two", "10) ten", "-   - deep", "      # deep", "+ # p", "\ttab"),
    *("```", "```py", "~~~", "~~~~", "   ```", "    ```", "````", "- ```", "  ```", "> quote", "> # q", ">", "* * *"),
    *("<div>", "</div>", "<pre>", "</pre>", "<!-- x", "-->", "<!-- y -->", '<a name="x"></a>', "<b>", "<br>", "<?x"),
    *("   text", "  ---", "`a` # b", "\\# esc", "#", "##", "# #", "Foo\tx", "-- ", "<kbd>k</kbd> t", "``` a`b"),
]


def found(text: str) -> list[tuple[int, int]]:
    return [(text.count("\n", 0, heading.start), heading.level) for heading in markdown_headings(text)]


def expected(text: str) -> list[tuple[int, int]]:
    tokens = [token for token in MARKDOWN_IT.parse(text) if token.type == "heading_open" and token.level == 0]
    return [(token.map[0], int(token.tag[1])) for token in tokens if token.map and int(token.tag[1]) <= 3]


@settings(deadline=None, max_examples=1000)
@given(st.lists(st.sampled_from(LINES), min_size=1, max_size=8))
def test_headings_are_those_of_a_commonmark_parser(lines: list[str]) -> None:
    text = "\n".join(lines) + "\n"
    assert found(text) == expected(text)


def test_headings_of_real_files_are_those_of_a_commonmark_parser(texts: list[tuple[str, str]]) -> None:
    documents = [re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL) for kind, text in texts if kind == "markdown"]
    assert sum(len(found(text)) for text in documents) > 50
    for text in documents:
        assert found(text) == expected(text)


@pytest.mark.parametrize(
    "block",
    [
        "```\n# no\n```\n",
        "~~~~ sh\n# no\n~~~\n# no\n~~~~\n",
        "   ```\n# no\n   ```\n",
        "    # no\n",
        "\t# no\n",
        "- item\n\n  ```\n  # no\n  ```\n",
        "- ```\n  # no\n  ```\n",
        "> # no\n",
        "<!--\n# no\n\n# no\n-->\n",
        "<pre>\n\n# no\n</pre>\n",
        "#no\n",
        "| a | b |\n|---|---|\n| 1 | 2 |\n---\n",
        "- item\n---\n",
        "* * *\n---\n",
    ],
)
def test_what_looks_like_a_heading_inside_a_block_is_content(block: str) -> None:
    text = f"# first\n\n{block}\n## last\n"
    assert [heading.title for heading in markdown_headings(text)] == ["first", "last"]


def test_a_fence_that_is_never_closed_runs_to_the_end() -> None:
    assert [heading.title for heading in markdown_headings("# a\n```\n# b\n\n# c\n")] == ["a"]


def test_a_fence_in_a_list_ends_with_the_list() -> None:
    assert [heading.title for heading in markdown_headings("- x\n\n  ```\n  # b\n# c\n")] == ["c"]


def test_a_line_at_the_margin_that_goes_on_with_an_item_does_not_end_it() -> None:
    assert [heading.title for heading in markdown_headings("1. one\ngoes on\n   # no\n   ```\n# c\n")] == ["c"]


def test_an_underlined_heading_holds_its_lines_and_underline() -> None:
    text = "intro\n\nThe title\ngoes on\n======\nbody\n"
    (heading,) = markdown_headings(text)
    assert (text[heading.start : heading.end], heading.level) == ("The title\ngoes on\n======\n", 1)
    assert heading.title == "The title goes on"


def test_a_long_paragraph_above_a_rule_is_no_title() -> None:
    assert list(markdown_headings("word " * TITLE_LENGTH + "\n---\n")) == []


@pytest.mark.parametrize(
    ("text", "title"),
    [
        (" Plain ", "Plain"),
        ("Closed ##", "Closed"),
        ("C#", "C#"),
        ("Escaped \\#", "Escaped \\#"),
        ("###", ""),
        ("Anchor { #the-anchor }", "Anchor"),
        ("Classes {.a .b}", "Classes"),
        ("Set {a, b}", "Set {a, b}"),
        ("{#only}", "{#only}"),
        ("Two\t  spaces", "Two spaces"),
        ("x" * 300, "x" * TITLE_LENGTH + "…"),
    ],
)
def test_a_title_is_cleaned_of_markup_that_is_not_text(text: str, title: str) -> None:
    assert heading_title(text) == title


def test_reading_starts_where_it_is_told() -> None:
    text = "# skipped\n# read\n"
    assert [heading.title for heading in markdown_headings(text, text.index("\n") + 1)] == ["read"]
