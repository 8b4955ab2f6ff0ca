"""Embedding models, opened when a run first needs one and kept for its other steps."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

import dagster as dg
from pydantic import PrivateAttr

from garage.config import Config
from garage.inference.catalogue import ModelEntry
from garage.inference.embedder import Embedder, open_embedder


class EmbeddingModels(dg.ConfigurableResource):  # type: ignore[type-arg]  # the resource is its own value
    """The models of a run, each loaded once, all closed at its end."""

    _open: dict[str, Embedder] = PrivateAttr(default_factory=dict)
    _lock: Lock = PrivateAttr(default_factory=Lock)

    @contextmanager
    def yield_for_execution(self, context: dg.InitResourceContext) -> Iterator["EmbeddingModels"]:
        del context
        try:
            yield self
        finally:
            for model in self._open.values():
                model.close()
            self._open.clear()

    def embedder(self, entry: ModelEntry, config: Config) -> Embedder:
        """The model, fetched and loaded where it is not. Safe to call from several threads."""
        with self._lock:
            model = self._open.get(entry.slug)
            if model is None:
                model = open_embedder(entry, config.models_dir, threads=config.embedding.threads)
                self._open[entry.slug] = model
            return model
