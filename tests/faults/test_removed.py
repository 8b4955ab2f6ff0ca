"""A source that is removed while a run of it waits."""

import threading
import time
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from garage.config import load
from garage.serve import configuration_file
from garage.store import sources


@pytest.mark.slow
def test_a_step_that_waits_while_its_source_is_removed_does_not_bring_it_back(spine: Any, folder: Path) -> None:
    (folder / "note.txt").write_text("a private note\n", encoding="utf-8")
    models = ["all-minilm-l6-v2", "all-minilm-l6-v2-q8_0"]
    spine.configure({"name": "lib", "root": folder}, embedding={"models": models})
    spine.walk()
    from garage_assets.definitions import defs
    from garage_assets.jobs import SOURCE_PIPELINE

    results: list[Any] = []

    def walk() -> None:
        with dg.DagsterInstance.ephemeral() as instance:
            instance.add_dynamic_partitions("source", ["lib"])
            results.append(
                defs.resolve_job_def(SOURCE_PIPELINE).execute_in_process(
                    instance=instance,
                    partition_key="lib",
                    asset_selection=[dg.AssetKey("source_files")],
                    run_config={"loggers": {"console": {"config": {"log_level": "ERROR"}}}},
                    raise_on_error=False,
                )
            )

    with spine.database.exclusive("ingest/lib"):
        run = threading.Thread(target=walk)
        run.start()
        waiting = (
            "select 1 from pg_stat_activity where datname = current_database()"
            " and application_name like 'garage run%%' and query like %s"
        )
        deadline = time.monotonic() + 60
        while not spine.rows(waiting, "select pg_try_advisory_lock%"):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        config = configuration_file.remove_source(load().path, "lib")
        with spine.database.transaction() as conn:
            sources.sync(conn, config.sources)
            sources.purge(conn, sources.source(conn, "lib").id)
    run.join()
    assert spine.state()["files"] == []
    assert not results[0].success
