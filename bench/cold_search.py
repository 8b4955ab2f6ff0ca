"""Seconds of `garage search` from a cold shell: process start, imports, model, query, answer.

`python -m bench.cold_search` fills a small library first; the page cache is warm, the processes are not.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench.ingest import home_of_its_own, make_markdown, write_config


def measure(*, files: int = 60, rounds: int = 7) -> dict[str, Any]:
    """Medians over `rounds` processes, in hybrid and in keyword mode."""
    from garage import stages, worklist
    from garage.config import load
    from garage.inference.catalogue import entries
    from garage.inference.embedder import open_embedder
    from garage.store.database import Database, Server

    seconds: dict[str, list[float]] = {"hybrid": [], "keyword": []}
    with home_of_its_own() as home:
        make_markdown(home.parent / "notes", files)
        write_config(home, ("notes", home.parent / "notes"))
        config = load()
        entry = entries(config.models)[config.embedding.default]
        embedder = open_embedder(entry, config.models_dir)
        with Database(Server.of(home).url()) as database:
            row = stages.source(database, config, "notes")
            stages.walk(database, config, row)
            worklist.run(database, stages.documents(database, config, row))
            worklist.run(database, stages.vectors(database, config, row, entry, load=lambda: embedder))
        embedder.close()
        command = [sys.executable, "-m", "garage", "search", "harvest in the orchard", "-n", "3", "--json"]
        env = {**os.environ, "PYTHONPATH": str(Path.cwd())}
        for _ in range(rounds):
            for mode, taken in seconds.items():
                started = time.perf_counter()
                finished = subprocess.run(
                    [*command, "--mode", mode], check=True, capture_output=True, text=True, env=env, cwd=home
                )
                taken.append(time.perf_counter() - started)
                assert json.loads(finished.stdout)["hits"]
    return {**{mode: round(statistics.median(taken), 3) for mode, taken in seconds.items()}, "target": 1.5}


if __name__ == "__main__":
    print(json.dumps(measure(), indent=2))
