"""The segments of the BM25 side: fresh after every run, whole after every crash, there for every search."""

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from garage.store import documents, lexical
from garage.store import search as store
from garage.store.cluster import Cluster
from garage.store.database import Database, ensure_database
from garage.store.errors import DatabaseUnavailable
from garage.store.lexical import has_bm25, make_tsvectors, refresh, segments
from garage.store.schema import migrate
from garage.store.search import Ranked, Terms

Put = Callable[..., Any]


@pytest.fixture
def own_server(open_tmp: Path) -> Iterator[Cluster]:
    """A server that a test may kill."""
    server = Cluster(open_tmp / f"own-{os.urandom(4).hex()}")
    server.start()
    ensure_database(server.url("postgres"), "garage")
    yield server
    server.stop()


def kill(server: Cluster) -> None:
    """Ends a server as a power cut would."""
    pid = int((server.data / "postmaster.pid").read_text().split()[0])
    os.kill(pid, signal.SIGKILL)
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.01)


def found(database: Database, words: str, *, limit: int = 10_000) -> list[str]:
    """The passages that keyword search finds, best first."""
    with database.connection() as conn:
        ranked = store.by_terms(conn, Terms(words, words), limit=limit)
        texts = store.passages(conn, [id_ for id_, _ in ranked.hits])
        return [texts[id_].text for id_, _ in ranked.hits]


def refreshed(database: Database) -> dict[str, int]:
    """The segments after a refresh, with their numbers of passages."""
    with database.connection() as conn:
        refresh(conn)
        return {segment.name: segment.passages for segment in segments(conn)}


def test_a_new_database_has_an_empty_base(database: Database) -> None:
    with database.connection() as conn:
        assert [(s.name, s.passages) for s in segments(conn)] == [("base", 0)]
        assert has_bm25(conn)
    assert found(database, "anything") == []


def test_what_was_stored_is_found_after_a_refresh_and_nothing_is_done_twice(database: Database, put: Put) -> None:
    put("a.txt", ["pelicans on the pier"])
    put("b.py", ["def pelican(): pass"], kind="code:python")
    assert refreshed(database) == {"base": 2}
    assert sorted(found(database, "pelican")) == ["def pelican(): pass", "pelicans on the pier"]
    with database.connection() as conn:
        assert not refresh(conn)


def test_a_large_base_stays_and_what_is_new_goes_beside_it(
    database: Database, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lexical, "_BASE_ALONE", 10)
    put("old.txt", [f"heron number {n}" for n in range(40)])
    assert refreshed(database) == {"base": 40}
    put("new.txt", ["a zanzibar heron", "another heron"])
    assert refreshed(database) == {"base": 40, "recent": 2}
    assert found(database, "zanzibar") == ["a zanzibar heron"]
    assert len(found(database, "heron")) == 42
    put("newer.txt", ["a third heron"])
    assert refreshed(database) == {"base": 40, "recent": 3}
    put("many.txt", [f"many herons {n}" for n in range(20)])
    assert refreshed(database) == {"base": 63}
    assert len(found(database, "heron")) == 63


def test_a_passage_under_a_new_title_is_found_by_that_title_alone(
    database: Database, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lexical, "_BASE_ALONE", 0)
    put("filler.txt", [f"filler {n}" for n in range(40)])
    put("a.txt", ["the hive"], title="Apiary")
    assert refreshed(database) == {"base": 41}
    assert put("a.txt", ["the hive"], title="Bees").kept == 1
    assert refreshed(database) == {"base": 41, "recent": 1}
    assert found(database, "bees") == ["the hive"]
    assert found(database, "apiary") == []
    assert found(database, "hive") == ["the hive"]


def test_a_passage_that_only_moved_needs_no_new_segment(database: Database, put: Put) -> None:
    put("a.txt", ["one", "two"])
    refreshed(database)
    put("a.txt", ["two", "one"])
    with database.connection() as conn:
        assert not refresh(conn)
    assert found(database, "two") == ["two"]


def test_deleted_passages_are_gone_at_once_and_from_the_base_when_they_are_many(
    database: Database, put: Put, source_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lexical, "_BASE_ALONE", 0)
    put("a.txt", [f"egret {n}" for n in range(30)])
    put("b.txt", ["the last egret"])
    refreshed(database)
    with database.connection() as conn:
        documents.drop_document(conn, source_id, "a.txt")
    assert found(database, "egret") == ["the last egret"]
    assert refreshed(database) == {"base": 1}


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_every_passage_is_found_after_the_server_ends(own_server: Cluster, put_into: Any, end: str) -> None:
    url = own_server.url("garage")
    rng = random.Random(2)
    words = [f"word{n}" for n in range(300)]
    with Database(url) as database:
        migrate(database)
        for number in range(3):
            put_into(database, f"{number}.txt", [" ".join(rng.choices(words, k=30)) for _ in range(400)])
            refreshed(database)
        before = {word: sorted(found(database, word)) for word in ("word1", "word77", "word299")}
        assert all(before.values())
    kill(own_server) if end == "kill" else own_server.stop()
    assert own_server.start()
    with Database(url) as database:
        assert {word: sorted(found(database, word)) for word in before} == before
        put_into(database, "later.txt", ["word1 again"])
        refreshed(database)
        assert "word1 again" in found(database, "word1")


