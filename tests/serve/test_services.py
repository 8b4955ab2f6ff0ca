"""`garage up` and `garage down`, with the real Postgres and the real Dagster."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml
from dotenv import dotenv_values

from garage.config import home as garage_home_path
from garage.serve.processes import Service, running
from garage.serve.webserver import answers
from garage.store.cluster import Cluster

CHECKOUT = Path(__file__).resolve().parents[2]
MINILM, Q8 = "all-minilm-l6-v2", "all-minilm-l6-v2-q8_0"
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def port() -> int:
    """A port that was free a moment ago."""
    with closing(socket.socket()) as sock:
        sock.bind(("127.0.0.1", 0))
        found: int = sock.getsockname()[1]
        return found


@pytest.fixture
def home(plain_home: Path, models_dir: Path, port: int) -> Path:
    plain_home.mkdir()
    configure(plain_home, models_dir, port, MINILM)
    return plain_home


def configure(home: Path, models_dir: Path, port: int, *models: str) -> None:
    settings = {
        "models_directory": str(models_dir),
        "dagster": {"port": port},
        "embedding": {"models": list(models), "default": models[0]},
    }
    (home / "garage.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")


@pytest.fixture
def run(home: Path, checkout: Path) -> Iterator[Run]:
    """Runs a command out of a checkout of this test's own; whatever it started is stopped in the end."""

    def call(*arguments: str, prefix: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*prefix, sys.executable, "-m", "garage", *arguments],
            env={**os.environ, "PYTHONPATH": str(checkout)},
            cwd=checkout,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )

    yield call
    call("down")
    assert not Cluster(home).is_running()


def service(name: str) -> Service:
    found = running(garage_home_path(), name)
    assert found is not None, name
    return found


def session(leader: int) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == leader and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (ProcessLookupError, psutil.NoSuchProcess):
            continue
    return found


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_everything_starts_once_is_found_again_and_stops(run: Run, home: Path, checkout: Path, port: int) -> None:
    (checkout / ".env").write_text("TOKEN=mine\n", encoding="utf-8")
    first = run("up")
    assert first.returncode == 0, first.stderr
    url = f"http://127.0.0.1:{port}"
    assert url in first.stdout
    assert answers(url)
    assert Cluster(home).is_running()
    values = dotenv_values(checkout / ".env")
    assert (values["TOKEN"], values["GARAGE_HOME"], values["DAGSTER_HOME"]) == ("mine", str(home), str(checkout))
    web, daemon = service("webserver"), service("daemon")

    status = run("status").stdout
    assert f"Dagster UI  running  {url}" in status
    assert f"Daemon      running  process {daemon.pid}" in status

    second = run("up")
    assert second.returncode == 0
    assert second.stdout.count("already running") == 3
    assert (service("webserver"), service("daemon")) == (web, daemon)

    os.kill(web.pid, signal.SIGKILL)
    third = run("up")
    assert third.returncode == 0
    assert "Daemon      already running" in third.stdout
    assert service("webserver").pid != web.pid
    assert service("daemon") == daemon
    assert answers(url)

    leaders = [service("webserver").pid, daemon.pid]
    down = run("down")
    assert down.stdout.strip() == "Stopped the Dagster UI, its daemon and Postgres."
    assert [process.cmdline() for leader in leaders for process in session(leader)] == []
    assert not Cluster(home).is_running()
    assert not answers(url)
    assert run("down").stdout.strip() == "Nothing was running."


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_two_at_once_start_one_of_each_beside_a_port_that_is_taken(run: Run, home: Path, port: int) -> None:
    # A script's background job has SIGINT ignored, which Dagster's services must not inherit.
    ignoring = ("sh", "-c", "trap '' INT; exec \"$@\"", "sh")
    with closing(socket.socket()) as sock, ThreadPoolExecutor(2) as pool:
        sock.bind(("127.0.0.1", port))
        sock.listen()
        both = list(pool.map(lambda _: run("up", prefix=ignoring), range(2)))
    assert [ran.returncode for ran in both] == [0, 0], [ran.stderr for ran in both]
    web, daemon = service("webserver"), service("daemon")
    assert web.url != f"http://127.0.0.1:{port}"
    assert all(web.url in ran.stdout for ran in both)
    assert sorted(ran.stdout.count("already running") for ran in both) == [0, 3]
    commands = [" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"])]
    assert sum(" ".join(web.command) in command for command in commands) == 1
    for started in (web, daemon):
        status = Path(f"/proc/{started.pid}/status").read_text(encoding="utf-8")
        (ignored,) = [line.split()[1] for line in status.splitlines() if line.startswith("SigIgn:")]
        assert not int(ignored, 16) & 1 << (signal.SIGINT - 1)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_running_ui_follows_the_configuration(run: Run, home: Path, port: int, models_dir: Path) -> None:
    configure(home, models_dir, port, "no-such-model")
    broken = run("up")
    assert broken.returncode == 1
    assert "could not load Garage's definitions" in broken.stdout
    assert "Traceback" not in broken.stdout + broken.stderr

    configure(home, models_dir, port, MINILM)
    web = service("webserver")
    mended = run("up", "--json")
    assert mended.returncode == 0, mended.stderr
    assert '"reloaded": true' in mended.stdout
    assert assets(web.url) >= {"documents", f"embeddings/{MINILM}"}

    added = run("models", "add", Q8)
    assert added.returncode == 0, added.stderr
    assert "shows its asset now" in added.stdout
    assert f"embeddings/{Q8}" in assets(web.url)
    assert service("webserver") == web


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_service_with_other_settings_is_restarted(
    run: Run, home: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("up").returncode == 0
    web, daemon = service("webserver"), service("daemon")
    instance = checkout / "dagster.yaml"
    text = instance.read_text(encoding="utf-8")
    instance.unlink()
    instance.write_text(text.replace("max_concurrent_runs: 4", "max_concurrent_runs: 3"), encoding="utf-8")
    again = run("up")
    assert again.returncode == 0, again.stderr
    assert again.stdout.count("restarted") == 2
    assert service("webserver").pid != web.pid
    assert service("webserver").url == web.url
    assert service("daemon").pid != daemon.pid


@pytest.mark.slow
def test_a_command_starts_the_database_and_leaves_it_running(run: Run, home: Path) -> None:
    listed = run("source", "list")
    assert listed.returncode == 0, listed.stderr
    assert Cluster(home).is_running()
    assert "Postgres    running" in run("status").stdout
    assert run("search", "anything", "--mode", "keyword").returncode == 0
    assert run("down").stdout.strip() == "Stopped Postgres."


def test_a_server_of_one_s_own_is_not_stopped(garage: Any, garage_home: Any) -> None:
    answer = garage("down")
    assert answer.code == 0
    assert answer.out.splitlines() == [
        "Nothing was running.",
        "The database of GARAGE_DATABASE_URL is not Garage's to stop.",
    ]


def test_stopping_what_was_never_there_makes_nothing(garage: Any, plain_home: Path) -> None:
    answer = garage("down", "--json")
    assert answer.data == {"stopped": [], "external_database": False}
    assert not plain_home.exists()


def assets(url: str) -> set[str]:
    """Keys of the assets that a web server shows."""
    from garage.serve.webserver import _ask

    nodes = _ask(url, "query { assetNodes { assetKey { path } } }")["assetNodes"]
    return {"/".join(node["assetKey"]["path"]) for node in nodes}
