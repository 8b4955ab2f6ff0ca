"""The code location as Dagster loads it: what is in it, and that a person understands it."""

from pathlib import Path
from typing import Any

import dagster as dg
import pytest

ASSETS = {
    "sources": set(),
    "source_files": {"sources"},
    "documents": {"source_files"},
    "attribution": {"documents"},
    "chunks": {"documents"},
    "embeddings/all-minilm-l6-v2": {"chunks"},
    "embeddings/all-minilm-l6-v2-q8_0": {"chunks"},
}


@pytest.fixture
def defs(garage_home: Any) -> dg.Definitions:
    from garage_assets.definitions import defs

    return defs


def specs(defs: dg.Definitions) -> dict[str, dg.AssetSpec]:
    return {
        spec.key.to_user_string(): spec
        for asset in defs.assets or []
        if isinstance(asset, dg.AssetsDefinition)
        for spec in asset.specs
    }


def test_the_lineage_goes_from_sources_to_the_vectors_of_each_model(defs: dg.Definitions) -> None:
    found = {key: {dep.asset_key.to_user_string() for dep in spec.deps} for key, spec in specs(defs).items()}
    assert found == ASSETS


def test_every_asset_is_partitioned_by_source_and_versioned_and_described(defs: dg.Definitions) -> None:
    for key, spec in specs(defs).items():
        assert isinstance(spec.partitions_def, dg.DynamicPartitionsDefinition), key
        assert spec.partitions_def.name == "source", key
        assert spec.code_version, key
        assert spec.freshness_policy is not None, key
        assert spec.group_name in {"ingest", "embed"}, key
        assert spec.kinds, key
        assert len(spec.description or "") > 40, key


def test_the_models_share_one_pool(defs: dg.Definitions) -> None:
    pools = {
        asset.key.to_user_string(): asset.op.pool
        for asset in defs.assets or []
        if isinstance(asset, dg.AssetsDefinition) and asset.op.pool
    }
    assert pools == {key: "model" for key in ASSETS if key.startswith("embeddings/")}


def test_the_definitions_validate(defs: dg.Definitions) -> None:
    dg.Definitions.validate_loadable(defs)
    names = {job.name for job in defs.resolve_all_job_defs()}
    assert {"source_pipeline", "standing_checks"} <= names


def test_the_job_holds_every_asset_and_runs_in_one_process(defs: dg.Definitions) -> None:
    job = defs.resolve_job_def("source_pipeline")
    assert {key.to_user_string() for key in job.asset_layer.selected_asset_keys} == set(ASSETS)
    assert job.executor_def.name == "in_process"


def test_the_standing_checks_hold_on_an_empty_home(defs: dg.Definitions) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        result = defs.resolve_job_def("standing_checks").execute_in_process(instance=instance)
    assert result.success
    evaluations = {e.check_name: e.passed for e in result.get_asset_check_evaluations()}
    assert evaluations == {
        "no_refused_source": True,
        "every_source_is_fresh": True,
        "every_file_was_read": True,
        "every_passage_has_a_vector": True,
    }


def test_every_asset_check_job_sensor_and_schedule_is_documented(defs: dg.Definitions) -> None:
    page = (Path(__file__).parents[2] / "docs" / "operating.md").read_text(encoding="utf-8")
    names = {
        key.replace("all-minilm-l6-v2-q8_0", "<model>").replace("all-minilm-l6-v2", "<model>") for key in specs(defs)
    }
    names |= {key.name for check in defs.asset_checks or [] for key in check.check_keys}
    names |= {"source_pipeline", "standing_checks"}
    names |= {sensor.name for sensor in defs.sensors or []} | {schedule.name for schedule in defs.schedules or []}
    assert [name for name in sorted(names) if f"`{name}`" not in page] == []
