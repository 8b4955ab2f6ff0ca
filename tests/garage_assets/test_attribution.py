"""The asset that says whose documents are: part of the job, decided again alone; nothing else becomes stale by it."""

from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from garage.store.database import Database


@pytest.fixture
def instance() -> Any:
    with dg.DagsterInstance.ephemeral() as opened:
        yield opened


def run(instance: dg.DagsterInstance, home: Any) -> dict[str, Any]:
    from garage_assets.launch import launch, outcome

    result = launch(instance, "lib")
    with Database(home.database_url) as database:
        return outcome(database, "lib", result)


def materializations(instance: dg.DagsterInstance) -> dict[str, dg.AssetMaterialization]:
    """The last one of every asset."""
    from garage_assets.definitions import defs

    found = {}
    for key in defs.resolve_asset_graph().get_all_asset_keys():
        records = instance.fetch_materializations(
            dg.AssetRecordsFilter(asset_key=key, asset_partitions=["lib"]), limit=1
        ).records
        materialization = records[0].asset_materialization
        assert materialization is not None
        found[key.to_user_string()] = materialization
    return found


def versions(instance: dg.DagsterInstance) -> dict[str, str]:
    return {key: (made.tags or {})["dagster/data_version"] for key, made in materializations(instance).items()}


def stored(home: Any) -> list[Any]:
    """Passages and vectors with their places, which move when a row is so much as written again."""
    with Database(home.database_url) as database, database.connection() as conn:
        tables = ["chunks", *(name for (name,) in conn.execute("select table_name from embedding_models order by 1"))]
        query = "select count(*), sum(hashtext(ctid::text || xmin::text)) from "
        return [conn.execute((query + table).encode()).fetchone() for table in tables]


def test_another_owner_decides_again_and_nothing_is_read_or_embedded(
    garage_home: Any, library: Path, instance: dg.DagsterInstance
) -> None:
    garage_home.configure({"name": "lib", "root": library})
    first = run(instance, garage_home)
    assert first["status"] == "success", first
    assert first["stages"]["attribution"] == {"attributed": 10, "reclassified": 0}
    shown = materializations(instance)["attribution"].metadata
    assert shown["dagster/partition_row_count"].value == shown["attributed"].value == 10
    table = str(shown["decided"].value)
    for line in ("| class | document | 10 |", "| trust | authored | 10 |", "| signal | path | 8 |"):
        assert line in table
    before, rows = versions(instance), stored(garage_home)
    garage_home.configure({"name": "lib", "root": library}, identity={"name": "Grace Hopper"})
    second = run(instance, garage_home)
    assert second["stages"]["attribution"] == {"attributed": 10, "reclassified": 1}  # the page that Ada signed
    assert not any(second["stages"]["documents"].values())
    assert not any(second["stages"]["embeddings/all-minilm-l6-v2"].values())
    after = versions(instance)
    assert after.pop("attribution") != before.pop("attribution")
    assert after == before
    assert stored(garage_home) == rows
    assert run(instance, garage_home)["stages"]["attribution"] == {}
