"""More than one at work: runs of one source, runs of two, searches, and a person who removes what is being read."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from garage import stages, worklist
from garage.config import load
from garage.inference.catalogue import entries
from garage.inference.testing import HashEmbedder
from garage.serve import sources as serve
from garage.store.errors import SourceBusy
from garage.walk.errors import SourceInactive

CHECKOUT = Path(__file__).parents[2]
MODEL = "all-minilm-l6-v2"
HOLDER = """
import sys, time
from garage.store.database import Database
with Database(sys.argv[1]) as database, database.exclusive("ingest/lib"):
    print("held", flush=True)
    time.sleep(120)
"""


def write(folder: Path, number: int, *, topic: str = "heron") -> None:
    folder.mkdir(exist_ok=True)
    for n in range(number):
        (folder / f"{n:03}.txt").write_text(f"The {topic} number {n} stands in the pond.\n", encoding="utf-8")


def in_thread(work: Callable[[], object]) -> tuple[threading.Thread, list[BaseException]]:
    """Starts `work`; what it raises lands in the list."""
    raised: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            raised.append(error)

    thread = threading.Thread(target=guarded)
    thread.start()
    return thread, raised


def embedding(spine: Any, embedder: HashEmbedder) -> Any:
    """The embedding stage of the source, registered already."""
    config = load()
    entry = entries(config.models)[MODEL]
    return stages.vectors(spine.database, config, spine.row(), entry, load=lambda: embedder)


# Runs


def locks_waited_for(spine: Any) -> int:
    ((number,),) = spine.rows(
        "select count(*) from pg_stat_activity where datname = current_database()"
        " and query like 'select pg_try_advisory_lock%%' and application_name like 'garage run%%'"
    )
    return int(number)


@pytest.fixture
def dagster_home(tmp_path: Path, another_database: Callable[[], str]) -> Path:
    """An instance on Postgres, as `garage update` has it, with its tables made."""
    import dagster as dg

    folder = tmp_path / "dagster"
    folder.mkdir()
    settings = {"storage": {"postgres": {"postgres_url": another_database()}}, "telemetry": {"enabled": False}}
    (folder / "dagster.yaml").write_text(json.dumps(settings), encoding="utf-8")
    with dg.DagsterInstance.from_config(str(folder)) as instance:
        instance.add_dynamic_partitions("source", ["lib"])
    return folder


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_of_two_updates_of_one_source_at_once_the_second_waits_and_finds_nothing_to_do(
    spine: Any, library: Path, tmp_path: Path, dagster_home: Path, another_database: Callable[[], str]
) -> None:
    spine.configure({"name": "lib", "root": library})
    environment = {**os.environ, "DAGSTER_HOME": str(dagster_home), "PYTHONPATH": str(CHECKOUT)}
    command = [sys.executable, "-m", "garage_assets.launch", "--source", "lib"]
    said = [tmp_path / f"run-{number}" for number in range(2)]
    runs: list[subprocess.Popen[bytes]] = []
    try:
        with spine.database.exclusive("ingest/lib"):
            for file in said:  # files, not pipes: what a run leaves behind may hold a pipe open
                with file.open("wb") as output:
                    runs.append(subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT))
            deadline = time.monotonic() + 120
            while locks_waited_for(spine) < 2:
                for run, file in zip(runs, said, strict=True):
                    assert run.poll() is None, file.read_text(encoding="utf-8")
                assert time.monotonic() < deadline
                time.sleep(0.1)
        codes = [run.wait(timeout=120) for run in runs]
    finally:
        for run in runs:
            run.kill()
            run.wait()
    assert codes == [0, 0], [file.read_text(encoding="utf-8") for file in said]
    assert [
        counts.get("documents_written", 0)
        for (counts,) in spine.rows("select counts from stage_runs where stage = 'documents' order by id")
    ] == [10, 0]
    together = spine.state()
    alone = type(spine)(spine.home, another_database())
    alone.configure({"name": "lib", "root": library})
    alone.walk()
    alone.read()
    alone.cut()
    for part in ("files", "documents", "chunks", "outcomes"):
        assert together[part] == alone.state()[part]
    alone.database.close()
    assert len(together["emb_all_minilm_l6_v2"]) == len(together["chunks"])


def test_two_sources_at_once_end_as_one_after_the_other(
    spine: Any, tmp_path: Path, another_database: Callable[[], str]
) -> None:
    write(tmp_path / "one", 40)
    write(tmp_path / "two", 40, topic="pelican")
    sources = [{"name": name, "root": tmp_path / name} for name in ("one", "two")]
    spine.configure(*sources)
    started = [in_thread(partial(update_with_locks, spine, slug)) for slug in ("one", "two")]
    for thread, _ in started:
        thread.join()
    assert [raised for _, raised in started] == [[], []]
    one_by_one = type(spine)(spine.home, another_database())
    one_by_one.configure(*sources)
    one_by_one.update("one")
    one_by_one.update("two")
    assert spine.state() == one_by_one.state()
    one_by_one.database.close()


def update_with_locks(spine: Any, slug: str) -> None:
    """What a run does: one lock for a source's files, one for a model."""
    with spine.database.exclusive(f"ingest/{slug}", wait=60):
        spine.walk(slug)
        spine.read(slug)
        spine.cut(slug)
    with spine.database.exclusive(f"model/{MODEL}", wait=60):
        spine.embed(slug)


