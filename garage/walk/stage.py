"""A source against its record: walk, judge what vanished, store the difference in one transaction."""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from garage.config import Config
from garage.store import files, runs, sources
from garage.store.database import Database, Session
from garage.store.digest import partition_digest
from garage.store.files import Difference
from garage.store.sources import Source
from garage.uris import path_of
from garage.walk.errors import DeletionRefused, SourceInactive
from garage.walk.guard import Decision, Verdict, judge
from garage.walk.threads import walk_threads
from garage.walk.walker import FileRecord, Walk, walk
from garage.worklist import RECORD_SECONDS, Progress, Report

STAGE = "source_files"


@dataclass(frozen=True, slots=True)
class Seen:
    """A walk compared with the record: what differs, and what may be deleted.

    `lost` are folders whose drive is gone or is another one than before; what the record has below them stays.
    """

    walk: Walk
    difference: Difference
    verdict: Verdict
    lost: tuple[str, ...] = ()


def record(
    database: Database,
    source: Source,
    config: Config,
    suffixes: Mapping[str, str],
    *,
    allow_deletes: bool = False,
    run_id: str | None = None,
    observe: Callable[[Progress], None] = lambda progress: None,
) -> Report:
    """Walks a source and records what it saw.

    Raises SourceInactive for a source that is not in use, SourceUnavailable when its root cannot be read, and
    DeletionRefused when too much vanished; nothing changes then. A walk that did not see everything adds and changes,
    but deletes nothing.
    """
    if not source.active:  # a run that waited while the source was removed must not bring it back
        raise SourceInactive(source=source.slug)
    started = time.monotonic()
    with database.connection() as conn:
        stage_run = runs.begin(conn, source.id, STAGE, run_id, None)

    def observed(progress: Progress) -> None:
        with database.connection() as conn:
            runs.heartbeat(conn, stage_run, progress.done)
        observe(progress)

    try:
        with database.transaction() as conn:
            seen = _look(conn, source, config, suffixes, allow_deletes=allow_deletes, observe=observed)
            if seen.verdict.decision is Decision.REFUSE:
                raise seen.verdict.refusal(source.slug)
            deleted = _apply(conn, source, seen, seconds=time.monotonic() - started)
        with database.connection() as conn:
            version = partition_digest(conn, "source_files", source.id)
    except BaseException as error:
        _record_failure(database, source, stage_run, error)
        raise
    counts, details = _counts(seen, deleted), _details(seen)
    with database.connection() as conn:
        runs.finish(conn, stage_run, done=seen.walk.stats.listed, counts=counts, details=details, data_version=version)
    return Report(STAGE, counts, version, time.monotonic() - started, details)


def preview(database: Database, source: Source, config: Config, suffixes: Mapping[str, str]) -> Seen:
    """What `record` would find now, without deletions being allowed; stores nothing."""
    with database.transaction() as conn:
        return _look(conn, source, config, suffixes, allow_deletes=False)


def _look(
    conn: Session,
    source: Source,
    config: Config,
    suffixes: Mapping[str, str],
    *,
    allow_deletes: bool,
    observe: Callable[[Progress], None] = lambda progress: None,
) -> Seen:
    walked = _walk(source, config, suffixes)
    files.load(conn, _observed(walked, source.slug, files.count(conn, source.id), observe))
    lost = () if allow_deletes else _lost_drives(conn, source, walked)
    same_device = source.root_device in (None, walked.root.device)
    difference = files.difference(conn, source.id, lost=lost, inodes=same_device)
    verdict = judge(
        known=difference.known,
        vanished=difference.vanished,
        complete=walked.stats.complete,
        root_empty=walked.root.empty,
        device=walked.root.device,
        known_device=source.root_device,
        allow_deletes=allow_deletes,
        limit=config.walk.max_deleted_share,
    )
    return Seen(walked, difference, verdict, lost)


def _walk(source: Source, config: Config, suffixes: Mapping[str, str]) -> Walk:
    if source.kind == "messages":
        return walk_threads(Path(source.root), source=source.slug)
    return walk(
        Path(source.root),
        source=source.slug,
        suffixes=suffixes,
        include_code=bool(source.settings.get("include_code", False)),
        exclude=(*config.walk.exclude, *source.settings.get("exclude", ())),
    )


def _lost_drives(conn: Session, source: Source, walked: Walk) -> tuple[str, ...]:
    """Folders below the root that had a drive of their own, no longer have that one, and lack files that they had."""
    root = os.fsencode(walked.root.path) + b"/"
    suspects = []
    for folder, known in source.mounts.items():
        found = walked.stats.mounts.get(folder)
        # A folder that a rule leaves out by now was not entered, though its drive is there.
        if found != known and not (found is None and os.path.ismount(root + path_of(folder))):
            suspects.append(folder)
    return tuple(sorted(files.vanished_below(conn, source.id, suspects))) if suspects else ()


def _apply(conn: Session, source: Source, seen: Seen, *, seconds: float) -> int:
    """Records what was seen; returns how many files were forgotten."""
    walked, deleted = seen.walk, 0
    if not seen.difference.nothing:
        delete = seen.verdict.decision is Decision.DELETE
        deleted = files.apply(conn, source.id, delete=delete, lost=seen.lost, swapped=bool(seen.difference.swapped))
    if walked.stats.complete:
        device = walked.root.device if seen.verdict.accepts_device else source.root_device
        if source.root_device is not None and device != source.root_device:
            files.adopt_inodes(conn, source.id)
        mounts = walked.stats.mounts | {folder: source.mounts[folder] for folder in seen.lost}
        if mounts != source.mounts:
            sources.record_mounts(conn, source.id, mounts)
        sources.record_walk(conn, source.id, device=device, seconds=seconds)
        runs.settle(conn, source.id)
    return deleted


def _observed(walked: Walk, source: str, known: int, observe: Callable[[Progress], None]) -> Iterator[FileRecord]:
    started = beat = time.monotonic()
    for done, file in enumerate(walked, 1):
        yield file
        if done % 1024 == 0 and (now := time.monotonic()) - beat >= 1.0:
            beat = now
            observe(Progress(source, STAGE, done, max(done, known), done / (now - started)))


def _counts(seen: Seen, deleted: int) -> dict[str, int]:
    stats = seen.walk.stats
    return {
        "files": stats.listed,
        "bytes": stats.bytes,
        "folders": stats.dirs,
        "added": seen.difference.added,
        "changed": seen.difference.changed,
        "deleted": deleted,
        "withheld": seen.difference.vanished + seen.difference.kept - deleted,
        "placeholders": stats.placeholders,
        "skipped": sum(stats.skipped.values()),
        "unreadable": stats.unreadable + stats.unreadable_files,
    }


def _details(seen: Seen) -> dict[str, object]:
    stats = seen.walk.stats
    return {
        "skipped": dict(sorted(stats.skipped.items(), key=lambda item: (-item[1], item[0]))),
        "incomplete": stats.incomplete_reason or "",
        "unreadable": list(stats.unreadable_examples),
        "lost_drives": list(seen.lost),
    }


def _record_failure(database: Database, source: Source, stage_run: int, error: BaseException) -> None:
    try:
        with database.connection(wait=RECORD_SECONDS) as conn:
            if isinstance(error, DeletionRefused):
                runs.refuse(
                    conn, source.id, cause=error.cause, known=error.known, vanished=error.vanished, detail=error.message
                )
            runs.finish(conn, stage_run, done=0, counts={}, error=type(error).__name__)
    except Exception:  # noqa: BLE001  # the database may be what failed; the first error is the one to tell
        return
