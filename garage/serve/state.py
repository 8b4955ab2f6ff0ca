"""What there is and what needs attention: the account that `garage status` gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from garage.config import Config
from garage.serve import processes
from garage.serve.opening import opened_if_running
from garage.serve.services import DAEMON, WEBSERVER
from garage.store import documents, embeddings, runs, sources
from garage.store.database import Database, Server
from garage.store.embeddings import EmbeddingModel
from garage.store.errors import UnknownSource
from garage.store.outcomes import attempts
from garage.store.runs import Refusal, StageRun
from garage.store.schema import missing_extensions
from garage.store.sources import Source

WALK = "source_files"
SAMPLE = 20  # deferred files that are named
SILENT_SECONDS = 120.0
"""A stage without a sign of life for longer may have been killed; the walk gives none before it ends."""


@dataclass(frozen=True, slots=True)
class Service:
    """One of the services: whether it runs and where (a URL, a folder of sockets, a process id)."""

    name: str
    running: bool
    where: str


@dataclass(frozen=True, slots=True)
class Vectors:
    """Of one model: vectors stored, and passages that lack a current one."""

    stored: int
    missing: int


@dataclass(frozen=True, slots=True)
class LastWalk:
    """What the last walk of a source told: counts by name, and entries left out by reason.

    `incomplete` says why it did not see everything, else it is empty. `unreadable` are examples. `lost_drives` are
    folders whose drive is gone; what was read of it is kept.
    """

    at: datetime | None
    counts: Mapping[str, int]
    skipped: Mapping[str, int]
    incomplete: str
    unreadable: tuple[str, ...]
    lost_drives: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SourceState:
    """A source with what it has; `outcomes` counts its files by how reading them ended.

    `deferred` are the first of the files that wait for the budget of a further run.
    """

    name: str
    root: str
    folder_found: bool
    active: bool
    documents: int
    passages: int
    walked_at: datetime | None
    vectors: Mapping[str, Vectors]
    outcomes: Mapping[str, int]
    deferred: tuple[str, ...]
    refusal: Refusal | None
    failed: Mapping[str, str]
    last_walk: LastWalk | None


@dataclass(frozen=True, slots=True)
class Running:
    """A stage under way. `silent_seconds` is since its last sign of life; `stalled` when that is suspiciously long."""

    source: str
    stage: str
    done: int
    total: int | None
    started_at: datetime
    silent_seconds: float
    stalled: bool


@dataclass(frozen=True, slots=True)
class Serving:
    """The model that answers searches (None: none yet), the one that is to, and how many passages that one lacks."""

    model: str | None
    default: str
    missing: int


@dataclass(frozen=True, slots=True)
class State:
    """Everything that `garage status` shows. Without a running database there are only the services."""

    home: Path
    configuration: Path
    services: tuple[Service, ...]
    database: Literal["running", "stopped"]
    sources: tuple[SourceState, ...]
    serving: Serving | None
    running: tuple[Running, ...]
    missing_extensions: Mapping[str, str]


def state(config: Config, only: str | None = None) -> State:
    """Looks at services and database and changes neither. Raises UnknownSource."""
    with opened_if_running(config) as database:
        found: tuple[SourceState, ...] = ()
        running: tuple[Running, ...] = ()
        serving: Serving | None = None
        lacking: Mapping[str, str] = {}
        if database is not None:
            found, running = _sources(database, config, only)
            serving = _serving(database, config, found)
            with database.connection() as conn:
                lacking = missing_extensions(conn)
        return State(
            home=config.home,
            configuration=config.path,
            services=services(config.home),
            database="stopped" if database is None else "running",
            sources=found,
            serving=serving,
            running=running,
            missing_extensions=lacking,
        )


def services(home: Path) -> tuple[Service, ...]:
    """Postgres, the web server and the daemon."""
    server = Server.of(home)
    if server.embedded is None:
        postgres = Service("postgres", running=True, where=_without_password(server.url()))
    else:
        postgres = Service("postgres", server.embedded.is_running(), str(server.embedded.socket_dir))
    web, daemon = processes.running(home, WEBSERVER), processes.running(home, DAEMON)
    return (
        postgres,
        Service(WEBSERVER, web is not None, web.url if web else ""),
        Service(DAEMON, daemon is not None, f"process {daemon.pid}" if daemon else ""),
    )


def _without_password(url: str) -> str:
    parts = urlsplit(url)
    if not parts.scheme:
        return "the server of GARAGE_DATABASE_URL"
    return f"{parts.hostname or 'local socket'}{f':{parts.port}' if parts.port else ''}{parts.path}"


def _sources(
    database: Database, config: Config, only: str | None
) -> tuple[tuple[SourceState, ...], tuple[Running, ...]]:
    with database.connection() as conn:
        rows = sources.sources(conn)
        models = embeddings.models(conn)
        refusals = {refusal.source: refusal for refusal in runs.refusals(conn)}
        latest = runs.latest(conn)
    if only is not None and only not in {row.slug for row in rows}:
        raise UnknownSource(f"There is no source {only!r}.", hint="`garage source list` shows them.", source=only)
    configured = {source.name for source in config.sources}
    now = datetime.now(UTC)
    found = []
    for row in rows:
        if only is None or row.slug == only:
            own = [run for run in latest if run.source == row.slug]
            seen = _source(database, config, row, models, refusal=refusals.get(row.slug), latest=own)
            if row.slug in configured or seen.documents or row.slug == only:
                found.append(seen)
    running = [_running(run, now) for run in latest if run.finished_at is None and only in (None, run.source)]
    return tuple(found), tuple(running)


def _source(
    database: Database,
    config: Config,
    row: Source,
    models: list[EmbeddingModel],
    *,
    refusal: Refusal | None,
    latest: list[StageRun],
) -> SourceState:
    with database.connection() as conn:
        number, passages = documents.counts(conn, row.id)
        vectors = {
            model.slug: Vectors(
                embeddings.count_vectors(conn, model, row.id), embeddings.count_pending(conn, model, row.id)
            )
            for model in models
        }
        outcomes = documents.outcome_counts(conn, row.id)
        deferred = attempts(conn, source=row.slug, kind="deferred", limit=SAMPLE) if "deferred" in outcomes else []
    for slug in config.embedding.models:
        vectors.setdefault(slug, Vectors(0, passages))
    return SourceState(
        name=row.slug,
        root=row.root,
        folder_found=Path(row.root).is_dir(),
        active=row.active,
        documents=number,
        passages=passages,
        walked_at=row.walked_at,
        vectors=vectors,
        outcomes=outcomes,
        deferred=tuple(attempt.uri for attempt in deferred),
        refusal=refusal,
        failed={run.stage: run.error for run in latest if run.error},
        last_walk=next((_last_walk(run) for run in latest if run.stage == WALK and run.details), None),
    )


def _last_walk(run: StageRun) -> LastWalk:
    said = run.details
    return LastWalk(
        at=run.finished_at,
        counts=run.counts,
        skipped=dict(sorted(said["skipped"].items(), key=lambda item: (-item[1], item[0]))),
        incomplete=said["incomplete"],
        unreadable=tuple(said["unreadable"]),
        lost_drives=tuple(said["lost_drives"]),
    )


def _running(run: StageRun, now: datetime) -> Running:
    silent = max(0.0, (now - run.heartbeat_at).total_seconds())
    return Running(run.source, run.stage, run.done, run.total, run.started_at, silent, silent > SILENT_SECONDS)


def _serving(database: Database, config: Config, found: tuple[SourceState, ...]) -> Serving:
    with database.connection() as conn:
        model = embeddings.serving(conn)
    default = config.embedding.default
    missing = sum(source.vectors[default].missing for source in found if source.active)
    return Serving(model.slug if model else None, default, missing)
