"""Brings one source up to date in a process of its own, and kills that process at a named point.

`python ingest_once.py SLUG [POINT COUNT]`: the COUNT-th call of POINT ends with SIGKILL, inside its transaction.
"""

import sys
from typing import Any

from garage import stages, worklist
from garage.config import home, load
from garage.embed import stage as embed_stage
from garage.inference.catalogue import entries
from garage.inference.embedder import open_embedder
from garage.store.database import Database, Server
from tests.faults.drivers import kill_at


def main() -> None:
    slug = sys.argv[1]
    embed_stage.INDEX_FROM = 1  # so that the building of the index is among what can be killed
    if len(sys.argv) > 2:
        kill_at(sys.argv[2], int(sys.argv[3]))
    config = load()
    with Database(Server.of(home()).url()) as database:
        row = stages.source(database, config, slug)
        stages.walk(database, config, row)
        worklist.run(database, stages.documents(database, config, row))
        worklist.run(database, stages.chunks(database, config, row))
        known = entries(config.models)
        for model in config.embedding.models:
            entry = known[model]
            loaded: list[Any] = []

            def load_model(entry: Any = entry, loaded: list[Any] = loaded) -> Any:
                if not loaded:
                    loaded.append(open_embedder(entry, config.models_dir, threads=1))
                return loaded[0]

            row = stages.source(database, config, slug)
            worklist.run(database, stages.vectors(database, config, row, entry, load=load_model), ahead=2)


if __name__ == "__main__":
    main()
