"""What every test may ask for: a real Postgres, a database of its own, the reading material beside the checkout."""

import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import platformdirs
import psutil
import psycopg
import pytest
import yaml
from psycopg import sql

from garage.config import Config, load
from garage.store.cluster import Cluster
from garage.store.database import Database, ensure_database
from garage.store.schema import migrate

CHECKOUT = Path(__file__).resolve().parents[1]
# A shell starts what it puts into the background with interrupts ignored, and every process below would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real files and collections (GARAGE_SHARED, else `../shared`); skips where there is none."""
    folder = Path(os.environ.get("GARAGE_SHARED", CHECKOUT.parent / "shared"))
    if not (folder / "corpus").is_dir():
        pytest.skip("no folder of shared reading material: set GARAGE_SHARED")
    return folder


@pytest.fixture(scope="session")
def models_dir() -> Path:
    """Where `make setup` keeps model files (GARAGE_MODELS_DIR, else the user's cache)."""
    given = os.environ.get("GARAGE_MODELS_DIR")
    return Path(given) if given else platformdirs.user_cache_path("garage", appauthor=False) / "models"


def folder_in_memory() -> Path | None:
    """Where files are kept in memory, if a whole session fits several times over: those measured took up to 0.5 GB."""
    folder, room = Path("/dev/shm"), 4 << 30
    if not os.access(folder, os.W_OK) or min(shutil.disk_usage(folder).free, psutil.virtual_memory().available) < room:
        return None
    return folder


@pytest.fixture(scope="session")
def open_tmp() -> Iterator[Path]:
    """A temporary folder that the database's own user may pass through, which pytest's are not.

    In memory where there is room: for each test that asks for a database Postgres makes and flushes some 300 files,
    and waits for the disk whoever else uses it. The server and its settings are the same.
    """
    folder = Path(tempfile.mkdtemp(prefix="garage-test-", dir=folder_in_memory()))
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
def another_database(cluster: Cluster) -> Iterator[Callable[[], str]]:
    """Makes further freshly migrated databases for a test; returns their URLs."""
    made: list[str] = []

    def make() -> str:
        name = f"test_{os.urandom(6).hex()}"
        with psycopg.connect(cluster.url("postgres"), autocommit=True) as conn:
            conn.execute(sql.SQL("create database {} template pattern strategy file_copy").format(sql.Identifier(name)))
        made.append(name)
        return cluster.url(name)

    yield make
    with psycopg.connect(cluster.url("postgres"), autocommit=True) as conn:
        for name in made:
            conn.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))


@pytest.fixture
def database_url(another_database: Callable[[], str]) -> str:
    """The URL of a freshly migrated database of this test's own."""
    return another_database()


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """A freshly migrated database of this test's own."""
    with Database(database_url) as opened:
        yield opened


@dataclass(frozen=True)
class Home:
    """A GARAGE_HOME of a test's own, with a database of its own; the environment names both."""

    path: Path
    database_url: str
    models_dir: Path

    @property
    def config_path(self) -> Path:
        return self.path / "garage.yaml"

    def configure(self, *sources: Mapping[str, object], **sections: object) -> Config:
        """Writes `garage.yaml`: the two test models, these sources, and further sections."""
        settings: dict[str, object] = {
            "models_directory": str(self.models_dir),
            "embedding": {"models": ["all-minilm-l6-v2", "all-minilm-l6-v2-q8_0"]},
            "sources": [{name: str(value) if name == "root" else value for name, value in s.items()} for s in sources],
            **sections,
        }
        self.config_path.write_text(yaml.safe_dump(settings), encoding="utf-8")
        return load()


@pytest.fixture
def garage_home(open_tmp: Path, database_url: str, models_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """An empty home named by the environment, as a person's own is."""
    folder = open_tmp / f"home-{os.urandom(4).hex()}"
    folder.mkdir(mode=0o755)
    monkeypatch.setenv("GARAGE_HOME", str(folder))
    monkeypatch.delenv("GARAGE_CONFIG", raising=False)
    monkeypatch.setenv("GARAGE_DATABASE_URL", database_url)
    home = Home(folder, database_url, models_dir)
    home.configure()
    return home


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A small folder of documents."""
    root = tmp_path / "library"
    root.mkdir()
    (root / "bees.md").write_text(
        "---\ntitle: Bees\nauthor: Ada\n---\n# Hives\n\nThe hive by the pond holds a young colony of bees.\n\n"
        "## Honey\n\nIn July the bees gave eleven jars of honey.\n",
        encoding="utf-8",
    )
    (root / "boiler.txt").write_text(
        "The boiler in the cellar was serviced in March.\nIts pressure should stay at 1.5 bar.\n", encoding="utf-8"
    )
    (root / "notes").mkdir()
    for number in range(8):
        (root / "notes" / f"day-{number}.md").write_text(
            f"# Day {number}\n\nOn day {number} we planted {number + 3} apple trees along the eastern fence.\n",
            encoding="utf-8",
        )
    return root
