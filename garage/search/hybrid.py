"""One search over both engines: vectors of the serving model, and terms."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from garage.config import Search
from garage.errors import GarageError
from garage.inference.embedder import Embedder
from garage.passage import with_bigrams, with_parts
from garage.search.fusion import Fused, MatchedBy, fuse
from garage.store import embeddings
from garage.store import search as store
from garage.store.database import Database
from garage.store.embeddings import EmbeddingModel
from garage.store.lexical import has_bm25
from garage.store.search import Filters, Passage, Terms

Mode = Literal["hybrid", "vector", "keyword"]
_DELIBERATE = re.compile(r'"[^"]+"|(?:^|\s)-\w|\bOR\b')


class SearchError(GarageError):
    """A search that cannot be answered as asked."""


class EmptyQuery(SearchError):
    """Nothing was asked."""


class NoModel(SearchError):
    """A vector search before any model has vectors."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage with its fused score, its rank on each side (None: that side did not find it) and which side found it."""

    passage: Passage
    score: float
    vector_rank: int | None
    keyword_rank: int | None
    matched_by: MatchedBy


@dataclass(frozen=True, slots=True)
class Results:
    """The answer: hits best first, the model that ranked the vector side, and remarks on what was left out."""

    query: str
    mode: Mode
    model: str | None
    keyword_ranking: Literal["bm25", "ts_rank", None]
    hits: tuple[Hit, ...]
    notes: tuple[str, ...] = field(default=())


def search(
    database: Database,
    query: str,
    *,
    settings: Search,
    embedder: Callable[[EmbeddingModel], Embedder],
    limit: int = 10,
    mode: Mode = "hybrid",
    filters: Filters = Filters(),  # noqa: B008  # frozen
) -> Results:
    """Finds the passages that answer `query`; `embedder` opens the model that serves.

    Raises EmptyQuery, and NoModel when only vectors are asked for and no model has any.
    """
    query = query.replace("\x00", " ").strip()
    if not query:
        raise EmptyQuery("The query is empty.", hint="Ask for some words.")
    if unknown := _unknown_sources(database, filters):
        raise SearchError(f"There is no source {', '.join(unknown)}.", hint="`garage source list` shows them.")
    notes: list[str] = []
    with database.connection() as conn:
        model = embeddings.serving(conn) if mode != "keyword" else None
        if mode != "keyword" and model is None:
            if mode == "vector":
                raise NoModel("No model has vectors yet.", hint="Run `garage update` first, or search with --mode keyword.")
            notes.append("no model has vectors yet: ranked by words alone")
        near: list[tuple[int, float]] = []
        if model is not None:
            vector = embedder(model).embed_query(query)
            near = store.nearest(
                conn, model, vector.tolist(), limit=settings.candidates, filters=filters, ef_search=settings.ef_search
            )
        termed: list[tuple[int, float]] = []
        bm25 = has_bm25(conn)
        if mode != "vector":
            termed = store.by_terms(conn, terms(query), limit=settings.candidates, bm25=bm25, filters=filters)
        fused = fuse([id_ for id_, _ in near], [id_ for id_, _ in termed], k=settings.rrf_k)[: max(limit, 0)]
        passages = store.passages(conn, [hit.chunk_id for hit in fused])
    return Results(
        query=query,
        mode=mode,
        model=model.slug if model is not None else None,
        keyword_ranking=None if mode == "vector" else ("bm25" if bm25 else "ts_rank"),
        hits=tuple(_hit(passages[hit.chunk_id], hit) for hit in fused if hit.chunk_id in passages),
        notes=tuple(notes),
    )


def terms(query: str) -> Terms:
    """A query as each lexical index holds its text. Quotes, OR and a leading minus are heeded as typed."""
    deliberate = with_bigrams(query) if _DELIBERATE.search(query) else None
    plain = re.sub(r"(?:^|\s)-\w+|\bOR\b", " ", query) if deliberate else query
    return Terms(with_bigrams(plain), with_bigrams(with_parts(plain)), deliberate)


def _unknown_sources(database: Database, filters: Filters) -> list[str]:
    if not filters.sources:
        return []
    from garage.store.sources import sources

    with database.connection() as conn:
        known = {source.slug for source in sources(conn)}
    return [slug for slug in filters.sources if slug not in known]


def _hit(passage: Passage, fused: Fused) -> Hit:
    return Hit(passage, fused.score, fused.vector_rank, fused.keyword_rank, fused.matched_by)
