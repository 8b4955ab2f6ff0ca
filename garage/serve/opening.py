"""Reaching the database from a command: found where it runs, started where it does not, its schema up to date."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from garage.config import Config
from garage.store import sources
from garage.store.database import Database, Server
from garage.store.schema import migrate

NAME = "garage command"  # how Postgres's own views call these connections


@contextmanager
def opened(config: Config, *, sync: bool = True, starting: Callable[[], None] = lambda: None) -> Iterator[Database]:
    """The database, with the embedded server started on demand (`starting` is called before that).

    `sync` makes the table of sources say what the configuration says.
    """
    server = Server.of(config.home)
    if server.embedded is not None and not server.embedded.is_running():
        starting()
    server.start()
    with Database(server.url(), name=NAME) as database:
        migrate(database)
        if sync:
            with database.transaction() as conn:
                sources.sync(conn, config.sources)
        yield database


@contextmanager
def opened_if_running(config: Config) -> Iterator[Database | None]:
    """The database where its server runs, else None: what looks at the state must not change it."""
    server = Server.of(config.home)
    if server.embedded is not None and not server.embedded.is_running():
        yield None
        return
    with opened(config) as database:
        yield database


def require_sources(database: Database, names: Iterable[str]) -> None:
    """Raises UnknownSource for the first of `names` that no source has."""
    with database.connection() as conn:
        for name in names:
            sources.source(conn, name)
