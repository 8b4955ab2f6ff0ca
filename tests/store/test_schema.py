"""The schema on real servers: fresh, current, newer, edited, raced for, and without the extensions."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from garage.store import cluster as cluster_module
from garage.store import schema
from garage.store.cluster import Cluster
from garage.store.database import Database, ensure_database
from garage.store.errors import DatabaseUnavailable, ExtensionMissing, MigrationChanged, SchemaTooNew
from garage.store.lexical import has_bm25
from garage.store.schema import Migration, migrate, migrations, missing_extensions


@pytest.fixture
def fresh(cluster: Cluster) -> Iterator[Callable[..., str]]:
    """Makes databases without a schema; returns their URLs."""
    made: list[str] = []

    def make(role: str | None = None) -> str:
        name = f"fresh_{os.urandom(6).hex()}"
        made.append(name)
        ensure_database(cluster.url("postgres"), name)
        return cluster.url(name).replace("garage@", f"{role or 'garage'}@")

    yield make
    with psycopg.connect(cluster.url("postgres"), autocommit=True) as conn:
        for name in made:
            conn.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


@pytest.fixture
def limited_role(cluster: Cluster) -> Iterator[str]:
    """A role that may make schemas, but no extensions."""
    role = f"limited_{os.urandom(4).hex()}"
    with psycopg.connect(cluster.url("postgres"), autocommit=True) as conn:
        conn.execute(sql.SQL("create role {} login").format(sql.Identifier(role)))
        yield role
        conn.execute(sql.SQL("drop role {}").format(sql.Identifier(role)))


@pytest.fixture(scope="module")
def server_without_bm25(open_tmp: Path) -> Iterator[Cluster]:
    """A server that did not load pg_textsearch when it started, as others than ours do not."""
    server = Cluster(open_tmp / "plain")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cluster_module, "_PRELOADED", ())
        server.start()
    ensure_database(server.url("postgres"), "garage")
    yield server
    server.stop()


def tables(url: str) -> set[str]:
    with psycopg.connect(url) as conn:
        return {name for (name,) in conn.execute("select tablename from pg_tables where schemaname = 'garage'")}


def test_a_fresh_database_gets_every_migration_once(fresh: Callable[..., str]) -> None:
    with Database(fresh()) as database:
        assert migrate(database) == [m.number for m in migrations()]
        assert migrate(database) == []
        assert {"sources", "documents", "chunks", "embedding_models", "schema_migrations"} <= tables(database.url)


def test_migrations_are_numbered_without_gaps_or_repeats() -> None:
    assert [m.number for m in migrations()] == list(range(1, len(migrations()) + 1))


def test_two_programs_that_migrate_at_once_apply_everything_once(fresh: Callable[..., str]) -> None:
    url = fresh()

    def run(_: int) -> list[int]:
        with Database(url) as database:
            return migrate(database)

    with ThreadPoolExecutor(4) as pool:
        applied = sorted(pool.map(run, range(4)))
    assert applied == [[], [], [], [m.number for m in migrations()]]


def test_a_connection_opened_before_the_schema_knows_vectors_afterwards(fresh: Callable[..., str]) -> None:
    with Database(fresh()) as database:
        with database.connection() as conn:
            assert conn.execute("select 1").fetchone() == (1,)
        migrate(database)
        with database.connection() as conn:
            row = conn.execute("select '[1,2]'::vector, to_regclass('chunks') is not null").fetchone()
        assert row is not None
        assert row[1]
        assert list(row[0]) == [1.0, 2.0] if not hasattr(row[0], "to_list") else row[0].to_list() == [1.0, 2.0]


def test_a_schema_of_a_newer_garage_is_refused(database: Database) -> None:
    with database.connection() as conn:
        conn.execute("insert into schema_migrations (number, name, sha256) values (999, 'later', 'x')")
    with pytest.raises(SchemaTooNew, match="schema 999; this Garage knows up to") as refused:
        migrate(database)
    assert (refused.value.fields["found"], refused.value.fields["known"]) == (999, migrations()[-1].number)
    assert "Upgrade Garage" in refused.value.hint


def test_an_edited_migration_is_refused(database: Database) -> None:
    with database.connection() as conn:
        conn.execute("update schema_migrations set sha256 = 'other' where number = 1")
    with pytest.raises(MigrationChanged, match="Migration 1 differs") as refused:
        migrate(database)
    assert refused.value.fields["number"] == 1


def test_a_migration_that_fails_leaves_nothing_and_holds_no_lock(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = migrations()
    number = len(known) + 1
    broken = Migration(number, "broken", "create table half (x integer); select 1 / 0;")
    monkeypatch.setattr(schema, "migrations", lambda: [*known, broken])
    for _ in range(2):
        with pytest.raises(psycopg.errors.DivisionByZero):
            migrate(database)
    assert "half" not in tables(database.url)
    repaired = Migration(number, "repaired", "create table whole (x integer)")
    monkeypatch.setattr(schema, "migrations", lambda: [*known, repaired])
    assert migrate(database) == [number]
    assert "whole" in tables(database.url)


def test_a_server_without_pgvector_is_refused(fresh: Callable[..., str], limited_role: str) -> None:
    url = fresh(limited_role)
    with psycopg.connect(url.replace(limited_role, "garage"), autocommit=True) as conn:
        conn.execute(
            sql.SQL("grant create on database {} to {}").format(
                sql.Identifier(conn.info.dbname), sql.Identifier(limited_role)
            )
        )
        with Database(url) as database, pytest.raises(ExtensionMissing, match="no pgvector extension") as refused:
            migrate(database)
        assert refused.value.fields["extension"] == "vector"
        assert tables(url) == set()
        # An administrator does what the message says. pg_textsearch may not be created either, and is not needed.
        conn.execute("create extension vector")
        with Database(url) as database:
            assert migrate(database)
            with database.connection() as limited:
                assert not has_bm25(limited)
                assert set(missing_extensions(limited)) == {"pg_textsearch"}
        conn.execute(sql.SQL("drop owned by {} cascade").format(sql.Identifier(limited_role)))


def test_a_pgvector_without_iterative_scans_is_refused(fresh: Callable[..., str]) -> None:
    url = fresh()
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute("create extension vector")
        conn.execute("update pg_extension set extversion = '0.7.4' where extname = 'vector'")
    with Database(url) as database, pytest.raises(ExtensionMissing, match=r"pgvector 0.7.4; Garage needs 0.8"):
        migrate(database)


def test_a_server_that_cannot_be_reached_is_an_error_that_says_why(tmp_path: Path) -> None:
    with (
        Database(f"postgresql://garage@/garage?host={tmp_path}") as database,
        pytest.raises(DatabaseUnavailable, match="No such file or directory") as failed,
    ):
        migrate(database)
    assert "garage up" in failed.value.hint


def test_a_server_without_pg_textsearch_gets_tsvectors_and_a_later_one_bm25(server_without_bm25: Cluster) -> None:
    server = server_without_bm25
    with Database(server.url("garage")) as database:
        migrate(database)
        with database.connection() as conn:
            assert not has_bm25(conn)
            assert set(missing_extensions(conn)) == {"pg_textsearch"}
            assert "tsv" in columns(conn)
        assert migrate(database) == []
    server.stop()
    server.start()  # with all that our own server loads
    with Database(server.url("garage")) as database:
        assert migrate(database) == []
        with database.connection() as conn:
            assert has_bm25(conn)
            assert missing_extensions(conn) == {}
            assert "tsv" not in columns(conn)


def columns(conn: "psycopg.Connection[tuple[str, ...]]") -> set[str]:
    found = conn.execute("select attname from pg_attribute where attrelid = 'chunks'::regclass and not attisdropped")
    return {name for (name,) in found}


def test_every_table_refers_to_its_source_so_that_one_can_be_removed(database: Database) -> None:
    with database.connection() as conn:
        found = conn.execute(
            "select conrelid::regclass::text from pg_constraint"
            " where confrelid = 'sources'::regclass and confdeltype = 'c'"
        ).fetchall()
    of_sources = {
        "source_files",
        "documents",
        "chunks",
        "ingest_outcomes",
        "stage_runs",
        "refusals",
        "git_repositories",
    }
    assert of_sources == {name for (name,) in found}
