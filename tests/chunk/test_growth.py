"""The time to cut a text is proportional to its length, whatever the text."""

import time
import tracemalloc
from collections.abc import Iterable

import pytest

from garage.chunk import LANGUAGES, ChunkSettings, chunk

pytestmark = pytest.mark.slow

KINDS = ["prose", "markdown", "tabular", *(f"code:{language}" for language in LANGUAGES)]

# Repeated, each of these is the worst text for some expression or loop.
UNITS = [
    *(
        "x",
        " ",
        "\t",
        "\n",
        "\n ",
        "\u3000",
        "。",
        '".',
        "1",
        "1 ",
        "@x\n",
        "  @x\n",
        "#[x]\n",
        "[x]\n",
        "public ",
        "case ",
    ),
    *(
        "`",
        "```\n",
        "> ",
        "- ",
        "- a\n",
        "* ",
        "=\n",
        "# a\n",
        "#",
        "-|",
        "[a",
        "<",
        "<a ",
        "<!--\n",
        "a()",
        "x <- ",
        ";}",
    ),
    *("{#", "_ ", "a\n=\n", "  - a\n\n", "~~~\na\n", "word, and. "),
]

BUNDLE = 'function a(b,c){var d=b+c;return d?e(d):{f:1,"g":[2,3]}};'
PROSE = "Many words, in sentences. "


def seconds(kind: str, texts: Iterable[str]) -> float:
    """Processor time for these texts, the least of two tries."""
    tries = []
    for _ in range(2):
        start = time.process_time()
        for text in texts:
            chunk(text, kind=kind)
        tries.append(time.process_time() - start)
    return min(tries)


# Eight times the text takes eight times as long if the time is proportional, and 64 times as long if it is quadratic.
LIMIT = 24


@pytest.mark.parametrize("kind", KINDS)
def test_no_repetition_takes_more_than_its_share(kind: str) -> None:
    short, long = ([unit * (length // len(unit)) + "\n" for unit in UNITS] for length in (4_000, 32_000))
    assert seconds(kind, long) < LIMIT * seconds(kind, short)


@pytest.mark.parametrize(
    ("kind", "unit", "end", "length"),
    [
        ("prose", "x", "", 5_000_000),
        ("prose", PROSE, "", 5_000_000),
        ("prose", "一つの文、です。", "", 2_000_000),
        ("markdown", PROSE, "", 5_000_000),
        ("tabular", "cell,", "", 5_000_000),
        ("code:javascript", BUNDLE, "", 5_000_000),
        ("code:typescript", BUNDLE, "", 5_000_000),
        ("code:text", BUNDLE, "", 5_000_000),
        ("markdown", "+ ", "", 800_000),
        ("markdown", "> ", "", 400_000),
        # A row of backticks with another one behind it opens no fence, which is the costly case.
        ("markdown", "`", "x`", 200_000),
    ],
)
def test_one_huge_line_takes_no_more_than_its_share(kind: str, unit: str, end: str, length: int) -> None:
    short, long = (unit * (size // len(unit)) + end + "\n" for size in (length // 8, length))
    assert seconds(kind, [long]) < LIMIT * seconds(kind, [short])


@pytest.mark.parametrize(
    ("kind", "unit"), [("code:javascript", BUNDLE), ("prose", "x"), ("markdown", "x"), ("tabular", "x,")]
)
def test_one_huge_line_needs_memory_for_the_passages_kept_only(kind: str, unit: str) -> None:
    text = unit * (8_000_000 // len(unit)) + "\n"
    tracemalloc.start()
    made = chunk(text, kind=kind)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    kept = sum(len(piece.text) for piece in made.chunks)
    assert made.truncated > 1_000
    # A passage of about a thousand characters has some fields beside its text.
    assert peak < 2 * kept + 1_000_000 < len(text)


@pytest.mark.parametrize(("kind", "size", "overlap"), [("prose", 1000, 150), ("code:text", 1200, 100)])
def test_the_passages_of_a_line_without_any_separator_beyond_the_limit_are_counted(
    kind: str, size: int, overlap: int
) -> None:
    length = 6_000_000
    made = chunk("x" * length + "\n", kind=kind)
    step = size - overlap
    assert len(made.chunks) == ChunkSettings().max_chunks
    assert len(made.chunks) + made.truncated == -(-(length + 1 - size) // step) + 1
