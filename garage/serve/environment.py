"""The environment of everything that is Dagster's: one function says it, `.env` repeats it for a person's own shell."""

from __future__ import annotations

import os
import re
import tempfile
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import garage
from garage.config import FILE_VARIABLE, HOME_VARIABLE, Config
from garage.errors import GarageError
from garage.store.database import URL_VARIABLE, Server, ensure_database

DAGSTER_URL_VARIABLE = "GARAGE_DAGSTER_URL"
DAGSTER_DATABASE = "dagster"
# What `garage up` owns in `.env`; every other line there is somebody else's.
OWNED = (
    "DAGSTER_HOME",
    "DAGSTER_PG_URL",
    "GARAGE_STATE_DIR",
    HOME_VARIABLE,
    FILE_VARIABLE,
    URL_VARIABLE,
    DAGSTER_URL_VARIABLE,
)
_HEADING = "# Written by `garage up` for dagster and dg; other lines are left alone."
_PLAIN_VALUE = re.compile(r"[\w./:@?&=%+,~-]*")
_ASSIGNMENT = re.compile(r"\s*(?:export\s+)?(\w+)\s*=")


class CheckoutMissing(GarageError):
    """There is no `dagster.yaml` beside the package, so Dagster's services cannot be started (`root`)."""


class OrchestratorDatabase(GarageError):
    """The database of Dagster's runs and events cannot be named."""


def checkout() -> Path:
    """The folder that holds `dagster.yaml` and `workspace.yaml`. Raises CheckoutMissing."""
    root = Path(os.path.abspath(garage.__file__)).parent.parent
    if not (root / "dagster.yaml").is_file():
        raise CheckoutMissing(
            f"There is no dagster.yaml in {root}.",
            hint="Dagster's services run from a checkout of Garage: clone the repository and use its `make run`.",
            root=root,
        )
    return root


def dagster_url(config: Config) -> str:
    """Where Dagster keeps runs and events: GARAGE_DAGSTER_URL, else a place beside Garage's data, made when missing.

    On the embedded server that is a database of its own, on another one what the role may make there. Raises
    OrchestratorDatabase when GARAGE_DATABASE_URL is not written as a URL, which Dagster needs.
    """
    given = os.environ.get(DAGSTER_URL_VARIABLE)
    server = Server.of(config.home)
    if not given and server.embedded is not None:
        return server.embedded.url(DAGSTER_DATABASE)
    url = given or server.url()
    if urlsplit(url).scheme not in ("postgresql", "postgres"):
        raise OrchestratorDatabase(
            f"{DAGSTER_URL_VARIABLE if given else URL_VARIABLE} is not written as postgresql://...",
            hint=f"Dagster takes no other form; {DAGSTER_URL_VARIABLE} names another database for it.",
        )
    if not given:
        from garage.store.orchestrator import place

        url = place(url)
    # SQLAlchemy knows the scheme by one of its two names only.
    return urlsplit(url)._replace(scheme="postgresql").geturl()


def ensure_dagster_database(config: Config) -> None:
    """Makes Dagster's database on the embedded server; elsewhere `dagster_url` has made its place."""
    server = Server.of(config.home)
    if server.embedded is not None and not os.environ.get(DAGSTER_URL_VARIABLE):
        ensure_database(server.embedded.url("postgres"), DAGSTER_DATABASE)


def environment(config: Config) -> dict[str, str]:
    """What Dagster's processes need to know; only a server of GARAGE_DATABASE_URL is contacted for it.

    Raises CheckoutMissing and OrchestratorDatabase.
    """
    values = {
        "DAGSTER_HOME": str(checkout()),
        "DAGSTER_PG_URL": dagster_url(config),
        "GARAGE_STATE_DIR": str(config.home / "dagster"),
        HOME_VARIABLE: str(config.home),
    }
    if config.path != config.home / "garage.yaml":
        values[FILE_VARIABLE] = str(config.path)
    for name in (URL_VARIABLE, DAGSTER_URL_VARIABLE):
        if os.environ.get(name):
            values[name] = os.environ[name]
    return values


def subprocess_environment(config: Config) -> dict[str, str]:
    """This process's environment with `environment` over it, for a Dagster process started in GARAGE_HOME.

    There, no `.env` of another project is read; the checkout is importable from anywhere.
    """
    values = environment(config)
    inherited = {name: value for name, value in os.environ.items() if name not in OWNED}
    path = [values["DAGSTER_HOME"], *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**inherited, **values, "PYTHONPATH": os.pathsep.join(path), "PYTHONUNBUFFERED": "1"}


def prepare_folders(config: Config) -> None:
    """Makes the folders that Dagster's processes write to."""
    for folder in (config.home / "dagster", config.logs_dir):
        folder.mkdir(parents=True, exist_ok=True)


def write_dotenv(path: Path, values: dict[str, str]) -> bool:
    """Puts `values` into a `.env` file, in one step and readable by its owner only; True when that changed it.

    Lines about anything else stay as they are; a value that is no longer set goes.
    """
    try:
        before = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        before = ""
    foreign = [line for line in before.splitlines() if line != _HEADING and _assigned(line) not in OWNED]
    while foreign and not foreign[-1].strip():
        foreign.pop()
    lines = [*foreign, *([""] if foreign else []), _HEADING, *(f"{name}={_quoted(values[name])}" for name in values)]
    text = "\n".join(lines) + "\n"
    if text == before:
        return False
    replace_file(path, text, mode=0o600)
    return True


def replace_file(path: Path, text: str, *, mode: int) -> None:
    """Writes a file in one step: a reader finds the old text or the new, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(mode)
        Path(name).replace(path)
    finally:
        with suppress(FileNotFoundError):
            Path(name).unlink()


def _assigned(line: str) -> str:
    match = _ASSIGNMENT.match(line)
    return match.group(1) if match else ""


def _quoted(value: str) -> str:
    if _PLAIN_VALUE.fullmatch(value):
        return value
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
