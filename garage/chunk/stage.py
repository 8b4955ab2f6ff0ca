"""Documents -> passages: the work list of documents whose passages another chunker made."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache

from garage.chunk import ChunkSettings, chunk, signature
from garage.config import Chunking
from garage.fingerprint import code_digest
from garage.passage import Part, input_sha256, lexical
from garage.store import documents as store
from garage.store.database import Database
from garage.store.digest import partition_digest
from garage.store.documents import ChunkRow, ChunkSet, PendingChunks
from garage.store.lexical import refresh
from garage.worklist import Executor, Inline

STAGE = "chunks"


def settings(chunking: Chunking) -> ChunkSettings:
    """The splitter's settings as configured."""
    return ChunkSettings(
        size=chunking.size,
        overlap=chunking.overlap,
        code_size=chunking.code_size,
        code_overlap=chunking.code_overlap,
        max_chunks=chunking.max_chunks_per_document,
    )


@cache
def code_version() -> str:
    """Digest of the code that cuts passages and prepares them for the engines."""
    return code_digest("garage.chunk", "garage.passage")


def version(kind: str, sizes: ChunkSettings) -> str:
    """What passages of a kind are made by: the chunker's signature, the cap and the code."""
    return f"{signature(kind, sizes)} cap:{sizes.max_chunks} code:{code_version()}"


def passages(
    content: str, *, title: str, kind: str, body_start: int, parts: Sequence[Part] = (), sizes: ChunkSettings
) -> ChunkSet:
    """Cuts a document into the rows that are stored of it."""
    cut = chunk(content, kind=kind, body_start=body_start, parts=parts, settings=sizes)
    rows = []
    for piece in cut.chunks:
        terms = lexical(kind, title, piece.heading_path, piece.text)
        rows.append(
            ChunkRow(
                ord=piece.ord,
                text=piece.text,
                char_start=piece.start,
                char_end=piece.end,
                start_line=piece.start_line,
                end_line=piece.end_line,
                heading_path=piece.heading_path,
                token_count=piece.token_count,
                chunker=piece.chunker,
                chunk_sha256=hashlib.sha256(piece.text.encode()).digest(),
                input_sha256=input_sha256(title, piece.heading_path, piece.text),
                lexical_prose=terms.prose,
                lexical_code=terms.code,
                sender=piece.part.sender if piece.part else None,
                direction=piece.part.direction if piece.part else None,
                quoted=piece.part is not None and piece.part.quoted,
            )
        )
    return ChunkSet(rows, version(kind, sizes), cut.truncated)


@dataclass(slots=True)
class ChunksStage:
    """Cuts documents again whose passages were made by another chunker or from other content."""

    database: Database
    source_id: int
    source: str
    sizes: ChunkSettings
    rebuild: bool = False
    name: str = STAGE

    def _versions(self) -> dict[str, str]:
        with self.database.connection() as conn:
            return {kind: version(kind, self.sizes) for kind in store.document_kinds(conn, self.source_id)}

    def count(self) -> int:
        versions = self._versions()
        with self.database.connection() as conn:
            return store.count_pending_chunks(conn, self.source_id, versions, rebuild=self.rebuild)

    def pending(self) -> Iterator[PendingChunks]:
        versions = self._versions()
        with self.database.connection() as conn:
            yield from store.pending_chunks(conn, self.source_id, versions, rebuild=self.rebuild)

    @property
    def work(self) -> Callable[[PendingChunks], ChunkSet]:
        return self._cut

    def _cut(self, item: PendingChunks) -> ChunkSet:
        return passages(
            item.content,
            title=item.title,
            kind=item.kind,
            body_start=item.body_start,
            parts=item.parts,
            sizes=self.sizes,
        )

    def size(self, item: PendingChunks) -> int:
        del item
        return 1

    def commit(self, item: PendingChunks, result: ChunkSet) -> Mapping[str, int]:
        with self.database.transaction() as conn:
            done = store.put_chunks(conn, self.source_id, item.document_id, item.content_sha256, result)
        return {"rechunked": 1, "kept": done.kept, "chunks_written": done.written, "chunks_deleted": done.deleted}

    def finish(self) -> Mapping[str, int]:
        """What was cut becomes what keyword search finds."""
        with self.database.connection() as conn:
            refresh(conn)
        return {}

    def digest(self) -> str:
        with self.database.connection() as conn:
            return partition_digest(conn, "chunks", self.source_id)

    def executor(self) -> AbstractContextManager[Executor[PendingChunks, ChunkSet]]:
        return nullcontext(Inline())
