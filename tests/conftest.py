"""What every test may ask for: a real Postgres, a database of its own, the reading material beside the checkout."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import platformdirs
import psycopg
import pytest
from psycopg import sql

from garage.store.cluster import Cluster
from garage.store.database import Database, ensure_database
from garage.store.schema import migrate

CHECKOUT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real files and retrieval collections (GARAGE_SHARED, else `../shared`); skips where there is none."""
    folder = Path(os.environ.get("GARAGE_SHARED", CHECKOUT.parent / "shared"))
    if not (folder / "corpus").is_dir():
        pytest.skip("no folder of shared reading material: set GARAGE_SHARED")
    return folder


@pytest.fixture(scope="session")
def models_dir() -> Path:
    """Where `make setup` keeps model files (GARAGE_MODELS_DIR, else the user's cache)."""
    given = os.environ.get("GARAGE_MODELS_DIR")
    return Path(given) if given else platformdirs.user_cache_path("garage", appauthor=False) / "models"


@pytest.fixture(scope="session")
def open_tmp() -> Iterator[Path]:
    """A temporary folder that the database's own user may pass through, which pytest's are not."""
    folder = Path(tempfile.mkdtemp(prefix="garage-test-"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def cluster(open_tmp: Path) -> Iterator[Cluster]:
    """A real Postgres for the session, of the kind that `garage up` starts."""
    server = Cluster(open_tmp / "session")
    server.start()
    ensure_database(server.url("postgres"), "pattern")
    with Database(server.url("pattern")) as pattern:
        migrate(pattern)
    yield server
    server.stop()


@pytest.fixture
def database_url(cluster: Cluster) -> Iterator[str]:
    """The URL of a freshly migrated database of this test's own."""
    name = f"test_{os.urandom(6).hex()}"
    with psycopg.connect(cluster.url("postgres"), autocommit=True) as conn:
        conn.execute(
            sql.SQL("create database {} template pattern strategy file_copy").format(sql.Identifier(name))
        )
    yield cluster.url(name)
    with psycopg.connect(cluster.url("postgres"), autocommit=True) as conn:
        conn.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """A freshly migrated database of this test's own."""
    with Database(database_url) as opened:
        yield opened
