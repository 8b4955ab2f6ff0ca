"""The environment of Dagster's processes, and the `.env` that repeats it."""

import os
import stat
from pathlib import Path
from typing import Any

import psycopg
import pytest
from dotenv import dotenv_values

from garage.config import load
from garage.serve.environment import (
    CheckoutMissing,
    OrchestratorDatabase,
    checkout,
    dagster_url,
    ensure_dagster_database,
    environment,
    subprocess_environment,
    write_dotenv,
)
from garage.store.cluster import Cluster

CHECKOUT = Path(__file__).resolve().parents[2]


def test_the_embedded_server_holds_dagster_s_database_as_well(plain_home: Path) -> None:
    values = environment(load())
    assert values == {
        "DAGSTER_HOME": str(CHECKOUT),
        "DAGSTER_PG_URL": Cluster(plain_home).url("dagster"),
        "GARAGE_STATE_DIR": str(plain_home / "dagster"),
        "GARAGE_HOME": str(plain_home),
    }


def test_saying_the_environment_touches_nothing(plain_home: Path) -> None:
    environment(load())
    assert not plain_home.exists()


def test_an_external_server_holds_dagster_s_database_beside_garage_s(garage_home: Any) -> None:
    values = environment(load())
    url = garage_home.database_url
    assert values["GARAGE_DATABASE_URL"] == url
    assert values["DAGSTER_PG_URL"] == url.replace(url.partition("?")[0].rpartition("/")[2], "dagster")


def test_dagster_s_database_can_be_named(plain_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GARAGE_DAGSTER_URL", "postgresql://me@db/garage?options=-csearch_path%3Ddagster")
    assert dagster_url(load()) == "postgresql://me@db/garage?options=-csearch_path%3Ddagster"


def test_a_connection_string_that_is_no_url_is_refused_with_what_to_do(
    plain_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GARAGE_DATABASE_URL", "host=db dbname=garage")
    with pytest.raises(OrchestratorDatabase, match="GARAGE_DAGSTER_URL"):
        environment(load())


def test_a_configuration_elsewhere_is_handed_on(plain_home: Path, tmp_path: Path) -> None:
    path = tmp_path / "other.yaml"
    path.write_text("{}", encoding="utf-8")
    assert environment(load(path))["GARAGE_CONFIG"] == str(path)


def test_a_process_finds_the_checkout_and_no_leftover_of_another_home(
    plain_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGSTER_PG_URL", "postgresql://elsewhere/dagster")
    monkeypatch.setenv("GARAGE_CONFIG", "/nowhere/garage.yaml")
    config = load(_written(plain_home))
    values = subprocess_environment(config)
    assert values["DAGSTER_PG_URL"] == Cluster(plain_home).url("dagster")
    assert "GARAGE_CONFIG" not in values
    assert values["PYTHONPATH"].split(os.pathsep)[0] == str(CHECKOUT)
    assert values["PATH"] == os.environ["PATH"]


def _written(home: Path) -> Path:
    home.mkdir()
    (home / "garage.yaml").write_text("{}", encoding="utf-8")
    return home / "garage.yaml"


def test_without_a_checkout_the_services_say_where_to_get_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("garage.__file__", str(tmp_path / "site" / "garage" / "__init__.py"))
    with pytest.raises(CheckoutMissing, match=r"no dagster\.yaml"):
        checkout()


def test_dagster_s_database_is_made_once(plain_home: Path) -> None:
    server = Cluster(plain_home)
    server.start()
    try:
        ensure_dagster_database(load())
        ensure_dagster_database(load())
        with psycopg.connect(server.url("dagster")) as conn:
            assert conn.execute("select current_database()").fetchone() == ("dagster",)
    finally:
        server.stop()


def test_other_people_s_lines_of_a_dotenv_stay(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.write_text("# mine\nTOKEN=abc\nexport GARAGE_HOME=/old\nGARAGE_CONFIG=/gone.yaml\n", encoding="utf-8")
    assert write_dotenv(path, {"GARAGE_HOME": "/new home/it's", "DAGSTER_HOME": "/x"})
    assert path.read_text(encoding="utf-8").startswith("# mine\nTOKEN=abc\n\n# Written by")
    assert dotenv_values(path) == {"TOKEN": "abc", "GARAGE_HOME": "/new home/it's", "DAGSTER_HOME": "/x"}


def test_a_dotenv_that_says_it_all_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    values = {"DAGSTER_PG_URL": "postgresql://garage@/dagster?host=%2Ftmp%2Fx&options=-csearch_path%3Ddagster"}
    assert write_dotenv(path, values)
    before = path.stat().st_mtime_ns
    assert not write_dotenv(path, values)
    assert path.stat().st_mtime_ns == before
    assert dict(dotenv_values(path)) == values


def test_a_dotenv_is_its_owner_s_only_for_it_may_hold_a_password(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.write_text("A=1\n", encoding="utf-8")
    path.chmod(0o644)
    write_dotenv(path, {"GARAGE_HOME": "/x"})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [p.name for p in tmp_path.iterdir()] == [".env"]
