"""Watches the sources: asks for a run of what changed, refuses what lost too much.

The comparison is with what is recorded, not with the last tick, so a change stays visible until a run has taken it. A
source whose walk is slow is asked for as a run, where the walk happens; a tick never waits for it.
"""

import hashlib
import json
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from garage import stages
from garage.config import Config
from garage.errors import GarageError
from garage.store import runs, sources
from garage.store.database import Database
from garage.store.sources import Source
from garage.walk.guard import Decision
from garage.walk.stage import Seen
from garage_assets.abandoned import close_abandoned
from garage_assets.checks import NO_REFUSED_SOURCE
from garage_assets.configured import CONFIG
from garage_assets.ingest import source_files
from garage_assets.jobs import source_pipeline
from garage_assets.partitions import TRIGGER_TAG, source_partitions
from resources import GarageDatabase, GarageSettings

TICK_SECONDS = 30.0  # Dagster gives a tick 60
SLOW_WALK_SECONDS = 1.0
SLOW_SOURCE_EVERY = 900.0  # how often a source that is slow to walk is asked for
ASK_AGAIN_AFTER = 900.0  # the same difference is asked for again: its run failed, or was lost


@dataclass(slots=True)
class Tick:
    """What one evaluation found. `asked` is the cursor: per source, what was asked for, when, and how often."""

    asked: dict[str, dict[str, Any]]
    now: float
    requests: list[dg.RunRequest] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)

    def ask(self, slug: str, mark: str, *, again_after: float = ASK_AGAIN_AFTER) -> None:
        """Asks for a run of `slug`, unless the same was asked for a moment ago."""
        last = self.asked.get(slug, {"mark": "", "at": 0.0, "n": 0})
        if last["mark"] == mark and self.now - last["at"] < again_after:
            return
        # Dagster remembers a run key for ever; the counter lets a source come back to an earlier state.
        number = last["n"] + 1
        self.asked[slug] = {"mark": mark, "at": self.now, "n": number}
        self.requests.append(
            dg.RunRequest(
                run_key=f"watch/{slug}/{number}/{int(self.now)}",
                partition_key=slug,
                tags={TRIGGER_TAG: "source_watch"},
            )
        )

    def settled(self, slug: str) -> None:
        """Nothing differs any more; the counter stays, for the run keys."""
        if slug in self.asked:
            self.asked[slug]["mark"] = ""


@dg.sensor(
    job=source_pipeline,
    minimum_interval_seconds=CONFIG.dagster.watch_seconds,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Walks the sources that are quick to walk, asks for a run of each that changed, and refuses the run"
    " that would delete too much.",
)
def source_watch(
    context: dg.SensorEvaluationContext, database: GarageDatabase, settings: GarageSettings
) -> dg.SensorResult:
    """Look at each source in turn, beginning behind the last one of the tick before."""
    db, config = database.database, settings.config()
    close_abandoned(context.instance, db)
    with db.transaction() as conn:
        sources.sync(conn, config.sources)
        active = sources.sources(conn, active=True)
    cursor = json.loads(context.cursor or "{}")
    tick = Tick(asked=cursor.get("asked", {}), now=time.time())
    started, last = time.monotonic(), str(cursor.get("last", ""))
    for row in sorted(active, key=lambda row: (row.slug <= last, row.slug)):  # goes on where the last tick stopped
        if time.monotonic() - started > TICK_SECONDS:
            break
        last = row.slug
        look(tick, db, config, row)
    events = []
    if tick.refused or cursor.get("refused"):
        # Said again at every tick: a later materialization of another source would hide it.
        events.append(
            dg.AssetCheckEvaluation(
                asset_key=source_files.key,
                check_name=NO_REFUSED_SOURCE,
                passed=not tick.refused,
                metadata={"refused": dg.MetadataValue.json(tick.refused)},
            )
        )
    known = set(context.instance.get_dynamic_partitions(str(source_partitions.name)))
    new = [row.slug for row in active if row.slug not in known]
    reason = "; ".join(tick.refused.values()) or "no source changed"
    return dg.SensorResult(
        run_requests=tick.requests or None,
        skip_reason=None if tick.requests else reason,
        cursor=json.dumps({"asked": tick.asked, "last": last, "refused": sorted(tick.refused)}, sort_keys=True),
        dynamic_partitions_requests=[source_partitions.build_add_request(new)] if new else None,
        asset_events=events,
    )


def look(tick: Tick, database: Database, config: Config, row: Source) -> None:
    """Looks at one source and adds to the tick what follows."""
    if row.walked_at is None or row.walk_seconds is None:
        tick.ask(row.slug, "first")
        return
    if row.walk_seconds > SLOW_WALK_SECONDS:
        if (datetime.now(UTC) - row.walked_at).total_seconds() >= SLOW_SOURCE_EVERY:
            tick.ask(row.slug, "slow", again_after=SLOW_SOURCE_EVERY)
        with database.connection() as conn:
            tick.refused |= {r.source: r.detail for r in runs.refusals(conn) if r.source == row.slug}
        return
    try:
        seen = stages.preview(database, config, row)
    except GarageError as error:
        tick.refused[row.slug] = str(error)
        return
    if seen.verdict.decision is Decision.REFUSE:
        _refuse(tick, database, row, seen)
        return
    if seen.walk.stats.complete and not seen.difference.vanished:
        with database.connection() as conn:
            runs.settle(conn, row.id)
    deletes = seen.difference.vanished if seen.verdict.decision is Decision.DELETE else 0
    if seen.difference.added or seen.difference.changed or deletes:
        tick.ask(row.slug, _mark(seen))
    else:
        tick.settled(row.slug)


def _refuse(tick: Tick, database: Database, row: Source, seen: Seen) -> None:
    error = seen.verdict.refusal(row.slug)
    tick.refused[row.slug] = str(error)
    with database.connection() as conn:
        runs.refuse(conn, row.id, cause=error.cause, known=error.known, vanished=error.vanished, detail=error.message)


def _mark(seen: Seen) -> str:
    difference = seen.difference
    told = (difference.added, difference.changed, difference.vanished, difference.examples)
    return hashlib.sha256(repr(told).encode()).hexdigest()[:16]
