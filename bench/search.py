"""How fast is a search of 100,000 passages, and how much of the exact answer does it find? `python -m bench.search`.

The passages are real ones of `../shared/eval` (or of the example library) and made ones whose words follow the real
ones' frequencies. Some real passages get their vectors from the default model; the others' are mixtures of these, so
that questions, embedded by the same model while the clock runs, meet vectors distributed like a model's.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.quality import COLLECTIONS, Remembered, load, models_directory, shared_directory
from bench.scratch import scratch_database
from garage.chunk import ChunkSettings
from garage.chunk.stage import passages
from garage.config import Search, Source
from garage.embed.stage import register
from garage.inference.catalogue import DEFAULT_EMBEDDER, ModelEntry, builtin
from garage.inference.embedder import Embedder, format_document, open_embedder
from garage.search.hybrid import Mode, search
from garage.store import documents, embeddings, lexical
from garage.store import search as store
from garage.store.database import Database
from garage.store.documents import DocumentRow
from garage.store.embeddings import EmbeddingModel
from garage.store.search import Filters
from garage.store.sources import sources, sync

CHUNKS = 100_000
VOCABULARY = 60_000
_EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "library"
# Sources and their shares of the documents; the last two are what selective filters are for.
SOURCES = {"half": 0.5, "third": 0.3, "tenth": 0.1, "few": 0.095, "rare": 0.005}
FILTERS = {
    "none": Filters(),
    "half (source)": Filters(sources=("half",)),
    "5 % (class)": Filters(classes=("communication",)),
    "2.5 % (source and class)": Filters(sources=("half",), classes=("communication",)),
    "0.5 % (source)": Filters(sources=("rare",)),
}


@dataclass(frozen=True, slots=True)
class Words:
    """A vocabulary with the share of each word, commonest first."""

    words: Sequence[str]
    cumulative: NDArray[np.float64]

    @classmethod
    def of(cls, texts: Sequence[str], rng: np.random.Generator) -> Words:
        """The words of real texts, continued by invented ones on the same curve (Zipf's)."""
        counts = Counter(word for text in texts for word in re.findall(r"[a-z]{2,}", text.lower()))
        words = [word for word, _ in counts.most_common()]
        syllables = [c + v for c in "bdfgklmnprstvz" for v in ("a", "e", "i", "o", "u", "an", "er")]
        while len(words) < VOCABULARY:
            words.append("".join(rng.choice(syllables, size=int(rng.integers(2, 6)))))
        shares = 1.0 / (np.arange(len(words)) + 2.7) ** 1.07
        return cls(words, np.cumsum(shares / shares.sum()))

    def passage(self, rng: np.random.Generator) -> str:
        """60 to 150 words in sentences."""
        found = np.searchsorted(self.cumulative, rng.random(int(rng.integers(60, 150))))
        return " ".join(self.words[min(i, len(self.words) - 1)] for i in found) + ".\n"


@dataclass(frozen=True, slots=True)
class Material:
    """Real passages and questions."""

    texts: Sequence[str]
    questions: Sequence[str]


def material() -> Material:
    """What is beside the checkout, else the example library and phrases of it."""
    folder = shared_directory() / "eval"
    if folder.is_dir():
        collections = [load(folder / name) for name in COLLECTIONS[:3]]
        texts = [d.text[:1000] for c in collections for d in c.documents if len(d.text) > 200]
        return Material(texts, [q.text[:300] for c in collections for q in c.questions])
    texts = [p for f in sorted(_EXAMPLES.rglob("*.md")) for p in f.read_text(encoding="utf-8").split("\n\n") if p]
    return Material(texts, [" ".join(text.split()[3:12]) for text in texts if len(text.split()) > 20])


def fill(database: Database, embedder: Embedder, *, chunks: int, seeds: int) -> EmbeddingModel:
    """Stores `chunks` passages in five sources, and their vectors."""
    with database.connection() as conn:
        sync(conn, [Source(name=name, root=Path("/", name)) for name in SOURCES])
        ids = {row.slug: row.id for row in sources(conn)}
    rng, pick = np.random.default_rng(7), random.Random(7)
    texts = list(material().texts)
    words = Words.of(texts, rng)
    entry = builtin()[DEFAULT_EMBEDDER]
    model = register(database, entry, embedder.fingerprint)
    vectors = _Vectors(embedder, entry, texts[:seeds], rng)
    stored = 0
    while stored < chunks:
        with database.transaction() as conn:
            for _ in range(100):
                parts = [texts.pop() if texts else words.passage(rng) for _ in range(5)]
                code = pick.random() < 0.1
                source_id = ids[pick.choices(list(SOURCES), list(SOURCES.values()))[0]]
                row, cut = _document(f"{stored:06}", parts, code=code, communication=pick.random() < 0.05)
                stored += documents.put_document(conn, source_id, row, cut).written
    with database.connection() as conn:
        for source_id in ids.values():
            for batch in embeddings.pending_vectors(conn, model, source_id, batch=500, rebuild=False):
                embeddings.put_vectors(conn, model, batch, vectors.of([p.text for p in batch]))
        conn.execute("vacuum analyze")
    return model


def _document(uri: str, parts: Sequence[str], *, code: bool, communication: bool) -> tuple[DocumentRow, Any]:
    content = "\n".join(part.strip() + "\n" for part in parts)
    kind = "code:text" if code else "prose"
    title = " ".join(parts[0].split()[:6])
    cut = passages(content, title=title, kind=kind, body_start=0, sizes=ChunkSettings(size=900, overlap=0))
    digest = sha256(content.encode()).digest()
    row = DocumentRow(
        uri=uri,
        title=title,
        kind=kind,
        corpus_class="code" if code else ("communication" if communication else "document"),
        trust_tier="reference",
        content=content,
        body_start=0,
        meta={},
        source_sha256=digest,
        content_sha256=digest,
        byte_size=len(content.encode()),
        mtime_ns=0,
        extractor="text",
        extractor_fingerprint="bench",
    )
    return row, cut


class _Vectors:
    """Mixtures of a few real vectors, with some noise."""

    def __init__(self, embedder: Embedder, entry: ModelEntry, texts: Sequence[str], rng: np.random.Generator) -> None:
        inputs = [format_document(entry, text=text) for text in texts]
        parts = [embedder.embed_documents(inputs[i : i + 64]) for i in range(0, len(inputs), 64)]
        self._seeds = np.concatenate(parts)
        self._rng = rng

    def of(self, texts: Sequence[str]) -> NDArray[np.float32]:
        one, other = (self._seeds[self._rng.integers(len(self._seeds), size=len(texts))] for _ in range(2))
        share = self._rng.random((len(texts), 1), np.float32)
        noise = self._rng.standard_normal(one.shape, np.float32) * np.float32(0.2 / one.shape[1] ** 0.5)
        mixed = share * one + (1 - share) * other + noise
        unit: NDArray[np.float32] = mixed / np.linalg.norm(mixed, axis=1, keepdims=True)
        return unit


def milliseconds(run: Callable[[str], object], questions: Sequence[str]) -> dict[str, float]:
    """Median and 95th percentile of one call."""
    taken = []
    for question in questions:
        begin = time.perf_counter()
        run(question)
        taken.append(1000 * (time.perf_counter() - begin))
    return {"p50": round(statistics.median(taken), 1), "p95": round(float(np.percentile(taken, 95)), 1)}


def recall(database: Database, model: EmbeddingModel, vectors: Sequence[NDArray[np.float32]], k: int) -> float:
    """Share of the `k` exactly nearest passages that the index finds."""
    found = []
    with database.connection() as conn:
        for vector in vectors:
            near = {i for i, _ in store.nearest(conn, model, vector.tolist(), limit=200)[:k]}
            exact = {i for i, _ in store.nearest(conn, model, vector.tolist(), limit=k, exact_below=10**9)}
            found.append(len(near & exact) / k)
    return round(statistics.mean(found), 4)


def measure(*, chunks: int = CHUNKS, questions: int = 100, seeds: int = 1500) -> dict[str, Any]:
    """Milliseconds of a search by filter and mode, with BM25 and without; time and recall of the HNSW index."""
    entry = builtin()[DEFAULT_EMBEDDER]
    real = open_embedder(entry, models_directory())
    remembered = Remembered(real, Path(tempfile.gettempdir()) / "garage-bench-vectors")
    with scratch_database() as database:
        begin = time.perf_counter()
        model = fill(database, remembered, chunks=chunks, seeds=seeds)
        filled = time.perf_counter() - begin
        result = {"chunks": chunks, "target_p50_ms": 30, **timed(database, model, real, questions)}
        result["fill_seconds"] = round(filled, 1)
    real.close()
    return result


def timed(database: Database, model: EmbeddingModel, embedder: Embedder, questions: int) -> dict[str, Any]:
    """The measurements, on a database that `fill` filled."""
    asked = random.Random(3).sample(material().questions, min(questions, len(material().questions)))
    result: dict[str, Any] = {"embed_query": milliseconds(embedder.embed_query, asked)}
    with database.connection() as conn:
        begin = time.perf_counter()
        lexical.refresh(conn)
        result["bm25_build_seconds"] = round(time.perf_counter() - begin, 1)
        begin = time.perf_counter()
        embeddings.build_index(conn, model)
        result["hnsw_build_seconds"] = round(time.perf_counter() - begin, 1)
        embeddings.serve(conn, model.slug)
        indexed = embeddings.serving(conn)
    if indexed is None:
        raise RuntimeError("no model serves")
    vectors = [embedder.embed_query(question) for question in asked]
    result["hnsw_recall@10"] = recall(database, indexed, vectors, 10)
    result["hnsw_recall@100"] = recall(database, indexed, vectors, 100)
    result["bm25"] = _by_filter(database, embedder, asked, ("hybrid", "vector", "keyword"))
    with database.connection() as conn:
        conn.execute("drop extension pg_textsearch cascade")
        lexical.make_tsvectors(conn)
        conn.execute("vacuum analyze chunks")
    result["ts_rank"] = _by_filter(database, embedder, asked, ("hybrid", "keyword"))
    return result


def _by_filter(
    database: Database, embedder: Embedder, asked: Sequence[str], modes: Sequence[Mode]
) -> dict[str, dict[str, dict[str, float]]]:
    def run(question: str, *, mode: Mode, filters: Filters) -> None:
        search(
            database, question, settings=Search(), embedder=lambda model: embedder, limit=10, mode=mode, filters=filters
        )

    measured: dict[str, dict[str, dict[str, float]]] = {}
    for name, filters in FILTERS.items():
        measured[name] = {}
        for mode in modes:
            call = partial(run, mode=mode, filters=filters)
            for question in asked[:10]:
                call(question)
            measured[name][mode] = milliseconds(call, asked)
    return measured


def _lines(result: dict[str, Any]) -> Iterator[str]:
    for engine in ("bm25", "ts_rank"):
        for name, modes in result[engine].items():
            for mode, taken in modes.items():
                yield f"{engine:<8} {name:<26} {mode:<8} p50 {taken['p50']:7.1f} ms   p95 {taken['p95']:7.1f} ms"
    for name in ("embed_query", "bm25_build_seconds", "hnsw_build_seconds", "hnsw_recall@10", "hnsw_recall@100"):
        yield f"{name} {result[name]}"


def main() -> None:
    """Prints the measurement as a table."""
    parser = argparse.ArgumentParser(description="Measure the speed of search.")
    parser.add_argument("--chunks", type=int, default=CHUNKS, help="passages in the table")
    parser.add_argument("--questions", type=int, default=100, help="questions to ask")
    parser.add_argument("--json", action="store_true", help="print the whole result")
    given = parser.parse_args()
    result = measure(chunks=given.chunks, questions=given.questions)
    print(json.dumps(result, indent=2) if given.json else "\n".join(_lines(result)))


if __name__ == "__main__":
    main()
