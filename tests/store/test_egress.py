"""The audit of transfers on a real server."""

import threading
from dataclasses import dataclass, replace

import psycopg
import pytest

from garage.store import egress
from garage.store.database import Database


@dataclass(frozen=True, slots=True)
class Account:
    purpose: str = "embedding"
    destination: str = "http://gpu.example:11434"
    zone: str = "lan"
    source: str = "manuals"
    corpus_class: str = "document"
    allowed: bool = True
    reason: str = "allowed_lan"
    items: int = 64


SENT = Account()
WITHHELD = replace(SENT, corpus_class="communication", allowed=False, reason="class_communication", items=3)


def count(database: Database) -> int:
    with database.connection() as conn:
        row = conn.execute("select count(*) from egress_audits").fetchone()
    assert row is not None
    return int(row[0])


def fill(database: Database, rows: int, *, age: str = "1 hour") -> None:
    """Rows of an earlier time, past the trigger."""
    with database.transaction() as conn:
        conn.execute("alter table egress_audits disable trigger egress_audits_prune")
        conn.execute(
            "insert into egress_audits (hour, first_at, last_at, purpose, destination, zone, source, corpus_class,"
            " allowed, reason, items) select date_trunc('hour', now() - %s::interval), now() - %s::interval,"
            " now() - %s::interval, 'facts', 'http://host-' || n, 'lan', 'old', 'document', true, 'allowed_lan', 1"
            " from generate_series(1, %s) n",
            (age, age, age, rows),
        )
        conn.execute("alter table egress_audits enable trigger egress_audits_prune")


def test_a_batch_s_accounts_are_rows(database: Database) -> None:
    egress.recorder(database)([SENT, WITHHELD])
    with database.connection() as conn:
        rows = egress.audits(conn, limit=10)
    assert {(r.source, r.corpus_class, r.allowed, r.reason, r.transfers, r.items) for r in rows} == {
        ("manuals", "document", True, "allowed_lan", 1, 64),
        ("manuals", "communication", False, "class_communication", 1, 3),
    }
    assert {(r.purpose, r.destination, r.zone) for r in rows} == {("embedding", "http://gpu.example:11434", "lan")}


def test_nothing_is_recorded_of_no_accounts(database: Database) -> None:
    egress.recorder(database)([])
    assert count(database) == 0


def test_the_table_has_no_column_for_content(database: Database) -> None:
    with database.connection() as conn:
        columns = conn.execute(
            "select column_name from information_schema.columns where table_name = 'egress_audits'"
        ).fetchall()
    assert {name for (name,) in columns} == {
        "id", "hour", "first_at", "last_at", "purpose", "destination", "zone", "source", "corpus_class", "allowed",
        "reason", "transfers", "items",
    }  # fmt: skip


def test_transfers_of_one_kind_within_an_hour_share_a_row(database: Database) -> None:
    record = egress.recorder(database)
    for _ in range(3):
        record([SENT, WITHHELD])
    record([replace(SENT, destination="http://other.example:80")])
    with database.connection() as conn:
        conn.execute("update egress_audits set hour = hour - interval '1 hour' where not allowed")
    record([WITHHELD])
    with database.connection() as conn:
        rows = egress.audits(conn, limit=10)
    assert sorted((r.allowed, r.destination, r.transfers, r.items) for r in rows) == [
        (False, "http://gpu.example:11434", 1, 3),
        (False, "http://gpu.example:11434", 3, 9),
        (True, "http://gpu.example:11434", 3, 192),
        (True, "http://other.example:80", 1, 64),
    ]
    assert all(r.first_at <= r.last_at for r in rows)


def test_the_latest_rows_come_first(database: Database) -> None:
    fill(database, 2, age="3 hours")
    egress.recorder(database)([SENT])
    with database.connection() as conn:
        assert [row.source for row in egress.audits(conn, limit=2)] == ["manuals", "old"]


def test_rows_of_more_than_thirty_days_go_when_something_is_written(database: Database) -> None:
    fill(database, 5, age="31 days")
    fill(database, 4, age="29 days")
    assert count(database) == 9
    egress.recorder(database)([SENT])
    assert count(database) == 5


def test_no_more_than_ten_thousand_rows_are_kept(database: Database) -> None:
    fill(database, egress.MAX_ROWS + 50)
    egress.recorder(database)([SENT, WITHHELD])
    assert count(database) == egress.MAX_ROWS
    with database.connection() as conn:
        assert {row.source for row in egress.audits(conn, limit=2)} == {"manuals"}
        oldest = conn.execute("select destination from egress_audits order by id limit 1").fetchone()
    assert oldest == ("http://host-53",)


def test_the_bounds_hold_for_one_large_batch_too(database: Database) -> None:
    batch = [replace(SENT, destination=f"http://host-{number}") for number in range(egress.MAX_ROWS + 5)]
    egress.recorder(database)(batch)
    assert count(database) == egress.MAX_ROWS


def test_a_row_that_is_added_to_is_not_lost_to_the_bound(database: Database) -> None:
    record = egress.recorder(database)
    record([SENT])
    fill(database, egress.MAX_ROWS)
    record([SENT])
    assert count(database) == egress.MAX_ROWS
    with database.connection() as conn:
        (latest,) = egress.audits(conn, limit=1)
    assert (latest.source, latest.transfers) == ("manuals", 2)


def test_threads_that_record_the_same_kinds_in_another_order_lose_nothing(database: Database) -> None:
    kinds = [replace(SENT, source=f"source-{number}") for number in range(20)]
    failed: list[BaseException] = []

    def run(batch: list[Account]) -> None:
        record = egress.recorder(database)
        try:
            for _ in range(25):
                record(batch)
        except BaseException as error:  # noqa: BLE001 - told to the test
            failed.append(error)

    threads = [threading.Thread(target=run, args=(kinds[:: (-1) ** n],)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    with database.connection() as conn:
        rows = egress.audits(conn, limit=100)
    assert sum(row.items for row in rows) == 20 * 25 * 4 * 64


def test_a_record_is_on_disk_when_the_call_returns(database: Database) -> None:
    with database.connection() as conn:
        assert conn.execute("show synchronous_commit").fetchone() == ("off",)
        with conn.transaction():
            egress.record(conn, [SENT])
            assert conn.execute("show synchronous_commit").fetchone() == ("on",)
        assert conn.execute("show synchronous_commit").fetchone() == ("off",)


@pytest.mark.parametrize(
    "wrong", [replace(SENT, purpose="fun"), replace(SENT, zone="moon"), replace(SENT, items=0)], ids=str
)
def test_words_and_numbers_that_mean_nothing_are_refused(database: Database, wrong: Account) -> None:
    with pytest.raises(psycopg.errors.CheckViolation):
        egress.recorder(database)([wrong])


def test_documents_are_counted_by_class(database: Database, put: object, source_id: int, second_source: int) -> None:
    assert callable(put)
    for number, kind in enumerate(["document", "document", "communication"]):
        put(f"{number}.md", ["text"], corpus_class=kind)
    put("other.md", ["text"], source=second_source, corpus_class="code")
    with database.connection() as conn:
        assert egress.documents_by_class(conn, source_id) == {"communication": 1, "document": 2}
        assert egress.documents_by_class(conn, second_source) == {"code": 1}
