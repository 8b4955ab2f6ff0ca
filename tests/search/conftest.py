"""Things to search: small shelves made by hand, and a crowd in which a filter has to find its few."""

import hashlib
import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psycopg
import pytest
from numpy.typing import NDArray
from psycopg import sql

from garage.chunk.stage import passages, settings
from garage.config import Chunking, Search, Source
from garage.inference.testing import HashEmbedder
from garage.search.hybrid import Results, search
from garage.store import documents, embeddings, lexical, sources
from garage.store.cluster import Cluster
from garage.store.database import Database
from garage.store.documents import ChunkSet, DocumentRow
from garage.store.embeddings import EmbeddingModel
from garage.store.search import Filters

Engine = str  # "bm25" or "ts_rank"


def without_bm25(database: Database) -> None:
    """The database of a server that never had pg_textsearch."""
    with database.connection() as conn:
        conn.execute("drop extension pg_textsearch cascade")
        lexical.make_tsvectors(conn)


@dataclass
class Shelf:
    """A database that is searched by both engines; the embedder hashes words."""

    database: Database
    embedder: HashEmbedder = field(default_factory=lambda: HashEmbedder(dims=256))

    def put(
        self,
        uri: str,
        text: str,
        *,
        source: str = "shelf",
        kind: str = "prose",
        title: str = "",
        corpus_class: str = "document",
        trust: str = "authored",
    ) -> None:
        """Stores a document of that text, cut as the pipeline cuts it."""
        content = text.rstrip("\n") + "\n"
        cut = passages(content, title=title, kind=kind, body_start=0, sizes=settings(Chunking()))
        self.put_rows(uri, content, cut, source=source, kind=kind, title=title, corpus_class=corpus_class, trust=trust)

    def put_rows(
        self,
        uri: str,
        content: str,
        cut: ChunkSet,
        *,
        source: str,
        kind: str,
        title: str,
        corpus_class: str,
        trust: str,
    ) -> None:
        digest = hashlib.sha256(content.encode()).digest()
        row = DocumentRow(
            uri=uri,
            title=title,
            kind=kind,
            corpus_class=corpus_class,
            trust_tier=trust,
            content=content,
            body_start=0,
            meta={},
            source_sha256=digest,
            content_sha256=digest,
            byte_size=len(content.encode()),
            mtime_ns=0,
            extractor="text",
            extractor_fingerprint="1",
        )
        with self.database.transaction() as conn:
            known = [Source(name=s.slug, root=Path(s.root), enabled=s.active) for s in sources.sources(conn)]
            if source not in {s.name for s in known}:
                sources.sync(conn, [*known, Source(name=source, root=Path("/", source))])
            documents.put_document(conn, sources.source(conn, source).id, row, cut)

    def retire(self, slug: str) -> None:
        with self.database.connection() as conn:
            rows = sources.sources(conn)
            kept = [s for s in rows if s.active and s.slug != slug]
            sources.sync(conn, [Source(name=s.slug, root=Path(s.root)) for s in kept])

    def ready(self) -> None:
        """What a run does after its documents are stored: keyword segments, then vectors."""
        with self.database.connection() as conn:
            lexical.refresh(conn)
            model = embeddings.register(
                conn,
                "hash",
                dims=self.embedder.dims,
                stored_dims=self.embedder.dims,
                storage="vector",
                fingerprint=self.embedder.fingerprint,
            )
            for row in sources.sources(conn):
                for batch in embeddings.pending_vectors(conn, model, row.id, batch=500, rebuild=False):
                    vectors = self.embedder.embed_documents([f"{p.title} {p.text}" for p in batch])
                    embeddings.put_vectors(conn, model, batch, vectors)
            embeddings.serve(conn, "hash")

    def ask(self, query: str, **options: object) -> Results:
        return search(
            self.database,
            query,
            settings=Search(),
            embedder=lambda model: self.embedder,
            **options,  # type: ignore[arg-type]  # as `search` takes them
        )

    def uris(self, query: str, **options: object) -> list[str]:
        """Documents that are found, best first."""
        return list(dict.fromkeys(hit.passage.uri for hit in self.ask(query, **options).hits))