def test_runs_of_one_source_that_nothing_keeps_apart_still_end_alike(
    spine: Any, tmp_path: Path, another_database: Callable[[], str]
) -> None:
    write(tmp_path / "lib", 30)
    spine.configure({"name": "lib", "root": tmp_path / "lib"})
    spine.walk()
    started = [in_thread(lambda: spine.read() and spine.cut()) for _ in range(2)]
    for thread, _ in started:
        thread.join()
    assert [raised for _, raised in started] == [[], []]
    spine.update()
    alone = type(spine)(spine.home, another_database())
    alone.configure({"name": "lib", "root": tmp_path / "lib"})
    alone.update()
    assert spine.state() == alone.state()
    alone.database.close()


def test_the_lock_of_a_run_that_was_killed_is_free(spine: Any) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, spine.database.url],
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(SourceBusy), spine.database.exclusive("ingest/lib"):
            pytest.fail("two hold one lock")
        holder.send_signal(signal.SIGKILL)
        with spine.database.exclusive("ingest/lib", wait=10):
            pass


# Searches


def test_searches_while_documents_come_change_and_go_always_answer(spine: Any, folder: Path) -> None:
    write(folder, 30)
    spine.update()
    ended = threading.Event()
    answered = 0

    def ask() -> None:
        nonlocal answered
        while not ended.is_set():
            for mode in ("keyword", "vector", "hybrid"):
                found = spine.found("the heron in the pond", mode)
                # A passage that is replaced between its ranking and its showing is left out.
                assert 4 <= len(found) == len(set(found)) <= 10
                answered += 1

    thread, raised = in_thread(ask)
    try:
        for turn in range(3):
            for n in range(turn * 6, turn * 6 + 6):
                (folder / f"{n:03}.txt").write_text(f"The heron number {n} left the pond.\n", encoding="utf-8")
            (folder / f"new-{turn}.txt").write_text("The heron in the pond came back.\n", encoding="utf-8")
            (folder / f"{29 - turn:03}.txt").unlink()
            spine.update()
    finally:
        ended.set()
        thread.join()
    assert raised == []
    assert answered > 3


# Removing


def test_a_source_cannot_be_removed_while_a_run_is_at_work_on_it(spine: Any, folder: Path) -> None:
    write(folder, 3)
    spine.update()
    before = spine.state()
    with spine.database.exclusive("ingest/lib"), pytest.raises(SourceBusy, match="Another run is working on 'lib'"):
        serve.remove(load(), spine.database, "lib")
    assert spine.state() == before
    assert [source.name for source in load().sources] == ["lib"]


def test_a_run_that_waited_while_its_source_was_removed_does_not_bring_it_back(spine: Any, folder: Path) -> None:
    write(folder, 3)
    spine.update()
    assert serve.remove(load(), spine.database, "lib").documents == 3
    with pytest.raises(SourceInactive, match="Source 'lib' is not in use") as inactive:
        spine.walk()
    assert "garage source add" in inactive.value.hint
    assert spine.read().counts["documents_deleted"] == 0
    spine.cut()
    spine.embed()
    state = spine.state()
    assert state["files"] == state["documents"] == state["chunks"] == state["emb_all_minilm_l6_v2"] == []
    assert spine.rows("select count(*) from stage_runs where stage = 'source_files'") == [(0,)]


