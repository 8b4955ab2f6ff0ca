"""`garage status`: looks, changes nothing, and says what needs attention."""

from importlib.resources import files
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml

from garage.config import Config
from garage.serve.commands import status
from garage.serve.state import _without_password
from garage.store import runs, sources
from garage.store.cluster import Cluster
from garage.store.database import Database


def test_looking_starts_no_database_and_makes_no_file(garage: Any, plain_home: Path) -> None:
    answer = garage("status")
    assert answer.code == 0
    assert "The database is stopped" in answer.out
    assert "garage up" in answer.out
    assert not Cluster(plain_home).is_running()
    assert not plain_home.exists()


def test_a_fresh_database_says_how_to_add_a_source(garage: Any, garage_home: Any) -> None:
    answer = garage("status")
    assert answer.code == 0
    assert "There are no sources yet. `garage source add FOLDER` registers one." in answer.out


def test_a_source_is_shown_with_what_it_has_of_each_model(garage: Any, stocked: Config) -> None:
    out = garage("status").out
    assert "VECTORS all-minilm-l6-v2" in out
    (row,) = [line for line in out.splitlines() if line.startswith("garden")]
    assert row.split()[:4] == ["garden", "3", "3", "3"]
    assert "0 (3 missing)" in row  # the second model, which has not run yet
    assert "all-minilm-l6-v2 answers searches." in out


def test_the_same_in_json(garage: Any, stocked: Config) -> None:
    data = garage("status", "--json").data
    (source,) = data["sources"]
    assert (source["documents"], source["passages"]) == (3, 3)
    assert source["vectors"] == {
        "all-minilm-l6-v2": {"stored": 3, "missing": 0},
        "all-minilm-l6-v2-q8_0": {"stored": 0, "missing": 3},
    }
    assert data["serving"] == {"model": "all-minilm-l6-v2", "default": "all-minilm-l6-v2", "missing": 0}
    assert [service["name"] for service in data["services"]] == ["postgres", "webserver", "daemon"]
    assert data["database"] == "running"


