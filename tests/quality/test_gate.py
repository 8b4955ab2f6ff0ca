"""The gate's judgement: grounds, limits, what is looked at, and how its outcome reads."""

import random
import time

import pytest

from garage.quality import Signal, Verdict, judge
from garage.quality.sample import SAMPLE, sample
from tests.quality import noise, writing


def lines(*parts: tuple[int, str]) -> str:
    """A text of `count` lines each of some texts, `{n}` in them a running number and `{w}` a sentence of its own."""
    rng = random.Random(1)
    filled = [
        text.replace("{w}", writing.said(rng)).replace("{n}", str(n)) for count, text in parts for n in range(count)
    ]
    return "\n".join(filled) + "\n"


STAMPED = "2024-03-01 10:00:00 burner {w}"
HEX = "{w} 4d5f6e7a8b9c0d1e2f30"


@pytest.mark.parametrize(
    ("text", "rejected", "names"),
    [
        (lines((44, STAMPED), (56, "{w}")), False, []),
        (lines((50, STAMPED), (50, "{w}")), False, ["timestamped lines"]),
        (lines((61, STAMPED), (39, "{w}")), True, ["timestamped lines"]),
        (lines((61, HEX), (39, "{w}")), False, ["hexadecimal runs a line"]),
        (lines((100, HEX + " 4d5f6e7a8b9c0d1e2f30")), True, ["hexadecimal runs a line"]),
        (lines((66, "the burner reports no flame, try {n}"), (34, "{w}")), False, []),
        (lines((68, "the burner reports no flame, try {n}"), (34, "{w}")), False, ["repeated line shapes"]),
        (lines((85, "the burner reports no flame, try {n}"), (15, "{w}")), True, ["repeated line shapes"]),
        (lines((41, "  0x00007ff812{n}ab symbol{n}, {w}"), (59, "{w}")), False, ["dump-shaped lines"]),
        (
            lines((71, "  0x00007ff812{n}ab symbol{n}, {w}"), (29, "{w}")),
            True,
            ["dump-shaped lines", "hexadecimal runs a line"],
        ),
    ],
)
def test_limits_are_shares_of_lines(text: str, rejected: bool, names: list[str]) -> None:
    verdict = judge(text, kind="prose")
    assert (verdict.rejected, [signal.name for signal in verdict.signals]) == (rejected, names)


def test_two_suggestive_signals_reject_where_one_does_not() -> None:
    repeated = [f"the burner reports no flame, try {n}" for n in range(70)]
    stamped = [f"2024-03-01 10:00:{n:02} the burner reports no flame, try {n}" for n in range(70)]
    prose = lines((30, "{w}"))
    assert not judge("\n".join(repeated) + "\n" + prose, kind="prose").rejected
    both = judge("\n".join(stamped[:50] + repeated[:20]) + "\n" + prose, kind="prose")
    assert both.rejected
    assert [signal.decisive for signal in both.signals] == [False, False]


def test_a_reason_names_what_was_measured_and_the_limit() -> None:
    verdict = judge(lines((83, STAMPED), (17, "{w}")), kind="prose")
    assert verdict.reason == "timestamped lines 83% (limit 60%)"
    assert Verdict(True, (Signal("hexadecimal runs a line", 1.234, 1.0, decisive=True),)).reason == (
        "hexadecimal runs a line 1.23 (limit 1.00)"
    )
    assert judge(lines((83, "{w}")), kind="prose") == Verdict(False)


@pytest.mark.parametrize("text", ["", "\n", " \n\t\n", "a\n", "ok"])
@pytest.mark.parametrize("kind", ["prose", "markdown", "tabular", "conversation", "code:python"])
def test_next_to_nothing_passes(text: str, kind: str) -> None:
    assert judge(text, kind=kind) == Verdict(rejected=False)


@pytest.mark.parametrize("blobs", [16, 17])
def test_of_few_lines_only_digests_and_base64_count(blobs: int) -> None:
    rng = random.Random(2)
    text = lines((20 - blobs, STAMPED)) + "".join(f"{rng.getrandbits(256):064x}  a/b{n}\n" for n in range(blobs))
    assert judge(text, kind="prose").rejected == (blobs == 17)


@pytest.mark.parametrize("kind", ["tabular", "conversation"])
def test_sheets_and_conversations_are_not_measured_by_their_structure(kind: str) -> None:
    for generator in (noise.syslog, noise.access_log, noise.insertions):
        assert not judge(generator(random.Random(3))[1], kind=kind).rejected
    assert judge(noise.encoded(random.Random(3))[1], kind=kind).rejected


def test_what_comes_after_the_sample_does_not_count() -> None:
    prose = lines((2_000, "{w}"))
    assert len(prose) > SAMPLE
    assert not judge(prose + lines((9_000, STAMPED)), kind="prose").rejected


def test_the_sample_grows_until_there_are_forty_lines() -> None:
    assert len(sample("word\n" * 100_000).lines) == SAMPLE // 5 + 1
    long = "word " * 4_000 + "\n"
    assert len(sample(long * 39).lines) == 39
    assert 40 <= len(sample(long * 1_000).lines) < 250  # of the first 4 MiB


def test_a_picture_inside_a_note_is_not_what_the_note_says() -> None:
    assert not judge(writing.note_with_a_picture(random.Random(4)), kind="markdown").rejected


def test_one_line_of_64_mebibytes_takes_no_more_than_its_share() -> None:
    def seconds(size: int) -> float:
        text = "x" * size + "\n"
        start = time.process_time()
        judge(text, kind="prose")
        return time.process_time() - start

    assert seconds(1 << 26) < 24 * max(seconds(1 << 23), 0.001)


@pytest.mark.parametrize(
    "unit", ["0", "0x", "a", "-", "a/", "a_", ".", "=a", "1:", "00 ", '"', "{", "(", "a.b", "\ufffd", " "]
)
@pytest.mark.parametrize("kind", ["prose", "code:text"])
def test_no_repetition_takes_more_than_its_share(unit: str, kind: str) -> None:
    def seconds(size: int) -> float:
        text = f"{unit * (size // len(unit))}\n" * 50
        start = time.process_time()
        judge(text, kind=kind)
        return time.process_time() - start

    assert seconds(16_000) < 24 * max(seconds(2_000), 0.005)
