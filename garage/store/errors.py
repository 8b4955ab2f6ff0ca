"""What can go wrong between Garage and its database, as a person sees it."""

import psycopg
from psycopg import errors as pg

from garage.errors import GarageError


class StoreError(GarageError):
    """Base of the database's errors."""


class DatabaseUnavailable(StoreError):
    """The server cannot be reached, or went away (`reason`: in the driver's words)."""

    reason: str


class DatabaseFull(StoreError):
    """The server has no space left to write to."""


class SchemaTooNew(StoreError):
    """The database was made by a newer Garage (`found`, `known`: migration numbers)."""


class MigrationChanged(StoreError):
    """An applied migration's text differs from the one that this Garage carries."""


class ExtensionMissing(StoreError):
    """The server lacks an extension that Garage cannot do without (`extension`)."""


class SourceBusy(StoreError):
    """Another run holds the lock of this source's stage (`source`, `stage`)."""

    source: str
    stage: str


class UnknownSource(StoreError):
    """No source of that name is registered (`source`)."""


class DimensionMismatch(StoreError):
    """A model's vectors have another width than its table (`slug`, `expected`, `got`)."""

    slug: str
    expected: int
    got: int


def unavailable(reason: str) -> DatabaseUnavailable:
    """The error for a server that does not answer; `reason` is what the driver or the server said."""
    first, *_ = reason.splitlines() or ["no reason was given"]
    return DatabaseUnavailable(
        f"The database cannot be reached ({first.strip()}); what was stored before is safe.",
        hint="`garage up` starts the embedded one; with GARAGE_DATABASE_URL, check that server.",
        reason=first.strip(),
    )


def explained(error: psycopg.Error) -> Exception:
    """The error a person can act on, for what the driver raised; the driver's own where there is nothing to add."""
    if isinstance(error, pg.DiskFull):
        return DatabaseFull(
            "The database's disk is full; what was stored before is safe.",
            hint="Free some space and run the same command again: it goes on where it stopped.",
        )
    gone = (pg.AdminShutdown, pg.CrashShutdown, pg.CannotConnectNow)
    if isinstance(error, gone) or (isinstance(error, psycopg.OperationalError) and error.sqlstate is None):
        return unavailable(str(error))
    return error
