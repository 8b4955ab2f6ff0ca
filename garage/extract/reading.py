"""One file -> the documents in it with their passages, or why there are none: what a worker process does."""

import errno
import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from pathlib import Path, PurePosixPath

from garage.chunk import ChunkSettings
from garage.chunk.stage import passages
from garage.config import Extraction
from garage.extract import messages
from garage.extract.messages import read_thread
from garage.extract.model import Extracted, ExtractError, Rejected, Unsupported
from garage.extract.registry import EXTRACTORS, Raw, extract, fingerprint, read
from garage.fingerprint import code_digest
from garage.quality import judge
from garage.store.chat import ChatSnapshot
from garage.store.documents import ChunkSet, DocumentRow, PendingFile
from garage.walk.materialize import fetch, forbid
from garage.walk.placeholders import kind_of
from garage.walk.threads import thread_of


def versions(settings: Extraction, *, gate: bool) -> dict[str, str]:
    """What each extractor's outcomes are recorded under: its fingerprint and, with the gate, that of the gate."""
    judged = f" gate:{code_digest('garage.quality')}" if gate else ""
    found = {name: fingerprint(name, settings) + judged for name in EXTRACTORS}
    # The rules by which a message finds its thread are part of the reading, though they are written in SQL.
    threads = code_digest("garage.extract.messages", "garage.store.chat", libraries=messages.LIBRARIES)
    return found | {messages.NAME: threads}


@dataclass(frozen=True, slots=True)
class Task:
    """All that a worker process needs to read one file, which lies at `relative` below `root`.

    `chat` is what a thread is read from, which stands for a file in a source of messages. `fetch_seconds` is for a file
    that the walk saw as a placeholder: those that are handed out may be fetched.
    """

    root: bytes
    relative: bytes
    file: PendingFile
    corpus_class: str
    trust_tier: str
    max_bytes: int
    sizes: ChunkSettings
    settings: Extraction
    gate: bool
    fetch_seconds: float = 0.0
    chat: ChatSnapshot | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How reading one file ended.

    `sha256` None: its bytes were not read. `unchanged`: they are those of the recorded attempt, by the same extractor.
    `size` is the number of bytes read.
    """

    outcome: str
    reason: str = ""
    sha256: bytes | None = None
    size: int = 0
    unchanged: bool = False
    documents: tuple[tuple[DocumentRow, ChunkSet], ...] = ()


def read_file(task: Task) -> Outcome:
    """Reads, extracts and cuts one file; whatever a file can do wrong comes back as an outcome. Runs in a worker."""
    file = task.file
    if task.chat is not None:
        return _read_thread(task, task.chat)
    if file.size > task.max_bytes:
        return Outcome("too_large", f"{file.size} bytes; the limit is {task.max_bytes}")
    if _leads_elsewhere(task):
        return Outcome("unreadable", "a folder on its way became a link after the walk saw it")
    try:
        raw = _read(task)
    except _Absent as absent:
        return Outcome(*absent.args)
    except Unsupported:  # what lies there is not what the walk saw, so the outcome must not outlast it
        return Outcome("unreadable", "it is no longer a regular file")
    except ExtractError as error:
        return Outcome(error.outcome, _reason(error))
    except FileNotFoundError:
        return Outcome("unreadable", "it vanished after the walk saw it")
    except OSError as error:
        return Outcome("unreadable", error.strerror or type(error).__name__)
    size = len(raw.data)
    if file.same_version and raw.sha256 == file.known_sha256:
        return Outcome("ok", sha256=raw.sha256, size=size, unchanged=True)
    try:
        documents = tuple(_documents(task, raw))
    except ExtractError as error:
        return Outcome(error.outcome, _reason(error), raw.sha256, size)
    if not documents:
        return Outcome("no_text", "nothing is left beside its front matter", raw.sha256, size)
    return Outcome("ok", sha256=raw.sha256, size=size, documents=documents)


def _read_thread(task: Task, chat: ChatSnapshot) -> Outcome:
    try:
        found = read_thread(chat, thread_of(Path(os.fsdecode(task.root)), task.relative))
    except ExtractError as error:
        return Outcome(error.outcome, _reason(error))
    sha256 = _record_sha256(found)
    if task.file.same_version and sha256 == task.file.known_sha256:
        return Outcome("ok", sha256=sha256, unchanged=True)
    row = _row(task, found, sha256, size=len(found.content.encode()), record="")
    return Outcome("ok", sha256=sha256, documents=((row, _cut(task, row)),))


class _Absent(Exception):
    """The outcome of a file whose bytes are elsewhere, and its reason."""


def _read(task: Task) -> Raw:
    """The bytes of a file; those of a placeholder only when the walk saw it as one, which was then granted."""
    file, path = task.file, task.root + b"/" + task.relative
    forbid()
    if kind_of(os.lstat(path), path) == "file":
        try:
            return read(path, max_bytes=task.max_bytes)
        except OSError as error:
            if error.errno == errno.EDEADLK:
                raise _Absent("placeholder", "its bytes went to a cloud provider after the walk saw it") from error
            raise
    if file.kind == "file":
        raise _Absent("placeholder", "its bytes went to a cloud provider after the walk saw it")
    try:
        raw = fetch(lambda: read(path, max_bytes=task.max_bytes), seconds=task.fetch_seconds)
    except TimeoutError as error:
        raise _Absent("timeout", error.strerror) from error
    if file.kind == "stub" and not raw.data:
        raise _Absent("no_text", "its cloud provider delivered an empty file")
    if len(raw.data) < file.size:
        raise _Absent("unreadable", f"its cloud provider delivered {len(raw.data)} of {file.size} bytes")
    return raw


def _leads_elsewhere(task: Task) -> bool:
    """Whether the file's folder is reached through a link below the root; the walk follows none."""
    folder = task.relative.rpartition(b"/")[0]
    root = os.path.realpath(task.root).rstrip(b"/")
    return bool(folder) and os.path.realpath(root + b"/" + folder) != root + b"/" + folder


