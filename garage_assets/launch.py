"""Runs the job for some sources in this process: what `garage update` starts.

`python -m garage_assets.launch [--source S]... [--force] [--rebuild]` prints one JSON object a source to standard
output and exits with 0 when all succeeded. The runs are ordinary runs of the instance, with the partition's tag, events
and lineage; whether the daemon runs does not matter.
"""

import argparse
import json
import logging
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import dagster as dg

from garage.config import Config, home, load
from garage.store import runs, sources
from garage.store.database import Database, Server
from garage.store.errors import DatabaseUnavailable, UnknownSource
from garage.walk.errors import DeletionRefused, SourceUnavailable
from garage.worklist import RECORD_SECONDS
from garage_assets.abandoned import close_abandoned, run_lock
from garage_assets.definitions import defs
from garage_assets.jobs import SOURCE_PIPELINE
from garage_assets.partitions import BY_COMMAND, TRIGGER_TAG, source_partitions

_REFUSALS = (DeletionRefused.__name__, SourceUnavailable.__name__)


def launch(
    instance: dg.DagsterInstance, slug: str, *, allow_deletes: bool = False, rebuild: bool = False
) -> dg.ExecuteInProcessResult:
    """Runs the whole job for one source here; the partition's key is added where it is new."""
    name = str(source_partitions.name)
    if not instance.has_dynamic_partition(name, slug):
        instance.add_dynamic_partitions(name, [slug])
    with Database(Server.of(home()).url()) as database, run_lock(database) as run_id:
        return _execute(instance, slug, run_id, allow_deletes=allow_deletes, rebuild=rebuild)


def _execute(
    instance: dg.DagsterInstance, slug: str, run_id: str, *, allow_deletes: bool, rebuild: bool
) -> dg.ExecuteInProcessResult:
    return defs.resolve_job_def(SOURCE_PIPELINE).execute_in_process(
        instance=instance,
        partition_key=slug,
        run_config={
            "resources": {"options": {"config": {"allow_deletes": allow_deletes, "rebuild": rebuild}}},
            "loggers": {"console": {"config": {"log_level": "ERROR"}}},
        },
        tags={TRIGGER_TAG: BY_COMMAND},
        run_id=run_id,
        raise_on_error=False,
    )


def outcome(database: Database, slug: str, result: dg.ExecuteInProcessResult) -> dict[str, Any]:
    """What a run did, as `garage update` shows it; without its stages when the database went away."""
    ran: dict[str, runs.StageRun] = {}
    with suppress(DatabaseUnavailable), database.connection(wait=RECORD_SECONDS) as conn:
        ran = {r.stage: r for r in runs.latest(conn) if r.source == slug and r.run_id == result.run_id}
    said = {
        "source": slug,
        "run_id": result.run_id,
        "status": "success",
        "message": "",
        "stages": {stage: run.counts for stage, run in ran.items()},
    }
    if not result.success:
        refused = any(run.error in _REFUSALS for run in ran.values())
        said |= {"status": "refused" if refused else "failed", "message": _failure(result)}
    return said


def _failure(result: dg.ExecuteInProcessResult) -> str:
    """The first failure that a step explained, else the cause of the first that none did, in a person's words."""
    failures = [event.step_failure_data for event in result.all_events if event.is_step_failure]
    for failure in failures:
        if failure.user_failure_data is not None and failure.user_failure_data.description:
            return str(failure.user_failure_data.description)
    error = next((failure.error for failure in failures if failure.error is not None), None)
    if error is None:
        return f"run {result.run_id} failed; the Dagster UI shows its events"
    while error.cause is not None:  # the outermost one only says that an operation failed
        error = error.cause
    kind, _, said = error.message.strip().partition(": ")
    return said if kind.endswith(str(error.cls_name)) and said else error.message.strip()


def selected(database: Database, config: Config, wanted: Sequence[str]) -> list[str]:
    """The active sources to run, all or those named. Raises UnknownSource."""
    with database.transaction() as conn:
        sources.sync(conn, config.sources)
        active = [row.slug for row in sources.sources(conn, active=True)]
    for slug in wanted:
        if slug not in active:
            raise UnknownSource(
                f"There is no active source {slug!r}.",
                hint=f"Active sources: {', '.join(active) or 'none yet'}.",
                source=slug,
            )
    return list(wanted) or active


def main(arguments: Sequence[str] | None = None) -> int:
    """The module's command line; 0 when every source succeeded."""
    parser = argparse.ArgumentParser(prog="garage_assets.launch", description=__doc__)
    parser.add_argument("--source", action="append", default=[])
    parser.add_argument("--force", action="store_true", help="let deletions past the guard")
    parser.add_argument("--rebuild", action="store_true", help="redo what is current")
    asked = parser.parse_args(arguments)
    logging.getLogger("dagster").setLevel(logging.ERROR)
    good = True
    with Database(Server.of(load().home).url()) as database, dg.DagsterInstance.get() as instance:
        close_abandoned(instance, database)
        for slug in selected(database, load(), asked.source):
            result = launch(instance, slug, allow_deletes=asked.force, rebuild=asked.rebuild)
            said = outcome(database, slug, result)
            good = good and said["status"] == "success"
            sys.stdout.write(json.dumps(said) + "\n")
            sys.stdout.flush()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
