"""How good are the answers? `python -m bench.quality [--collections cranfield,cisi]`.

Public collections of documents, questions and judgements go through the real stages (documents with their passages,
vectors of the default model, search); what is found is compared with what people judged relevant. A passage counts for
its document, the best one of each. The collections are in `../shared/eval` beside the checkout, or in GARAGE_SHARED.

nDCG has linear gains and a log2 discount; a question without a relevant document is left out.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from bench.scratch import scratch_database
from garage.chunk import ChunkSettings
from garage.chunk.stage import passages
from garage.config import Search, Source
from garage.embed.stage import VectorsStage, register
from garage.inference.catalogue import DEFAULT_EMBEDDER, builtin
from garage.inference.embedder import Embedder, open_embedder
from garage.search.hybrid import Mode, search
from garage.store import documents, lexical
from garage.store.database import Database
from garage.store.documents import DocumentRow
from garage.store.search import Filters
from garage.store.sources import source, sync
from garage.worklist import Progress, run

COLLECTIONS = ("cranfield", "cisi", "cacm", "multilingual", "cjk")
PEER_CJK_RECALL = {"zh": 0.222, "ja": 0.125, "ko": 0.5}
"""Recall at 10 of keyword search that another program publishes for `cjk` (gmickel/gno)."""
DEPTH = 100


@dataclass(frozen=True, slots=True)
class Document:
    """A document of a collection; `kind` decides how it is cut."""

    id: str
    title: str
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its judgements: document id to a grade above 0."""

    id: str
    text: str
    group: str
    relevant: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Collection:
    """Documents, and the questions that have an answer among them."""

    name: str
    documents: Sequence[Document]
    questions: Sequence[Question]


def load(folder: Path) -> Collection:
    """A collection in either layout: BEIR's lines of JSON, or a folder of Markdown with lists of questions."""
    return _lines(folder) if (folder / "corpus.jsonl").exists() else _pages(folder)


