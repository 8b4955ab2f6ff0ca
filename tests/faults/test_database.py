"""A database that stops, dies, fills up or disagrees: what was committed stays, and the next run does the rest."""

import os
import random
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

from garage.inference.testing import HashEmbedder
from garage.store import documents, embeddings
from garage.store.cluster import Cluster
from garage.store.database import Database, ensure_database
from garage.store.errors import DatabaseFull, DatabaseUnavailable, DimensionMismatch, SourceBusy
from garage.store.schema import migrate

MODELS = ["all-minilm-l6-v2", "all-minilm-l6-v2-q8_0"]
MIB = 1 << 20
Spoil = Callable[[Any, str, int, Callable[[], object]], None]


@pytest.fixture(scope="module")
def server(open_tmp: Path) -> Iterator[Cluster]:
    """A server of this module's own, which its tests stop and kill."""
    made = Cluster(open_tmp / "faulty")
    made.start()
    yield made
    made.stop()


@pytest.fixture
def faulty(server: Cluster, spine: Any, library: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The stages on a fresh database of that server; `spine` stays on the session's, for comparison."""
    server.start()
    name = f"faulty_{os.urandom(4).hex()}"
    ensure_database(server.url("postgres"), name)
    with Database(server.url(name)) as database:
        migrate(database)
    monkeypatch.setenv("GARAGE_DATABASE_URL", server.url(name))
    made = type(spine)(spine.home, server.url(name))
    made.configure({"name": "lib", "root": library})
    yield made
    made.database.close()
    server.start()


@pytest.fixture
def at_call(monkeypatch: pytest.MonkeyPatch) -> Spoil:
    """Does something just before the n-th call of a function of a module; that call then goes on."""

    def arrange(module: Any, function: str, number: int, what: Callable[[], object]) -> None:
        original, calls = getattr(module, function), 0

        def spoiled(*arguments: Any, **named: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == number:
                what()
            return original(*arguments, **named)

        monkeypatch.setattr(module, function, spoiled)

    return arrange


def power_cut(server: Cluster) -> None:
    """Kills every process of a server at once."""
    postmaster = psutil.Process(int((server.data / "postmaster.pid").read_text(encoding="utf-8").split("\n")[0]))
    processes = [postmaster, *postmaster.children(recursive=True)]
    for process in processes:
        process.send_signal(signal.SIGKILL)
    psutil.wait_procs(processes, timeout=10)


# A server that goes away


@pytest.mark.parametrize("end", [Cluster.stop, power_cut])
@pytest.mark.parametrize(
    ("module", "function", "number"), [(documents, "put_document", 4), (embeddings, "put_vectors", 2)]
)
def test_what_a_server_that_ends_in_the_middle_left_undone_is_done_by_the_next_run(
    faulty: Any,
    spine: Any,
    server: Cluster,
    at_call: Spoil,
    end: Callable[[Cluster], object],
    module: Any,
    function: str,
    number: int,
) -> None:
    at_call(module, function, number, lambda: end(server))
    with pytest.raises(DatabaseUnavailable, match="what was stored before is safe") as failed:
        faulty.update()
    assert "`garage up`" in failed.value.hint
    server.start()
    committed = len(faulty.contents())
    # Each document is whole or not there; what was just committed need not have reached the disk when the power went.
    assert committed == (3 if module is documents else 10) or (end is power_cut and committed < 3)
    again = faulty.update()
    assert again["documents"].get("documents_written", 0) == 10 - committed
    spine.update()
    assert faulty.state() == spine.state()


def test_a_server_that_restarts_is_waited_for(faulty: Any, server: Cluster) -> None:
    faulty.walk()
    server.stop()
    time.sleep(1)  # a connection that answered a moment ago is not asked whether it is alive
    back = threading.Timer(3, server.start)
    back.start()
    try:
        assert faulty.rows("select count(*) from source_files") == [(10,)]
    finally:
        back.join()


def test_a_server_that_stays_away_says_why(faulty: Any, server: Cluster) -> None:
    server.stop()
    with (
        pytest.raises(DatabaseUnavailable, match=r"No such file or directory|Connection refused") as failed,
        faulty.database.connection(wait=1),
    ):
        pytest.fail("there is no server")
    assert failed.value.reason in failed.value.message
    with pytest.raises(DatabaseUnavailable), faulty.database.exclusive("ingest/lib"):
        pytest.fail("there is no server")
    with pytest.raises(DatabaseUnavailable):
        migrate(faulty.database)


def test_a_connection_that_is_cut_inside_a_document_fails_the_run_and_the_next_one_goes_on(
    spine: Any, library: Path, at_call: Spoil
) -> None:
    spine.configure({"name": "lib", "root": library})
    at_call(documents, "put_document", 5, lambda: _terminate_all(spine))
    spine.walk()
    with pytest.raises(DatabaseUnavailable, match=r"terminating connection|closed the connection"):
        spine.read()
    assert spine.rows("select error from stage_runs where stage = 'documents'") == [("DatabaseUnavailable",)]
    assert len(spine.contents()) == 4
    assert spine.update()["documents"]["documents_written"] == 6


def _terminate_all(spine: Any) -> None:
    with psycopg.connect(spine.database.url, autocommit=True) as other:
        other.execute(
            "select pg_terminate_backend(pid, 5000) from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid()"
        )


# The same through Dagster


@pytest.fixture
def launched(faulty: Any, library: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Any]:
    """Runs the job for the source, with an embedder that needs no file."""
    faulty.configure({"name": "lib", "root": library}, embedding={"models": MODELS, "batch": 3})
    import dagster as dg

    from garage_assets.launch import launch

    monkeypatch.setattr(
        "resources.models.open_embedder",
        lambda entry, directory, *, threads=0: HashEmbedder(slug=entry.slug, dims=entry.stored_dims),
    )

    def run() -> Any:
        with dg.DagsterInstance.ephemeral() as instance:
            return launch(instance, "lib")

    return run


@pytest.mark.slow
def test_a_run_whose_server_is_gone_fails_with_what_to_do_and_the_next_one_completes(
    faulty: Any, spine: Any, server: Cluster, at_call: Spoil, launched: Callable[[], Any]
) -> None:
    from garage_assets.launch import outcome

    at_call(documents, "put_document", 4, server.stop)
    result = launched()
    assert not result.success
    (failed,) = (event for event in result.all_events if event.is_step_failure and event.step_key == "documents")
    said = failed.step_failure_data.user_failure_data.description
    assert said.startswith("The database cannot be reached")
    assert "`garage up` starts the embedded one" in said
    shown = outcome(spine.database, "lib", result)
    assert (shown["status"], shown["stages"]) == ("failed", {})
    assert shown["message"].startswith("The database cannot be reached")
    server.start()
    assert launched().success
    spine.update()
    assert faulty.state() == spine.state()


@pytest.mark.slow
def test_a_run_outlives_a_restart_of_its_server(
    faulty: Any, server: Cluster, at_call: Spoil, launched: Callable[[], Any]
) -> None:
    back = threading.Timer(4, server.start)

    def restart() -> None:
        server.stop()
        back.start()

    at_call(documents, "put_document", 4, restart)
    result = launched()
    back.join()
    assert result.success
    assert [event.step_key for event in result.all_events if event.is_step_up_for_retry] == ["documents"]
    assert len(faulty.contents()) == 10


# A full disk


@pytest.fixture
def small_disk(open_tmp: Path) -> Iterator[Path]:
    """A file system of 500 MiB, of which a file called ballast takes 425."""
    folder = open_tmp / "small-disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={500 * MIB},mode=755", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small file system needs the rights of root on Linux")
    try:
        with (folder / "ballast").open("wb") as file:
            for _ in range(425):
                file.write(bytes(MIB))
        yield folder
    finally:
        Cluster(folder).stop()
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.slow
def test_a_full_disk_ends_the_run_and_with_some_space_the_next_one_completes(
    small_disk: Path, spine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "numbers"
    root.mkdir()
    for number in range(350):
        noise = random.Random(number).randbytes(12_000).hex()
        text = " ".join(noise[start : start + 60] for start in range(0, len(noise), 60))
        (root / f"{number:03}.txt").write_text(text, encoding="utf-8")
    server = Cluster(small_disk)
    server.start()
    ensure_database(server.url("postgres"), "garage")
    with Database(server.url("garage")) as database:
        migrate(database)
    tight = type(spine)(spine.home, server.url("garage"))
    tight.configure({"name": "lib", "root": root}, quality={"reject_machine_generated": False})
    tight.walk()
    with pytest.raises(DatabaseFull, match="what was stored before is safe") as failed:
        tight.read()
    assert "Free some space" in failed.value.hint
    (small_disk / "ballast").unlink()
    server.start()  # it ended by itself if it was its log that found no space
    committed = len(tight.contents())
    assert 0 < committed < 350
    assert tight.read().counts["documents_written"] == 350 - committed
    tight.database.close()
    state = tight.state()
    tight.database.close()
    spine.walk()
    spine.read()
    assert state == spine.state()


# Models that change


def test_a_model_of_another_width_is_refused_and_the_old_one_serves_on(spine: Any, library: Path) -> None:
    spine.configure({"name": "lib", "root": library})
    spine.update()
    before = spine.state()
    narrow = {"dims": 384, "stored_dims": 256, "matryoshka": True}
    spine.configure({"name": "lib", "root": library}, models={MODELS[0]: narrow})
    with pytest.raises(DimensionMismatch, match="384 dimensions, of which 256 are stored") as refused:
        spine.update()
    assert "slug of its own" in refused.value.hint
    assert (refused.value.slug, refused.value.expected, refused.value.got) == (MODELS[0], 384, 256)
    assert spine.state() == before
    assert spine.found("apple trees along the fence", "vector")


def test_vectors_of_another_width_than_the_models_are_refused(spine: Any, library: Path) -> None:
    spine.configure({"name": "lib", "root": library})
    spine.walk()
    spine.read()
    with pytest.raises(DimensionMismatch, match=r"vectors of shape \(3, 32\); its table takes 384"):
        spine.embed(load_model=lambda: HashEmbedder(dims=32))
    assert spine.rows("select count(*) from emb_all_minilm_l6_v2") == [(0,)]
    assert spine.embed().counts["embedded"] == len(spine.state()["chunks"])


def test_a_new_default_model_serves_only_when_every_source_has_its_vectors(
    spine: Any, library: Path, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "note.txt").write_text("a note in another source\n", encoding="utf-8")
    sources = ({"name": "lib", "root": library}, {"name": "other", "root": tmp_path / "other"})
    spine.configure(*sources)
    spine.update("lib")
    spine.update("other")
    spine.configure(*sources, embedding={"models": MODELS, "default": MODELS[1], "batch": 3})

    def serving() -> str:
        ((slug,),) = spine.rows("select slug from embedding_models where is_default")
        return str(slug)

    spine.update("lib")
    assert serving() == MODELS[0]
    assert "note.txt" in spine.found("a note in another source", "vector")

    class Breaks(HashEmbedder):
        def embed_documents(self, texts: Any) -> Any:
            raise RuntimeError("the model broke")

    with pytest.raises(RuntimeError, match="the model broke"):
        spine.embed("other", MODELS[1], load_model=Breaks)
    assert serving() == MODELS[0]
    spine.update("other")
    assert serving() == MODELS[1]
    assert spine.found("a note in another source", "vector")[0] == "note.txt"


# Locks


def test_a_source_that_is_busy_says_so_at_once_and_what_to_do(spine: Any) -> None:
    told: list[str] = []
    with (
        spine.database.exclusive("ingest/lib"),
        spine.database.exclusive("ingest/other"),  # another source's is free
        pytest.raises(SourceBusy, match=r"Another run is working on 'lib' \(ingest\)") as busy,
        spine.database.exclusive("ingest/lib", wait=0.5, waiting=lambda: told.append("waiting")),
    ):
        pytest.fail("two hold one lock")
    assert "garage status" in busy.value.hint
    assert (busy.value.source, busy.value.stage) == ("lib", "ingest")
    assert told == ["waiting"]
    with spine.database.exclusive("ingest/lib"):
        pass
