"""How much slower than a bare `os.scandir` and stat loop is a walk? `python -m bench.walk --files 30000`.

Every file of the tree is wanted, so nothing is pruned and nothing is skipped: the most a walk can have to do.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

from garage.walk.walker import walk

SUFFIXES = {".md": "markdown", ".txt": "text", ".pdf": "pdf", ".docx": "docx", ".py": "code", ".json": "code"}
PATTERNS = ["*.bak", "/private/", "drafts/**", "!vendor/", "old-*", "tmp/", "**/x/*.md", "secret*.txt", "~*", "a/b"]
FILES_A_FOLDER = 20
FOLDERS_A_TOPIC = 50


def make_tree(root: Path, files: int) -> None:
    """Make `files` small files, 20 a folder, three levels deep."""
    endings = [ending for ending in SUFFIXES if SUFFIXES[ending] != "code"]
    for number in range(files):
        folder = number // FILES_A_FOLDER
        path = root / f"topic {folder // FOLDERS_A_TOPIC:02}" / f"folder {folder % FOLDERS_A_TOPIC:02}"
        if number % FILES_A_FOLDER == 0:
            path.mkdir(parents=True)
        (path / f"note {number:05}{endings[number % len(endings)]}").write_text(f"note {number}\n")


def bare(root: Path) -> int:
    """List a tree and stat its files, and nothing else; return how many there are."""
    pending, files = [str(root)], 0
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                else:
                    entry.stat(follow_symlinks=False)
                    files += 1
    return files


def walked(root: Path, exclude: list[str]) -> int:
    """Walk a tree to the end; return how many files it listed."""
    running = walk(root, suffixes=SUFFIXES, exclude=exclude)
    listed = sum(1 for _ in running)
    if not running.stats.complete:
        raise RuntimeError(f"the walk is incomplete: {running.stats.incomplete_reason}")
    return listed


def measure(files: int = 30_000, repetitions: int = 11) -> dict[str, float]:
    """Time a bare loop, a walk, and a walk with ten exclude patterns over one tree, in turns.

    Returns: `files`; the medians in seconds `bare_s`, `walk_s`, `walk_patterns_s`; the medians of the ratios to the
    bare loop of the same turn, `ratio` and `ratio_patterns`; `walk_peak_kib`, the most memory a walk held at once.
    """
    with tempfile.TemporaryDirectory(prefix="garage-bench-walk-") as folder:
        root = Path(folder)
        make_tree(root, files)
        ways: dict[str, Callable[[], int]] = {
            "bare": lambda: bare(root),
            "walk": lambda: walked(root, []),
            "walk_patterns": lambda: walked(root, PATTERNS),
        }
        seconds: dict[str, list[float]] = {way: [] for way in ways}
        for turn in range(repetitions + 1):
            for way, run in ways.items():
                gc.collect()
                started = time.perf_counter()
                found = run()
                elapsed = time.perf_counter() - started
                if found != files:
                    raise RuntimeError(f"{way} found {found} of {files} files")
                if turn:  # the first fills the caches of the file system
                    seconds[way].append(elapsed)
        tracemalloc.start()
        walked(root, [])
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()

    def ratio(way: str) -> float:
        return statistics.median(a / b for a, b in zip(seconds[way], seconds["bare"], strict=True))

    medians = {f"{way}_s": statistics.median(taken) for way, taken in seconds.items()}
    ratios = {"ratio": ratio("walk"), "ratio_patterns": ratio("walk_patterns")}
    return {"files": files, **medians, **ratios, "walk_peak_kib": peak / 1024}


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=30_000)
    parser.add_argument("--repetitions", type=int, default=11)
    options = parser.parse_args()
    figures = measure(options.files, options.repetitions)
    print(f"{options.files:,} files, medians of {options.repetitions} turns")
    print(f"  bare scandir and stat   {figures['bare_s'] * 1000:7.1f} ms")
    print(f"  walk                    {figures['walk_s'] * 1000:7.1f} ms   {figures['ratio']:.2f}x   (at most 3x)")
    print(f"  walk, {len(PATTERNS)} patterns       {figures['walk_patterns_s'] * 1000:7.1f} ms   ", end="")
    print(f"{figures['ratio_patterns']:.2f}x")
    print(f"  memory a walk holds     {figures['walk_peak_kib']:7.0f} KiB at most")


if __name__ == "__main__":
    main()
