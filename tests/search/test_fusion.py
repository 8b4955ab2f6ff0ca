"""Reciprocal rank fusion, whatever is fused."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from garage.search.fusion import fuse

rankings = some.lists(some.integers(1, 60), unique=True, max_size=40)


@given(vector=rankings, keyword=rankings, k=some.integers(1, 200))
def test_a_score_is_the_sum_over_the_sides_that_found_it(vector: list[int], keyword: list[int], k: int) -> None:
    fused = fuse(vector, keyword, k=k)
    assert {hit.chunk_id for hit in fused} == {*vector, *keyword}
    assert len(fused) == len({*vector, *keyword})
    for hit in fused:
        parts = [1 / (k + side.index(hit.chunk_id) + 1) for side in (vector, keyword) if hit.chunk_id in side]
        assert hit.score == pytest.approx(sum(parts))
        assert (hit.vector_rank is not None) == (hit.chunk_id in vector)
        assert (hit.keyword_rank is not None) == (hit.chunk_id in keyword)
        expected = {2: "both", 1: "vector" if hit.chunk_id in vector else "keyword"}[len(parts)]
        assert hit.matched_by == expected


@given(vector=rankings, keyword=rankings)
def test_the_best_come_first_and_equals_by_their_ids(vector: list[int], keyword: list[int]) -> None:
    fused = fuse(vector, keyword)
    assert fused == sorted(fused, key=lambda hit: (-hit.score, hit.chunk_id))
    assert [hit.chunk_id for hit in fused] == [hit.chunk_id for hit in fuse(keyword, vector)]


@given(ranking=rankings)
def test_one_side_alone_keeps_its_order(ranking: list[int]) -> None:
    assert [hit.chunk_id for hit in fuse(ranking, [])] == ranking
    assert [hit.vector_rank for hit in fuse(ranking, [])] == list(range(1, len(ranking) + 1))
    assert [hit.chunk_id for hit in fuse([], ranking)] == ranking


@given(vector=rankings, keyword=rankings)
def test_what_both_found_beats_what_stands_no_higher_on_one_side(vector: list[int], keyword: list[int]) -> None:
    order = [hit.chunk_id for hit in fuse(vector, keyword)]
    for both in set(vector) & set(keyword):
        for other in set(vector) - set(keyword):
            if vector.index(other) > vector.index(both):
                assert order.index(both) < order.index(other)


def test_a_first_place_is_worth_one_in_sixty_one() -> None:
    (hit,) = fuse([7], [])
    assert hit.score == pytest.approx(1 / 61)
