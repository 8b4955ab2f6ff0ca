"""Table `egress_audits`: what content went to other programs and what was kept back, without any of the content."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from psycopg import Connection
from psycopg.rows import class_row

from garage.store.database import Database, Row

MAX_ROWS, MAX_DAYS = 10_000, 30
"""What the table keeps; its trigger deletes the rest whenever something is written."""


class Account(Protocol):
    """How many items of a batch, of one source and class, went to a destination or were refused."""

    @property
    def purpose(self) -> str: ...
    @property
    def destination(self) -> str: ...
    @property
    def zone(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def corpus_class(self) -> str: ...
    @property
    def allowed(self) -> bool: ...
    @property
    def reason(self) -> str: ...
    @property
    def items(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Audit:
    """A row: the transfers of one kind within an hour."""

    first_at: datetime
    last_at: datetime
    purpose: str
    destination: str
    zone: str
    source: str
    corpus_class: str
    allowed: bool
    reason: str
    transfers: int
    items: int


def record(conn: Connection[Row], accounts: Sequence[Account]) -> None:
    """Adds a batch's accounts, no two of the same kind, in one statement that is on disk when this returns.

    What left the machine cannot be called back, so the record of it must not be lost with a power cut either.
    """
    conn.execute(
        "with durable as materialized (select set_config('synchronous_commit', 'on', true))"
        " insert into egress_audits as old"
        " (purpose, destination, zone, source, corpus_class, allowed, reason, items)"
        " select new.* from durable, unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::boolean[],"
        " %s::text[], %s::bigint[]) as new (purpose, destination, zone, source, corpus_class, allowed, reason, items)"
        # Two processes that add to the same rows must come to them in the same order.
        " order by purpose, destination, zone, source, corpus_class, allowed, reason"
        " on conflict (hour, purpose, destination, zone, source, corpus_class, allowed, reason) do update set"
        " last_at = greatest(old.last_at, excluded.last_at), transfers = old.transfers + 1,"
        " items = old.items + excluded.items",
        (
            [str(row.purpose) for row in accounts],
            [row.destination for row in accounts],
            [str(row.zone) for row in accounts],
            [row.source for row in accounts],
            [row.corpus_class for row in accounts],
            [row.allowed for row in accounts],
            [str(row.reason) for row in accounts],
            [row.items for row in accounts],
        ),
    )


def recorder(database: Database) -> Callable[[Sequence[Account]], None]:
    """`record` for those who have a database rather than a connection."""

    def write(accounts: Sequence[Account]) -> None:
        with database.connection() as conn:
            record(conn, accounts)

    return write


def audits(conn: Connection[Row], *, limit: int) -> list[Audit]:
    """The last rows, the latest first."""
    with conn.cursor(row_factory=class_row(Audit)) as cursor:
        return cursor.execute(
            "select first_at, last_at, purpose, destination, zone, source, corpus_class, allowed, reason, transfers,"
            " items from egress_audits order by last_at desc, id desc limit %s",
            (limit,),
        ).fetchall()


def documents_by_class(conn: Connection[Row], source_id: int) -> dict[str, int]:
    """How many documents a source has of each class that it has."""
    return dict(
        conn.execute(
            "select corpus_class, count(*) from documents where source_id = %s group by corpus_class order by 1",
            (source_id,),
        ).fetchall()
    )
