"""Connections, transactions and locks of a real server, also while it goes away and comes back."""

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import errors as pg

from garage.store.database import Database, Server
from garage.store.errors import DatabaseFull, DatabaseUnavailable, SourceBusy, explained

CHECKOUT = Path(__file__).resolve().parents[2]
HOLD = (
    "import sys, time; from garage.store.database import Database\n"
    "with Database(sys.argv[1]).exclusive('walk/notes'):\n    print('held', flush=True); time.sleep(600)"
)


@pytest.fixture
def holder(database_url: str) -> Any:
    """Another process that holds the lock of walking notes."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, database_url], cwd=CHECKOUT, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_connection_finds_our_tables_and_commits_at_once(database: Database, database_url: str) -> None:
    with database.connection() as conn:
        conn.execute("insert into sources (slug, root) values ('notes', '/notes')")
        with psycopg.connect(database_url) as other:
            assert other.execute("select slug from garage.sources").fetchall() == [("notes",)]


def test_a_failed_transaction_leaves_nothing(database: Database) -> None:
    def fail() -> None:
        with database.transaction() as conn:
            conn.execute("insert into sources (slug, root) values ('notes', '/notes')")
            raise RuntimeError("on the way")

    with pytest.raises(RuntimeError):
        fail()
    with database.connection() as conn:
        assert conn.execute("select count(*) from sources").fetchone() == (0,)


def test_the_options_of_an_external_url_are_kept(database_url: str) -> None:
    with Database(f"{database_url}&options=-c%20work_mem%3D7MB") as database, database.connection() as conn:
        assert conn.execute("show work_mem").fetchone() == ("7MB",)
        assert conn.execute("show search_path").fetchone() == ("garage,public",)


def test_a_closed_database_opens_again(database: Database) -> None:
    for _ in range(2):
        with database.connection() as conn:
            assert conn.execute("select 1").fetchone() == (1,)
        database.close()
    database.close()


def test_threads_that_open_it_at_once_share_one_pool(database_url: str) -> None:
    with Database(database_url, max_size=2) as database:
        barrier = threading.Barrier(8)

        def use(_: int) -> int:
            barrier.wait()
            with database.connection() as conn:
                time.sleep(0.02)
                return conn.info.backend_pid

        with ThreadPoolExecutor(8) as pool:
            backends = set(pool.map(use, range(8)))
    assert len(backends) <= 2


def test_a_lock_keeps_another_process_out_and_names_what_it_works_on(database: Database, holder: Any) -> None:
    with pytest.raises(SourceBusy, match="working on 'notes'") as busy, database.exclusive("walk/notes"):
        pytest.fail("two holders")
    assert (busy.value.fields["source"], busy.value.fields["stage"]) == ("notes", "walk")
    with database.exclusive("walk/letters"), database.exclusive("documents/notes"):
        pass


def test_a_killed_holder_releases_its_lock_and_who_waits_gets_it(database: Database, holder: Any) -> None:
    told: list[float] = []
    threading.Timer(0.7, holder.kill).start()
    begin = time.monotonic()
    with database.exclusive("walk/notes", wait=60, waiting=lambda: told.append(time.monotonic())):
        waited = time.monotonic() - begin
    assert waited > 0.3
    assert len(told) == 1


def test_a_lock_is_free_after_its_block_however_that_ends(database: Database) -> None:
    def fail() -> None:
        with database.exclusive("walk/notes"):
            raise RuntimeError("on the way")

    with pytest.raises(RuntimeError):
        fail()
    with database.exclusive("walk/notes"):
        pass


def test_who_waits_in_vain_is_told_so_in_time(database: Database, holder: Any) -> None:
    begin = time.monotonic()
    with pytest.raises(SourceBusy), database.exclusive("walk/notes", wait=0.5):
        pytest.fail("two holders")
    assert 0.4 < time.monotonic() - begin < 5


def test_a_connection_that_the_server_ended_is_replaced(database: Database, database_url: str) -> None:
    with database.connection() as conn:
        backend = conn.info.backend_pid
    with psycopg.connect(database_url, autocommit=True) as other:
        other.execute("select pg_terminate_backend(%s)", (backend,))
    time.sleep(1.1)  # connections are asked whether they live once a second
    with database.connection() as conn:
        assert conn.execute("select 1").fetchone() == (1,)


def test_a_server_that_ends_under_a_transaction_is_said_to_be_gone(database: Database, database_url: str) -> None:
    def lose() -> None:
        with database.transaction() as conn, psycopg.connect(database_url, autocommit=True) as other:
            conn.execute("insert into sources (slug, root) values ('notes', '/notes')")
            other.execute("select pg_terminate_backend(%s)", (conn.info.backend_pid,))
            conn.execute("select 1")

    with pytest.raises(DatabaseUnavailable, match="what was stored before is safe"):
        lose()
    with database.connection() as conn:
        assert conn.execute("select count(*) from sources").fetchone() == (0,)


def test_errors_a_person_can_act_on_say_what_to_do() -> None:
    assert isinstance(explained(pg.DiskFull("could not extend file")), DatabaseFull)
    assert "Free some space" in str(explained(pg.DiskFull("x")))
    for error in (pg.AdminShutdown("x"), pg.CannotConnectNow("x"), psycopg.OperationalError("connection lost")):
        assert isinstance(explained(error), DatabaseUnavailable)
    for other in (pg.UniqueViolation("x"), pg.UndefinedTable("x"), psycopg.ProgrammingError("x")):
        assert explained(other) is other


def test_the_environment_names_an_external_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GARAGE_DATABASE_URL", "postgresql://somewhere/else")
    assert Server.of(tmp_path).url() == "postgresql://somewhere/else"
    monkeypatch.setenv("GARAGE_DATABASE_URL", "")
    assert Server.of(tmp_path).embedded is not None
    monkeypatch.delenv("GARAGE_DATABASE_URL")
    assert Server.of(tmp_path).url().startswith("postgresql://garage@/garage?host=")
