"""Every real file of the corpus, read in isolated workers: `corpus.yaml` says how each must end and what it must say.

A file that no extractor reads is "unread" there. The phrases come from looking at the files in the programs that made
them, and stand in one passage each, white space aside.
"""

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from garage.config import Extraction
from garage.extract.mirror import canonical
from garage.extract.model import Extracted, ExtractError
from garage.extract.registry import extract, extractor_of, read
from garage.isolation import Failure, Isolated
from garage.quality import judge

EXPECTED: dict[str, dict[str, Any]] = yaml.safe_load(
    Path(__file__).with_name("corpus.yaml").read_text(encoding="utf-8")
)
SETTINGS = Extraction()


def attempt(path: str) -> tuple[str, list[Extracted], str]:
    """Outcome, documents and reason of one file. Runs in a worker."""
    try:
        raw = read(path, max_bytes=64 * 2**20)
        found = extract(raw.data, extractor=extractor_of(path) or "", name=Path(path).name, settings=SETTINGS)
    except ExtractError as error:
        return error.outcome, [], error.message
    verdicts = [judge(document.content[document.body_start :], kind=document.kind) for document in found]
    if all(verdict.rejected for verdict in verdicts):
        return "rejected", [], verdicts[0].reason
    return "ok", found, ""


Results = dict[str, tuple[str, list[Extracted], str]]


@cache
def _everything(corpus: Path) -> Results:
    paths = [str(path) for path in sorted(corpus.rglob("*")) if path.is_file() and extractor_of(path.name)]
    with Isolated(workers=2, seconds=120, memory_bytes=1024 * 2**20) as workers:
        results = dict(workers.map(attempt, paths, ahead=4))
    return {
        Path(path).relative_to(corpus).as_posix(): (result.kind, [], result.reason)
        if isinstance(result, Failure)
        else result
        for path, result in results.items()
    }


@pytest.fixture
def everything(shared: Path) -> Results:
    return _everything(shared / "corpus")


def words(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def test_the_table_names_every_file_of_the_corpus(shared: Path) -> None:
    corpus = shared / "corpus"
    there = {path.relative_to(corpus).as_posix() for path in corpus.rglob("*") if path.is_file()}
    assert there - {"README.md"} == set(EXPECTED)
    unread = {name for name in EXPECTED if extractor_of(name) is None}
    assert unread == {name for name, row in EXPECTED.items() if row["outcome"] == "unread"}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_file_has_the_outcome_that_it_must_have(everything: Results) -> None:
    wrong = {
        name: f"{outcome} ({reason}) instead of {EXPECTED[name]['outcome']}"
        for name, (outcome, _, reason) in everything.items()
        if name in EXPECTED and outcome != EXPECTED[name]["outcome"]
    }
    assert wrong == {}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_file_says_what_it_must_say(everything: Results) -> None:
    missing = {}
    for name, row in EXPECTED.items():
        if row["outcome"] != "ok":
            continue
        text = words("\n".join(document.content for document in everything[name][1]))
        absent = [phrase for phrase in row["phrases"] if words(phrase) not in text]
        if absent:
            missing[name] = absent
    assert missing == {}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_what_a_mail_quotes_is_marked_and_what_it_encloses_is_not_read(everything: Results) -> None:
    wrong = {}
    for name, row in EXPECTED.items():
        documents = everything[name][1] if "quoted" in row or "never" in row or "records" in row else []
        text = words("\n".join(found.content for found in documents))
        quoted = words(
            "\n".join(found.content[p.start : p.end] for found in documents for p in found.parts if p.quoted)
        )
        unmarked = [phrase for phrase in row.get("quoted", ()) if words(phrase) not in quoted]
        present = [phrase for phrase in row.get("never", ()) if words(phrase) in text]
        if unmarked or present or len(documents) != row.get("records", len(documents)):
            wrong[name] = (unmarked, present, len(documents))
    assert wrong == {}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_text_is_a_mirror_and_every_part_lies_in_it(everything: Results) -> None:
    for name, (_, documents, _) in everything.items():
        assert len({document.record for document in documents}) == len(documents), name
        for found in documents:
            assert found.content == canonical(found.content), name
            assert 0 <= found.body_start <= len(found.content), name
            assert found.parts or found.body_start < len(found.content), name
            edges = [edge for part in found.parts for edge in (part.start, part.end)]
            assert edges == sorted(edges), name
            assert not edges or edges[-1] <= len(found.content), name


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_reason_is_given_wherever_there_is_no_text(everything: Results) -> None:
    for name, (outcome, _, reason) in everything.items():
        assert outcome == "ok" or len(reason) > 5, name


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_pages_begin_where_they_are_said_to(everything: Results) -> None:
    pages = 0
    for name, (_, documents, _) in everything.items():
        for found in documents:
            starts = found.meta.get("page_starts")
            if not name.endswith(".pdf") or not isinstance(starts, list):
                continue
            assert len(starts) == found.meta["pages"], name
            numbers = [start for start in starts if isinstance(start, int)]
            assert numbers == sorted(numbers), name
            assert all(
                start == 0 or found.content[start - 1] == "\n" or start >= len(found.content) - 1 for start in numbers
            )
            pages += len(numbers)
    assert pages > 190


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_what_files_say_of_themselves(everything: Results) -> None:
    def said(name: str, key: str) -> object:
        return everything[name][1][0].meta.get(key)

    assert said("docx/EmbeddedPDF.docx", "author") == "Jeremy Anderson"
    assert said("pdf/GeoTopo-komprimiert.pdf", "author") == "Martin Thoma"
    assert said("pdf/inline-image.pdf", "author") is None  # the tool's own "anonymous"
