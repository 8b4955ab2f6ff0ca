"""Filters inside both engines: what they leave is found, however little of it there is."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from garage.store import search as store
from garage.store.search import Filters, Terms

SHARES = [
    *("0.05 %", "0.5 %", "2 %", "4 %", "10 %", "40 %"),
    *("0.4 % by an author", "5 % by an author", "5 % by either"),
    *("0.5 % sent", "10 % sent or received", "0.5 % received from an author"),
]


@pytest.fixture
def vectors_only(crowds: Callable[[str], Any]) -> Any:
    return crowds("bm25")


@pytest.mark.parametrize("exact_below", [store.EXACT_BELOW, 0], ids=["as configured", "by the index"])
@pytest.mark.parametrize("share", SHARES)
def test_a_filtered_vector_search_finds_the_nearest_of_those_it_leaves(
    vectors_only: Any, share: str, exact_below: int
) -> None:
    crowd, who = vectors_only, vectors_only.members[share]
    rng = np.random.default_rng(8)
    k = min(100, int(who.sum()))
    recalls = []
    for _ in range(10):
        vector = rng.standard_normal(crowd.vectors.shape[1]).astype(np.float32)
        vector /= np.linalg.norm(vector)
        with crowd.database.connection() as conn:
            found = store.nearest(
                conn, crowd.model, vector.tolist(), limit=200, filters=crowd.filters[share], exact_below=exact_below
            )
        assert len(found) == min(200, int(who.sum()))
        assert {id_ for id_, _ in found} <= set(crowd.ids[who].tolist())
        distances = [distance for _, distance in found]
        assert distances == sorted(distances)
        recalls.append(len({id_ for id_, _ in found[:k]} & set(crowd.nearest(vector, who, k))) / k)
    assert np.mean(recalls) >= (1.0 if exact_below else 0.95)


def test_an_unfiltered_vector_search_finds_nearly_all_of_the_nearest(vectors_only: Any) -> None:
    crowd = vectors_only
    everyone = np.ones(len(crowd.ids), np.bool_)
    rng = np.random.default_rng(9)
    recalls = []
    for _ in range(20):
        vector = rng.standard_normal(crowd.vectors.shape[1]).astype(np.float32)
        vector /= np.linalg.norm(vector)
        with crowd.database.connection() as conn:
            found = store.nearest(conn, crowd.model, vector.tolist(), limit=200)
        recalls.append(len({id_ for id_, _ in found[:10]} & set(crowd.nearest(vector, everyone, 10))) / 10)
    assert np.mean(recalls) >= 0.95


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("words", ["common", "common word7 word1999", "word7 word8 word9"])
def test_a_filtered_keyword_search_finds_the_best_of_those_it_leaves(crowd: Any, share: str, words: str) -> None:
    who = set(crowd.ids[crowd.members[share]].tolist())
    with crowd.database.connection() as conn:
        terms = Terms(words, words)
        everything = store.by_terms(conn, terms, limit=30_000)
        found = store.by_terms(conn, terms, limit=50, filters=crowd.filters[share])
    expected = [hit for hit in everything.hits if hit[0] in who][:50]
    assert found.by == everything.by
    assert [id_ for id_, _ in found.hits] == [id_ for id_, _ in expected]
    assert [score for _, score in found.hits] == pytest.approx([score for _, score in expected], rel=1e-5)
    if words == "common":
        assert len(found.hits) == min(50, len(who))


@pytest.mark.parametrize("mode", ["hybrid", "keyword", "vector"])
def test_the_only_eligible_of_201_documents_is_found_though_200_match_better(shelf: Any, mode: str) -> None:
    for number in range(200):
        shelf.put(f"{number}.txt", "heron heron heron on the pond", source="pond")
    shelf.put("one.txt", "a heron among many other words that have nothing to do with it", source="letters")
    shelf.put("class.txt", "a heron in a message with other words again", source="pond", corpus_class="communication")
    shelf.put("trust.txt", "a heron in somebody else's words, not ours", source="pond", trust="received")
    shelf.ready()
    for filters, uri in (
        (Filters(sources=("letters",)), "one.txt"),
        (Filters(classes=("communication",)), "class.txt"),
        (Filters(trusts=("received",)), "trust.txt"),
        (Filters(sources=("pond",), classes=("communication",)), "class.txt"),
    ):
        assert shelf.uris("heron on the pond", mode=mode, filters=filters) == [uri]


@pytest.mark.parametrize("mode", ["hybrid", "keyword", "vector"])
def test_a_retired_source_is_never_found(shelf: Any, mode: str) -> None:
    for number in range(20):
        shelf.put(f"old{number}.txt", "heron heron", source="old")
    shelf.put("new.txt", "one heron", source="new")
    shelf.ready()
    assert len(shelf.uris("heron", mode=mode, limit=50)) == 21
    shelf.retire("old")
    assert shelf.uris("heron", mode=mode, limit=50) == ["new.txt"]
    assert shelf.uris("heron", mode=mode, limit=50, filters=Filters(sources=("old",))) == []
    shelf.retire("new")
    assert shelf.uris("heron", mode=mode) == []


def test_filters_of_one_kind_are_alternatives_and_of_several_kinds_conditions(shelf: Any) -> None:
    for source in ("a", "b", "c"):
        for corpus_class in ("document", "communication"):
            shelf.put(f"{source}-{corpus_class}", "heron", source=source, corpus_class=corpus_class)
    shelf.ready()
    filters = Filters(sources=("a", "b"), classes=("communication", "code"))
    assert sorted(shelf.uris("heron", filters=filters)) == ["a-communication", "b-communication"]
