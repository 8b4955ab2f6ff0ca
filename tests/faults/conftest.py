"""Sources brought up to date without Dagster and without a model, so that a fault is all that a test waits for."""

import ctypes
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from garage import stages, worklist
from garage.config import Config, load
from garage.inference.catalogue import entries
from garage.inference.embedder import Embedder
from garage.inference.testing import HashEmbedder
from garage.search.hybrid import Mode, search
from garage.store.database import Database
from garage.store.sources import Source
from garage.worklist import Report

MODEL = "all-minilm-l6-v2"
Counts = dict[str, dict[str, int]]

# Linux's names for: the rights with which root passes over the modes of files; what keeps a program that root starts
# from getting them back; the version of the structure that sets them.
_PASS_OVER = (1 << 1) | (1 << 2)
_PR_SET_SECUREBITS, _NO_ROOT = 28, 1
_CAPABILITY_VERSION = 0x20080522


class Spine:
    """The stages of sources on one database, under the configuration of one home; `url` is not its own."""

    def __init__(self, home: Any, url: str) -> None:
        self.home = home
        self.database = Database(url)
        self.configure()

    def configure(self, *sources: dict[str, object], **sections: object) -> Config:
        """Writes the configuration: one model, one worker, small batches, and what is given."""
        settings: dict[str, object] = {
            "embedding": {"models": [MODEL], "batch": 3},
            "extraction": {"workers": 1},
            **sections,
        }
        config: Config = self.home.configure(*sources, **settings)
        return config

    def row(self, slug: str = "lib") -> Source:
        return stages.source(self.database, load(), slug)

    def walk(self, slug: str = "lib", *, allow_deletes: bool = False) -> Report:
        return stages.walk(self.database, load(), self.row(slug), allow_deletes=allow_deletes)

    def read(self, slug: str = "lib", *, rebuild: bool = False) -> Report:
        stage = stages.documents(self.database, load(), self.row(slug), rebuild=rebuild)
        return worklist.run(self.database, stage)

    def cut(self, slug: str = "lib") -> Report:
        return worklist.run(self.database, stages.chunks(self.database, load(), self.row(slug)))

    def embed(
        self, slug: str = "lib", model: str = MODEL, *, load_model: Callable[[], Embedder] | None = None
    ) -> Report:
        config = load()
        entry = entries(config.models)[model]

        def hashing() -> Embedder:
            return HashEmbedder(slug=model, dims=entry.stored_dims)

        stage = stages.vectors(self.database, config, self.row(slug), entry, load=load_model or hashing)
        return worklist.run(self.database, stage, ahead=2)

    def update(self, slug: str = "lib", *, allow_deletes: bool = False) -> Counts:
        """Runs every stage; the counts by stage, without those that are zero."""
        reports = [self.walk(slug, allow_deletes=allow_deletes), self.read(slug), self.cut(slug)]
        reports += [self.embed(slug, model) for model in load().embedding.models]
        return {report.stage: {name: n for name, n in report.counts.items() if n} for report in reports}

    def found(self, query: str, mode: Mode = "hybrid") -> list[str]:
        """The addresses of the hits, best first."""
        results = search(
            self.database,
            query,
            settings=load().search,
            embedder=lambda model: HashEmbedder(slug=model.slug, dims=model.stored_dims),
            mode=mode,
        )
        return [hit.passage.uri for hit in results.hits]

    def rows(self, query: str, *parameters: object) -> list[Any]:
        with self.database.connection() as conn:
            return conn.execute(query.encode(), parameters).fetchall()

    def outcomes(self) -> dict[str, str]:
        return dict(self.rows("select uri, outcome from ingest_outcomes"))

    def contents(self) -> dict[str, str]:
        return dict(self.rows("select uri, content from documents"))

    def state(self) -> dict[str, list[Any]]:
        """Everything stored, by names instead of surrogate keys: equal for equal end states."""
        of = " from chunks c join documents d on d.id = c.document_id join sources s on s.id = d.source_id"
        found = {
            "files": self.rows(
                "select s.slug, f.uri, size, mtime_ns, extractor from source_files f join sources s on s.id = source_id"
                " order by 1, 2"
            ),
            "documents": self.rows(
                "select s.slug, d.uri, title, d.kind, content, meta::text, chunked_as, chunked_sha256 from documents d"
                " join sources s on s.id = d.source_id order by 1, 2"
            ),
            "chunks": self.rows(
                f"select s.slug, d.uri, c.ord, c.text, c.char_start, c.char_end, c.input_sha256 {of} order by 1, 2, 3"
            ),
            "outcomes": self.rows(
                "select s.slug, o.uri, outcome, source_sha256 from ingest_outcomes o join sources s on s.id = source_id"
                " order by 1, 2"
            ),
            "models": self.rows("select slug, is_default, indexed_at is null from embedding_models order by 1"),
        }
        for (table,) in self.rows("select table_name from embedding_models"):
            found[table] = self.rows(
                f"select s.slug, d.uri, c.ord, e.input_sha256, e.embedding::text {of}"
                f" join {table} e on e.chunk_id = c.id order by 1, 2, 3"
            )
        return found


@pytest.fixture
def spine(garage_home: Any) -> Iterator[Spine]:
    """The stages on a database of the test's own."""
    made = Spine(garage_home, garage_home.database_url)
    yield made
    made.database.close()


@pytest.fixture
def folder(tmp_path: Path, spine: Spine) -> Path:
    """The folder of the source `lib`, empty."""
    root = tmp_path / "folder"
    root.mkdir()
    spine.configure({"name": "lib", "root": root})
    return root


@pytest.fixture
def without_rights(spine: Spine) -> Callable[[], AbstractContextManager[None]]:
    """A block in which modes of files bind this thread, and the programs that it starts, even where it is root's."""

    @contextmanager
    def block() -> Iterator[None]:
        if os.geteuid() != 0:
            yield
            return
        if sys.platform != "linux":
            pytest.skip("root's rights can be put aside on Linux only")
        spine.rows("select 1")  # the pool's threads keep the rights that they were started with
        libc = ctypes.CDLL(None, use_errno=True)
        header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
        before = (ctypes.c_uint32 * 6)()
        libc.capget(header, before)
        without = (ctypes.c_uint32 * 6)(before[0] & ~_PASS_OVER, *before[1:])
        if libc.prctl(_PR_SET_SECUREBITS, _NO_ROOT, 0, 0, 0) or libc.capset(header, without):
            pytest.skip("this process may not put root's rights aside")
        try:
            yield
        finally:
            assert libc.capset(header, before) == 0
            assert libc.prctl(_PR_SET_SECUREBITS, 0, 0, 0, 0) == 0

    return block
