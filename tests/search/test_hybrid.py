"""Searches end to end, with either ranking of the keyword side."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from bench.quality import PEER_CJK_RECALL, load, recall
from garage.search.hybrid import EmptyQuery, NoModel, SearchError
from garage.store import embeddings, lexical
from garage.store.search import Filters

MODES = ["hybrid", "keyword", "vector"]


@pytest.fixture
def stocked(shelf: Any) -> Any:
    hives = "# Hives\n\nThe hive by the pond holds a young colony.\n\n## Honey\n\nEleven jars in July.\n"
    shelf.put("bees.md", hives, kind="markdown", title="Bees")
    shelf.put("pier.txt", "The pelicans were flying over the pier.\nNobody fed them.\n", title="Birds")
    loans = "def getUserName(user_id):\n    return numpy.ndarray(max_loans_per_user)\n"
    shelf.put("loans.py", loans, kind="code:python", title="loans.py")
    shelf.put("other.txt", "Nothing of interest to anybody.\n", title="Other")
    shelf.ready()
    return shelf


def test_a_hit_says_where_it_stands_and_which_side_found_it(stocked: Any) -> None:
    results = stocked.ask("jars of honey")
    hit = results.hits[0]
    passage = hit.passage
    assert (passage.source, passage.uri, passage.title, passage.kind) == ("shelf", "bees.md", "Bees", "markdown")
    assert passage.heading_path == "Hives > Honey"
    assert "Eleven jars" in passage.text
    assert passage.start_line <= 7 <= passage.end_line
    assert hit.matched_by == "both"
    assert (hit.vector_rank, hit.keyword_rank) == (1, 1)
    assert hit.score == pytest.approx(2 / 61)
    assert results.model == "hash"
    assert results.keyword_ranking in ("bm25", "ts_rank")
    assert results.notes == ()
    assert [h.score for h in results.hits] == sorted((h.score for h in results.hits), reverse=True)


def test_each_mode_uses_its_own_side(stocked: Any) -> None:
    words = stocked.ask("pelican", mode="keyword")
    assert [hit.passage.uri for hit in words.hits] == ["pier.txt"]
    assert (words.model, words.hits[0].matched_by) == (None, "keyword")
    near = stocked.ask("pelicans pier", mode="vector")
    assert near.keyword_ranking is None
    assert near.hits[0].passage.uri == "pier.txt"
    assert {hit.matched_by for hit in near.hits} == {"vector"}
    assert len(near.hits) > 1


def test_prose_is_found_by_other_forms_of_its_words_and_code_is_not(stocked: Any) -> None:
    assert stocked.uris("pelican fly", mode="keyword") == ["pier.txt"]
    assert stocked.uris("loan", mode="keyword") == []
    assert stocked.uris("loans", mode="keyword") == ["loans.py"]


@pytest.mark.parametrize(
    "query",
    ["getUserName", "getusername", "user name", "ndarray", "numpy.ndarray", "max_loans_per_user", "loans per user"],
)
def test_identifiers_are_found_whole_and_by_their_parts(stocked: Any, query: str) -> None:
    assert stocked.uris(query, mode="keyword")[0] == "loans.py"


def test_words_of_the_title_and_the_heading_find_a_passage(stocked: Any) -> None:
    assert stocked.uris("birds", mode="keyword") == ["pier.txt"]
    assert stocked.uris("hives", mode="keyword")[0] == "bees.md"


def test_one_of_the_words_is_enough_and_more_are_better(shelf: Any) -> None:
    shelf.put("one.txt", "heron over water")
    shelf.put("two.txt", "heron and plover over water")
    shelf.put("none.txt", "ducks over water")
    shelf.ready()
    assert shelf.uris("plover heron zanzibar", mode="keyword") == ["two.txt", "one.txt"]


@pytest.mark.parametrize("mode", ["hybrid", "keyword"])
def test_quotes_and_minus_signs_are_heeded(shelf: Any, mode: str) -> None:
    shelf.put("exact.txt", "a pot of apple\nbutter for winter")
    shelf.put("apart.txt", "butter on bread, an apple beside it")
    shelf.put("code.py", "def apple_butter(): pass  # apple butter", kind="code:python")
    shelf.ready()
    assert sorted(shelf.uris('"apple butter"', mode=mode)) == ["code.py", "exact.txt"]
    assert sorted(shelf.uris("apple butter", mode=mode)) == ["apart.txt", "code.py", "exact.txt"]
    assert shelf.uris("apple -winter -def", mode=mode) == ["apart.txt"]
    assert sorted(shelf.uris('apple -"butter on bread"', mode=mode)) == ["code.py", "exact.txt"]
    assert sorted(shelf.uris("winter OR bread", mode="keyword")) == ["apart.txt", "exact.txt"]


def test_a_phrase_that_nothing_has_is_searched_for_by_its_words_and_that_is_said(shelf: Any) -> None:
    shelf.put("apart.txt", "butter on bread, an apple beside it")
    shelf.ready()
    results = shelf.ask('"apple butter"', mode="keyword")
    assert [hit.passage.uri for hit in results.hits] == ["apart.txt"]
    assert "quotes" in results.notes[0]


def test_equally_good_passages_come_in_the_same_order_every_time(shelf: Any) -> None:
    for number in range(60):
        shelf.put(f"{number:02}.txt", "the very same words")
    shelf.ready()
    for mode in MODES:
        first = shelf.ask("the same words", mode=mode, limit=60)
        assert [hit.passage.chunk_id for hit in first.hits] == sorted(hit.passage.chunk_id for hit in first.hits)
        assert shelf.ask("the same words", mode=mode, limit=60) == first
        assert shelf.ask("the same words", mode=mode, limit=7).hits == first.hits[:7]


EVIL = [
    "\x00", "nul\x00inside heron", "'", "''; drop table chunks; --", '"', '"""', "\\", "\\' heron \\", "%", "%s %(x)s",
    "heron & | ! ( ) <-> :*", "!heron", "(heron", "heron:*", "a:b", "<b>", "the of and", "?", "...", "-", "--", "OR",
    "\ud800", "heron \udfff", "\u202e\u200b", "\n\t", "🦩🦩", "heron" * 20_000, "heron " * 20_000, '"' * 501,
    "(" * 1000, "a-" * 500, '"heron ' * 300, "x" * 3000, "\\m\\M[", '"[a-z]+(" heron', "-\\y heron", "冷" * 5000,
    "$1 $2", "{table}",
]  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
def test_no_query_makes_a_search_fail(shelf: Any, mode: str) -> None:
    shelf.put("heron.txt", "a heron at the pond")
    shelf.put("heron.py", "heron = 'pond'", kind="code:python")
    shelf.ready()
    for query in EVIL:
        try:
            results = shelf.ask(query, mode=mode)
        except EmptyQuery:
            assert not query.replace("\x00", "").strip()
            continue
        if mode == "keyword" and query.count("heron") in (1, 2):
            assert results.hits, query


