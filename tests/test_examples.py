"""The example library that the project ships."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import docx
import pytest
import yaml
from pypdf import PdfReader

from examples import make_documents
from garage import stages, worklist
from garage.inference.catalogue import entries
from garage.inference.embedder import open_embedder
from garage.search.hybrid import search
from garage.store.database import Database
from tests.conftest import Home

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
QUESTIONS = yaml.safe_load((EXAMPLES / "questions.yaml").read_text(encoding="utf-8"))


def test_every_question_is_asked_once_and_answered_by_a_file() -> None:
    assert len({entry["question"] for entry in QUESTIONS}) == len(QUESTIONS) == 20
    assert [entry["uri"] for entry in QUESTIONS if not (EXAMPLES / "library" / entry["uri"]).is_file()] == []


@pytest.mark.parametrize("suffix", [".md", ".txt", ".py", ".pdf", ".docx"])
def test_the_questions_reach_every_kind_of_file(suffix: str) -> None:
    assert any(entry["uri"].endswith(suffix) for entry in QUESTIONS)


def test_the_report_is_what_its_script_writes(tmp_path: Path) -> None:
    make_documents.write_grant_report(tmp_path / "new.pdf")
    shipped = PdfReader(EXAMPLES / "library" / "money" / "grant-report-2024.pdf")
    assert [p.extract_text() for p in PdfReader(tmp_path / "new.pdf").pages] == [
        p.extract_text() for p in shipped.pages
    ]
    assert "6.2 metres" in shipped.pages[0].extract_text()


def test_the_manual_is_what_its_script_writes(tmp_path: Path) -> None:
    make_documents.write_press_manual(tmp_path / "new.docx")
    new = docx.Document(str(tmp_path / "new.docx"))
    shipped = docx.Document(str(EXAMPLES / "library" / "workshop" / "cider-press-manual.docx"))
    assert [p.text for p in new.paragraphs] == [p.text for p in shipped.paragraphs]
    assert [c.text for row in new.tables[0].rows for c in row.cells] == [
        c.text for row in shipped.tables[0].rows for c in row.cells
    ]


def test_every_question_finds_its_document_first(garage_home: Home, database: Database) -> None:
    config = garage_home.configure({"name": "example", "root": EXAMPLES / "library", "include_code": True})
    entry = entries(config.models)[config.embedding.default]
    row = stages.source(database, config, "example")
    stages.walk(database, config, row)
    worklist.run(database, stages.documents(database, config, row))
    found = {}
    with closing(open_embedder(entry, config.models_dir)) as embedder:
        worklist.run(database, stages.vectors(database, config, row, entry, load=lambda: embedder))
        for question in (entry["question"] for entry in QUESTIONS):
            hits = search(database, question, settings=config.search, embedder=lambda _: embedder, limit=1).hits
            found[question] = hits[0].passage.uri
    assert found == {entry["question"]: entry["uri"] for entry in QUESTIONS}