@pytest.fixture(params=["bm25", "ts_rank"])
def engine(request: pytest.FixtureRequest) -> Engine:
    """Every test that takes it runs with either ranking of the keyword side."""
    return str(request.param)


@pytest.fixture
def shelf(database: Database, engine: Engine) -> Shelf:
    if engine == "ts_rank":
        without_bm25(database)
    return Shelf(database)


@dataclass(frozen=True)
class Crowd:
    """24,000 passages with random vectors, and who they are."""

    database: Database
    model: EmbeddingModel
    ids: NDArray[np.int64]
    vectors: NDArray[np.float32]
    members: Mapping[str, NDArray[np.bool_]]
    filters: Mapping[str, Filters]

    def nearest(self, vector: NDArray[np.float32], who: NDArray[np.bool_], k: int) -> list[int]:
        """The exact answer."""
        near = np.argsort(1 - self.vectors[who] @ vector, kind="stable")[:k]
        return [int(id_) for id_ in self.ids[who][near]]


CROWD = 24_000
COLUMNS = ("sources", "classes", "trusts", "directions")  # filters that look at one column
DIMS = 24
RARE_AUTHOR, BUSY_AUTHOR = 1, 2
# Filters by the share of the crowd that they leave.
SHARES: Mapping[str, Filters] = {
    "0.05 %": Filters(sources=("dozen",)),
    "0.5 %": Filters(sources=("rare",)),
    "2 %": Filters(trusts=("reference",)),
    "10 %": Filters(classes=("communication",)),
    "40 %": Filters(sources=("part",)),
    "4 %": Filters(sources=("part",), classes=("communication",)),
    "0.4 % by an author": Filters(authors=(RARE_AUTHOR,)),
    "5 % by an author": Filters(authors=(BUSY_AUTHOR,)),
    "5 % by either": Filters(authors=(RARE_AUTHOR, BUSY_AUTHOR)),
    "0.5 % sent": Filters(directions=("sent",)),
    "10 % sent or received": Filters(directions=("sent", "received")),
    "0.5 % received from an author": Filters(authors=(BUSY_AUTHOR,), directions=("received",)),
}


@pytest.fixture(scope="session")
def crowd_pattern(cluster: Cluster) -> Iterator[str]:
    """The name of a database with the crowd in it."""
    name = f"crowd_{os.urandom(4).hex()}"
    with psycopg.connect(cluster.url("postgres"), autocommit=True) as conn:
        conn.execute(sql.SQL("create database {} template pattern strategy file_copy").format(sql.Identifier(name)))
    with Database(cluster.url(name)) as database:
        _gather(Shelf(database))
    yield name
    with psycopg.connect(cluster.url("postgres"), autocommit=True) as conn:
        conn.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


