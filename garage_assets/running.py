"""How an asset runs a stage: locks, progress, failures and what it reports."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import dagster as dg

from garage.errors import GarageError
from garage.store.database import Database
from garage.store.errors import DatabaseUnavailable, SourceBusy
from garage.worklist import Progress, Report

LOCK_WAIT_SECONDS = 3600.0
MAX_RETRIES = 2
RETRY_SECONDS = 10
PROGRESS_SECONDS = 10.0  # an event costs a database connection: never one a document
_WORTH_RETRYING = (DatabaseUnavailable, SourceBusy)


@contextmanager
def held(context: dg.AssetExecutionContext, database: Database, lock: str) -> Iterator[None]:
    """Holds the advisory lock and turns what a person can mend into a failure that says how.

    Runs queue by source, but a command line passes the queue by; the lock binds both. What time can mend is retried
    here and not by a retry policy, which Dagster applies to interruptions as well: a stopped run would go on.
    """
    try:
        with database.exclusive(
            lock,
            wait=LOCK_WAIT_SECONDS,
            waiting=lambda: context.log.info(f"another run holds {lock}: waiting for it to end"),
        ):
            yield
    except _WORTH_RETRYING as error:
        if context.retry_number < MAX_RETRIES:
            raise dg.RetryRequested(max_retries=MAX_RETRIES, seconds_to_wait=RETRY_SECONDS) from error
        raise failure(error) from error
    except GarageError as error:
        raise failure(error) from error


def failure(error: GarageError) -> dg.Failure:
    """The failure that shows `error` in the UI; it is not retried."""
    metadata = {
        name: dg.MetadataValue.text(str(value))
        for name, value in error.fields.items()
        if isinstance(value, int | float | str)
    }
    return dg.Failure(description=str(error), metadata=metadata, allow_retries=False)


def observer(context: dg.AssetExecutionContext) -> Callable[[Progress], None]:
    """Logs how far a stage is, at most every ten seconds."""
    last = time.monotonic()

    def observe(progress: Progress) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < PROGRESS_SECONDS:
            return
        last = now
        left = progress.seconds_left
        rest = "" if left is None else f", about {left:,.0f} s left"
        context.log.info(f"{progress.done:,} of {progress.total:,} done, {progress.rate:,.1f} a second{rest}")

    return observe


def materialized(report: Report, **metadata: dg.MetadataValue | int | str) -> dg.MaterializeResult[None]:
    """A stage's report as Dagster shows it: its counts, and the digest of its rows as the data version."""
    shown: dict[str, dg.MetadataValue | int | float | str] = {**report.counts, **metadata}
    shown["seconds"] = round(report.seconds, 3)
    for name, value in report.details.items():
        shown[name] = dg.MetadataValue.json(value) if isinstance(value, dict | list) else str(value)
    return dg.MaterializeResult(metadata=shown, data_version=dg.DataVersion(report.data_version))
