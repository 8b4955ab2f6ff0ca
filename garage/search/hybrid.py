"""One search over both engines: vectors of the serving model, and terms."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Literal

from garage.config import Search
from garage.errors import GarageError
from garage.inference.embedder import Embedder
from garage.search.fusion import Fused, MatchedBy, fuse
from garage.search.syntax import Asked, parse, plain
from garage.store import embeddings
from garage.store import search as store
from garage.store.database import Database, Session
from garage.store.embeddings import EmbeddingModel
from garage.store.search import EVERYTHING, Filters, Passage, Ranked
from garage.store.sources import sources

Mode = Literal["hybrid", "vector", "keyword"]


class SearchError(GarageError):
    """A search that cannot be answered as asked."""


class EmptyQuery(SearchError):
    """Nothing was asked."""


class NoModel(SearchError):
    """A vector search before any model has vectors."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage with its fused score and its rank on each side (None: that side did not find it)."""

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
    keyword_ranking: Literal["bm25", "ts_rank"] | None
    hits: tuple[Hit, ...]
    notes: tuple[str, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class _Sides:
    """What each engine found, best first; None: it was not asked."""

    near: list[int] | None
    termed: Ranked | None

    @property
    def is_empty(self) -> bool:
        return not self.near and not (self.termed and self.termed.hits)


def search(
    database: Database,
    query: str,
    *,
    settings: Search,
    embedder: Callable[[EmbeddingModel], Embedder],
    limit: int = 10,
    mode: Mode = "hybrid",
    filters: Filters = EVERYTHING,
) -> Results:
    """Finds the passages that answer `query`; `embedder` opens the model that serves.

    Quotes, a leading minus and OR are heeded by both sides, see `garage.search.syntax`. Raises EmptyQuery, and NoModel
    when only vectors are asked for and no model has any.
    """
    query = _clean(query)
    if not query:
        raise EmptyQuery("The query is empty.", hint="Ask for some words.")
    with database.connection() as conn:
        if unknown := _unknown_sources(conn, filters):
            raise SearchError(f"There is no source {', '.join(unknown)}.", hint="`garage source list` shows them.")
        model = embeddings.serving(conn) if mode != "keyword" else None
    notes: list[str] = []
    if model is None and mode == "vector":
        raise NoModel("No model has vectors yet.", hint="Run `garage update` first, or search with --mode keyword.")
    if model is None and mode == "hybrid":
        notes.append("no model has vectors yet: ranked by words alone")
    engines = _Engines(database, settings, filters, model, embedder, words=mode != "vector")
    sides = engines.ask(asked := parse(query))
    if sides.is_empty and asked.is_deliberate:
        notes.append("nothing matches with the quotes and minus signs heeded: searched for the words alone")
        sides = engines.ask(plain(query))
    keyword = [id_ for id_, _ in sides.termed.hits] if sides.termed else []
    fused = fuse(sides.near or [], keyword, k=settings.rrf_k)[: max(limit, 0)]
    with database.connection() as conn:
        passages = store.passages(conn, [hit.chunk_id for hit in fused])
    return Results(
        query=query,
        mode=mode,
        model=model.slug if model is not None else None,
        keyword_ranking=sides.termed.by if sides.termed else None,
        hits=tuple(_hit(passages[hit.chunk_id], hit) for hit in fused if hit.chunk_id in passages),
        notes=tuple(notes),
    )


@dataclass(frozen=True, slots=True)
class _Engines:
    """Both engines, for one search."""

    database: Database
    settings: Search
    filters: Filters
    model: EmbeddingModel | None
    embedder: Callable[[EmbeddingModel], Embedder]
    words: bool

    def ask(self, asked: Asked) -> _Sides:
        """Words are looked up while the model reads the query. Neither side waits for a connection while it has one."""
        with ThreadPoolExecutor(1, thread_name_prefix="search") as aside:
            termed = aside.submit(self._by_terms, asked) if self.words else None
            near = self._nearest(self.model, asked) if self.model is not None else None
            return _Sides(near, termed.result() if termed else None)

    def _by_terms(self, asked: Asked) -> Ranked:
        with self.database.connection() as conn:
            return store.by_terms(conn, asked.terms, limit=self.settings.candidates, filters=self.filters)

    def _nearest(self, model: EmbeddingModel, asked: Asked) -> list[int]:
        vector = self.embedder(model).embed_query(asked.words).tolist()
        settings = self.settings
        with self.database.connection() as conn:
            found = store.nearest(
                conn, model, vector, limit=settings.candidates, filters=self.filters, ef_search=settings.ef_search
            )
            near = [id_ for id_, _ in found]
            return store.heeding(conn, near, asked.terms) if asked.is_deliberate else near


def _clean(query: str) -> str:
    """Without what no database takes: NUL, and halves of characters."""
    return query.replace("\x00", " ").encode("utf-8", "replace").decode("utf-8").strip()


def _unknown_sources(conn: Session, filters: Filters) -> list[str]:
    known = {source.slug for source in sources(conn)} if filters.sources else set()
    return [slug for slug in filters.sources if slug not in known]


def _hit(passage: Passage, fused: Fused) -> Hit:
    return Hit(passage, fused.score, fused.vector_rank, fused.keyword_rank, fused.matched_by)