def _gather(shelf: Shelf) -> None:
    """Documents of 100 passages; every passage has one word in common with all, and some of its own."""
    rng = random.Random(5)
    words = [f"word{n}" for n in range(2000)]
    for number in range(CROWD // 100):
        rows = [f"common {' '.join(rng.choices(words, k=rng.randint(5, 30)))}" for _ in range(100)]
        source = "dozen" if number == 0 else "rare" if number == 1 else ("part" if number % 5 < 2 else "rest")
        shelf.put_rows(
            f"{number}.txt",
            "\n".join(rows) + "\n",
            _one_passage_each(rows[:12] if source == "dozen" else rows, number),
            source=source,
            kind="prose",
            title="",
            corpus_class="communication" if number % 10 == 5 else "document",
            trust="reference" if number % 50 == 2 else "authored",
        )
    numbers = np.random.default_rng(5)
    with shelf.database.connection() as conn:
        conn.execute(
            "insert into authors (id, display_name) overriding system value values (%s, 'Rare'), (%s, 'Busy')",
            (RARE_AUTHOR, BUSY_AUTHOR),
        )
        conn.execute(
            "insert into document_authors (document_id, author_id, role, confidence, evidence)"
            " select id, %s, 'author', 1, '' from documents where uri = '3.txt' union all"
            " select id, %s, 'sender', 1, '' from documents where uri ~ '[02468]4.txt$' union all"
            " select id, %s, 'recipient', 1, '' from documents where uri like '%%7.txt'",
            (RARE_AUTHOR, BUSY_AUTHOR, RARE_AUTHOR),
        )
        lexical.refresh(conn)
        model = embeddings.register(conn, "crowd", dims=DIMS, stored_dims=DIMS, storage="vector", fingerprint="random")
        for row in sources.sources(conn):
            for batch in embeddings.pending_vectors(conn, model, row.id, batch=1000, rebuild=False):
                drawn = numbers.standard_normal((len(batch), DIMS), np.float32)
                embeddings.put_vectors(conn, model, batch, drawn / np.linalg.norm(drawn, axis=1, keepdims=True))
        embeddings.build_index(conn, model)
        embeddings.serve(conn, "crowd")
        conn.execute("analyze")


def _direction(number: int) -> str | None:
    return "sent" if number % 200 == 57 else "received" if number % 10 == 3 else None


def _one_passage_each(rows: Sequence[str], document: int) -> ChunkSet:
    made, start = [], 0
    for number, text in enumerate(rows):
        cut = passages(text, title="", kind="prose", body_start=0, sizes=settings(Chunking())).rows[0]
        made.append(
            documents.ChunkRow(
                **{
                    **{name: getattr(cut, name) for name in cut.__slots__},
                    "ord": number,
                    "char_start": start,
                    "char_end": start + len(text),
                    "start_line": number + 1,
                    "end_line": number + 1,
                    "direction": _direction(100 * document + number),
                }
            )
        )
        start += len(text) + 1
    return ChunkSet(made, "one each", 0)


@pytest.fixture(scope="session")
def crowds(cluster: Cluster, crowd_pattern: str) -> Iterator[Callable[[Engine], Crowd]]:
    """The crowd as either engine sees it; read only."""
    opened: dict[Engine, Database] = {}
    gathered: dict[Engine, Crowd] = {}

    def of(engine: Engine) -> Crowd:
        if engine not in gathered:
            name = f"{crowd_pattern}_{engine}"
            with psycopg.connect(cluster.url("postgres"), autocommit=True) as conn:
                conn.execute(
                    sql.SQL("create database {} template {} strategy file_copy").format(
                        sql.Identifier(name), sql.Identifier(crowd_pattern)
                    )
                )
            opened[engine] = Database(cluster.url(name))
            if engine == "ts_rank":
                without_bm25(opened[engine])
            gathered[engine] = _crowd(opened[engine])
        return gathered[engine]

    yield of
    for engine, database in opened.items():
        database.close()
        with psycopg.connect(cluster.url("postgres"), autocommit=True) as conn:
            conn.execute(sql.SQL("drop database {}").format(sql.Identifier(f"{crowd_pattern}_{engine}")))


def _crowd(database: Database) -> Crowd:
    with database.connection() as conn:
        model = embeddings.serving(conn)
        assert model is not None
        rows = conn.execute(
            "select c.id, e.embedding::text, s.slug, d.corpus_class, d.trust_tier, c.direction,"
            " array(select author_id from document_authors a where a.document_id = d.id and role <> 'recipient')"
            " from chunks c"
            " join emb_crowd e on e.chunk_id = c.id join sources s on s.id = c.source_id"
            " join documents d on d.id = c.document_id order by c.id"
        ).fetchall()
    vectors = np.array([np.fromstring(row[1][1:-1], np.float32, sep=",") for row in rows], np.float32)
    columns = {name: np.array([str(row[at]) for row in rows]) for at, name in enumerate(COLUMNS, 2)}
    authors = [set(row[6]) for row in rows]
    members = {}
    for share, filters in SHARES.items():
        who = np.ones(len(rows), np.bool_)
        for name in COLUMNS:
            wanted = getattr(filters, name)
            who &= np.isin(columns[name], wanted) if wanted else True
        if filters.authors:
            who &= np.array([bool(own & set(filters.authors)) for own in authors])
        members[share] = who
    return Crowd(database, model, np.array([row[0] for row in rows]), vectors, members, SHARES)


@pytest.fixture
def crowd(crowds: Callable[[Engine], Crowd], engine: Engine) -> Crowd:
    return crowds(engine)