def test_a_source_that_is_switched_off_is_kept_and_not_walked(spine: Any, folder: Path) -> None:
    write(folder, 3)
    spine.update()
    before = spine.state()
    spine.configure({"name": "lib", "root": folder, "enabled": False})
    for file in folder.iterdir():
        file.unlink()
    with pytest.raises(SourceInactive, match="enabled: false"):
        spine.update()
    assert spine.state() == before
    assert spine.found("heron") == []


def test_a_source_removed_while_it_is_embedded_leaves_nothing_behind(spine: Any, folder: Path) -> None:
    write(folder, 12)
    spine.walk()
    spine.read()

    once = threading.Lock()  # two batches are embedded at a time
    removed = []

    class Removes(HashEmbedder):
        def embed_documents(self, texts: Any) -> Any:
            if once.acquire(blocking=False):
                removed.append(serve.remove(load(), spine.database, "lib").documents)
            return super().embed_documents(texts)

    worklist.run(spine.database, embedding(spine, Removes(dims=384)), ahead=1)
    assert removed == [12]
    state = spine.state()
    assert state["documents"] == state["chunks"] == state["emb_all_minilm_l6_v2"] == []
    assert spine.rows("select count(*) from emb_all_minilm_l6_v2") == [(0,)]


# Passages that go while they are embedded


def test_passages_deleted_while_their_batch_is_embedded_are_left_out(spine: Any, folder: Path) -> None:
    write(folder, 6)
    spine.walk()
    spine.read()

    class Deletes(HashEmbedder):
        def embed_documents(self, texts: Any) -> Any:
            spine.rows("delete from documents where uri in ('001.txt', '004.txt') returning 1")
            return super().embed_documents(texts)

    report = worklist.run(spine.database, embedding(spine, Deletes(dims=384)), ahead=1)
    assert report.counts["embedded"] == 4
    assert [row[1] for row in spine.state()["emb_all_minilm_l6_v2"]] == ["000.txt", "002.txt", "003.txt", "005.txt"]


def test_embedding_does_not_wait_for_passages_that_are_being_deleted_nor_hold_up_who_deletes_them(
    spine: Any, folder: Path
) -> None:
    write(folder, 3)
    spine.walk()
    spine.read()
    stage = embedding(spine, HashEmbedder(dims=384))
    (first,), (_,), (last,) = spine.rows("select id from chunks order by id")
    with psycopg.connect(spine.database.url) as deleting:
        deleting.execute("delete from garage.chunks where id = %s", (last,))
        assert worklist.run(spine.database, stage).counts["embedded"] == 2
        deleting.execute(
            "delete from garage.chunks where id = %s", (first,)
        )  # in the other order than they are embedded
        deleting.rollback()
    assert worklist.run(spine.database, stage).counts["embedded"] == 1  # it stayed after all


def test_a_vector_is_not_copied_to_a_passage_that_is_being_deleted(spine: Any, folder: Path) -> None:
    (folder / "a").mkdir()
    (folder / "a" / "note.txt").write_text("the same words twice\n", encoding="utf-8")
    spine.update()
    (folder / "b").mkdir()
    (folder / "b" / "note.txt").write_text("the same words twice\n", encoding="utf-8")
    spine.walk()
    spine.read()
    stage = embedding(spine, HashEmbedder(dims=384))
    with psycopg.connect(spine.database.url) as deleting:
        deleting.execute("delete from garage.documents where uri = 'b/note.txt'")
        assert worklist.run(spine.database, stage).counts.get("copied", 0) == 0
        deleting.rollback()
    assert spine.embed().counts["copied"] == 1


def test_registering_a_model_does_not_wait_for_a_document_being_deleted(spine: Any, folder: Path) -> None:
    write(folder, 3)
    spine.update()
    with psycopg.connect(spine.database.url) as deleting:
        deleting.execute("delete from garage.documents where uri = '000.txt'")
        registering, raised = in_thread(lambda: embedding(spine, HashEmbedder(dims=384)))
        registering.join(20)
        assert not registering.is_alive()
        deleting.rollback()
    registering.join()
    assert raised == []