def test_one_source_can_be_asked_for(garage: Any, garage_home: Any, stocked: Config, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    garage_home.configure({"name": "garden", "root": tmp_path / "garden"}, {"name": "other", "root": other})
    data = garage("status", "--source", "other", "--json").data
    assert [source["name"] for source in data["sources"]] == ["other"]
    answer = garage("status", "--source", "nowhere")
    assert answer.code == 2
    assert "There is no source 'nowhere'." in answer.err


def test_a_stage_under_way_is_shown_with_how_far_it_is(garage: Any, stocked: Config, database: Database) -> None:
    with database.connection() as conn:
        run = runs.begin(conn, sources.source(conn, "garden").id, "documents", "run", 200)
        runs.heartbeat(conn, run, 50)
    out = garage("status").out
    (line,) = [line for line in out.splitlines() if line.startswith("running")]
    assert line.split()[:7] == ["running", "garden", "documents", "50", "of", "200", "(25%)"]
    assert "no sign of life" not in line


def test_a_stage_that_has_been_silent_for_long_is_marked(
    garage: Any, garage_home: Any, stocked: Config, database: Database
) -> None:
    with database.connection() as conn:
        runs.begin(conn, sources.source(conn, "garden").id, "documents", "run", 200)
    with psycopg.connect(garage_home.database_url) as conn:
        conn.execute("update garage.stage_runs set heartbeat_at = now() - interval '10 minutes'")
    assert "no sign of life for 10 minutes: it may have been killed" in garage("status").out


def test_a_refusal_comes_with_what_to_do(garage: Any, stocked: Config, database: Database) -> None:
    with database.connection() as conn:
        row = sources.source(conn, "garden")
        runs.refuse(conn, row.id, cause="x", known=3, vanished=2, detail="Refused to delete 2 of 3 files.")
    out = garage("status").out
    assert "garden: Refused to delete 2 of 3 files." in out
    assert "garage update --source garden --force" in out


def test_a_folder_that_is_not_there_is_said(garage: Any, stocked: Config) -> None:
    stocked.sources[0].root.rmdir()
    out = garage("status").out
    assert f"garden: {stocked.sources[0].root} is not there. Nothing of it is deleted" in out


def test_a_run_that_failed_is_named(garage: Any, stocked: Config, database: Database) -> None:
    with database.connection() as conn:
        run = runs.begin(conn, sources.source(conn, "garden").id, "chunks", "run", 1)
        runs.finish(conn, run, done=0, counts={}, error="DatabaseFull")
    assert "the last run of chunks (DatabaseFull) did not succeed" in garage("status").out


def test_files_that_could_not_be_read_are_counted_by_kind(garage: Any, garage_home: Any, stocked: Config) -> None:
    with psycopg.connect(garage_home.database_url) as conn:
        conn.execute(
            "insert into garage.ingest_outcomes (source_id, uri, outcome, size, mtime_ns, extractor_fingerprint)"
            " select id, way, way, 1, 1, 'x' from garage.sources, unnest(array['ok', 'encrypted', 'timeout']) way"
        )
    out = garage("status").out
    assert "files that could not be read: encrypted 1, timeout 1" in out


def walked(database: Database, **details: object) -> None:
    """Records a walk of the source `garden`."""
    told = {"skipped": {}, "incomplete": "", "unreadable": [], "lost_drives": [], **details}
    counts = {"files": 3, "folders": 2, "placeholders": 1}
    with database.connection() as conn:
        run = runs.begin(conn, sources.source(conn, "garden").id, "source_files", "run", None)
        runs.finish(conn, run, done=3, counts=counts, details=told)


def test_one_source_is_shown_with_what_its_walk_left_out(garage: Any, stocked: Config, database: Database) -> None:
    walked(database, skipped={"dependency": 7, "link": 1}, incomplete="unreadable", unreadable=["closed"])
    assert "left out" not in garage("status").out
    out = garage("status", "--source", "garden").out
    assert "The last walk (just now) listed 3 files in 2 folders, 1 of them with a cloud provider." in out
    assert "  dependency  7  packages that a tool installed\n  link        1  links are not followed\n" in out
    assert "It did not see everything (unreadable), so it deleted nothing.\n  unreadable: closed\n" in out
    data = garage("status", "--source", "garden", "--json").data
    assert data["sources"][0]["last_walk"]["skipped"] == {"dependency": 7, "link": 1}


def test_every_reason_of_the_exclusions_is_explained() -> None:
    families = yaml.safe_load(files("garage.walk").joinpath("exclusions.yaml").read_text(encoding="utf-8"))
    assert {family["reason"] for family in families.values()} - status.REASONS.keys() == {"cache", "version_control"}


def test_a_drive_that_is_gone_is_said(garage: Any, stocked: Config, database: Database) -> None:
    walked(database, lost_drives=["disk/"])
    out = garage("status").out
    assert "garden: the drive at disk is gone or is another one. What was read of it is kept" in out


def test_files_with_a_cloud_provider_are_told_apart_from_failures(
    garage: Any, garage_home: Any, stocked: Config
) -> None:
    with psycopg.connect(garage_home.database_url) as conn:
        conn.execute(
            "insert into garage.ingest_outcomes (source_id, uri, outcome, size, mtime_ns, extractor_fingerprint)"
            " select id, way || number, way, 1, 1, 'x' from garage.sources,"
            " unnest(array['placeholder', 'deferred']) way, generate_series(1, 25) number"
        )
    out = garage("status").out
    assert "could not be read" not in out
    assert "garden: 25 files with a cloud provider not read; `placeholders.materialize: true`" in out
    assert (
        "garden: 25 files with a cloud provider left for the next update: deferred1, deferred10, deferred11 ..." in out
    )
    assert len(garage("status", "--json").data["sources"][0]["deferred"]) == 20


def test_a_chosen_model_that_is_not_complete_is_told_of(garage: Any, garage_home: Any, stocked: Config) -> None:
    models = ["all-minilm-l6-v2", "all-minilm-l6-v2-q8_0"]
    root = stocked.sources[0].root
    garage_home.configure(
        {"name": "garden", "root": root}, embedding={"models": models, "default": "all-minilm-l6-v2-q8_0"}
    )
    out = garage("status").out
    assert (
        "all-minilm-l6-v2 answers searches until all-minilm-l6-v2-q8_0 is complete:"
        " 3 passages still without its vector." in out
    )


def test_what_the_server_lacks_is_said_once(garage: Any, stocked: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    lacking = {"pg_textsearch": "keyword search ranks with ts_rank instead of BM25"}
    monkeypatch.setattr("garage.serve.state.missing_extensions", lambda _: lacking)
    assert garage("status").out.count("The server has no pg_textsearch") == 1


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:secret@db:5433/garage?sslmode=require", "db:5433/garage"),
        ("postgresql://garage@/garage?host=%2Ftmp%2Fx", "local socket/garage"),
        ("host=db password=secret dbname=garage", "the server of GARAGE_DATABASE_URL"),
    ],
)
def test_no_password_is_shown(url: str, shown: str) -> None:
    assert _without_password(url) == shown
