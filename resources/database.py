"""The one Postgres pool that a run holds."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg
from pydantic import PrivateAttr

from garage.config import home
from garage.store.database import Database, Server
from garage.store.schema import migrate


class GarageDatabase(dg.ConfigurableResource):  # type: ignore[type-arg]  # the resource is its own value
    """Garage's database, started and migrated where it is not, for the length of a run or of a sensor's tick.

    `url` overrides GARAGE_DATABASE_URL and the embedded server.
    """

    url: str = ""
    max_size: int = 4

    _database: Database | None = PrivateAttr(default=None)

    @contextmanager
    def yield_for_execution(self, context: dg.InitResourceContext) -> Iterator["GarageDatabase"]:
        run = context.run
        url = self.url or self._started()
        name = f"garage run {run.run_id[:8]}" if run else f"garage {os.getpid()}"
        with Database(url, max_size=self.max_size, name=name) as database:
            migrate(database)
            self._database = database
            try:
                yield self
            finally:
                self._database = None

    @staticmethod
    def _started() -> str:
        server = Server.of(home())
        server.start()
        return server.url()

    @property
    def database(self) -> Database:
        """The open pool. Raises RuntimeError outside a run."""
        if self._database is None:
            raise RuntimeError("the database resource is used outside a run")
        return self._database
