"""Documents whose parts are cut on their own: messages, and mails that quote others."""

import pytest

from garage.chunk import ChunkSettings, chunk
from garage.passage import Part

SIZES = ChunkSettings(size=60, overlap=10)
THREAD = "[10:01] Ada: the pump is dry\n[10:02] Ben: I will look at it\n\n[10:09] Ben: done\n"


def said(start: str, end: str, **about: object) -> Part:
    first = THREAD.index(start)
    return Part(first, THREAD.index(end, first) + len(end), **about)  # type: ignore[arg-type]  # fields by name


def test_a_message_that_fits_is_one_passage_with_its_sender() -> None:
    parts = [
        said("[10:01]", "dry", sender="Ada", direction="received"),
        said("[10:02]", "it", sender="Ben", direction="sent"),
        said("[10:09]", "done", sender="Ben", direction="sent"),
    ]
    found = chunk(THREAD, kind="conversation", parts=parts, settings=SIZES).chunks
    assert [piece.text for piece in found] == [
        "[10:01] Ada: the pump is dry",
        "[10:02] Ben: I will look at it",
        "[10:09] Ben: done",
    ]
    assert [piece.part for piece in found] == parts
    assert [piece.start_line for piece in found] == [1, 2, 4]
    assert {piece.chunker for piece in found} == {"message:60/10"}


def test_a_long_message_is_cut_and_every_piece_knows_its_sender() -> None:
    text = "word " * 60 + "\n"
    part = Part(0, len(text), sender="Ada")
    found = chunk(text, kind="conversation", parts=[part], settings=SIZES).chunks
    assert len(found) > 5
    assert {piece.part for piece in found} == {part}


def test_what_lies_outside_of_every_part_is_in_no_passage() -> None:
    text = "Subject: pump\n\nIt is dry.\n\nOn Monday Ben wrote:\n> Is it dry?\n"
    own = Part(text.index("It is"), text.index("\n\nOn"), sender="Ada")
    repeated = Part(text.index("> Is"), len(text) - 1, quoted=True)
    found = chunk(text, kind="prose", parts=[own, repeated], settings=SIZES).chunks
    assert [(piece.text, piece.part) for piece in found] == [("It is dry.", own), ("> Is it dry?", repeated)]


def test_nothing_is_cut_across_two_parts_however_short_they_are() -> None:
    found = chunk("a\nb\n", kind="prose", parts=[Part(0, 1), Part(2, 3)], settings=SIZES).chunks
    assert [piece.text for piece in found] == ["a", "b"]


@pytest.mark.parametrize("parts", [[Part(3, 1)], [Part(0, 3), Part(2, 4)], [Part(0, 99)], [Part(2, 3), Part(0, 1)]])
def test_parts_that_overlap_or_lie_outside_are_refused(parts: list[Part]) -> None:
    with pytest.raises(ValueError, match="one behind the other"):
        chunk("abcd\n", kind="prose", parts=parts)


def test_a_conversation_is_never_cut_off() -> None:
    text = "hm\n" * 50
    parts = [Part(start, start + 2) for start in range(0, len(text), 3)]
    few = ChunkSettings(max_chunks=5)
    assert len(chunk(text, kind="conversation", parts=parts, settings=few).chunks) == 50
    assert len(chunk(text, kind="prose", parts=parts, settings=few).chunks) == 5