@pytest.mark.parametrize("query", ["", "  \n", "\x00", " \x00 "])
def test_an_empty_query_is_refused(shelf: Any, query: str) -> None:
    with pytest.raises(EmptyQuery, match="empty"):
        shelf.ask(query)


def test_before_there_are_vectors_words_rank_alone_and_that_is_said(shelf: Any) -> None:
    shelf.put("heron.txt", "a heron")
    with shelf.database.connection() as conn:
        lexical.refresh(conn)
    results = shelf.ask("heron")
    assert [hit.passage.uri for hit in results.hits] == ["heron.txt"]
    assert results.model is None
    assert "no model" in results.notes[0]
    assert shelf.ask("heron", mode="keyword").notes == ()
    with pytest.raises(NoModel, match="No model has vectors"):
        shelf.ask("heron", mode="vector")


def test_an_empty_database_has_no_hits(shelf: Any) -> None:
    for mode in ("hybrid", "keyword"):
        assert shelf.ask("anything", mode=mode).hits == ()


def test_the_model_that_serves_answers_until_its_successor_takes_over(shelf: Any) -> None:
    shelf.put("heron.txt", "a heron")
    shelf.ready()
    with shelf.database.connection() as conn:
        embeddings.register(conn, "later", dims=8, stored_dims=8, storage="vector", fingerprint="x")
    assert shelf.ask("heron").model == "hash"


