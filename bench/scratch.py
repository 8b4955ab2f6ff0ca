"""A database for a measurement: an embedded Postgres of its own, migrated, and gone afterwards."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from garage.store.cluster import Cluster
from garage.store.database import Database, ensure_database
from garage.store.schema import migrate


@contextmanager
def scratch_database() -> Iterator[Database]:
    """A migrated, empty database with the settings that `garage up` gives its server."""
    home = Path(tempfile.mkdtemp(prefix="garage-bench-"))
    home.chmod(0o711)  # the server's own user passes through
    server = Cluster(home)
    try:
        server.start()
        ensure_database(server.url("postgres"), "garage")
        with Database(server.url("garage")) as database:
            migrate(database)
            yield database
    finally:
        server.stop()
        shutil.rmtree(home, ignore_errors=True)
