"""Connections: one pool, transactions, advisory locks; finding the server or starting it."""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from weakref import WeakKeyDictionary

import psycopg
from psycopg import Connection, sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg_pool import ConnectionPool, PoolTimeout

from garage.store.cluster import Cluster
from garage.store.errors import DatabaseUnavailable, SourceBusy, explained, unavailable

Row = tuple[Any, ...]  # a row's column types are the query's business
Session = Connection[Row]  # one connection, as functions of other packages hand it on
URL_VARIABLE = "GARAGE_DATABASE_URL"
# A commit does not wait for the disk: all that is stored here follows from the sources, a lost tail is pending again,
# and the record that a stage has ended is written durably, with everything before it.
_OPTIONS = "-c search_path=garage,public -c client_min_messages=warning -c synchronous_commit=off"
_PATIENCE = 10.0  # seconds: a server that restarts is back by then; what takes longer is for a retry

# What the pool says of each failed attempt is said once, by the error at the end of them.
logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())


@dataclass(frozen=True, slots=True)
class Server:
    """Where the databases are: an external server's URL, or the embedded cluster of a home."""

    home: Path
    external: str | None = None

    @classmethod
    def of(cls, home: Path) -> Self:
        """The server that the environment names (GARAGE_DATABASE_URL), else the embedded one of `home`."""
        return cls(home, os.environ.get(URL_VARIABLE) or None)

    @property
    def embedded(self) -> Cluster | None:
        return None if self.external else Cluster(self.home)

    def url(self) -> str:
        """A libpq URL or conninfo of Garage's own database."""
        return self.external or Cluster(self.home).url("garage")

    def start(self) -> bool:
        """Starts the embedded cluster where it does not run and makes its database; True when it was started."""
        cluster = self.embedded
        if cluster is None:
            return False
        started = cluster.start()
        ensure_database(cluster.url("postgres"), "garage")
        return started


def ensure_database(maintenance: str, name: str) -> None:
    """Creates database `name` on the server of the `maintenance` URL, if it is missing."""
    with connected(maintenance) as conn:
        if conn.execute("select 1 from pg_database where datname = %s", (name,)).fetchone():
            return
        with suppress(psycopg.errors.DuplicateDatabase, psycopg.errors.UniqueViolation):  # somebody was faster
            conn.execute(sql.SQL("create database {}").format(sql.Identifier(name)))


@contextmanager
def _explaining() -> Iterator[None]:
    """Driver errors that a person can act on leave the block explained."""
    try:
        yield
    except psycopg.Error as error:
        better = explained(error)
        if better is error:
            raise
        raise better from error


@contextmanager
def connected(conninfo: str) -> Iterator[Connection[Row]]:
    """A connection outside of any pool, in autocommit mode. Raises DatabaseUnavailable."""
    with _explaining(), psycopg.connect(conninfo, autocommit=True) as conn:
        yield conn


class Database:
    """A pool on Garage's database; opened at first use, closed by `close` or the end of a `with`."""

    def __init__(self, url: str, *, max_size: int = 4, name: str = "garage") -> None:
        self.url = url
        parts = conninfo_to_dict(url)
        options = f"{parts.get('options') or ''} {_OPTIONS}".strip()
        self._conninfo = make_conninfo(url, options=options, application_name=name)
        self._pool: ConnectionPool[Connection[Row]] | None = None
        self._opening = threading.Lock()
        self._max_size = max_size
        self._seen_alive: WeakKeyDictionary[Connection[Row], float] = WeakKeyDictionary()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    @contextmanager
    def connection(self, *, wait: float = _PATIENCE) -> Iterator[Connection[Row]]:
        """A connection in autocommit mode; driver errors that a person can act on come out explained.

        Raises DatabaseUnavailable when there is none within `wait` seconds; until then a server may come back.
        """
        pool = self._opened()
        with _explaining():
            try:
                with pool.connection(timeout=wait) as conn:
                    yield conn
            except PoolTimeout as error:
                raise self._unreachable() from error
            except psycopg.OperationalError:
                self._seen_alive.clear()  # where one connection was lost, the others may be as well
                raise

    def _opened(self) -> ConnectionPool[Connection[Row]]:
        with self._opening:
            if self._pool is None:
                self._pool = ConnectionPool(
                    self._conninfo,
                    min_size=0,
                    max_size=self._max_size,
                    # A pool that gives up sooner leaves those who wait without a connection when the server is back.
                    reconnect_timeout=_PATIENCE,
                    kwargs={"autocommit": True},
                    configure=_register,
                    check=self._check,
                    open=True,
                )
            return self._pool

    def _check(self, conn: Connection[Row]) -> None:
        """Asks a connection whether it is alive before it is handed out, at most once a second."""
        now = time.monotonic()
        if now - self._seen_alive.get(conn, 0.0) >= 1.0:
            ConnectionPool.check_connection(conn)
            self._seen_alive[conn] = now

    def _unreachable(self) -> DatabaseUnavailable:
        """Why there is no connection: the pool only knows that there was none."""
        try:
            psycopg.connect(self._conninfo, connect_timeout=2).close()
        except psycopg.Error as error:
            return unavailable(str(error))
        return unavailable(f"all {self._max_size} connections of this process are in use")

    @contextmanager
    def transaction(self) -> Iterator[Connection[Row]]:
        """A connection inside one transaction."""
        with self.connection() as conn, conn.transaction():
            yield conn

    @contextmanager
    def pipelined(self) -> Iterator[Connection[Row]]:
        """A connection inside one transaction whose statements are sent without waiting for each other's results.

        For transactions of several small statements, which this makes about twice as fast: an error may be raised by a
        later statement, or at the end, and takes the whole transaction with it either way.
        """
        with self.connection() as conn, conn.pipeline(), conn.transaction():
            yield conn

    @contextmanager
    def exclusive(
        self,
        what: str,
        *,
        wait: float = 0.0,
        waiting: Callable[[], None] | None = None,
    ) -> Iterator[None]:
        """Holds the advisory lock `what` on a connection of its own for the length of the block.

        Runs queue by source in Dagster, but a command line passes the queue by; this binds them all. Waits up to `wait`
        seconds, calling `waiting` once when it has to; raises SourceBusy after that. The lock ends with the connection,
        so a killed holder releases it.
        """
        with connected(self._conninfo) as conn:
            deadline, told = time.monotonic() + wait, False
            while True:
                row = conn.execute("select pg_try_advisory_lock(hashtextextended(%s, 0))", (what,)).fetchone()
                if row is not None and row[0]:
                    break
                if time.monotonic() >= deadline:
                    stage, _, source = what.partition("/")
                    raise SourceBusy(
                        f"Another run is working on {source!r} ({stage}).",
                        hint="Wait for it to end (`garage status` shows it), then run this again.",
                        source=source,
                        stage=stage,
                    )
                if waiting is not None and not told:
                    waiting()
                told = True
                time.sleep(0.2)
            yield


def _register(conn: Connection[Row]) -> None:
    """Teaches a new connection pgvector's types, once the extension is there."""
    from pgvector.psycopg import register_vector

    with suppress(psycopg.ProgrammingError):  # before the first migration there is no such type
        register_vector(conn)
