"""Outcomes as a person reads them, and placeholders settled as sets."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from garage.store import documents, files, outcomes
from garage.store.database import Database

VERSIONS = {"text": "v1"}


def record(database: Database, source_id: int, seen: list[Any]) -> None:
    with database.transaction() as conn:
        files.load(conn, seen)
        files.apply(conn, source_id, delete=True)


def attempt(database: Database, source_id: int, outcome: str, *, fetch: bool = True) -> list[str]:
    """Ends all that is pending so; returns what that was."""
    with database.transaction() as conn:
        pending = list(documents.pending_files(conn, source_id, VERSIONS, rebuild=False, materialize=fetch))
        for file in pending:
            documents.put_outcome(conn, source_id, file, outcome, reason="", sha256=None)
    return [file.uri for file in pending]


def put_off(database: Database, source_id: int, outcome: str = "deferred") -> int:
    with database.connection() as conn:
        return outcomes.put_off(conn, source_id, VERSIONS, outcome)


def recorded(database: Database) -> dict[str, str]:
    with database.connection() as conn:
        return dict(conn.execute("select uri, outcome from ingest_outcomes").fetchall())


def test_only_placeholders_that_nobody_read_are_put_off(
    database: Database, source_id: int, file: Callable[..., Any]
) -> None:
    record(database, source_id, [file("here.txt"), file("read.txt", kind="dataless")])
    assert attempt(database, source_id, "ok") == ["here.txt", "read.txt"]
    record(
        database,
        source_id,
        [file("here.txt"), file("new.txt"), file("read.txt", kind="dataless"), file("away.txt", kind="dataless")],
    )
    assert put_off(database, source_id) == 1
    assert recorded(database) == {"here.txt": "ok", "read.txt": "ok", "away.txt": "deferred"}


def test_what_is_put_off_already_is_counted_and_not_written(
    database: Database, source_id: int, file: Callable[..., Any]
) -> None:
    record(database, source_id, [file(f"{n}.txt", kind="stub") for n in range(3)])
    assert put_off(database, source_id) == 3
    with database.connection() as conn:
        before = conn.execute("select ctid, xmin from ingest_outcomes order by uri").fetchall()
    assert put_off(database, source_id) == 3
    with database.connection() as conn:
        assert conn.execute("select ctid, xmin from ingest_outcomes order by uri").fetchall() == before
    assert put_off(database, source_id, "placeholder") == 3
    assert set(recorded(database).values()) == {"placeholder"}


@pytest.mark.parametrize(
    ("kind", "change", "again"),
    [
        ("dataless", {}, False),
        ("dataless", {"mtime_ns": 2}, True),
        ("dataless", {"size": 2}, True),
        ("stub", {}, False),
        ("stub", {"mtime_ns": 2}, True),
        ("stub", {"size": 0}, False),  # a stub shows no size
        ("dataless", {"inode": 9}, False),
    ],
)
def test_an_indexed_placeholder_is_due_when_what_it_shows_differs(
    database: Database, source_id: int, file: Callable[..., Any], kind: str, change: dict[str, Any], again: bool
) -> None:
    record(database, source_id, [file("a.txt")])
    attempt(database, source_id, "ok")
    record(database, source_id, [file("a.txt", kind=kind, **change)])
    assert put_off(database, source_id) == int(again)
    assert recorded(database) == {"a.txt": "deferred" if again else "ok"}


@pytest.mark.parametrize("outcome", ["timeout", "unreadable"])
def test_a_failed_fetch_is_kept_and_comes_last_in_a_later_run(
    database: Database, source_id: int, file: Callable[..., Any], outcome: str
) -> None:
    record(database, source_id, [file("a.txt", kind="dataless")])
    attempt(database, source_id, outcome)
    record(database, source_id, [file("a.txt", kind="dataless"), file("b.txt", kind="dataless")])
    assert put_off(database, source_id) == 1
    assert recorded(database) == {"a.txt": outcome, "b.txt": "deferred"}
    assert attempt(database, source_id, "ok", fetch=False) == []
    assert attempt(database, source_id, "ok") == ["b.txt", "a.txt"]


def test_a_file_that_came_back_is_read_after_a_failed_fetch(
    database: Database, source_id: int, file: Callable[..., Any]
) -> None:
    record(database, source_id, [file("a.txt", kind="dataless")])
    attempt(database, source_id, "timeout")
    record(database, source_id, [file("a.txt")])
    assert attempt(database, source_id, "timeout") == ["a.txt"]
    assert attempt(database, source_id, "ok") == []  # this time it was the reader


def test_a_file_whose_fetch_fails_is_not_tried_twice_in_one_run(
    database: Database, source_id: int, file: Callable[..., Any]
) -> None:
    record(database, source_id, [file(f"{n}.txt", kind="dataless") for n in range(3)])
    seen = []
    with database.connection() as reading:
        for waiting in documents.pending_files(reading, source_id, VERSIONS, rebuild=False, materialize=True):
            seen.append(waiting.uri)
            with database.transaction() as conn:
                documents.put_outcome(conn, source_id, waiting, "unreadable", reason="", sha256=None)
    assert seen == ["0.txt", "1.txt", "2.txt"]


def test_the_length_of_the_list_counts_no_more_than_may_be_fetched(
    database: Database, source_id: int, file: Callable[..., Any]
) -> None:
    record(database, source_id, [file("a.txt"), *(file(f"{n}.txt", kind="dataless") for n in range(5))])
    with database.connection() as conn:
        lengths = [
            documents.count_pending_files(conn, source_id, VERSIONS, rebuild=False, fetch=fetch)
            for fetch in (0, 2, 9, None)
        ]
    assert lengths == [1, 3, 6, 6]


def test_two_runs_that_put_off_at_once_do_not_disturb_each_other(
    database: Database, source_id: int, file: Callable[..., Any]
) -> None:
    record(database, source_id, [file(f"{n:04}.txt", kind="dataless") for n in range(2000)])
    failed: list[BaseException] = []

    def run(kinds: list[str]) -> None:
        try:
            for kind in kinds:
                assert put_off(database, source_id, kind) == 2000
        except BaseException as error:  # noqa: BLE001 - told to the test
            failed.append(error)

    both = [threading.Thread(target=run, args=(["deferred", "placeholder"][n:] * 5,)) for n in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    assert failed == []
    assert len(recorded(database)) == 2000