def _documents(task: Task, raw: Raw) -> Iterator[tuple[DocumentRow, ChunkSet]]:
    """Yield what the file holds, with passages; documents that leave none are left out.

    Raises:
        Rejected: the file is one document, and that is no text that a person wrote.
    """
    file = task.file
    name = PurePosixPath(file.uri).name
    for found in extract(raw.data, extractor=file.extractor, name=name, settings=task.settings):
        verdict = judge(found.content[found.body_start :], kind=found.kind) if task.gate else None
        if verdict is not None and verdict.rejected:
            if found.record:
                continue
            raise Rejected(verdict.reason, meta=found.meta)
        if found.record:
            document = _row(task, found, _record_sha256(found), size=len(found.content.encode()), record=found.record)
        else:
            document = _row(task, found, raw.sha256, size=len(raw.data), record="")
        cut = _cut(task, document)
        if cut.rows:
            yield document, cut


def _cut(task: Task, document: DocumentRow) -> ChunkSet:
    return passages(
        document.content,
        title=document.title,
        kind=document.kind,
        body_start=document.body_start,
        parts=document.parts,
        sizes=task.sizes,
    )


def _row(task: Task, found: Extracted, sha256: bytes, *, size: int, record: str) -> DocumentRow:
    return DocumentRow(
        uri=task.file.uri,
        title=found.title or PurePosixPath(task.file.uri).stem,
        kind=found.kind,
        corpus_class=_class(found) or task.corpus_class,
        trust_tier=task.trust_tier,
        content=found.content,
        body_start=found.body_start,
        meta={**found.meta, "warnings": list(found.warnings)} if found.warnings else found.meta,
        source_sha256=sha256,
        content_sha256=hashlib.sha256(found.content.encode()).digest(),
        byte_size=size,
        mtime_ns=task.file.mtime_ns,
        extractor=task.file.extractor,
        extractor_fingerprint=task.file.fingerprint,
        record=record,
        parts=found.parts,
    )


def _class(found: Extracted) -> str | None:
    if found.communication:
        return "communication"
    return "code" if found.kind.startswith("code:") else None


def _record_sha256(found: Extracted) -> bytes:
    """Digest of all that is stored of a record, so that those of a file that stayed are told from the others."""
    parts = [astuple(part) for part in found.parts]
    said = [found.title, found.kind, found.meta, found.body_start, parts, found.communication, found.warnings]
    return hashlib.sha256(json.dumps([found.content, *said], sort_keys=True).encode()).digest()


def _reason(error: ExtractError) -> str:
    return error.message[:500]
