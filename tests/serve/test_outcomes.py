"""`garage outcomes`: how reading each file ended, and why."""

from pathlib import Path
from typing import Any

import psycopg
import pytest

from garage.config import Config
from garage.store.outcomes import KINDS
from garage.store.schema import migrations


@pytest.fixture
def attempted(garage_home: Any, stocked: Config, tmp_path: Path) -> Config:
    """Two sources with files that ended in several ways."""
    other = tmp_path / "attic"
    other.mkdir()
    config: Config = garage_home.configure(
        {"name": "garden", "root": tmp_path / "garden"}, {"name": "attic", "root": other}
    )
    from garage.serve.outcomes import outcomes

    outcomes(config, source=None, kind=None, limit=1)  # brings the sources into the table
    rows = [
        ("garden", "a.md", "ok", ""),
        ("garden", "b.pdf", "encrypted", "it needs a password"),
        ("garden", "c.md", "ok", ""),
        ("garden", "d\nnew.md", "no_text", "the file is empty"),
        ("attic", "e.pdf", "encrypted", "it needs a password"),
        ("attic", "f.md", "deferred", "later"),
    ]
    with psycopg.connect(garage_home.database_url) as conn:
        for source, uri, outcome, reason in rows:
            conn.execute(
                "insert into garage.ingest_outcomes (source_id, uri, outcome, reason, size, mtime_ns,"
                " extractor_fingerprint, at) select id, %s, %s, %s, 1, 1, 'x', now() - interval '2 days'"
                " from garage.sources where slug = %s",
                (uri, outcome, reason, source),
            )
    return config


def listed(answer: Any) -> list[tuple[str, str]]:
    return [(file["source"], file["uri"]) for file in answer.data["files"]]


def test_files_that_were_not_read_are_listed_with_their_reason(garage: Any, attempted: Config) -> None:
    answer = garage("outcomes")
    assert answer.code == 0
    assert answer.out.splitlines() == [
        "OUTCOME    SOURCE  WHEN        FILE",
        "deferred   attic   2 days ago  f.md",
        "    later",
        "encrypted  attic   2 days ago  e.pdf",
        "    it needs a password",
        "encrypted  garden  2 days ago  b.pdf",
        "    it needs a password",
        "no_text    garden  2 days ago  d new.md",
        "    the file is empty",
        "",
        "6 files: encrypted 2, ok 2, deferred 1, no_text 1",
    ]


def test_the_same_in_json(garage: Any, attempted: Config) -> None:
    data = garage("outcomes", "--json").data
    assert data["kinds"] == {"encrypted": 2, "ok": 2, "deferred": 1, "no_text": 1}
    assert data["total"] == 4
    first = data["files"][0]
    assert first.pop("at")
    assert first == {"source": "attic", "uri": "f.md", "outcome": "deferred", "reason": "later"}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--source", "attic"], [("attic", "f.md"), ("attic", "e.pdf")]),
        (["--kind", "encrypted"], [("attic", "e.pdf"), ("garden", "b.pdf")]),
        (["--kind", "ok"], [("garden", "a.md"), ("garden", "c.md")]),
        (["--source", "garden", "--kind", "no_text"], [("garden", "d\nnew.md")]),
        (["--kind", "memory"], []),
    ],
)
def test_sources_and_kinds_narrow_it(
    garage: Any, attempted: Config, options: list[str], expected: list[tuple[str, str]]
) -> None:
    answer = garage("outcomes", "--json", *options)
    assert answer.code == 0
    assert listed(answer) == expected
    assert answer.data["total"] == len(expected)


def test_a_limit_shortens_the_list_and_not_the_counts(garage: Any, attempted: Config) -> None:
    out = garage("outcomes", "--limit", "1").out.splitlines()
    assert out[1:4] == [
        "deferred  attic   2 days ago  f.md",
        "    later",
        "... and 3 more; --limit shows them.",
    ]
    assert out[-1] == "6 files: encrypted 2, ok 2, deferred 1, no_text 1"


def test_nothing_to_tell_is_said(garage: Any, garage_home: Any) -> None:
    answer = garage("outcomes")
    assert (answer.code, answer.out) == (0, "No file was read yet, or none ended so.\n")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--kind", "encripted"], "There is no outcome 'encripted'.\nDid you mean 'encrypted'?"),
        (["--source", "gardn"], "There is no source 'gardn'.\nDid you mean 'garden'?"),
    ],
)
def test_what_is_unknown_is_named_with_the_nearest(
    garage: Any, attempted: Config, options: list[str], said: str
) -> None:
    answer = garage("outcomes", *options)
    assert answer.code == 2
    assert answer.err.startswith(said)


def test_the_kinds_are_those_that_the_table_takes() -> None:
    tables = "\n".join(migration.text for migration in migrations())
    checked = tables.partition("outcome               text not null check (outcome in (")[2].partition("))")[0]
    assert tuple(word.strip(" '\n") for word in checked.split(",")) == KINDS
