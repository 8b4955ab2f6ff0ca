"""All that is known of a document or a file, and how it came about: the account that `garage explain` gives."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from garage.chunk import stage as chunking
from garage.config import Config
from garage.errors import GarageError
from garage.extract.reading import versions
from garage.serve import processes
from garage.serve.opening import opened
from garage.serve.services import WEBSERVER
from garage.serve.unlisted import Fate, fate
from garage.store import explaining as store
from garage.store import sources
from garage.store.database import Session
from garage.store.explaining import Attempt, Credited, Found, Listed, Records, Run, Stored, Vectors
from garage.store.sources import Source
from garage.uris import BadUri, path_of, uri_of

_CANDIDATES = 20  # documents that an ambiguous name lists
_FIRST = 5  # documents of a mailbox that are named


class NothingToExplain(GarageError):
    """A name behind which there is no document and no file of a source (`name`)."""

    name: str


class SeveralDocuments(GarageError):
    """A name that means more than one document (`name`, `candidates`)."""

    name: str
    candidates: tuple[Found, ...]


@dataclass(frozen=True, slots=True)
class File:
    """A file of a source: on disk, to the last walk, to the last attempt at it, and the documents made of it.

    `changed_at` is the time of the file on disk, None where it is not there; `newer` when that or its size is not what
    the last walk saw. `attempt_current`: the reader that made the attempt is the present one. `fate` is what a walk
    would do now.
    """

    source: str
    source_active: bool
    uri: str
    path: str
    size: int | None
    changed_at: datetime | None
    newer: bool
    listed: Listed | None
    attempt: Attempt | None
    attempt_current: bool
    fate: Fate | None
    records: Records


@dataclass(frozen=True, slots=True)
class Step:
    """A run of a stage; `url` is where the Dagster UI shows it, '' where that does not run or did not start it."""

    run: Run
    url: str


@dataclass(frozen=True, slots=True)
class Document:
    """A document with everything that follows from it. `..._current`: what made it is what would make it now."""

    stored: Stored
    authors: tuple[Credited, ...]
    extractor_current: bool
    chunker_current: bool
    vectors: tuple[Vectors, ...]
    lineage: tuple[Step, ...]
    same_content: tuple[Found, ...]
    same_content_total: int


@dataclass(frozen=True, slots=True)
class Explanation:
    """What was asked for: a file, and the document it is or that was meant in it (None: there is none, or many)."""

    file: File
    document: Document | None


@dataclass(frozen=True, slots=True)
class _Place:
    """A file that a name may mean, and the document in it where the name says which."""

    source: Source
    uri: str
    document_id: int | None = None


def explain(
    config: Config, name: str, *, source: str | None = None, starting: Callable[[], None] = lambda: None
) -> Explanation:
    """Finds what is meant and tells all about it; opens no file.

    `name` is a document's id, an address as searches show it (with its source in front, or without), a path on this
    machine, or the end of an address that only one document has.

    Raises:
        UnknownSource: there is no source of that name.
        SeveralDocuments: several are meant.
        NothingToExplain: none is.
    """
    with opened(config, starting=starting) as database, database.connection() as conn:
        if source is not None:
            sources.source(conn, source)
        rows = [row for row in sources.sources(conn) if source in (None, row.slug)]
        place = _place(conn, rows, name)
        file = _file(conn, config, place)
        number = place.document_id
        if number is None and file.records.total == 1 and file.records.first[0].uri == place.uri:
            number = file.records.first[0].document_id
        stored = None if number is None else store.document(conn, number)
        return Explanation(file, None if stored is None else _document(conn, config, stored))


def _place(conn: Session, rows: Sequence[Source], name: str) -> _Place:
    """The one place that is meant: the first kind of reading of the name that leads anywhere decides."""
    by_id = {row.id: row for row in rows}
    for places in _readings(conn, rows, name):
        # A file of one document and that document are one place.
        found = {(place.source.id, place.uri): place for place in places if place.source.id in by_id}
        if len(found) == 1:
            return next(iter(found.values()))
        if found:
            raise _several(conn, name, list(found.values()))
    raise _nothing(rows, name)


def _readings(conn: Session, rows: Sequence[Source], name: str) -> Iterator[list[_Place]]:
    ids = [row.id for row in rows]
    slug, colon, rest = name.partition(":")
    if name.isascii() and name.isdigit() and len(name) < 19:
        yield _placed(conn, rows, store.by_id(conn, int(name)))
    named = [row for row in rows if colon and row.slug == slug]
    if named and rest:
        yield _addressed(conn, named, rest) or _on_disk(named, Path(named[0].root, rest))
    # Who names a file of the folder they are in means that one, whatever else has the same address.
    yield _in_file(conn, _on_disk(rows, _path(name)))
    if _is_text(name):
        yield _addressed(conn, rows, name)
    path, mark, record = name.rpartition("#")
    if mark and _is_text(record):
        files = _on_disk(rows, _path(path))
        yield [one for file in files for one in _addressed(conn, [file.source], f"{file.uri}#{record}")]
    if _is_text(name):
        yield _placed(conn, rows, store.by_name(conn, ids, name, limit=_CANDIDATES))


def _is_text(name: str) -> bool:
    """Whether the database could hold it: no NUL, and no stand-ins for bytes that are no text."""
    return "\0" not in name and not any("\ud800" <= char <= "\udfff" for char in name)


def _placed(conn: Session, rows: Sequence[Source], found: Sequence[Found]) -> list[_Place]:
    by_slug = {row.slug: row for row in rows}
    documents = [store.document(conn, one.document_id) for one in found]
    return [_Place(by_slug[one.source], one.uri, one.document_id) for one in documents if one and one.source in by_slug]


def _addressed(conn: Session, rows: Sequence[Source], uri: str) -> list[_Place]:
    """Documents of that very address; else files of it that are known."""
    ids = [row.id for row in rows]
    if found := _placed(conn, rows, store.by_uri(conn, ids, uri)):
        return found
    known = set(store.known_files(conn, ids, uri))
    return [_Place(row, uri) for row in rows if row.id in known]


def _path(name: str) -> Path:
    """A path of this machine, from the folder that the command is called in."""
    try:
        return Path(os.path.abspath(Path(name.replace("\0", "\ufffd")).expanduser()))
    except RuntimeError:  # no such user
        return Path(os.path.abspath(name))


def _on_disk(rows: Sequence[Source], path: Path) -> list[_Place]:
    """What lies at a path, in each source that holds it."""
    if not os.path.lexists(path):
        return []
    # The folder of a path may be reached through links, and so may a root; the last part is not followed.
    real = Path(os.path.realpath(path.parent), path.name)
    places = []
    for row in rows:
        root = Path(row.root)
        if row.kind == "messages":
            if os.path.realpath(root) == os.path.realpath(path):
                places.append(_Place(row, uri_of(os.fsencode(root.name))))
            continue
        for file, folder in ((path, root), (real, Path(os.path.realpath(root)))):
            if file != folder and file.is_relative_to(folder):
                places.append(_Place(row, uri_of(os.fsencode(file.relative_to(folder)))))
                break
    return places


def _in_file(conn: Session, files: Sequence[_Place]) -> list[_Place]:
    """The same with the document, for a file that is one."""
    return [one for file in files for one in (_addressed(conn, [file.source], file.uri) or [file])]


def _several(conn: Session, name: str, places: Sequence[_Place]) -> SeveralDocuments:
    candidates = []
    for place in places:
        stored = None if place.document_id is None else store.document(conn, place.document_id)
        number, title = (stored.document_id, stored.title) if stored else (0, "")
        candidates.append(Found(number, place.source.slug, place.uri, title))
    said = "\n".join(f"  {c.document_id or 'no document'}  {c.source}:{c.uri}" for c in candidates)
    more = " at least" if len(places) == _CANDIDATES else ""
    return SeveralDocuments(
        f"{name!r} may be{more} {len(places)} documents:\n{said}",
        hint="Name one by its id, or by its source and address.",
        name=name,
        candidates=tuple(candidates),
    )


def _nothing(rows: Sequence[Source], name: str) -> NothingToExplain:
    if os.path.lexists(path := _path(name)):
        roots = ", ".join(f"{row.slug} ({row.root})" for row in rows) or "none"
        message, hint = f"{path} is in no source.", f"Sources: {roots}. `garage source add FOLDER` registers another."
    else:
        message = f"There is no document and no file {name!r}."
        hint = (
            "Give the id or the source:file that `garage search` shows, or a path. A file that is new is known after"
            " the next `garage update`."
        )
    return NothingToExplain(message, hint=hint, name=name)


def _file(conn: Session, config: Config, place: _Place) -> File:
    source, uri = place.source, place.uri
    stored = None if place.document_id is None else store.document(conn, place.document_id)
    if stored is not None:
        uri = stored.file_uri
    try:
        relative = path_of(uri)
    except BadUri:
        relative = os.fsencode(uri)
    path = Path(source.root)
    if source.kind == "filesystem":
        path /= os.fsdecode(relative)
    try:
        status = path.lstat()
    except OSError:
        status = None
    seen, attempt = store.listed(conn, source.id, uri), store.attempt(conn, source.id, uri)
    readers = _readers(config)
    judged = fate(config, source, relative) if source.kind == "filesystem" else None
    return File(
        source=source.slug,
        source_active=source.active,
        uri=uri,
        path=str(path),
        size=status.st_size if status else None,
        changed_at=datetime.fromtimestamp(status.st_mtime, UTC) if status else None,
        newer=bool(
            source.kind == "filesystem"
            and status
            and seen
            and (status.st_size, status.st_mtime_ns) != (seen.size, seen.mtime_ns)
        ),
        listed=seen,
        attempt=attempt,
        attempt_current=bool(attempt and attempt.extractor_fingerprint in readers.values()),
        fate=judged,
        records=store.records(conn, source.id, uri, limit=_FIRST),
    )


def _readers(config: Config) -> dict[str, str]:
    return versions(config.extraction, gate=config.quality.reject_machine_generated)


def _document(conn: Session, config: Config, stored: Stored) -> Document:
    chunker = chunking.version(stored.kind, chunking.settings(config.chunking))
    total, first = store.twins(conn, stored.document_id)
    return Document(
        stored=stored,
        authors=tuple(store.credited(conn, stored.document_id)),
        extractor_current=_readers(config).get(stored.extractor) == stored.extractor_fingerprint,
        chunker_current=stored.chunked_as == chunker and stored.chunked_current_content,
        vectors=tuple(store.vectors(conn, stored.document_id)),
        lineage=tuple(_steps(config.home, store.lineage(conn, stored.source_id, stored.ingested_at))),
        same_content=tuple(first),
        same_content_total=total,
    )


def _steps(home: Path, runs: Sequence[Run]) -> Iterator[Step]:
    web = processes.running(home, WEBSERVER)
    for run in runs:
        yield Step(run, f"{web.url}/runs/{run.run_id}" if web and web.url and run.run_id else "")
