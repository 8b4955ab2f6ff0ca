import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from garage.config import Extraction
from garage.extract import markdown
from garage.extract.mirror import canonical
from garage.extract.model import Extracted

SETTINGS = Extraction()


def read(text: str) -> Extracted:
    return markdown.extract(text.encode(), name="note.md", settings=SETTINGS)


def body(found: Extracted) -> str:
    return found.content[found.body_start :]


def test_front_matter_is_metadata_and_stays_in_the_text() -> None:
    source = "---\ntitle: A Note\ntags: [a, b]\ndate: 2024-05-01\n---\n# Head\n\nText.\n"
    found = read(source)
    assert found.content == source
    assert body(found) == "# Head\n\nText.\n"
    assert (found.title, found.kind) == ("A Note", "markdown")
    assert found.meta == {"front_matter": {"title": "A Note", "tags": ["a", "b"], "date": "2024-05-01"}}


def test_offsets_are_those_of_the_mirror_not_of_the_file() -> None:
    found = markdown.extract(
        b"\xef\xbb\xbf---\r\ntitle: e\xcc\x81\x00\r\n---\r\nBody", name="note.md", settings=SETTINGS
    )
    assert found.content == "---\ntitle: é\n---\nBody\n"
    assert body(found) == "Body\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("---\ntitle: a: b\n---\nBody\n", "mapping values"),
        ("---\n\tx: [\n---\nBody\n", "character"),
        ("---\na: &x [1]\nb: *x\n---\nBody\n", "alias"),
        ("---\na: " + "[" * 100 + "]" * 100 + "\n---\nBody\n", "nested"),
        ("---\n? [a]\n: 1\n---\nBody\n", "unhashable"),
        ("---\na: !!python/object/apply:os.system [ls]\n---\nBody\n", "constructor"),
    ],
)
def test_front_matter_that_cannot_be_parsed_is_body(text: str, reason: str) -> None:
    found = read(text)
    assert (found.content, found.body_start, found.meta) == (text, 0, {})
    assert len(found.warnings) == 1
    assert reason in found.warnings[0]


@pytest.mark.parametrize(
    "text",
    [
        "---\nno end\n",
        "---\nJust a text between rules.\n---\nBody\n",
        "---\n- a list\n---\nBody\n",
        " ---\ntitle: indented\n---\n",
        "Text\n---\ntitle: x\n---\n",
        "----\ntitle: x\n----\n",
        "---\n" + "x: y\n" * 20_000 + "---\nBody\n",
    ],
)
def test_what_is_no_front_matter_is_body_without_a_word(text: str) -> None:
    found = read(text)
    assert (found.body_start, found.meta, found.warnings) == (0, {}, ())


@pytest.mark.parametrize(
    ("text", "meta", "rest"),
    [
        ("---\n---\nBody\n", {}, "Body\n"),
        ("---  \na: 1\n...\nBody\n", {"a": 1}, "Body\n"),
        ("---\na: 1\n---", {"a": 1}, ""),
        ("---\ndate: 0000-00-00\nn: 1\n---\nBody\n", {"date": "0000-00-00", "n": "1"}, "Body\n"),
        ("---\nx: .nan\ny: 2024-05-01 10:00:00\n---\n", {"x": None, "y": "2024-05-01T10:00:00"}, ""),
        ("---\n2: two\ntrue: yes\n---\n", {"2": "two", "True": True}, ""),
    ],
)
def test_odd_but_sound_front_matter(text: str, meta: dict[str, object], rest: str) -> None:
    found = read(text)
    assert found.meta == {"front_matter": meta}
    assert body(found) == rest


def test_growing_front_matter_does_not_explode() -> None:
    lines = ["a0: &a0 [x, x]"] + [f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 60)]
    began = time.process_time()
    found = read("---\n" + "\n".join(lines) + "\n---\nBody\n")
    assert time.process_time() - began < 5
    assert found.body_start == 0


@pytest.mark.parametrize(
    ("author", "name"),
    [("Ann", "Ann"), ("[Ann, Bob]", "Ann, Bob"), ("{name: Ann}", None), ("''", None), ("12", None)],
)
def test_the_author_is_told_as_for_other_kinds_of_file(author: str, name: str | None) -> None:
    assert read(f"---\nauthor: {author}\n---\nBody\n").meta.get("author") == name


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("# One\n\n# Two\n", "One"),
        ("## Two\n\n# One\n", "One"),
        ("#  Spaced out  ##  \n", "Spaced out"),
        ("# C# and F#\n", "C# and F#"),
        ("#\n\n# Second\n", "Second"),
        ("#hashtag\n", None),
        ("Title\n=====\n", "Title"),
        ("Title\n-----\n", None),
        ("a\n\n=====\n", None),
        ("```sh\n# comment\n```\n# Real\n", "Real"),
        ("~~~\n```\n# no\n~~~\n# Real\n", "Real"),
        ("````\n```\n# no\n````\n# Real\n", "Real"),
        ("    # indented code\n", None),
        ("# A [link](http://x) and ![image](y.png) and `code`\n", "A link and image and code"),
        ("# **Bold** and _quiet_ snake_case {#id}\n", "Bold and quiet snake_case"),
        ("text only\n", None),
        ("---\ntitle: ''\n---\n# Head\n", "Head"),
        ("---\ntitle: 2024\n---\n# Head\n", "2024"),
        ("---\ntitle: [a]\n---\n# Head\n", "Head"),
        ("---\nx: 1 # not\n# a heading\n---\nText\n", None),
    ],
)
def test_the_title_of_a_document(text: str, title: str | None) -> None:
    assert read(text).title == title


def test_a_heading_of_a_hundred_thousand_blanks_is_read_in_no_time() -> None:
    began = time.process_time()
    assert read(("# " + " " * 100_000 + "\n") * 20 + "# Head " + "#" * 100_000 + " x\n").title == "Head"
    assert time.process_time() - began < 5


@given(st.text(st.sampled_from("-.\n: ab#[]&*{}'\t|>\x00\ufeff")) | st.text())
@example("---\n---")
@example("---\na: |\n  ---\n---\n")
def test_no_text_is_lost_whatever_it_begins_with(text: str) -> None:
    found = markdown.extract(("---\n" + text).encode("utf-8", "replace"), name="a.md", settings=SETTINGS)
    assert found.content == canonical("---\n" + text.encode("utf-8", "replace").decode())
    assert 0 <= found.body_start <= len(found.content)
    assert found.body_start == 0 or found.content[found.body_start - 1] == "\n"
