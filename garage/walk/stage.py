"""A source against its record: walk, judge what vanished, store the difference in one transaction."""

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
from garage.walk.errors import DeletionRefused, SourceInactive
from garage.walk.guard import Decision, Verdict, judge
from garage.walk.walker import FileRecord, Walk, walk
from garage.worklist import RECORD_SECONDS, Progress, Report

STAGE = "source_files"


@dataclass(frozen=True, slots=True)
class Seen:
    """A walk compared with the record: what differs, and what may be deleted."""

    walk: Walk
    difference: Difference
    verdict: Verdict


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
            if seen.difference.nothing:
                deleted = 0
            else:
                deleted = files.apply(conn, source.id, delete=seen.verdict.decision is Decision.DELETE)
            if seen.walk.stats.complete:
                device = seen.walk.root.device if seen.verdict.accepts_device else source.root_device
                sources.record_walk(conn, source.id, device=device, seconds=time.monotonic() - started)
                runs.settle(conn, source.id)
        with database.connection() as conn:
            version = partition_digest(conn, "source_files", source.id)
    except BaseException as error:
        _record_failure(database, source, stage_run, error)
        raise
    counts = _counts(seen, deleted)
    with database.connection() as conn:
        runs.finish(conn, stage_run, done=seen.walk.stats.listed, counts=counts, data_version=version)
    details = {
        "skipped": dict(seen.walk.stats.skipped),
        "incomplete": seen.walk.stats.incomplete_reason or "",
        "unreadable": list(seen.walk.stats.unreadable_examples),
    }
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
    exclude = (*config.walk.exclude, *source.settings.get("exclude", ()))
    walked = walk(
        Path(source.root),
        source=source.slug,
        suffixes=suffixes,
        include_code=bool(source.settings.get("include_code", False)),
        exclude=exclude,
    )
    files.load(conn, _observed(walked, source.slug, files.count(conn, source.id), observe))
    difference = files.difference(conn, source.id)
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
    return Seen(walked, difference, verdict)


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
        "withheld": seen.difference.vanished - deleted,
        "skipped": sum(stats.skipped.values()),
        "unreadable": stats.unreadable + stats.unreadable_files,
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
