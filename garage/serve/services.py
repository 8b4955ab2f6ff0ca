"""`garage up` and `garage down`: Postgres, Dagster's web server and its daemon on this machine."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout

from garage.config import Config
from garage.errors import GarageError
from garage.serve import processes
from garage.serve.environment import (
    checkout,
    ensure_dagster_database,
    environment,
    prepare_folders,
    replace_file,
    subprocess_environment,
    write_dotenv,
)
from garage.serve.opening import opened
from garage.serve.processes import Service
from garage.store.database import Server

WEBSERVER, DAEMON = "webserver", "daemon"
START_SECONDS = 180.0
_BUSY_SECONDS = 20.0  # a server at work may be slow to answer, which is no reason to restart it
_LOCK_SECONDS = 300.0
_SETTLING_SECONDS = 1.0  # a daemon that cannot run ends within this
_CODE = ("garage", "garage_assets", "resources", "sensors")
_CODE_SUFFIXES = (".py", ".sql", ".yaml")

Change = Literal["started", "restarted", "already running"]
Tell = Callable[[str], None]


class ServiceFailed(GarageError):
    """A service ended right after its start, or did not answer in time (`service`, `log`)."""


@dataclass(frozen=True, slots=True)
class Up:
    """What `garage up` found and did. `problems` are reasons why Dagster could not load Garage's definitions."""

    url: str
    postgres: Literal["started", "already running", "external"]
    webserver: Change
    daemon: Change
    reloaded: bool
    dotenv: Path
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Down:
    """What `garage down` stopped, by name."""

    stopped: tuple[str, ...]
    external_database: bool


def up(config: Config, *, tell: Tell) -> Up:
    """Starts what is missing and restarts what runs with other settings than the present ones.

    Raises ServiceFailed, and what the database and the environment raise.
    """
    root, values = checkout(), environment(config)
    with _alone(config.home, tell):
        started = not _database_runs(config.home)
        if started:
            tell("Starting the database")
        with opened(config):
            ensure_dagster_database(config)
        prepare_folders(config)
        write_dotenv(root / ".env", values)
        web, web_change = _ensure_webserver(config, root, tell)
        _, daemon_change = _ensure_daemon(config, root, tell)
        reloaded = _reload_if_changed(config, web.url, fresh=web_change != "already running", tell=tell)
        problems = _load_errors(web.url, again=not reloaded and web_change == "already running")
    external = Server.of(config.home).embedded is None
    return Up(
        url=web.url,
        postgres="external" if external else ("started" if started else "already running"),
        webserver=web_change,
        daemon=daemon_change,
        reloaded=reloaded,
        dotenv=root / ".env",
        problems=problems,
    )


def down(home: Path, *, tell: Tell) -> Down:
    """Stops the web server, the daemon, what runs in them, and the embedded Postgres, in this order.

    Postgres goes last: a run that is being stopped writes down how far it came.
    """
    stopped: list[str] = []
    if not home.exists():
        return Down((), external_database=Server.of(home).embedded is None)
    with _alone(home, tell):
        found = [service for name in (DAEMON, WEBSERVER) if (service := processes.running(home, name))]
        if found:
            tell("Stopping Dagster")
            processes.stop(home, found)
            stopped += [service.name for service in found]
        cluster = Server.of(home).embedded
        if cluster is not None and cluster.is_running():
            tell("Stopping the database")
            if cluster.stop():
                stopped.append("postgres")
    return Down(tuple(stopped), external_database=cluster is None)


def definitions_changed(config: Config, *, tell: Tell) -> bool:
    """Has a running web server read the definitions anew where the configuration shapes them differently now.

    False when nothing runs or nothing changed.
    """
    web = processes.running(config.home, WEBSERVER)
    return web is not None and _reload_if_changed(config, web.url, fresh=False, tell=tell)


def _database_runs(home: Path) -> bool:
    cluster = Server.of(home).embedded
    return cluster is None or cluster.is_running()


@contextmanager
def _alone(home: Path, tell: Tell) -> Iterator[None]:
    """One `up` or `down` of a home at a time."""
    folder = home / "services"
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / "lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        tell("Another `garage up` or `garage down` is at work; waiting for it")
        lock.acquire(timeout=_LOCK_SECONDS)
    try:
        yield
    finally:
        lock.release()


