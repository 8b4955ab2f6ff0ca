"""Every way of driving Dagster, on started services: each does the same work and leaves the same record."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

CHECKOUT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@dataclass
class Started:
    """A home whose services run, and the folder that its one source reads."""

    home: Path
    root: Path
    port: int

    def command(self, *words: str) -> str:
        """Runs a command in the checkout as a person does: `.env` there is all that names the instance."""
        plain = {name: value for name, value in os.environ.items() if not name.startswith(("GARAGE_", "DAGSTER_"))}
        plain["PATH"] = f"{BIN}:{plain['PATH']}"
        if words[0] == "garage":
            words = (sys.executable, "-m", *words)
            plain["GARAGE_HOME"] = str(self.home)
        finished = subprocess.run(
            words, check=False, cwd=CHECKOUT, env=plain, capture_output=True, text=True, timeout=300
        )
        assert finished.returncode == 0, f"{' '.join(words)}: {finished.stdout[-1500:]} {finished.stderr[-1500:]}"
        return finished.stdout

    def ask(self, query: str, **variables: Any) -> Any:
        """What the UI's own interface answers."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/graphql",
            data=json.dumps({"query": query, "variables": variables}).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.load(response)["data"]

    def runs(self) -> list[tuple[str, str, dict[str, str]]]:
        """Every run: job, status, tags."""
        found = self.ask("{runsOrError{... on Runs{results{jobName status tags{key value}}}}}")["runsOrError"][
            "results"
        ]
        return [(run["jobName"], run["status"], {tag["key"]: tag["value"] for tag in run["tags"]}) for run in found]

    def titles(self) -> set[str]:
        """Titles of the documents stored now."""
        from garage.store.cluster import Cluster
        from garage.store.database import Database

        with Database(Cluster(self.home).url("garage")) as database, database.connection() as conn:
            return {title for (title,) in conn.execute("select title from documents")}

    def write(self, title: str) -> None:
        (self.root / f"{title}.md").write_text(f"# {title}\n\nWritten for {title}.\n", encoding="utf-8")


def until(condition: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(1)


@pytest.fixture(scope="module")
def started(open_tmp: Path, models_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    home, root = open_tmp / "driving", tmp_path_factory.mktemp("driven")
    home.mkdir(mode=0o755)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = {
        "models_directory": str(models_dir),
        "dagster": {"port": port, "watch_seconds": 3600},  # the watch must not get there first
        "sources": [{"name": "driven", "root": str(root)}],
    }
    (home / "garage.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    dotenv = CHECKOUT / ".env"
    before = dotenv.read_bytes() if dotenv.exists() else None
    driven = Started(home, root, port)
    driven.write("first")
    try:
        driven.command("garage", "up")
        yield driven
    finally:
        driven.command("garage", "down")
        if before is None:
            dotenv.unlink(missing_ok=True)
        else:
            dotenv.write_bytes(before)


def finished(started: Started, tag: str, value: str | None = None) -> bool:
    """Whether a run of the source with this tag ended well; fails when it ended otherwise."""
    for _, status, tags in started.runs():
        if tags.get("dagster/partition") == "driven" and tag in tags and value in (None, tags[tag]):
            assert status != "FAILURE"
            if status == "SUCCESS":
                return True
    return False


def test_garage_update_runs_the_job_that_the_ui_shows(started: Started) -> None:
    started.write("update")
    said = json.loads(started.command("garage", "update", "--json"))
    assert said
    assert "update" in started.titles()
    assert finished(started, "garage/trigger", "garage update")


def test_dagster_asset_materialize_works_from_the_checkout(started: Started) -> None:
    started.write("materialize")
    select = ["--select", "source_files*", "--partition", "driven", "-m", "garage_assets.definitions"]
    started.command("dagster", "asset", "materialize", *select)
    assert "materialize" in started.titles()


def test_dg_launch_works_from_the_checkout(started: Started) -> None:
    started.write("launch")
    started.command("dg", "launch", "--assets", "*", "--partition", "driven")
    assert "launch" in started.titles()


def test_a_backfill_from_the_command_line_runs_in_the_queue(started: Started) -> None:
    started.write("backfill")
    job = ["-w", "workspace.yaml", "-j", "source_pipeline", "--partitions", "driven", "--noprompt"]
    started.command("dagster", "job", "backfill", *job)
    until(lambda: finished(started, "dagster/backfill"))
    assert "backfill" in started.titles()


def test_a_run_with_options_as_the_launchpad_starts_it(started: Started) -> None:
    started.command("garage", "update")
    for file in started.root.glob("*.md"):
        file.unlink()
    started.write("left")
    launch = """mutation($options: RunConfigData){launchRun(executionParams:{
        selector:{repositoryLocationName:"garage", repositoryName:"__repository__", jobName:"source_pipeline"},
        runConfigData:$options,
        executionMetadata:{tags:[{key:"dagster/partition",value:"driven"},{key:"asked",value:"launchpad"}]}})
        {__typename ... on PythonError{message}}}"""
    options = {"resources": {"options": {"config": {"allow_deletes": True}}}}
    assert started.ask(launch, options=options)["launchRun"]["__typename"] == "LaunchRunSuccess"
    until(lambda: finished(started, "asked", "launchpad"))
    assert started.titles() == {"left"}


def test_the_lineage_names_groups_kinds_and_descriptions(started: Started) -> None:
    nodes = started.ask("{assetNodes{assetKey{path} groupName kinds description isPartitioned opVersion}}")[
        "assetNodes"
    ]
    named = {"/".join(node["assetKey"]["path"]): node for node in nodes}
    embedded = "embeddings/all-minilm-l6-v2"
    assert set(named) == {"sources", "source_files", "documents", "attribution", "chunks", embedded}
    assert all(n["description"] and n["kinds"] and n["isPartitioned"] and n["opVersion"] for n in named.values())
