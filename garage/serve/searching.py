"""`garage search` from a cold shell: the server is found or started, the model opened when it is needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast

from garage.config import Config
from garage.inference.catalogue import entries, find
from garage.inference.embedder import Embedder, open_embedder
from garage.search.hybrid import Mode, Results, SearchError
from garage.search.hybrid import search as find_passages
from garage.search.people import wanted
from garage.serve.opening import opened, require_sources
from garage.store.embeddings import EmbeddingModel
from garage.store.search import Filters


class ModelChanged(SearchError):
    """The model that answers is not the one that the stored vectors were made with (`slug`)."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A search as it was asked for; empty filters mean anything. `authors` are parts of names or identities."""

    query: str
    limit: int
    mode: str
    sources: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    trusts: tuple[str, ...] = ()
    authors: tuple[str, ...] = ()
    directions: tuple[str, ...] = ()


def ask(config: Config, asked: Asked, *, starting: Callable[[], None] = lambda: None) -> Results:
    """Answers a search. Raises UnknownSource, UnknownAuthor, and what the library and the model raise."""
    with opened(config, sync=False, starting=starting) as database:
        require_sources(database, asked.sources)
        with database.connection() as conn:
            people = wanted(conn, asked.authors)
        results = find_passages(
            database,
            asked.query,
            settings=config.search,
            embedder=lambda model: _embedder(config, model),
            limit=asked.limit,
            mode=cast("Mode", asked.mode),
            filters=Filters(
                sources=asked.sources,
                classes=asked.classes,
                trusts=asked.trusts,
                authors=people.authors,
                speakers=people.speakers,
                owner_speaks=people.owner_speaks,
                directions=asked.directions,
            ),
        )
        return replace(results, notes=(*people.notes, *results.notes))


def _embedder(config: Config, model: EmbeddingModel) -> Embedder:
    embedder = open_embedder(find(model.slug, entries(config.models)), config.models_dir, threads=1)
    if embedder.fingerprint != model.fingerprint:
        raise ModelChanged(
            f"The model '{model.slug}' is not what it was when the vectors were made.",
            hint="Run `garage update`, or search with --mode keyword meanwhile.",
            slug=model.slug,
        )
    return embedder
