"""What `garage update` costs when nothing changed, against the same Dagster job with empty asset bodies.

`python -m bench.update [--files N]` fills a source of N small files once (with made-up vectors, which nothing here
reads), then runs the job with nothing to do and the
empty job in turn, each in a fresh process against the same instance, and prints medians and the ratio.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench.ingest import home_of_its_own, write_config

SOURCE = "small"


def make_small_files(root: Path, files: int) -> None:
    """Writes `files` notes of one line each, in folders of a thousand."""
    for number in range(files):
        folder = root / f"{number // 1000:04d}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number:06d}.txt").write_text(f"Note {number} of the log.\n", encoding="utf-8")


def empty_job_here() -> float:
    """Runs the pipeline's job with assets and checks whose bodies do nothing, in this process; its seconds."""
    import dagster as dg

    from garage_assets.definitions import defs
    from garage_assets.jobs import SOURCE_PIPELINE

    def empty(asset: dg.AssetsDefinition) -> dg.AssetsDefinition:
        spec = next(iter(asset.specs))

        @dg.asset(
            key=spec.key,
            deps=list(spec.deps),
            partitions_def=asset.partitions_def,
            group_name=spec.group_name,
            code_version=spec.code_version,
            pool=next(iter(asset.op.pools), None) if hasattr(asset, "op") else None,
            required_resource_keys={"database", "options"},
        )
        def body() -> dg.MaterializeResult[None]:
            return dg.MaterializeResult(metadata={"seconds": 0.0}, data_version=dg.DataVersion("empty"))

        return body

    def passing(check: dg.AssetCheckKey) -> dg.AssetChecksDefinition:
        @dg.asset_check(asset=check.asset_key, name=check.name)
        def body() -> dg.AssetCheckResult:
            return dg.AssetCheckResult(passed=True)

        return body

    keys = [key for check in defs.asset_checks or [] for key in check.check_keys]
    bodies = [empty(a) for a in defs.assets or [] if isinstance(a, dg.AssetsDefinition)]
    job = dg.define_asset_job(SOURCE_PIPELINE, executor_def=dg.in_process_executor)
    twin = dg.Definitions(
        assets=bodies,
        asset_checks=[passing(key) for key in keys],
        jobs=[job],
        resources=defs.resources,
        executor=dg.in_process_executor,
    )
    quiet = {"loggers": {"console": {"config": {"log_level": "ERROR"}}}}
    with dg.DagsterInstance.get() as instance:
        started = time.perf_counter()
        result = twin.resolve_job_def(SOURCE_PIPELINE).execute_in_process(
            instance=instance, partition_key=SOURCE, run_config=quiet
        )
        assert result.success
        return time.perf_counter() - started


def update_here() -> float:
    """Runs the pipeline's job in this process; its seconds."""
    import dagster as dg

    from garage_assets.launch import launch

    with dg.DagsterInstance.get() as instance:
        started = time.perf_counter()
        assert launch(instance, SOURCE).success
        return time.perf_counter() - started


def fill(slug: str) -> float:
    """Walks, reads and gives vectors to a source without Dagster or a model; seconds."""
    from garage import stages, worklist
    from garage.config import home, load
    from garage.inference.catalogue import entries
    from garage.inference.testing import HashEmbedder
    from garage.store.database import Database, Server

    config = load()
    entry = entries(config.models)[config.embedding.default]
    started = time.perf_counter()
    with Database(Server.of(home()).url()) as database:
        row = stages.source(database, config, slug)
        stages.walk(database, config, row)
        worklist.run(database, stages.documents(database, config, row))
        made_up = HashEmbedder(slug=entry.slug, dims=entry.stored_dims)
        worklist.run(database, stages.vectors(database, config, row, entry, load=lambda: made_up), ahead=2)
    return time.perf_counter() - started


def measure(*, files: int = 30_000, rounds: int = 9) -> dict[str, Any]:
    """Seconds of the job with nothing to do and of the empty job, in turn: medians, and the median of the ratios.

    The first round is not counted: what was filled in a moment ago is still being vacuumed and analyzed.
    """
    from garage.config import load
    from garage.serve.environment import ensure_dagster_database, environment, prepare_folders

    seconds: dict[str, list[float]] = {"update": [], "empty": []}
    with home_of_its_own() as home:
        make_small_files(home.parent / SOURCE, files)
        write_config(home, (SOURCE, home.parent / SOURCE))
        prepare_folders(load())
        ensure_dagster_database(load())
        env = {**os.environ, **environment(load()), "PYTHONPATH": str(Path.cwd())}
        first = fill(SOURCE)
        for number in range(rounds + 1):
            for name, taken in seconds.items():
                measured = _timed(["--here", name], env, home)
                if number:
                    taken.append(measured)
    pairs = [update / empty for update, empty in zip(seconds["update"], seconds["empty"], strict=True)]
    return {
        "files": files,
        "filling_seconds": round(first, 2),
        "update_seconds": round(statistics.median(seconds["update"]), 3),
        "empty_job_seconds": round(statistics.median(seconds["empty"]), 3),
        "ratio": round(statistics.median(pairs), 3),
        "target": 1.5,
    }


def _timed(arguments: list[str], env: dict[str, str], home: Path) -> float:
    finished = subprocess.run(
        [sys.executable, "-m", "bench.update", *arguments],
        check=True,
        capture_output=True,
        text=True,
        env=env,
        cwd=home,
    )
    return float(finished.stdout.strip().splitlines()[-1])


def main() -> None:
    """The module's command line."""
    parser = argparse.ArgumentParser(prog="bench.update", description=__doc__)
    parser.add_argument("--files", type=int, default=30_000)
    parser.add_argument("--here", choices=("update", "empty"), help="one run in this process; prints its seconds")
    asked = parser.parse_args()
    if asked.here:
        print(update_here() if asked.here == "update" else empty_job_here())
    else:
        print(json.dumps(measure(files=asked.files), indent=2))


if __name__ == "__main__":
    main()
