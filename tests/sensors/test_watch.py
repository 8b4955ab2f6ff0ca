"""The watch on a real database: what it asks for, what it refuses, what it does not lose."""

import json
import shutil
from pathlib import Path
from typing import Any

import dagster as dg
import pytest


@pytest.fixture
def instance() -> Any:
    with dg.DagsterInstance.ephemeral() as opened:
        yield opened


class Watch:
    """Evaluates the sensor again and again, keeping its cursor as the daemon does."""

    def __init__(self, instance: dg.DagsterInstance) -> None:
        self.instance = instance
        self.cursor: str | None = None

    def tick(self) -> Any:
        from resources import GarageDatabase, GarageSettings
        from sensors import source_watch

        with dg.build_sensor_context(
            instance=self.instance,
            cursor=self.cursor,
            resources={"database": GarageDatabase(), "settings": GarageSettings()},
        ) as context:
            result = source_watch(context)
        assert isinstance(result, dg.SensorResult)
        self.cursor = result.cursor
        for request in result.dynamic_partitions_requests or []:
            assert isinstance(request, dg.AddDynamicPartitionsRequest)
            self.instance.add_dynamic_partitions("source", list(request.partition_keys))
        return result

    def asked(self) -> list[str | None]:
        return [request.partition_key for request in self.tick().run_requests or []]


@pytest.fixture
def watch(instance: dg.DagsterInstance) -> Watch:
    return Watch(instance)


def run(instance: dg.DagsterInstance, **options: bool) -> bool:
    from garage_assets.launch import launch

    return launch(instance, "lib", **options).success


def test_a_new_source_becomes_a_partition_and_is_asked_for_once(
    garage_home: Any, library: Path, watch: Watch, instance: dg.DagsterInstance
) -> None:
    garage_home.configure({"name": "lib", "root": library})
    assert watch.asked() == ["lib"]
    assert list(instance.get_dynamic_partitions("source")) == ["lib"]
    assert watch.asked() == []
    assert run(instance)
    assert watch.asked() == []


def test_a_change_is_asked_for_until_a_run_has_taken_it(
    garage_home: Any, library: Path, watch: Watch, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sensors import watch as module

    garage_home.configure({"name": "lib", "root": library})
    assert run(instance)
    assert watch.asked() == []
    (library / "new.md").write_text("# New\n\nA new note.\n", encoding="utf-8")
    first = watch.tick().run_requests
    assert [request.partition_key for request in first] == ["lib"]
    assert watch.asked() == [], "the same difference is not asked for twice in a moment"
    monkeypatch.setattr(module, "ASK_AGAIN_AFTER", 0.0)
    monkeypatch.setattr(module.Tick.ask, "__kwdefaults__", {"again_after": 0.0})
    again = watch.tick().run_requests
    assert [request.partition_key for request in again] == ["lib"], "a lost or failed run is asked for again"
    assert again[0].run_key != first[0].run_key
    assert run(instance)
    assert watch.asked() == []


def test_a_source_that_returns_to_an_earlier_state_is_not_dropped(
    garage_home: Any, library: Path, watch: Watch, instance: dg.DagsterInstance
) -> None:
    garage_home.configure({"name": "lib", "root": library})
    assert run(instance)
    keys = set()
    for _ in range(2):
        (library / "new.md").write_text("# New\n\nA new note.\n", encoding="utf-8")
        (request,) = watch.tick().run_requests
        keys.add(request.run_key)
        assert run(instance)
        assert watch.asked() == []
        (library / "new.md").unlink()
        (request,) = watch.tick().run_requests
        keys.add(request.run_key)
        assert run(instance)
        assert watch.asked() == []
    assert len(keys) == 4


def test_a_mass_deletion_is_refused_in_the_tick_and_shown(
    garage_home: Any, library: Path, watch: Watch, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    from garage.store import runs
    from garage.store.database import Database

    def refusals() -> list[str]:
        with Database(garage_home.database_url) as database, database.connection() as conn:
            return [refusal.source for refusal in runs.refusals(conn)]

    garage_home.configure({"name": "lib", "root": library})
    assert run(instance)
    shutil.move(library / "notes", tmp_path / "elsewhere")
    result = watch.tick()
    assert not result.run_requests
    assert "8 of 10" in result.skip_reason.skip_message
    (evaluation,) = result.asset_events
    assert evaluation.check_name == "no_refused_source"
    assert not evaluation.passed
    assert refusals() == ["lib"]
    assert not watch.tick().asset_events[0].passed, "said again at every tick"
    shutil.move(tmp_path / "elsewhere", library / "notes")
    result = watch.tick()
    assert result.asset_events[0].passed
    assert refusals() == []
    assert not watch.tick().asset_events


def test_an_unmounted_root_is_refused_and_asked_for_when_it_is_back(
    garage_home: Any, library: Path, watch: Watch, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    garage_home.configure({"name": "lib", "root": library})
    assert run(instance)
    shutil.move(library, tmp_path / "elsewhere")
    result = watch.tick()
    assert not result.run_requests
    assert "Nothing was deleted" in result.skip_reason.skip_message
    shutil.move(tmp_path / "elsewhere", library)
    (library / "new.md").write_text("# New\n\nWritten elsewhere.\n", encoding="utf-8")
    assert watch.asked() == ["lib"]


def test_a_source_that_is_slow_to_walk_is_not_walked_in_the_tick(
    garage_home: Any, library: Path, watch: Watch, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    from garage.store.database import Database

    garage_home.configure({"name": "lib", "root": library})
    assert run(instance)
    with Database(garage_home.database_url) as database, database.connection() as conn:
        conn.execute("update sources set walk_seconds = 5, walked_at = now() - interval '1 hour'")
    monkeypatch.setattr("garage.stages.preview", lambda *_: pytest.fail("the tick walked a slow source"))
    assert watch.asked() == ["lib"]
    assert watch.asked() == []


def test_a_retired_source_is_not_asked_for_and_keeps_its_partition(
    garage_home: Any, library: Path, watch: Watch, instance: dg.DagsterInstance
) -> None:
    garage_home.configure({"name": "lib", "root": library})
    assert watch.asked() == ["lib"]
    garage_home.configure()
    (library / "new.md").write_text("# New\n\nA new note.\n", encoding="utf-8")
    assert watch.asked() == []
    assert list(instance.get_dynamic_partitions("source")) == ["lib"]


def test_the_nightly_schedule_asks_for_every_active_source(garage_home: Any, library: Path, tmp_path: Path) -> None:
    from datetime import UTC, datetime

    from resources import GarageDatabase, GarageSettings
    from sensors import nightly

    other = tmp_path / "other"
    other.mkdir()
    garage_home.configure({"name": "lib", "root": library}, {"name": "other", "root": other})
    with (
        dg.instance_for_test() as instance,
        dg.build_schedule_context(
            instance=instance,
            scheduled_execution_time=datetime(2026, 1, 2, 3, tzinfo=UTC),
            resources={"database": GarageDatabase(), "settings": GarageSettings()},
        ) as context,
    ):
        requests = list(nightly(context))  # type: ignore[arg-type]  # a generator here, among all it may be
    assert [request.partition_key for request in requests] == ["lib", "other"]
    assert len({request.run_key for request in requests}) == 2


def test_the_cursor_is_plain_json(garage_home: Any, library: Path, watch: Watch) -> None:
    garage_home.configure({"name": "lib", "root": library})
    watch.tick()
    assert set(json.loads(watch.cursor or "")) == {"asked", "last", "refused"}
