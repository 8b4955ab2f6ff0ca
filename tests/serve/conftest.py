"""Calling the command line as a person does, and a small library that is already in the database."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from garage import worklist
from garage.chunk import stage as chunking
from garage.config import Config, load
from garage.embed import stage as embedding
from garage.embed.stage import VectorsStage
from garage.inference.catalogue import entries
from garage.inference.embedder import fingerprint, open_embedder
from garage.inference.fetch import weights_sha256
from garage.serve import cli
from garage.store import documents, sources
from garage.store.database import Database
from garage.store.documents import DocumentRow
from garage.store.lexical import refresh

CHECKOUT = Path(__file__).resolve().parents[2]
OWN_VARIABLES = ("GARAGE_CONFIG", "GARAGE_DATABASE_URL", "GARAGE_DAGSTER_URL", "GARAGE_DEBUG", "DAGSTER_HOME")

TEXTS = {
    "greenhouse/heating.md": "# Greenhouse\n\n## Heating\n\nThe greenhouse heating starts when the night falls below "
    "four degrees. The valve behind the water butt opens it.\n",
    "workshop/press.md": "# Cider press\n\nPump the press up to 280 bar and never further.\n",
    "people.md": "# People\n\nThe treasurer keeps the keys of the greenhouse and of the shed.\n",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command said."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)


Garage = Callable[..., Answer]


@pytest.fixture
def garage(capfd: pytest.CaptureFixture[str]) -> Garage:
    """Runs a command in this process."""

    def call(*arguments: str | Path) -> Answer:
        capfd.readouterr()
        code = cli.run([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        return Answer(code, out, err)

    return call


def process_environment(checkout: Path = CHECKOUT, **changes: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(checkout), **changes}


def call_process(*arguments: str | Path, checkout: Path = CHECKOUT, timeout: float = 170, **changes: str) -> Answer:
    """Runs a command as a process of its own."""
    ran = subprocess.run(
        [sys.executable, "-m", "garage", *map(str, arguments)],
        env=process_environment(checkout, **changes),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    return Answer(ran.returncode, ran.stdout, ran.stderr)


def store_documents(database: Database, config: Config, name: str, texts: Mapping[str, str]) -> None:
    """Stores Markdown documents with their real passages."""
    with database.transaction() as conn:
        sources.sync(conn, config.sources)
        row = sources.source(conn, name)
        for uri, text in texts.items():
            title = text.partition("\n")[0].removeprefix("# ")
            digest = hashlib.sha256(text.encode()).digest()
            document = DocumentRow(
                uri=uri,
                title=title,
                kind="markdown",
                corpus_class=row.default_class,
                trust_tier=row.default_trust,
                content=text,
                body_start=0,
                meta={},
                source_sha256=digest,
                content_sha256=digest,
                byte_size=len(text.encode()),
                mtime_ns=1,
                extractor="markdown",
                extractor_fingerprint="test",
            )
            cut = chunking.passages(
                text, title=title, kind="markdown", body_start=0, sizes=chunking.settings(config.chunking)
            )
            documents.put_document(conn, row.id, document, cut)
    with database.connection() as conn:
        refresh(conn)


def store_vectors(database: Database, config: Config, name: str, slug: str) -> None:
    """Gives every passage of a source its vector, by the real model."""
    entry = entries(config.models)[slug]
    with database.connection() as conn:
        row = sources.source(conn, name)
    model = embedding.register(database, entry, fingerprint(entry, weights_sha256(entry, config.models_dir)))
    embedder = open_embedder(entry, config.models_dir)
    try:
        stage: Any = VectorsStage(
            database,
            row.id,
            name,
            model=model,
            entry=entry,
            load=lambda: embedder,
            wanted_default=config.embedding.default,
        )
        worklist.run(database, stage)
    finally:
        embedder.close()


@pytest.fixture
def plain_home(open_tmp: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A GARAGE_HOME that does not exist yet, with the embedded database that belongs to it."""
    for name in OWN_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    home = open_tmp / f"home-{os.urandom(4).hex()}"
    monkeypatch.setenv("GARAGE_HOME", str(home))
    return home


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The checkout under another path, so that the `.env` of the real one is nobody's business."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    for name in ("garage", "garage_assets", "resources", "sensors", "dagster.yaml", "workspace.yaml"):
        (folder / name).symlink_to(CHECKOUT / name)
    return folder


@pytest.fixture
def stocked(garage_home: Any, database: Database, tmp_path: Path) -> Config:
    """A home with one source whose passages have vectors of the default model."""
    root = tmp_path / "garden"
    root.mkdir()
    config = garage_home.configure({"name": "garden", "root": str(root)})
    store_documents(database, config, "garden", TEXTS)
    store_vectors(database, config, "garden", "all-minilm-l6-v2")
    return load()
