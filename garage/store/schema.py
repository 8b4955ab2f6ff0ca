"""Numbered SQL migrations: applied once, checksummed, under an advisory lock."""

import hashlib
import importlib.resources
from dataclasses import dataclass

import psycopg
from psycopg import Connection

from garage.store.database import Database, Row, connected
from garage.store.errors import ExtensionMissing, MigrationChanged, SchemaTooNew, StoreError
from garage.store.lexical import can_gain_bm25, ensure_lexical

_LOCK = "garage/schema"
MINIMUM_PGVECTOR = (0, 8)  # the first with iterative index scans, which filtered searches need
_OPTIONAL = {"pg_textsearch": "keyword search ranks with ts_rank instead of BM25"}


@dataclass(frozen=True, slots=True)
class Migration:
    """One file of `garage/store/migrations`: `NNNN_name.sql`."""

    number: int
    name: str
    text: str

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


def migrations() -> list[Migration]:
    """The migrations that this Garage carries, in order."""
    folder = importlib.resources.files("garage.store") / "migrations"
    found = []
    for file in folder.iterdir():
        if file.name.endswith(".sql"):
            number, _, name = file.name.removesuffix(".sql").partition("_")
            found.append(Migration(int(number), name, file.read_text(encoding="utf-8")))
    return sorted(found, key=lambda migration: migration.number)


def migrate(database: Database) -> list[int]:
    """Brings the schema up to date; returns the numbers applied now.

    Raises SchemaTooNew for a database of a newer Garage, MigrationChanged when an applied file was edited, and
    ExtensionMissing when the server has no pgvector of at least 0.8.
    """
    known = migrations()
    # A fresh pool connection is made afterwards, so that the vector type is known to all of them.
    with connected(database.url) as conn:
        if _is_current(conn, known):
            return []
        conn.execute("select pg_advisory_lock(hashtextextended(%s, 0))", (_LOCK,))
        conn.execute("create schema if not exists garage")
        conn.execute("set search_path = garage, public")
        conn.execute("set client_min_messages = warning")
        _ensure_pgvector(conn)
        conn.execute(
            "create table if not exists schema_migrations (number integer primary key, name text not null,"
            " sha256 text not null, applied_at timestamptz not null default now())"
        )
        applied = _applied(conn)
        _check(applied, known)
        pending = [migration for migration in known if migration.number not in applied]
        for migration in pending:
            with conn.transaction():
                conn.execute(migration.text.encode())
                conn.execute(
                    "insert into schema_migrations (number, name, sha256) values (%s, %s, %s)",
                    (migration.number, migration.name, migration.sha256),
                )
        ensure_lexical(conn)
    database.close()
    return [migration.number for migration in pending]


def missing_extensions(conn: Connection[Row]) -> dict[str, str]:
    """Optional extensions that this server lacks, each with what Garage does instead."""
    present = {name for (name,) in conn.execute("select extname from pg_extension")}
    return {name: instead for name, instead in _OPTIONAL.items() if name not in present}


def _applied(conn: Connection[Row]) -> dict[int, str]:
    return dict(conn.execute("select number, sha256 from garage.schema_migrations").fetchall())


def _is_current(conn: Connection[Row], known: list[Migration]) -> bool:
    """The cheap path of every command: one query, no lock."""
    exists = conn.execute("select to_regclass('garage.schema_migrations') is not null").fetchone()
    if exists is None or not exists[0]:
        return False
    applied = _applied(conn)
    _check(applied, known)
    return len(applied) == len(known) and not can_gain_bm25(conn)


def _check(applied: dict[int, str], known: list[Migration]) -> None:
    numbers = {migration.number: migration for migration in known}
    newest, found = max(numbers), max(applied, default=0)
    if found > newest:
        raise SchemaTooNew(
            f"This database has schema {found}; this Garage knows up to {newest}.",
            hint="Upgrade Garage, or point it at another database.",
            found=found,
            known=newest,
        )
    for number, sha256 in applied.items():
        if number not in numbers or numbers[number].sha256 != sha256:
            raise MigrationChanged(
                f"Migration {number} differs from the one that was applied to this database.",
                hint="Migrations are never edited: restore the file, and put the change into a new one.",
                number=number,
            )


def _ensure_pgvector(conn: Connection[Row]) -> None:
    try:
        conn.execute("create extension if not exists vector with schema public")
    except psycopg.Error as error:
        raise ExtensionMissing(
            "The server has no pgvector extension that this role may create.",
            hint="Install pgvector 0.8 or newer there and run `create extension vector` as a superuser.",
            extension="vector",
        ) from error
    row = conn.execute("select extversion from pg_extension where extname = 'vector'").fetchone()
    if row is None:
        raise StoreError("The vector extension vanished while it was being created.", hint="Try again.")
    version = tuple(int(part) for part in row[0].split(".")[:2])
    if version < MINIMUM_PGVECTOR:
        raise ExtensionMissing(
            f"The server has pgvector {row[0]}; Garage needs 0.8 or newer.",
            hint="Install a newer one there and run `alter extension vector update`.",
            extension="vector",
        )
