"""Passages of tables: whole rows, none twice."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from garage.chunk import ChunkSettings, chunk
from garage.chunk.tabular import split_rows

cells = st.text(alphabet="ab1 |,\t", min_size=1, max_size=12)
tables = st.lists(st.one_of(cells, st.just(""), st.just("# Sheet")), max_size=40).map(
    lambda rows: "\n".join(rows) + "\n"
)


@given(text=tables, size=st.integers(1, 40))
def test_a_row_that_fits_is_never_cut(text: str, size: int) -> None:
    for piece in chunk(text, kind="tabular", settings=ChunkSettings(size=size, overlap=0)).chunks:
        start = text.rfind("\n", 0, piece.start) + 1
        end = text.index("\n", piece.end)
        first, last = text[start:].split("\n", 1)[0], text[text.rfind("\n", 0, piece.end) + 1 : end]
        assert not text[start : piece.start].strip() or len(first) > size
        assert not text[piece.end : end].strip() or len(last) > size


@given(text=tables, size=st.integers(1, 40))
def test_nothing_is_repeated_or_lost(text: str, size: int) -> None:
    spans = list(split_rows(text, 0, len(text), size))
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))
    assert "".join("".join(text[start:end] for start, end in spans).split()) == "".join(text.split())
    assert all(0 < end - start <= size for start, end in spans)


def test_a_row_of_exactly_the_size_stays_whole_wherever_it_stands() -> None:
    row = ",".join(["abcd"] * 20)
    longer = f"{row},abcd"
    text = f"{row}\n{longer}\n{row}\n{row}\n"
    pieces = [text[start:end] for start, end in split_rows(text, 0, len(text), len(row))]
    assert (pieces[0], pieces[-2], pieces[-1]) == (row, row, row)
    assert "".join(pieces[1:-2]) == longer


def test_rows_fill_a_passage() -> None:
    text = "".join(f"row {number:02}\n" for number in range(10))
    spans = list(split_rows(text, 0, len(text), len("row 00\nrow 01")))
    assert [text[start:end] for start, end in spans] == [f"row {n:02}\nrow {n + 1:02}" for n in range(0, 10, 2)]


def test_a_sheet_begins_a_passage_and_names_it() -> None:
    text = "# Book\n\n## Costs\n\n| a | 1 |\n\n## Income\n\n| b | 2 |\n"
    pieces = chunk(text, kind="tabular").chunks
    assert [piece.heading_path for piece in pieces] == ["Book > Costs", "Book > Income"]
    assert pieces[1].text == "## Income\n\n| b | 2 |"


def test_a_row_that_looks_like_a_heading_is_a_row() -> None:
    text = "name,number\n# of items,3\n"
    assert [(piece.text, piece.heading_path) for piece in chunk(text, kind="tabular").chunks] == [(text.strip(), None)]