@pytest.mark.slow
def test_a_base_of_many_pages_survives_a_crash_right_after_it_was_built(own_server: Cluster, put_into: Any) -> None:
    with Database(own_server.url("garage")) as database:
        migrate(database)
        with database.connection() as conn:
            put_into(database, "a.txt", ["seed"])
            conn.execute("alter table chunks drop constraint chunks_document_id_ord_key")
            conn.execute(
                "insert into chunks (document_id, source_id, ord, text, char_start, char_end, start_line, end_line,"
                " token_count, chunker, chunk_sha256, input_sha256, lexical_prose) select document_id, source_id,"
                " n, text, 0, 4, 1, 1, 1, chunker, chunk_sha256, input_sha256, (select string_agg('w' ||"
                " (random() * 20000)::int, ' ') from generate_series(1, 60) where n > 0) || ' common'"
                " from chunks, generate_series(1, 60000) n"
            )
        assert refreshed(database)["base"] == 60001
    kill(own_server)
    own_server.start()
    with Database(own_server.url("garage")) as database, database.connection() as conn:
        assert len(store.by_terms(conn, Terms("common", ""), limit=70_000).hits) == 60_000


def test_a_refresh_that_is_killed_is_made_up_for_by_the_next(database: Database, put: Put) -> None:
    put("a.txt", ["curlew"])
    with database.connection() as conn:
        conn.execute("create table lexical_building (left_by text)")
    assert refreshed(database) == {"base": 1}
    assert found(database, "curlew") == ["curlew"]


def test_searches_never_fail_or_come_back_empty_while_segments_are_swapped(
    database: Database, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lexical, "_BASE_ALONE", 5)
    put("a.txt", [f"plover {n}" for n in range(30)])
    refreshed(database)
    done = threading.Event()
    seen: list[int] = []
    failed: list[BaseException] = []

    def keep_searching() -> None:
        while not done.is_set():
            try:
                seen.append(len(found(database, "plover")))
            except BaseException as error:  # noqa: BLE001  # whatever it is, it is what this test looks for
                failed.append(error)
                return

    searchers = [threading.Thread(target=keep_searching) for _ in range(2)]
    for searcher in searchers:
        searcher.start()
    for number in range(12):
        put(f"{number}.txt", ["plover"] * (1 if number % 3 else 10))
        refreshed(database)
    done.set()
    for searcher in searchers:
        searcher.join()
    assert not failed
    assert len(seen) > 20
    assert min(seen) >= 30


def test_two_refreshes_at_once_build_one_segment(database: Database, put: Put, database_url: str) -> None:
    put("a.txt", ["snipe"])
    built: list[bool] = []

    def run() -> None:
        with Database(database_url) as own, own.connection() as conn:
            built.append(refresh(conn))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(built) == [False, False, False, True]


def test_a_passage_stored_while_a_segment_is_copied_is_in_this_one_or_the_next(
    database: Database, put: Put, source_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lexical, "_BASE_ALONE", 0)
    put("filler.txt", [f"filler {n}" for n in range(50)])
    refreshed(database)
    stop = threading.Event()
    written = 0

    def write() -> None:
        nonlocal written
        while not stop.is_set():
            put(f"w{written}.txt", [f"stored {written}"])
            written += 1

    writer = threading.Thread(target=write)
    writer.start()
    for _ in range(6):
        refreshed(database)
    stop.set()
    writer.join()
    refreshed(database)
    assert written > 5
    assert len(found(database, "stored")) == written


def test_scores_are_those_of_the_passages_and_best_come_first(database: Database, put: Put) -> None:
    put("a.txt", ["ibis " * n + "filler " * (9 - n) for n in range(1, 9)])
    refreshed(database)
    with database.connection() as conn:
        ranked = store.by_terms(conn, Terms("ibis", "ibis"), limit=10)
        exact = conn.execute(
            "select chunk_id, -(prose <@> to_bm25query('ibis', 'garage.lexical_base_prose')) from lexical_base"
        ).fetchall()
    assert ranked.by == "bm25"
    assert dict(ranked.hits) == pytest.approx(dict(exact))
    assert [score for _, score in ranked.hits] == sorted((score for _, score in ranked.hits), reverse=True)


def test_without_the_extension_tsvectors_do_the_work(database: Database, put: Put) -> None:
    put("a.txt", ["godwits on the shore"])
    with database.connection() as conn:
        conn.execute("drop extension pg_textsearch cascade")
        make_tsvectors(conn)
        assert not has_bm25(conn)
        assert not refresh(conn)
        ranked = store.by_terms(conn, Terms("godwit", "godwit"), limit=10)
    assert isinstance(ranked, Ranked)
    assert (ranked.by, len(ranked.hits)) == ("ts_rank", 1)
    with database.connection() as conn:
        assert lexical.ensure_lexical(conn)  # a server that gains it
    assert found(database, "godwit") == ["godwits on the shore"]


def refresh_after_stop(database: Database, server: Cluster) -> None:
    with database.connection() as conn:
        server.stop()
        refresh(conn)


def test_a_lost_server_is_said_to_be_lost(own_server: Cluster) -> None:
    with Database(own_server.url("garage")) as database:
        migrate(database)
        with pytest.raises(DatabaseUnavailable):
            refresh_after_stop(database, own_server)
