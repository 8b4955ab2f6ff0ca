"""A place for the orchestrator on somebody's own server."""

from collections.abc import Iterator

import psycopg
import pytest

from garage.store.cluster import Cluster
from garage.store.orchestrator import place


@pytest.fixture
def modest(cluster: Cluster, database_url: str) -> Iterator[str]:
    """The URL of a database that belongs to a role which may not make databases."""
    name = database_url.partition("?")[0].rpartition("/")[2]
    with psycopg.connect(cluster.url("postgres"), autocommit=True) as conn:
        conn.execute("drop database if exists dagster with (force)")
        conn.execute("create role modest login")
        conn.execute(f"alter database {name} owner to modest".encode())
        yield database_url.replace("garage@", "modest@")
        conn.execute(f"alter database {name} owner to garage".encode())
    with psycopg.connect(database_url, autocommit=True) as conn:
        conn.execute("drop schema if exists dagster cascade")
    with psycopg.connect(cluster.url("postgres"), autocommit=True) as conn:
        conn.execute("drop database if exists dagster with (force)")
        conn.execute("drop role modest")


def schemas(url: str) -> object:
    with psycopg.connect(url) as conn:
        return conn.execute("select current_database(), current_schemas(false)").fetchone()


def test_a_role_that_may_gets_a_database_beside_garage_s(cluster: Cluster, database_url: str) -> None:
    with psycopg.connect(cluster.url("postgres"), autocommit=True) as conn:
        conn.execute("drop database if exists dagster with (force)")
    for _ in range(2):
        assert schemas(place(database_url)) == ("dagster", ["public"])


def test_a_role_that_may_not_gets_a_schema(modest: str) -> None:
    name = modest.partition("?")[0].rpartition("/")[2]
    for _ in range(2):
        assert schemas(place(modest)) == (name, ["dagster"])


def test_a_database_of_somebody_else_is_not_used(cluster: Cluster, modest: str) -> None:
    with psycopg.connect(cluster.url("postgres"), autocommit=True) as conn:
        conn.execute("create database dagster")
    assert place(modest).endswith("options=-csearch_path%3Ddagster")


def test_a_schema_stays_the_place(cluster: Cluster, modest: str) -> None:
    first = place(modest)
    with psycopg.connect(cluster.url("postgres"), autocommit=True) as conn:
        conn.execute("alter role modest createdb")
    assert place(modest) == first