def test_an_unknown_source_is_named(stocked: Any) -> None:
    with pytest.raises(SearchError, match="There is no source attic"):
        stocked.ask("pelican", filters=Filters(sources=("shelf", "attic")))


@pytest.mark.parametrize("limit", [0, 1, 3, 1000])
def test_at_most_as_many_hits_as_asked_for(stocked: Any, limit: int) -> None:
    assert len(stocked.ask("the", limit=limit).hits) <= limit
    assert len(stocked.ask("pelicans pier hive", limit=limit).hits) == min(limit, 5)


def test_a_passage_deleted_meanwhile_is_no_hit(stocked: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    original = stocked.embedder.embed_query

    def meanwhile(text: str) -> Any:
        with stocked.database.connection() as conn:
            conn.execute("delete from documents where uri = 'pier.txt'")
        return original(text)

    monkeypatch.setattr(stocked.embedder, "embed_query", meanwhile)
    assert "pier.txt" not in stocked.uris("pelicans over the pier", mode="vector")


def test_both_sides_are_asked_with_the_operators_taken_out(shelf: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf.put("heron.txt", "a heron")
    shelf.ready()
    asked: list[str] = []
    original = shelf.embedder.embed_query

    def remember(text: str) -> Any:
        asked.append(text)
        return original(text)

    monkeypatch.setattr(shelf.embedder, "embed_query", remember)
    shelf.ask('"a heron" -pond')
    assert asked == ["a heron"]


def test_chinese_japanese_and_korean_are_found_by_parts_of_their_runs(shelf: Any) -> None:
    shelf.put("zh.md", "北辰物流的冷藏柜在凌晨触发冷链温控报警。", kind="markdown", title="处置单")
    shelf.put("ja.md", "庭の白い猫が屋根の上で眠っている。", kind="markdown", title="猫")
    shelf.put("ko.md", "검색엔진은 문서를 빠르게 찾아준다.", kind="markdown", title="검색")
    shelf.ready()
    for query, uri in (
        ("冷链", "zh.md"),
        ("温控报警", "zh.md"),
        ("柜", "zh.md"),
        ("屋根", "ja.md"),
        ("猫", "ja.md"),
        ("엔진", "ko.md"),
        ("검색 문서", "ko.md"),
        ('"冷链温控"', "zh.md"),
    ):
        assert shelf.uris(query, mode="keyword") == [uri], query


def test_keyword_search_finds_more_in_chinese_japanese_and_korean_than_a_peer_publishes(
    shelf: Any, shared: Path
) -> None:
    collection = load(shared / "eval" / "cjk")
    for page in collection.documents:
        shelf.put(page.id, page.text, kind="markdown", title=page.title)
    shelf.ready()
    recalls: dict[str, list[float]] = {}
    for question in collection.questions:
        found = shelf.uris(question.text, mode="keyword", limit=200)
        recalls.setdefault(question.id[:2], []).append(recall(found, question.relevant, 10))
    measured = {language: sum(values) / len(values) for language, values in recalls.items()}
    assert measured.keys() == PEER_CJK_RECALL.keys()
    assert all(measured[language] > PEER_CJK_RECALL[language] for language in measured), measured
    assert min(measured.values()) >= 0.95


def test_many_searches_at_once_do_not_wait_for_one_another_for_ever(shelf: Any) -> None:
    shelf.put("heron.txt", "a heron")
    shelf.ready()
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(shelf.ask, ["heron"] * 64))
    assert {len(answer.hits) for answer in answers} == {1}
