"""The passages of a document: slices of it, in order, with their lines, up to a limit, under a signature."""

import hashlib
from bisect import bisect_left
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from garage.chunk import LANGUAGES, Chunk, Chunked, ChunkSettings, ChunkSettingsInvalid, chunk, signature
from garage.chunk.languages import MARKDOWN, PROSE, ROW
from garage.chunk.passages import VERSIONS
from garage.chunk.splitters import Splitter
from garage.errors import GarageError

KINDS = ["prose", "markdown", "tabular", *(f"code:{language}" for language in LANGUAGES), "code:unheard-of"]

FRAGMENTS = [
    *("# Head\n", "## Sub\n", "### Deep\n", "#### Four\n", "Under\n===\n", "```\n", "---\n", "- item\n", "> quote\n"),
    *(
        "word ",
        "and so on. ",
        "一つ、",
        "二つ。",
        "\n",
        "\n\n",
        "   \n",
        "\t",
        " ",
        "| a | b |\n",
        "a,b,c\n",
        "é",
        "😀",
    ),
    *("def f():\n", "    return 1\n", "class A:\n", "{", "};", "x" * 40, " " * 40, "<p>", "\u00a0", "\u2028", "\x85"),
]
contents = st.lists(st.sampled_from(FRAGMENTS), max_size=60).map(lambda parts: "".join(parts).rstrip("\n") + "\n")
small = st.integers(1, 60).flatmap(
    lambda size: st.builds(
        ChunkSettings,
        size=st.just(size),
        overlap=st.integers(0, size - 1),
        code_size=st.just(size),
        code_overlap=st.integers(0, size - 1),
    )
)


def check(content: str, body_start: int, made: Chunked, size: int) -> None:
    """What holds for every document."""
    feeds = [at for at, character in enumerate(content) if character == "\n"]
    assert [piece.ord for piece in made.chunks] == list(range(len(made.chunks)))
    for piece in made.chunks:
        assert piece.text == content[piece.start : piece.end]
        assert body_start <= piece.start < piece.end <= len(content)
        assert piece.text == piece.text.strip()
        assert len(piece.text) <= size
        assert piece.start_line == bisect_left(feeds, piece.start) + 1
        assert piece.end_line == bisect_left(feeds, piece.end - 1) + 1
        assert 4 * (piece.token_count - 1) < len(piece.text) <= 4 * piece.token_count
    for before, after in pairwise(made.chunks):
        assert before.start < after.start
        assert before.end < after.end
    if not made.truncated:
        end = body_start
        for piece in made.chunks:
            assert not content[end : piece.start].strip()
            end = max(end, piece.end)
        assert not content[end:].strip()


@settings(deadline=None, max_examples=500)
@given(content=contents, kind=st.sampled_from(KINDS), sizes=small, data=st.data())
def test_passages_are_slices_that_cover_the_body(
    content: str, kind: str, sizes: ChunkSettings, data: st.DataObject
) -> None:
    starts = [0, *(at + 1 for at, character in enumerate(content) if character == "\n")]
    body_start = data.draw(st.sampled_from(starts))
    check(content, body_start, chunk(content, kind=kind, body_start=body_start, settings=sizes), sizes.size)


@settings(deadline=None)
@given(content=st.text(max_size=400), kind=st.sampled_from(KINDS), sizes=small)
def test_passages_of_any_text_are_slices_that_cover_it(content: str, kind: str, sizes: ChunkSettings) -> None:
    check(content, 0, chunk(content, kind=kind, settings=sizes), sizes.size)


def test_passages_of_real_files_are_slices_that_cover_them(texts: list[tuple[str, str]]) -> None:
    for kind, content in texts:
        for each in {kind, "prose", "markdown", "tabular", "code:text"}:
            made = chunk(content, kind=each)
            check(content, 0, made, 1200 if each.startswith("code:") else 1000)


@settings(deadline=None)
@given(content=contents, kind=st.sampled_from(["prose", "code:python"]), sizes=small)
def test_only_passages_inside_a_neighbour_are_left_out(content: str, kind: str, sizes: ChunkSettings) -> None:
    separators = PROSE if kind == "prose" else LANGUAGES["python"]
    overlap = sizes.overlap if kind == "prose" else sizes.code_overlap
    spans = list(Splitter(separators, sizes.size, overlap).split(content, 0, len(content)))
    kept = [(piece.start, piece.end) for piece in chunk(content, kind=kind, settings=sizes).chunks]
    inside = [a for a in spans if any(a != b and b[0] <= a[0] and a[1] <= b[1] for b in spans)]
    assert kept == list(dict.fromkeys(span for span in spans if span not in inside))


def test_the_end_of_a_text_is_not_repeated_for_its_last_line_feed() -> None:
    content = "\n".join(["x" * 98] * 10) + "\n\n\n\n\n\n\n\n\n\n\n\n"
    last, *_ = reversed(chunk(content, kind="prose", settings=ChunkSettings(size=990, overlap=150)).chunks)
    assert last.ord == 0


