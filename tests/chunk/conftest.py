"""Texts to cut: the project's own files and, where it is there, the shared reading material."""

from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
KINDS = {".md": "markdown", ".py": "code:python", ".js": "code:javascript", ".sql": "code:sql", ".sh": "code:shell"}
KINDS |= {".html": "code:html", ".txt": "prose", ".srt": "prose", ".vtt": "prose", ".ics": "prose", ".jsonl": "prose"}
KINDS |= {".tsv": "tabular", ".json": "code:text"}


def read(folder: Path) -> list[tuple[str, str]]:
    """Kind and text of every file below a folder whose name tells its kind."""
    found = []
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix in KINDS:
            text = path.read_bytes().decode("utf-8", errors="replace")
            lines = text.replace("\r\n", "\n").replace("\r", "\n")
            found.append((KINDS[path.suffix], lines.rstrip("\n") + "\n"))
    return found


@pytest.fixture(scope="session", params=["the project's own", "the shared"])
def texts(request: pytest.FixtureRequest) -> list[tuple[str, str]]:
    """Kind and text of a few hundred real files."""
    if request.param == "the project's own":
        return read(CHECKOUT / "examples" / "library") + read(CHECKOUT / "garage")
    shared: Path = request.getfixturevalue("shared")
    return [text for folder in ("corpus/text", "corpus/html", "eval", "reference") for text in read(shared / folder)]
