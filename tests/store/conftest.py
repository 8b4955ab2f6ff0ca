"""Rows to store: sources, documents cut by hand, walks."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from garage.config import Source
from garage.passage import input_sha256, lexical
from garage.store import documents, sources
from garage.store.database import Database
from garage.store.documents import ChunkCounts, ChunkRow, ChunkSet, DocumentRow

Put = Callable[..., ChunkCounts]


@dataclass(frozen=True, slots=True)
class File:
    """What a walk yields."""

    uri: str
    size: int = 1
    mtime_ns: int = 1
    inode: int = 1
    extractor: str = "text"
    kind: str = "file"


DESCRIBED = ("corpus_class", "trust_tier", "extractor", "meta", "record", "parts")


@pytest.fixture
def file() -> Callable[..., File]:
    return File


def chunk_row(ord: int, text: str, start: int, *, kind: str, title: str, heading: str | None, chunker: str) -> ChunkRow:
    terms = lexical(kind, title, heading, text)
    return ChunkRow(
        ord=ord,
        text=text,
        char_start=start,
        char_end=start + len(text),
        start_line=ord + 1,
        end_line=ord + 1,
        heading_path=heading,
        token_count=-(-len(text) // 4),
        chunker=chunker,
        chunk_sha256=hashlib.sha256(text.encode()).digest(),
        input_sha256=input_sha256(title, heading, text),
        lexical_prose=terms.prose,
        lexical_code=terms.code,
    )


def cut(
    texts: Sequence[str],
    *,
    kind: str = "prose",
    title: str = "A title",
    heading: str | None = None,
    chunker: str = "by hand",
    dropped: int = 0,
) -> ChunkSet:
    """Passages one after the other, a line feed between two."""
    rows, start = [], 0
    for number, text in enumerate(texts):
        rows.append(chunk_row(number, text, start, kind=kind, title=title, heading=heading, chunker=chunker))
        start += len(text) + 1
    return ChunkSet(rows, f"{chunker} of {kind}", dropped)


def document(uri: str, texts: Sequence[str], *, kind: str = "prose", title: str = "A title") -> DocumentRow:
    content = "\n".join(texts) + "\n"
    sha256 = hashlib.sha256(content.encode()).digest()
    return DocumentRow(
        uri=uri,
        title=title,
        kind=kind,
        corpus_class="document",
        trust_tier="authored",
        content=content,
        body_start=0,
        meta={"author": "Ada"},
        source_sha256=sha256,
        content_sha256=sha256,
        byte_size=len(content.encode()),
        mtime_ns=1,
        extractor="text",
        extractor_fingerprint="1",
    )


@pytest.fixture
def passages() -> Callable[..., ChunkSet]:
    return cut


@pytest.fixture
def source_id(database: Database) -> int:
    """A registered source called notes."""
    with database.connection() as conn:
        sources.sync(conn, [Source(name="notes", root=Path("/notes"))])
        return sources.source(conn, "notes").id


@pytest.fixture
def put(database: Database, source_id: int) -> Put:
    """Stores a document whose passages are the given texts; further options describe it or its passages."""

    def store(uri: str, texts: Sequence[str], *, source: int = source_id, **options: object) -> ChunkCounts:
        kind, title = str(options.get("kind", "prose")), str(options.get("title", "A title"))
        described: dict[str, Any] = {name: options[name] for name in DESCRIBED if name in options}
        row = replace(document(uri, texts, kind=kind, title=title), **described)
        heading = None if options.get("heading") is None else str(options["heading"])
        chunks = cut(texts, kind=kind, title=title, heading=heading, chunker=str(options.get("chunker", "by hand")))
        with database.transaction() as conn:
            return documents.put_document(conn, source, row, chunks)

    return store


@pytest.fixture
def second_source(database: Database, source_id: int) -> Iterator[int]:
    """Another registered source, called letters."""
    with database.connection() as conn:
        sources.sync(conn, [Source(name=name, root=Path("/", name)) for name in ("notes", "letters")])
        yield sources.source(conn, "letters").id


@pytest.fixture
def put_into() -> Put:
    """Stores a document in any database, in a source called notes."""

    def store(database: Database, uri: str, texts: Sequence[str]) -> ChunkCounts:
        with database.transaction() as conn:
            sources.sync(conn, [Source(name="notes", root=Path("/notes"))])
            return documents.put_document(conn, sources.source(conn, "notes").id, document(uri, texts), cut(texts))

    return store
