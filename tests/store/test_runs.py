"""What ran, how far it is, and what was refused."""

from garage.store import runs
from garage.store.database import Database


def test_a_run_tells_how_far_it_is_and_how_it_ended(database: Database, source_id: int) -> None:
    with database.connection() as conn:
        run = runs.begin(conn, source_id, "documents", "dagster-1", 10)
        (going,) = runs.latest(conn)
        assert (going.source, going.stage, going.run_id, going.done, going.total) == (
            "notes", "documents", "dagster-1", 0, 10,
        )  # fmt: skip
        assert going.finished_at is None
        runs.heartbeat(conn, run, 4)
        (beaten,) = runs.latest(conn)
        assert (beaten.done, beaten.finished_at) == (4, None)
        assert beaten.heartbeat_at > going.heartbeat_at
        runs.finish(conn, run, done=10, counts={"written": 9, "error": 1}, data_version="abc")
        (ended,) = runs.latest(conn)
        assert (ended.done, ended.counts, ended.error) == (10, {"written": 9, "error": 1}, None)
        assert ended.finished_at is not None


def test_the_latest_run_of_every_stage_and_source_is_told(
    database: Database, source_id: int, second_source: int
) -> None:
    with database.connection() as conn:
        for source in (source_id, second_source):
            for stage in ("walk", "documents"):
                for number in range(3):
                    runs.finish(conn, runs.begin(conn, source, stage, f"run {number}", 0), done=number, counts={})
        runs.finish(conn, runs.begin(conn, source_id, "walk", None, None), done=0, counts={}, error="DiskFull")
        latest = runs.latest(conn)
    assert [(run.source, run.stage, run.run_id, run.error) for run in latest] == [
        ("letters", "documents", "run 2", None),
        ("letters", "walk", "run 2", None),
        ("notes", "documents", "run 2", None),
        ("notes", "walk", None, "DiskFull"),
    ]


def test_only_the_last_runs_of_each_stage_are_kept(database: Database, source_id: int, second_source: int) -> None:
    with database.connection() as conn:
        other = runs.begin(conn, second_source, "walk", None, 0)
        another = runs.begin(conn, source_id, "documents", None, 0)
        ids = []
        for _ in range(runs.KEPT + 5):
            ids.append(runs.begin(conn, source_id, "walk", None, 0))
            runs.finish(conn, ids[-1], done=0, counts={})
        kept = {id_ for (id_,) in conn.execute("select id from stage_runs")}
    assert kept == {other, another, *ids[-runs.KEPT :]}


def test_a_refusal_stands_until_it_is_settled_and_keeps_its_time_while_it_is_the_same(
    database: Database, source_id: int
) -> None:
    with database.connection() as conn:
        assert runs.refusals(conn) == []
        runs.refuse(conn, source_id, cause="share", known=100, vanished=26, detail="a.txt, b.txt")
        (first,) = runs.refusals(conn)
        assert (first.source, first.cause, first.known, first.vanished) == ("notes", "share", 100, 26)
        runs.refuse(conn, source_id, cause="share", known=100, vanished=26, detail="a.txt, b.txt")
        assert runs.refusals(conn) == [first]
        runs.refuse(conn, source_id, cause="share", known=100, vanished=30, detail="more")
        (second,) = runs.refusals(conn)
        assert second.vanished == 30
        assert second.refused_at > first.refused_at
        conn.execute("update sources set active = false")
        assert runs.refusals(conn) == []
        conn.execute("update sources set active = true")
        runs.settle(conn, source_id)
        assert runs.refusals(conn) == []
