"""Tables `stage_runs` and `refusals`: what ran, how far it is, and what was refused."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg import Connection
from psycopg.rows import class_row

from garage.store.database import Row

KEPT = 20  # finished rows kept of each stage of a source


@dataclass(frozen=True, slots=True)
class StageRun:
    """The latest run of one stage of a source; `finished_at` None means that it goes on or was killed.

    `details` is what the stage told beside its counts, such as why the walk left out what it did.
    """

    source: str
    stage: str
    run_id: str | None
    started_at: datetime
    heartbeat_at: datetime
    finished_at: datetime | None
    done: int
    total: int | None
    counts: dict[str, int]
    error: str | None
    details: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Refusal:
    """A source whose deletions wait for a person."""

    source: str
    cause: str
    known: int
    vanished: int
    detail: str
    refused_at: datetime


def begin(conn: Connection[Row], source_id: int, stage: str, run_id: str | None, total: int | None) -> int:
    """Opens a stage's run; its id."""
    row = conn.execute(
        "insert into stage_runs (source_id, stage, run_id, total) values (%s, %s, %s, %s) returning id",
        (source_id, stage, run_id, total),
    ).fetchone()
    assert row is not None
    return int(row[0])


def heartbeat(conn: Connection[Row], stage_run: int, done: int) -> None:
    """How far a run is."""
    conn.execute("update stage_runs set done = %s, heartbeat_at = now() where id = %s", (done, stage_run))


def finish(
    conn: Connection[Row],
    stage_run: int,
    *,
    done: int,
    counts: Mapping[str, int],
    details: Mapping[str, object] = {},
    data_version: str | None = None,
    error: str | None = None,
) -> None:
    """Closes a stage's run, and forgets all but the last few of the same stage."""
    with conn.transaction():
        conn.execute("set local synchronous_commit = on")  # what the stage committed before is on disk with this
        conn.execute(
            "update stage_runs set done = %s, counts = %s, details = %s, data_version = %s, error = %s,"
            " heartbeat_at = now(), finished_at = now() where id = %s",
            (done, json.dumps(dict(counts)), json.dumps(dict(details)), data_version, error, stage_run),
        )
        conn.execute(
            "delete from stage_runs old using stage_runs this where this.id = %s and old.source_id = this.source_id"
            " and old.stage = this.stage and old.id not in (select id from stage_runs r where r.source_id ="
            " this.source_id and r.stage = this.stage order by id desc limit %s)",
            (stage_run, KEPT),
        )


def latest(conn: Connection[Row]) -> list[StageRun]:
    """The latest run of every stage of every source."""
    with conn.cursor(row_factory=class_row(StageRun)) as cursor:
        return cursor.execute(
            "select distinct on (s.slug, r.stage) s.slug as source, r.stage, r.run_id, r.started_at, r.heartbeat_at,"
            " r.finished_at, r.done, r.total, r.counts, r.error, r.details"
            " from stage_runs r join sources s on s.id = r.source_id"
            " order by s.slug, r.stage, r.id desc"
        ).fetchall()


def refuse(conn: Connection[Row], source_id: int, *, cause: str, known: int, vanished: int, detail: str) -> None:
    """Records that a source's deletions were refused."""
    conn.execute(
        "insert into refusals (source_id, cause, known, vanished, detail) values (%s, %s, %s, %s, %s)"
        " on conflict (source_id) do update set cause = excluded.cause, known = excluded.known,"
        " vanished = excluded.vanished, detail = excluded.detail, refused_at = now()"
        " where (refusals.cause, refusals.known, refusals.vanished, refusals.detail) is distinct from"
        " (excluded.cause, excluded.known, excluded.vanished, excluded.detail)",
        (source_id, cause, known, vanished, detail),
    )


def settle(conn: Connection[Row], source_id: int) -> None:
    """The files are back, or the deletion was allowed."""
    conn.execute("delete from refusals where source_id = %s", (source_id,))


def refusals(conn: Connection[Row]) -> list[Refusal]:
    """Sources that wait for a decision, by slug."""
    with conn.cursor(row_factory=class_row(Refusal)) as cursor:
        return cursor.execute(
            "select s.slug as source, r.cause, r.known, r.vanished, r.detail, r.refused_at"
            " from refusals r join sources s on s.id = r.source_id where s.active order by s.slug"
        ).fetchall()
