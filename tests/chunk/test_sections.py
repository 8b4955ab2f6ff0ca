"""Sections: a document cut at its headings, each with the path above it."""

import re

from hypothesis import given
from hypothesis import strategies as st
from langchain_text_splitters import MarkdownHeaderTextSplitter

from garage.chunk.headings import heading_title, markdown_headings
from garage.chunk.sections import sections


def parts(text: str) -> list[tuple[str | None, str]]:
    return [(part.path, text[part.start : part.end]) for part in sections(text, 0, markdown_headings(text))]


def test_a_path_names_every_heading_above() -> None:
    text = "intro\n# A\na\n## B\nb\n### C\nc\n#### D\nd\n## E\ne\n# F\nf\n"
    assert [path for path, _ in parts(text)] == [None, "A", "A > B", "A > B > C", "A > E", "F"]


def test_a_skipped_level_leaves_no_gap_in_the_path() -> None:
    assert [path for path, _ in parts("# A\na\n### C\nc\n## B\nb\n")] == ["A", "A > C", "A > B"]


def test_a_heading_without_text_goes_with_the_deeper_one_below_it() -> None:
    text = "# A\n\n## B\nb\n"
    assert parts(text) == [("A > B", text)]


def test_a_heading_without_text_stays_alone_before_one_of_its_level() -> None:
    assert parts("# A\n# B\nb\n") == [("A", "# A\n"), ("B", "# B\nb\n")]


def test_an_empty_heading_is_not_in_the_path() -> None:
    assert [path for path, _ in parts("#\na\n## B\nb\n")] == [None, "B"]


@given(st.lists(st.sampled_from(["# a\n", "## b\n", "### c\n", "text\n", "\n", "```\n", "---\n"])).map("".join))
def test_sections_cover_the_text_once(text: str) -> None:
    assert "".join(part for _, part in parts(text)) == text


def test_sections_of_real_files_are_those_of_langchain(texts: list[tuple[str, str]]) -> None:
    splitter = MarkdownHeaderTextSplitter([("#", "1"), ("##", "2"), ("###", "3")])
    compared = 0
    for kind, text in texts:
        if kind != "markdown":
            continue
        body = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL)
        theirs = [
            (" > ".join(map(heading_title, part.metadata.values())) or None, _bare(part.page_content))
            for part in splitter.split_text(body)
        ]
        headings = list(markdown_headings(body))
        ours = []
        for part in sections(body, 0, headings):
            inner = [heading for heading in headings if part.start <= heading.start < part.end]
            below = body[inner[-1].end if inner else part.start : part.end]
            if below.strip():
                ours.append((part.path, _bare(below)))
        assert ours == theirs
        compared += len(ours)
    assert compared > 50


def _bare(text: str) -> str:
    """What langchain leaves of a section: it strips and joins its lines, and drops what cannot be printed."""
    return "".join(filter(str.isprintable, re.sub(r"\s", "", text)))
