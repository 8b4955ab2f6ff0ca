"""Passages -> vectors: the work list of one model over one source."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass

from garage.inference.catalogue import ModelEntry
from garage.inference.embedder import Embedder, format_document
from garage.store import embeddings as store
from garage.store.database import Database
from garage.store.digest import vectors_digest
from garage.store.embeddings import EmbeddingModel, PendingVector, Vectors
from garage.store.sources import all_walked
from garage.worklist import Executor, Threads

INDEX_FROM = 10_000
"""Vectors from which an HNSW index pays: an exact scan of fewer takes a few milliseconds."""


@dataclass(slots=True)
class VectorsStage:
    """Gives every passage of a source a vector of one model.

    A passage whose exact text has a vector in the table already takes a copy of it. `load` opens the model and is
    called only when something is left to embed.
    """

    database: Database
    source_id: int
    source: str
    model: EmbeddingModel
    entry: ModelEntry
    load: Callable[[], Embedder]
    wanted_default: str
    batch: int = 64
    rebuild: bool = False
    copied: int = 0

    @property
    def name(self) -> str:
        return f"embeddings/{self.entry.slug}"

    def count(self) -> int:
        with self.database.connection() as conn:
            pending = store.count_pending(conn, self.model, self.source_id, rebuild=self.rebuild)
            if not pending or self.rebuild:
                return pending
            self.copied = store.copy_known(conn, self.model, self.source_id)
            return pending - self.copied

    def pending(self) -> Iterator[list[PendingVector]]:
        with self.database.connection() as conn:
            yield from store.pending_vectors(conn, self.model, self.source_id, batch=self.batch, rebuild=self.rebuild)

    @property
    def work(self) -> Callable[[list[PendingVector]], Vectors]:
        return self._embed

    def _embed(self, passages: list[PendingVector]) -> Vectors:
        texts = [
            format_document(self.entry, title=p.title, heading=p.heading_path or "", text=p.text) for p in passages
        ]
        return self.load().embed_documents(texts)

    def size(self, item: list[PendingVector]) -> int:
        return len(item)

    def commit(self, item: list[PendingVector], result: Vectors) -> Mapping[str, int]:
        with self.database.transaction() as conn:
            return {"embedded": store.put_vectors(conn, self.model, item, result)}

    def finish(self) -> Mapping[str, int]:
        """Builds the index after the first backfill, and lets a completed default model take over."""
        with self.database.connection() as conn:
            model = store.model(conn, self.model.slug) or self.model
            serving = store.serving(conn)
            wanted = self.entry.slug == self.wanted_default
            if wanted and serving is None:
                store.serve(conn, model.slug)  # the first model of all answers with what there is
            elif wanted and serving is not None and serving.slug != model.slug and store.is_complete(conn, model):
                store.serve(conn, model.slug)
            if (
                model.indexed_at is None
                and store.count_vectors(conn, model) >= INDEX_FROM
                and all_walked(conn)
                and store.is_complete(conn, model)
            ):
                store.build_index(conn, model)
        return {"copied": self.copied} if self.copied else {}

    def digest(self) -> str:
        with self.database.connection() as conn:
            return vectors_digest(conn, self.model.table_name, self.source_id)

    def executor(self) -> AbstractContextManager[Executor[list[PendingVector], Vectors]]:
        # Two batches at a time, so that the model's contexts never wait for a batch's last text or for a commit.
        return Threads(2)


def register(database: Database, entry: ModelEntry, fingerprint: str) -> EmbeddingModel:
    """The model's row and table, made on first use."""
    with database.connection() as conn:
        return store.register(
            conn,
            entry.slug,
            dims=entry.dims,
            stored_dims=entry.stored_dims,
            storage=entry.storage,
            fingerprint=fingerprint,
        )
