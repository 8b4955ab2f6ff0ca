"""Runs of `garage update` whose process was killed.

Dagster asks the launcher whether a run's worker is alive, but a run in a command's own process has no launcher. Killed,
it would count as started for ever, and keep its pool slots and its place in the queue. So each holds an advisory lock,
which ends with its process; a run without its lock is closed.
"""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg

from garage.store.database import Database
from garage.store.errors import SourceBusy
from garage_assets.partitions import BY_COMMAND, TRIGGER_TAG

_UNDER_WAY = [dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.CANCELING]


@contextmanager
def run_lock(database: Database) -> Iterator[str]:
    """The id of a run to come; while the block lasts, the run counts as alive."""
    run_id = str(uuid.uuid4())
    with database.exclusive(f"run/{run_id}"):
        yield run_id


def close_abandoned(instance: dg.DagsterInstance, database: Database) -> list[str]:
    """Marks runs as failed whose command is gone, and frees what they hold; their ids."""
    closed = []
    mine = dg.RunsFilter(statuses=_UNDER_WAY, tags={TRIGGER_TAG: BY_COMMAND})
    for run in instance.get_runs(filters=mine):
        try:
            with database.exclusive(f"run/{run.run_id}"):
                instance.report_run_failed(run, "the command that ran it was killed; what it stored is kept")
                if instance.event_log_storage.supports_global_concurrency_limits:
                    instance.event_log_storage.free_concurrency_slots_for_run(run.run_id)
                closed.append(run.run_id)
        except SourceBusy:
            continue  # alive
    return closed
