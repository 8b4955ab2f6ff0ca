"""Documents a second from a folder of Markdown files into Postgres, without embedding; and how memory grows.

`python -m bench.ingest [--files N]` makes the files, starts a Postgres of its own, and ingests them in a fresh process,
once with a quarter of the files and once with all of them: memory that is flat is the same in both.
"""

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# fmt: off
WORDS = [
    "orchard", "cellar", "invoice", "meeting", "harvest", "boiler", "contract", "engine", "letter", "garden",
    "budget", "river", "winter", "neighbour", "bridge", "recipe", "journey", "compass", "lantern", "timber", "market",
    "ledger", "pattern", "copper", "quarry", "signal", "harbour", "meadow", "archive", "museum",
]
# fmt: on


def make_markdown(root: Path, files: int, *, words: int = 300, seed: int = 1) -> None:
    """Writes `files` Markdown notes of about `words` words each, in folders of a hundred."""
    chosen = random.Random(seed)
    for number in range(files):
        folder = root / f"{number // 100:04d}"
        folder.mkdir(parents=True, exist_ok=True)
        lines = [f"---\ntitle: Note {number}\ntags: [{chosen.choice(WORDS)}]\n---\n# Note {number}\n"]
        for section in range(3):
            text = " ".join(chosen.choices(WORDS, k=words // 3))
            lines.append(f"## Section {section}\n\n{text.capitalize()}.\n")
        (folder / f"note-{number:06d}.md").write_text("\n".join(lines), encoding="utf-8")


@contextmanager
def home_of_its_own() -> Iterator[Path]:
    """A GARAGE_HOME with a running Postgres, gone at the end; the environment names it."""
    from garage.store.cluster import Cluster
    from garage.store.database import Database, Server
    from garage.store.schema import migrate

    with tempfile.TemporaryDirectory(prefix="garage-bench-") as name:
        home = Path(name) / "home"
        Path(name).chmod(0o711)
        home.mkdir(mode=0o755)
        before = dict(os.environ)
        os.environ["GARAGE_HOME"] = str(home)
        os.environ.pop("GARAGE_DATABASE_URL", None)
        os.environ.pop("GARAGE_CONFIG", None)
        try:
            server = Server.of(home)
            server.start()
            with Database(server.url()) as database:
                migrate(database)
            yield home
        finally:
            Cluster(home).stop()
            os.environ.clear()
            os.environ.update(before)


def write_config(home: Path, *sources: tuple[str, Path], models_dir: Path | None = None) -> None:
    """A configuration of these sources, with the default model."""
    from platformdirs import user_cache_path

    directory = models_dir or Path(
        os.environ.get("GARAGE_MODELS_DIR", str(user_cache_path("garage", appauthor=False) / "models"))
    )
    settings = {
        "models_directory": str(directory),
        "sources": [{"name": name, "root": str(root)} for name, root in sources],
    }
    (home / "garage.yaml").write_text(json.dumps(settings), encoding="utf-8")


def ingest_here(slug: str) -> dict[str, float]:
    """Walks and reads one source in this process: documents a second, and this process's peak memory in MiB."""
    from garage import stages, worklist
    from garage.config import home, load
    from garage.store.database import Database, Server

    config = load()
    with Database(Server.of(home()).url()) as database:
        row = stages.source(database, config, slug)
        walked = stages.walk(database, config, row)
        started = time.perf_counter()
        report = worklist.run(database, stages.documents(database, config, row))
        seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    workers = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    written = report.counts["documents_written"]
    return {
        "documents": written,
        "chunks": report.counts["chunks_written"],
        "walk_seconds": walked.seconds,
        "seconds": seconds,
        "documents_per_second": written / seconds,
        "peak_mib": peak,
        "largest_worker_mib": workers,
    }


def measure(*, files: int = 2000) -> dict[str, Any]:
    """Ingests `files` documents and a quarter of them, each in a fresh process and an empty source."""
    runs: dict[str, Any] = {}
    with home_of_its_own() as home:
        roots = {"quarter": files // 4, "all": files}
        for name, count in roots.items():
            make_markdown(home.parent / name, count, seed=count)
        write_config(home, *((name, home.parent / name) for name in roots))
        for name in roots:
            finished = subprocess.run(
                [sys.executable, "-m", "bench.ingest", "--here", name], check=True, capture_output=True, text=True
            )
            runs[name] = json.loads(finished.stdout)
    return {
        **runs,
        "documents_per_second": round(runs["all"]["documents_per_second"], 1),
        "target": 250,
        "memory_growth": round(runs["all"]["peak_mib"] / runs["quarter"]["peak_mib"], 3),
    }


def main() -> None:
    """The module's command line."""
    parser = argparse.ArgumentParser(prog="bench.ingest", description=__doc__)
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--here", metavar="SOURCE", help="ingest one source of the environment's home in this process")
    asked = parser.parse_args()
    print(json.dumps(ingest_here(asked.here) if asked.here else measure(files=asked.files), indent=2))


if __name__ == "__main__":
    main()
