"""Reads and attributes one source in a process of its own, and kills that process at a named point.

`python attribute_once.py SLUG [POINT COUNT]`: the COUNT-th call of POINT ends with SIGKILL, inside its transaction.
"""

import sys

from garage import stages, worklist
from garage.config import home, load
from garage.store import attribution
from garage.store.database import Database, Server
from tests.faults.drivers import kill_at


def main() -> None:
    slug = sys.argv[1]
    attribution.PAGE = 4  # so that there is a page to lose and one that stays
    config = load()
    with Database(Server.of(home()).url()) as database:
        row = stages.source(database, config, slug)
        stages.walk(database, config, row)
        worklist.run(database, stages.documents(database, config, row))
        if len(sys.argv) > 2:
            kill_at(sys.argv[2], int(sys.argv[3]))
        stages.histories(database, row)
        worklist.run(database, stages.attribution(database, config, row))


if __name__ == "__main__":
    main()
