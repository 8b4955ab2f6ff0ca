"""How fast is the gate, and how does the time to judge and to cut a single line grow with it? `python -m bench.gate`.

Figures of a document are the least of several tries in processor time, as other programs can only add to it. The
growth figures are ratios: twice the text in about twice the time.
"""

import random
import resource
import sysconfig
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from garage.chunk import chunk
from garage.quality import judge
from garage.quality.sample import SAMPLE

ROOT = Path(__file__).resolve().parents[1]
WORDS = (
    *(
        "the",
        "ferry",
        "left",
        "late",
        "because",
        "somebody",
        "had",
        "parked",
        "a",
        "tractor",
        "across",
        "ramp",
        "nobody",
    ),
    *("minded", "we", "drank", "tea", "from", "flask", "while", "rain", "came", "over", "water", "and", "everyone"),
)
SCRIPT = 'function a(b,c){var d=b+c;return d?e(d):{f:1,"g":[2,3]}};'
MEGABYTES = (5, 10, 20, 40)


def seconds(work: Callable[[], object], tries: int = 5) -> float:
    """Processor time, the least of some tries."""
    taken = []
    for _ in range(tries):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return min(taken)


def prose(size: int) -> str:
    """Sentences in lines of about 90 characters."""
    rng = random.Random(1)
    lines = (" ".join(rng.choice(WORDS) for _ in range(18)).capitalize() + "." for _ in range(size // 90))
    return "\n".join(lines) + "\n"


def documents(pattern: str) -> list[str]:
    """The texts of this project and of the installed packages whose names match."""
    folders = (ROOT / "docs", ROOT / "garage", Path(sysconfig.get_path("purelib")))
    paths = sorted(path for folder in folders for path in folder.rglob(pattern) if path.stat().st_size > 1024)
    return [path.read_text(encoding="utf-8", errors="replace") for path in paths[:400]]


def collection(texts: list[str], kind: str) -> dict[str, float]:
    """Milliseconds a document and megabytes a second of what is looked at of it."""
    taken = seconds(lambda: [judge(text, kind=kind) for text in texts], tries=3)
    looked_at = sum(min(len(text), SAMPLE) for text in texts)
    return {"documents": len(texts), "ms_a_document": 1000 * taken / len(texts), "mb_per_s": looked_at / 1e6 / taken}


def growth(work: Callable[[str], object], unit: str) -> dict[str, float]:
    """Seconds for one line of 5, 10, 20 and 40 MB, and how much longer the last takes than the first."""
    figures = {}
    for size in MEGABYTES:
        text = unit * (size * 1_000_000 // len(unit)) + "\n"
        figures[f"s_{size}_mb"] = seconds(partial(work, text), tries=2)
    return {**figures, "ratio_8x": figures[f"s_{MEGABYTES[-1]}_mb"] / figures[f"s_{MEGABYTES[0]}_mb"]}


def measure() -> dict[str, Any]:
    """Time the gate on prose, Markdown and code, and gate and chunker on one line of growing length."""
    text = prose(SAMPLE)
    figures: dict[str, Any] = {
        "prose_mb_per_s": len(text) / 1e6 / seconds(lambda: judge(text, kind="prose"), tries=20),
        "markdown": collection(documents("*.md"), "markdown"),
        "python": collection(documents("*.py"), "code:python"),
        "judge_one_line": growth(lambda line: judge(line, kind="prose"), "x"),
        "chunk_minified": growth(lambda line: chunk(line, kind="code:javascript"), SCRIPT),
        "chunk_without_a_space": growth(lambda line: chunk(line, kind="prose"), "x"),
    }
    # Of the whole run, the 40 MB texts included: what a chunker that copies pieces would multiply.
    figures["peak_rss_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return figures


def main() -> None:
    """Print the figures."""
    from bench.__main__ import leaves

    for name, value in leaves(measure()):
        print(f"  {name:<40} {value}")


if __name__ == "__main__":
    main()
