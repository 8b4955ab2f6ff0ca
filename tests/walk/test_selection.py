import os
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pathspec import GitIgnoreSpec

from garage.walk.errors import BadPattern
from garage.walk.selection import Choice, Ruling, Selection

SUFFIXES = {".md": "markdown", ".txt": "text", ".py": "code", ".JSON": "code", "Makefile": "code", "readme": "text"}


def selection(*, include_code: bool = False, include_hidden: bool = False, exclude: Sequence[str] = ()) -> Selection:
    return Selection(
        suffixes=SUFFIXES,
        code_extractors=("code",),
        include_code=include_code,
        include_hidden=include_hidden,
        exclude=exclude,
    )


def file(rules: Selection, path: str) -> Choice:
    folder, slash, name = path.rpartition("/")
    return rules.file(name, folder + slash, None)


def folder(rules: Selection, path: str) -> str | None:
    name = path.rpartition("/")[2]
    return rules.folder(name, b"/root/" + os.fsencode(path), rules.ruling(path + "/", None))


@pytest.mark.parametrize("name", ["a.md", "a.MD", "a.b.md", ".MD.md"])
def test_the_last_suffix_decides_whatever_its_case(name: str) -> None:
    assert file(selection(include_hidden=True), name) == Choice("markdown")


@pytest.mark.parametrize("name", ["README", "readme", "ReadMe"])
def test_a_whole_name_is_recognised_whatever_its_case(name: str) -> None:
    assert file(selection(), name) == Choice("text")


@pytest.mark.parametrize("name", ["a.png", "a.md.gz", "md", "a", "a.", "readme.old", "amakefile"])
def test_a_name_without_an_extractor_is_skipped(name: str) -> None:
    assert file(selection(include_code=True), name).skipped == "extension"


@pytest.mark.parametrize("name", ["a.py", "a.json", "Makefile"])
def test_code_waits_until_it_is_asked_for(name: str) -> None:
    assert file(selection(), name).skipped == "code"
    assert file(selection(include_code=True), name) == Choice("code")


def test_hidden_entries_wait_until_they_are_asked_for() -> None:
    assert file(selection(), ".plan.md").skipped == "hidden"
    assert file(selection(include_hidden=True), ".plan.md") == Choice("markdown")
    assert folder(selection(), ".obsidian") == "hidden"
    assert folder(selection(include_hidden=True), ".obsidian") is None


def test_hidden_entries_asked_for_still_pass_the_built_in_exclusions() -> None:
    assert file(selection(include_hidden=True), "._a.md").skipped == "system"
    assert folder(selection(include_hidden=True), ".git") == "version_control"


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*.md", "deep/down/a.md"),
        ("/drafts/*.md", "drafts/a.md"),
        ("Übung*", "Übung 1.md"),
        ("two*.md", "two\nlines.md"),
        ("b.md", "two\nlines/b.md"),
        ("secret-[0-9].md", "x/secret-7.md"),
    ],
)
def test_a_file_that_a_pattern_names_is_skipped(pattern: str, path: str) -> None:
    assert file(selection(exclude=[pattern]), path).skipped == "pattern"


def test_a_pattern_typed_composed_finds_a_name_stored_decomposed() -> None:
    assert file(selection(exclude=["Übung.md"]), "U\u0308bung.md").skipped == "pattern"


@pytest.mark.parametrize(
    ("pattern", "path"), [("/a.md", "x/a.md"), ("# a.md", "a.md"), ("", "a.md"), ("a.md/", "a.md"), ("A.md", "a.md")]
)
def test_a_file_that_no_pattern_names_stays(pattern: str, path: str) -> None:
    assert file(selection(exclude=[pattern]), path) == Choice("markdown")


def test_a_folder_that_a_pattern_names_is_not_entered() -> None:
    assert folder(selection(exclude=["private/"]), "a/private") == "pattern"


def test_a_later_pattern_overrules_an_earlier_one() -> None:
    rules = selection(exclude=["*.md", "!keep.md"])
    assert file(rules, "a.md").skipped == "pattern"
    assert file(rules, "keep.md") == Choice("markdown")


def test_an_exclamation_mark_brings_back_what_the_built_in_exclusions_leave_out() -> None:
    rules = selection(exclude=["!vendor/", "!.notes/", "!netstat.txt"])
    assert folder(rules, "vendor") is None
    assert folder(rules, ".notes") is None
    assert file(rules, "netstat.txt") == Choice("text")


def test_a_folder_brought_back_brings_nothing_else_along() -> None:
    rules = selection(exclude=["!vendor/"])
    inherited = rules.ruling("vendor/", None).pattern
    inner = rules.ruling("vendor/node_modules/", inherited)
    assert rules.folder("node_modules", b"/root/vendor/node_modules", inner) == "dependency"
    assert rules.file(".plan.md", "vendor/", inherited).skipped == "hidden"
    assert rules.file("contract.md", "vendor/", inherited) == Choice("markdown")


def test_an_exclamation_mark_does_not_make_an_extractor() -> None:
    assert file(selection(exclude=["!a.png"]), "a.png").skipped == "extension"
    assert file(selection(exclude=["!a.py"]), "a.py").skipped == "code"


def test_a_pattern_that_git_would_not_take_is_named() -> None:
    with pytest.raises(BadPattern, match="exclude pattern '!'") as caught:
        selection(exclude=["*.bak", "!"])
    assert caught.value.pattern == "!"


names = st.sampled_from(["a", "b", "x.md", "y.md", "vendor", ".h"])
pieces = st.sampled_from(["a", "b", "*.md", "x.*", "**", "*", "vendor", "[xy].md", "?.md"])
patterns = st.lists(
    st.builds(
        lambda no, start, middle, end: no + start + "/".join(middle) + end,
        st.sampled_from(["", "!"]),
        st.sampled_from(["", "/"]),
        st.lists(pieces, min_size=1, max_size=3),
        st.sampled_from(["", "/"]),
    ),
    max_size=5,
)


@given(patterns, st.lists(names, min_size=1, max_size=4).map("/".join), st.sampled_from(["", "/"]))
def test_asking_all_patterns_at_once_answers_as_asking_each(lines: list[str], path: str, slash: str) -> None:
    expected = GitIgnoreSpec.from_lines(lines).check_file(path + slash)
    ruling = selection(exclude=lines).ruling(path + slash, None)
    assert ruling == Ruling(None if expected.include is None else not expected.include, expected.index)