def _ensure_webserver(config: Config, root: Path, tell: Tell) -> tuple[Service, Change]:
    from garage.serve import webserver

    fingerprint = _settings_fingerprint(config, root)
    found = processes.running(config.home, WEBSERVER)
    if found is not None and found.fingerprint == fingerprint and _answers(found, seconds=_BUSY_SECONDS):
        return found, "already running"
    if found is not None:
        tell("Restarting the Dagster UI: what it was started with has changed, or it does not answer")
        processes.stop(config.home, [found], with_children=False)
    else:
        tell("Starting the Dagster UI (some ten seconds)")
    port = webserver.free_port(config.dagster.port)
    command = [sys.executable, "-m", "dagster_webserver", "-h", webserver.HOST, "-p", str(port)]
    service = processes.start(
        config.home,
        WEBSERVER,
        [*command, "-w", str(root / "workspace.yaml")],
        environment=subprocess_environment(config),
        log=config.logs_dir / "webserver.log",
        fingerprint=fingerprint,
        url=webserver.url_of(port),
    )
    if not _answers(service, seconds=START_SECONDS):
        ended = not processes.is_alive(service)
        raise _failed(service, "ended right after its start" if ended else f"did not answer in {START_SECONDS:.0f} s")
    return service, "started" if found is None else "restarted"


def _answers(service: Service, *, seconds: float) -> bool:
    """Whether a web server answers within `seconds`; False as soon as its process has ended."""
    from garage.serve.webserver import answers

    deadline = time.monotonic() + seconds
    while not answers(service.url):
        if not processes.is_alive(service) or time.monotonic() > deadline:
            return False
        time.sleep(0.2)
    return True


def _ensure_daemon(config: Config, root: Path, tell: Tell) -> tuple[Service, Change]:
    fingerprint = _settings_fingerprint(config, root)
    found = processes.running(config.home, DAEMON)
    if found is not None and found.fingerprint == fingerprint:
        return found, "already running"
    if found is not None:
        tell("Restarting the daemon: what it was started with has changed")
        processes.stop(config.home, [found], with_children=False)
    service = processes.start(
        config.home,
        DAEMON,
        [sys.executable, "-m", "dagster._daemon", "run", "-w", str(root / "workspace.yaml")],
        environment=subprocess_environment(config),
        log=config.logs_dir / "daemon.log",
        fingerprint=fingerprint,
    )
    if processes.wait_until_ended(service, seconds=_SETTLING_SECONDS):
        raise _failed(service, "ended right after its start")
    return service, "started" if found is None else "restarted"


def _failed(service: Service, what: str) -> ServiceFailed:
    log = Path(service.log)
    return ServiceFailed(
        f"The Dagster {service.name} {what}: {processes.last_words(log, lines=1) or 'it said nothing'}",
        hint=f"Its log is {log}. `garage up` tries again.",
        service=service.name,
        log=log,
    )


def _load_errors(url: str, *, again: bool) -> tuple[str, ...]:
    """Why the definitions are not loaded; `again` has them loaded once more first, where they failed earlier."""
    from garage.serve import webserver

    errors = webserver.load_errors(url)
    if errors and again:
        webserver.reload(url)
        errors = webserver.load_errors(url)
    return tuple(errors)


def _settings_fingerprint(config: Config, root: Path) -> str:
    """Of what a service reads once, when it starts: its environment, the instance's settings, Dagster itself."""
    digest = hashlib.sha256(json.dumps(environment(config), sort_keys=True).encode())
    for name in ("dagster.yaml", "workspace.yaml"):
        digest.update((root / name).read_bytes())
    digest.update(importlib.metadata.version("dagster").encode())
    return digest.hexdigest()


def _definitions_fingerprint(config: Config, root: Path) -> str:
    """Of what shapes the definitions: code, and the configuration but for what every run reads anew."""
    digest = hashlib.sha256(config.model_dump_json(exclude={"sources", "search"}).encode())
    for folder in _CODE:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in _CODE_SUFFIXES:
                stat = path.stat()
                digest.update(f"{path}\0{stat.st_size}\0{stat.st_mtime_ns}\0".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _reload_if_changed(config: Config, url: str, *, fresh: bool, tell: Tell) -> bool:
    from garage.serve import webserver

    record = config.home / "services" / "definitions"
    fingerprint = _definitions_fingerprint(config, checkout())
    if record.exists() and record.read_text(encoding="utf-8") == fingerprint:
        return False
    if not fresh:
        tell("Reloading the definitions in the Dagster UI")
        webserver.reload(url)
    replace_file(record, fingerprint, mode=0o600)
    return not fresh