def test_front_matter_is_in_no_passage_and_counts_as_lines() -> None:
    content = "---\ntitle: x\n---\n\n# Head\n\ntext\n"
    (piece,) = chunk(content, kind="markdown", body_start=content.index("---\n\n") + 4).chunks
    assert piece == Chunk(
        ord=0,
        text="# Head\n\ntext",
        start=18,
        end=30,
        start_line=5,
        end_line=7,
        heading_path="Head",
        token_count=3,
        chunker="markdown-header+recursive/v2:1000/150",
    )


def test_a_long_section_keeps_its_path_in_every_passage() -> None:
    content = "# A\n\n" + "one two three\n" * 300 + "\n## B\n\nshort\n"
    paths = [piece.heading_path for piece in chunk(content, kind="markdown").chunks]
    assert len(paths) > 4
    assert paths == ["A"] * (len(paths) - 1) + ["A > B"]


def test_what_is_beyond_the_limit_is_counted() -> None:
    content = "word " * 5000 + "\n"
    whole = chunk(content, kind="prose")
    cut = chunk(content, kind="prose", settings=ChunkSettings(max_chunks=7))
    assert whole.truncated == 0
    assert cut.chunks == whole.chunks[:7]
    assert cut.truncated == len(whole.chunks) - 7


@pytest.mark.parametrize("content", ["", "\n", " \n\t\n\u3000\n"])
@pytest.mark.parametrize("kind", KINDS)
def test_white_space_has_no_passages(content: str, kind: str) -> None:
    assert chunk(content, kind=kind) == Chunked((), 0)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("prose", "recursive:1000/150"),
        ("markdown", "markdown-header+recursive/v2:1000/150"),
        ("tabular", "tabular:1000"),
        ("code:python", "code:python:1200/100"),
        ("code:unheard-of", "code:text:1200/100"),
    ],
)
def test_a_signature_names_the_splitting(kind: str, expected: str) -> None:
    assert signature(kind, ChunkSettings()) == expected
    assert {piece.chunker for piece in chunk("some text\n", kind=kind).chunks} == {expected}


@pytest.mark.parametrize("kind", ["", "Prose", "code", "code:", "pdf"])
def test_an_unknown_kind_is_refused(kind: str) -> None:
    with pytest.raises(ValueError, match="no kind of document"):
        chunk("text\n", kind=kind)


@pytest.mark.parametrize("body_start", [-1, 6])
def test_a_body_that_starts_outside_of_the_text_is_refused(body_start: int) -> None:
    with pytest.raises(ValueError, match="outside of a text of 5"):
        chunk("text\n", kind="prose", body_start=body_start)


@pytest.mark.parametrize(
    ("given_settings", "setting"),
    [
        ({"size": 0}, "size"),
        ({"code_size": -1}, "code_size"),
        ({"max_chunks": 0}, "max_chunks"),
        ({"overlap": -1}, "overlap"),
        ({"size": 100, "overlap": 100}, "overlap"),
        ({"code_overlap": 1200}, "code_overlap"),
    ],
)
def test_impossible_settings_are_refused_by_name(given_settings: dict[str, int], setting: str) -> None:
    with pytest.raises(ChunkSettingsInvalid, match=f"chunking: {setting} is") as refused:
        ChunkSettings(**given_settings)
    assert isinstance(refused.value, GarageError)
    assert refused.value.fields == {"setting": setting, "value": given_settings[setting]}


# What each splitting does, and under which version. Passages are made again only when their signature changes, so a
# digest that differs here means: give that splitting its next version in VERSIONS, then write both down below.
PINNED = {
    "recursive": ("", "3c1b9ee0f00bf3e2"),
    "markdown-header+recursive": ("/v2", "7ee5d5a5e20b0c70"),
    "tabular": ("", "2fb55f761f43dae0"),
    "code": ("", "ac9c8879740b1d61"),
    "message": ("", "20eff6420c6e957b"),
}
SEPARATORS = {
    "recursive": PROSE,
    "markdown-header+recursive": MARKDOWN,
    "tabular": ROW,
    "code": sorted(LANGUAGES.items()),
    "message": PROSE,
}
SAMPLE = (
    "intro one. Intro two, with more; and 一つ、二つ。「三つ。」四つ\n\n# A ##\n\n## B { #b }\n"
    "- item\n\n  ```\n  # no\n  ```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nUnder\n-----\n"
    "@x\ndef f(a):\n    return a\n\nclass C:\n    def g(self):\n        pass\n#### Four\n<p>html</p>\n\n"
    + "long " * 30
    + "y" * 90
    + "\n   \nlast,row\tof;cells|x\n"
)


@pytest.mark.parametrize("name", VERSIONS)
def test_a_splitting_does_what_its_version_did(name: str) -> None:
    kinds = {
        "recursive": ["prose"],
        "markdown-header+recursive": ["markdown"],
        "tabular": ["tabular"],
        "message": ["conversation"],
    }
    sizes = ChunkSettings(size=60, overlap=20, code_size=70, code_overlap=10)
    pieces = [
        (kind, piece.start, piece.end, piece.heading_path)
        for kind in kinds.get(name, [f"code:{language}" for language in sorted(LANGUAGES)])
        for piece in chunk(SAMPLE, kind=kind, settings=sizes).chunks
    ]
    digest = hashlib.sha256(repr((SEPARATORS[name], pieces)).encode()).hexdigest()
    assert (VERSIONS[name], digest[:16]) == PINNED[name]
