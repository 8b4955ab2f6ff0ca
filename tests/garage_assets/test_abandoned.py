"""A run whose command was killed is closed; one that is alive is not."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from garage.store.database import Database

CHECKOUT = Path(__file__).resolve().parents[2]


@pytest.fixture
def instance() -> Any:
    with dg.DagsterInstance.ephemeral() as opened:
        yield opened


def started_run(instance: dg.DagsterInstance, run_id: str) -> None:
    from garage_assets.definitions import defs
    from garage_assets.partitions import BY_COMMAND, TRIGGER_TAG

    job = defs.resolve_job_def("source_pipeline")
    instance.create_run_for_job(
        job,
        run_id=run_id,
        status=dg.DagsterRunStatus.STARTED,
        tags={TRIGGER_TAG: BY_COMMAND, "dagster/partition": "lib"},
    )


def test_a_run_is_closed_once_its_command_is_gone(garage_home: Any, database: Database, instance: Any) -> None:
    from garage_assets.abandoned import close_abandoned, run_lock

    with run_lock(database) as run_id:
        started_run(instance, run_id)
        assert close_abandoned(instance, database) == []
        assert instance.get_run_by_id(run_id).status == dg.DagsterRunStatus.STARTED
    assert close_abandoned(instance, database) == [run_id]
    assert instance.get_run_by_id(run_id).status == dg.DagsterRunStatus.FAILURE
    assert close_abandoned(instance, database) == []


def test_a_kill_releases_the_lock(garage_home: Any, database: Database, instance: Any) -> None:
    from garage_assets.abandoned import close_abandoned

    script = """
        import os, signal, sys
        from garage.store.database import Database
        from garage_assets.abandoned import run_lock
        with Database(os.environ["GARAGE_DATABASE_URL"]) as database, run_lock(database) as run_id:
            print(run_id, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
    """
    killed = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        timeout=60,
    )
    assert killed.returncode == -9
    run_id = killed.stdout.strip()
    started_run(instance, run_id)
    assert close_abandoned(instance, database) == [run_id]