def _lines(folder: Path) -> Collection:
    found = [
        Document(record["_id"], " ".join(record["title"].split()), "prose", record["text"].strip() or record["title"])
        for record in map(json.loads, (folder / "corpus.jsonl").read_text(encoding="utf-8").splitlines())
    ]
    grades: dict[str, dict[str, int]] = defaultdict(dict)
    for line in (folder / "qrels" / "test.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        question, document, grade = line.split("\t")
        if int(grade) > 0:
            grades[question][document] = int(grade)
    asked = map(json.loads, (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines())
    questions = [Question(q["_id"], q["text"], "all", grades[q["_id"]]) for q in asked if grades.get(q["_id"])]
    return Collection(folder.name, found, questions)


def _pages(folder: Path) -> Collection:
    found = []
    for path in sorted((folder / "corpus").rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        heading = next((line for line in text.splitlines() if line.startswith("# ")), path.stem)
        found.append(Document(path.relative_to(folder / "corpus").as_posix(), heading.strip("# "), "markdown", text))
    asked = json.loads((folder / "queries.json").read_text(encoding="utf-8"))
    grades: dict[str, dict[str, int]] = defaultdict(dict)
    separate = folder / "qrels.json"
    judged = json.loads(separate.read_text(encoding="utf-8"))["judgments"] if separate.exists() else []
    for judgement in judged + [{"queryId": q["id"], **j} for q in asked for j in q.get("judgments", ())]:
        if judgement["relevance"] > 0:
            grades[judgement["queryId"]][judgement["docid"]] = judgement["relevance"]
    questions = [
        Question(q["id"], q["query"], q.get("language") or q["caseSet"], grades[q["id"]])
        for q in asked
        if grades.get(q["id"])
    ]
    return Collection(folder.name, found, questions)


class Remembered:
    """An embedder whose vectors of documents are kept in a file between measurements: half an hour's work."""

    def __init__(self, embedder: Embedder, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.slug, self.dims, self.fingerprint = embedder.slug, embedder.dims, embedder.fingerprint
        self.embed_query, self.close = embedder.embed_query, embedder.close
        self._embedder = embedder
        self._record = np.dtype([("key", "V32"), ("vector", np.float32, (self.dims,))])
        self._file = folder / f"{embedder.slug}-{embedder.fingerprint[:16]}.vectors"
        raw = self._file.read_bytes() if self._file.exists() else b""
        whole = np.frombuffer(raw[: len(raw) - len(raw) % self._record.itemsize], self._record)
        self._known: dict[bytes, NDArray[np.float32]] = {
            key.tobytes(): vector for key, vector in zip(whole["key"], whole["vector"], strict=True)
        }
        with self._file.open("ab") as file:
            file.truncate(whole.nbytes)  # half a record is what an interrupted measurement leaves

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of `texts`, as the embedder's own."""
        keys = [hashlib.sha256(text.encode("utf-8", "replace")).digest() for text in texts]
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._known}
        if new:
            vectors = self._embedder.embed_documents(list(new.values()))
            with self._file.open("ab") as file:
                for key, vector in zip(new, vectors, strict=True):
                    file.write(key + vector.tobytes())
            self._known.update(zip(new, vectors, strict=True))
        return np.array([self._known[key] for key in keys], np.float32).reshape(len(texts), self.dims)


def ingest(database: Database, collection: Collection, embedder: Embedder) -> None:
    """Stores a collection as a source of its own: documents, passages, vectors."""
    with database.connection() as conn:
        known = [Source(name=row.slug, root=Path(row.root)) for row in _sources(database)]
        sync(conn, [*known, Source(name=collection.name, root=Path("/", collection.name))])
        source_id = source(conn, collection.name).id
    sizes = ChunkSettings()
    for document in collection.documents:
        text = document.text.rstrip("\n") + "\n"
        cut = passages(text, title=document.title, kind=document.kind, body_start=0, sizes=sizes)
        sha256 = hashlib.sha256(text.encode()).digest()
        row = DocumentRow(
            uri=document.id,
            title=document.title,
            kind=document.kind,
            corpus_class="document",
            trust_tier="reference",
            content=text,
            body_start=0,
            meta={},
            source_sha256=sha256,
            content_sha256=sha256,
            byte_size=len(text.encode()),
            mtime_ns=0,
            extractor="text",
            extractor_fingerprint="bench",
        )
        with database.transaction() as conn:
            documents.put_document(conn, source_id, row, cut)
    with database.connection() as conn:
        lexical.refresh(conn)
    entry = builtin()[DEFAULT_EMBEDDER]
    model = register(database, entry, embedder.fingerprint)
    stage = VectorsStage(
        database, source_id, collection.name, model, entry, lambda: embedder, wanted_default=entry.slug
    )
    run(database, stage, ahead=2, observe=_report)


def _report(progress: Progress) -> None:
    print(f"  {progress.source}: {progress.done}/{progress.total} vectors", end="\r", file=sys.stderr)


def _sources(database: Database) -> Iterable[Any]:
    from garage.store.sources import sources

    with database.connection() as conn:
        return sources(conn)


def ndcg(ranking: Sequence[str], relevant: Mapping[str, int], k: int) -> float:
    """Discounted gain of the first `k`, as a share of the best possible."""
    gained = sum(relevant.get(id_, 0) / math.log2(rank + 1) for rank, id_ in enumerate(ranking[:k], 1))
    best = sum(grade / math.log2(rank + 1) for rank, grade in enumerate(sorted(relevant.values(), reverse=True)[:k], 1))
    return gained / best


def recall(ranking: Sequence[str], relevant: Mapping[str, int], k: int) -> float:
    """Share of the relevant documents among the first `k`."""
    return sum(1 for id_ in ranking[:k] if id_ in relevant) / len(relevant)


def ranked(found: Iterable[str]) -> list[str]:
    """Documents in the order of their best passages."""
    return list(dict.fromkeys(found))[:DEPTH]


def scores(questions: Sequence[Question], rank: Callable[[str], list[str]]) -> dict[str, float]:
    """Means over the questions."""
    rankings = [(rank(question.text), question.relevant) for question in questions]
    return {
        "ndcg@10": round(float(np.mean([ndcg(ranking, relevant, 10) for ranking, relevant in rankings])), 4),
        "recall@10": round(float(np.mean([recall(ranking, relevant, 10) for ranking, relevant in rankings])), 4),
        "recall@100": round(float(np.mean([recall(ranking, relevant, DEPTH) for ranking, relevant in rankings])), 4),
    }


def measure(
    collections: Sequence[str] = COLLECTIONS, *, cache: Path | None = None, models: Path | None = None
) -> dict[str, Any]:
    """Quality (nDCG and recall) by collection and mode; `by_group` splits collections that speak several languages."""
    folder = shared_directory() / "eval"
    directory = models or models_directory()
    real = open_embedder(builtin()[DEFAULT_EMBEDDER], directory)
    embedder = Remembered(real, cache or Path(tempfile.gettempdir()) / "garage-bench-vectors")
    result: dict[str, Any] = {"model": embedder.slug, "collections": {}}
    with scratch_database() as database:
        for name in collections:
            collection = load(folder / name)
            ingest(database, collection, embedder)
            result["collections"][name] = _measured(database, collection, embedder)
    embedder.close()
    return result


def _measured(database: Database, collection: Collection, embedder: Embedder) -> dict[str, Any]:
    def rank(question: str, *, mode: Mode) -> list[str]:
        hits = search(
            database,
            question,
            settings=Search(),
            embedder=lambda model: embedder,
            limit=2 * Search().candidates,
            mode=mode,
            filters=Filters(sources=(collection.name,)),
        ).hits
        return ranked(hit.passage.uri for hit in hits)

    groups: dict[str, list[Question]] = defaultdict(list)
    for question in collection.questions:
        groups[question.group].append(question)
    measured: dict[str, Any] = {
        "documents": len(collection.documents),
        "questions": len(collection.questions),
        **{mode: scores(collection.questions, partial(rank, mode=mode)) for mode in get_args(Mode)},
    }
    if len(groups) > 1:
        measured["by_group"] = {
            group: {mode: scores(asked, partial(rank, mode=mode)) for mode in get_args(Mode)}
            for group, asked in groups.items()
        }
    if collection.name == "cjk":
        measured["peer_keyword_recall@10"] = PEER_CJK_RECALL
    return measured


def shared_directory() -> Path:
    """GARAGE_SHARED, else `shared` beside the checkout; it need not exist."""
    return Path(os.environ.get("GARAGE_SHARED", Path(__file__).resolve().parents[2] / "shared"))


def models_directory() -> Path:
    """GARAGE_MODELS_DIR, else the user's cache."""
    from platformdirs import user_cache_path

    given = os.environ.get("GARAGE_MODELS_DIR")
    return Path(given) if given else user_cache_path("garage", appauthor=False) / "models"


def main() -> None:
    """Prints the measurement as a table."""
    parser = argparse.ArgumentParser(description="Measure the quality of search on public collections.")
    parser.add_argument("--collections", default=",".join(COLLECTIONS), help="which ones, separated by commas")
    parser.add_argument("--json", action="store_true", help="print the whole result")
    given = parser.parse_args()
    result = measure(given.collections.split(","))
    if given.json:
        print(json.dumps(result, indent=2))
        return
    for name, measured in result["collections"].items():
        for label, of in [(name, measured), *((f"{name} {g}", m) for g, m in measured.get("by_group", {}).items())]:
            for mode in get_args(Mode):
                figures = "  ".join(f"{figure} {value:.3f}" for figure, value in of[mode].items())
                print(f"{label:<28} {mode:<8} {figures}")


if __name__ == "__main__":
    main()
