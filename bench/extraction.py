"""Documents and megabytes a second by kind of file over `../shared/corpus`, with one worker and with two.

`python -m bench.extraction`: every file is read and extracted in isolated workers, as a run does, without a database.
`gain` is what the second worker brings: 2 where both have a core to themselves. The peak memory is that of the largest
worker.
"""

import json
import random
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.ingest import WORDS

WORKERS = (1, 2)
PAGES = 200
MOST = 60  # files of a kind that are read in one go, the same ones again where there are fewer


def files_by_kind(corpus: Path) -> dict[str, list[Path]]:
    """The files of the corpus that an extractor reads, by the name of the extractor."""
    from garage.extract.registry import extractor_of

    found: dict[str, list[Path]] = {}
    for path in sorted(corpus.rglob("*")):
        if path.is_file() and (extractor := extractor_of(path.name)):
            found.setdefault(extractor, []).append(path)
    return found


def attempt(path: str) -> int:
    """Reads and extracts one file; the number of documents in it. Runs in a worker."""
    from garage.config import Extraction
    from garage.extract.model import ExtractError
    from garage.extract.registry import extract, extractor_of, read

    try:
        raw = read(path, max_bytes=64 << 20)
        return len(extract(raw.data, extractor=extractor_of(path) or "", name=Path(path).name, settings=Extraction()))
    except ExtractError:
        return 0


def timed(paths: Sequence[Path], workers: int) -> float:
    """Seconds that `workers` need for the files, the first few not counted: they pay for libraries and start."""
    from bench.extraction import attempt as importable  # here it may be __main__'s, which workers cannot import
    from garage.isolation import Isolated

    with Isolated(workers=workers, seconds=300, memory_bytes=2 << 30) as isolated:
        list(isolated.map(importable, [str(path) for path in paths[: 4 * workers]], ahead=4 * workers))
        begin = time.perf_counter()
        list(isolated.map(importable, [str(path) for path in paths], ahead=8))
        return time.perf_counter() - begin


def kind_here(extractor: str) -> dict[str, float]:
    """The figures of one kind of file, in this process."""
    from bench.quality import shared_directory

    paths = files_by_kind(shared_directory() / "corpus")[extractor]
    megabytes = sum(path.stat().st_size for path in paths) / 1e6
    repeated = paths * max(1, MOST // len(paths))
    share = len(repeated) / len(paths)
    seconds = {workers: statistics.median(timed(repeated, workers) for _ in range(2)) / share for workers in WORKERS}
    figures: dict[str, float] = {"files": len(paths), "megabytes": round(megabytes, 3)}
    for workers, taken in seconds.items():
        figures[f"files_per_second_{workers}"] = round(len(paths) / taken, 1)
        figures[f"megabytes_per_second_{workers}"] = round(megabytes / taken, 3)
    figures["gain"] = round(seconds[1] / seconds[2], 2)
    figures["peak_mib"] = round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024, 1)
    return figures


def text_pdf(pages: int) -> bytes:
    """A PDF of pages of made-up prose, 40 lines each."""
    chosen = random.Random(5)
    objects = [b"<</Type/Catalog/Pages 2 0 R>>", b"", b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"]
    kids = []
    for _ in range(pages):
        lines = [" ".join(chosen.choices(WORDS, k=12)) for _ in range(40)]
        drawn = "BT /F1 10 Tf 12 TL 50 780 Td " + " ".join(f"({line}) Tj T*" for line in lines) + " ET"
        objects.append(b"<</Length %d>>stream\n%s\nendstream" % (len(drawn), drawn.encode()))
        objects.append(
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Resources<</Font<</F1 3 0 R>>>>/Contents %d 0 R>>"
            % len(objects)
        )
        kids.append(b"%d 0 R" % len(objects))
    objects[1] = b"<</Type/Pages/Count %d/Kids[%s]>>" % (pages, b" ".join(kids))
    out, offsets = bytearray(b"%PDF-1.4\n"), []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj%s\nendobj\n" % (number, body)
    at = len(out)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    out += b"xref\n0 %d\n0000000000 65535 f \n%s" % (len(objects) + 1, table)
    out += b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, at)
    return bytes(out)


def pdf_here() -> dict[str, float]:
    """Pages a second of a text PDF, by pypdf alone and by the extractor; peak memory of this process."""
    import io

    from pypdf import PdfReader

    from garage.config import Extraction
    from garage.extract.registry import extract

    raw = text_pdf(PAGES)
    extract(text_pdf(2), extractor="pdf", name="first.pdf", settings=Extraction())
    taken: dict[str, list[float]] = {"pypdf": [], "extractor": []}
    for _ in range(3):
        begin = time.perf_counter()
        for page in PdfReader(io.BytesIO(raw)).pages:
            page.extract_text()
        taken["pypdf"].append(time.perf_counter() - begin)
        begin = time.perf_counter()
        extract(raw, extractor="pdf", name="a.pdf", settings=Extraction())
        taken["extractor"].append(time.perf_counter() - begin)
    medians = {name: statistics.median(seconds) for name, seconds in taken.items()}
    return {
        "pages": PAGES,
        "pypdf_pages_per_second": round(PAGES / medians["pypdf"], 1),
        "pages_per_second": round(PAGES / medians["extractor"], 1),
        "ratio_to_pypdf": round(medians["pypdf"] / medians["extractor"], 3),
        "peak_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }


def measure() -> dict[str, Any]:
    """Every figure, each in a fresh process, so that no peak hides behind another's."""
    from bench.quality import shared_directory

    figures: dict[str, Any] = {"pdf_pages": _fresh("--pdf")}
    corpus = shared_directory() / "corpus"
    if corpus.is_dir():
        figures["by_kind"] = {kind: _fresh("--kind", kind) for kind in files_by_kind(corpus)}
    else:
        figures["by_kind"] = "the corpus is not beside this checkout"
    return figures


def _fresh(*arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.extraction", *arguments]
    found: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return found


def main() -> None:
    """The module's command line."""
    match sys.argv[1:]:
        case ["--kind", kind]:
            print(json.dumps(kind_here(kind)))
        case ["--pdf"]:
            print(json.dumps(pdf_here()))
        case _:
            print(json.dumps(measure(), indent=2))


if __name__ == "__main__":
    main()
