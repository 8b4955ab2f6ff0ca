from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from garage.inference.catalogue import ModelEntry, builtin, model_entry
from garage.inference.embedder import fingerprint, format_document, format_query, open_embedder

WEIGHTS = "a" * 64


def own(**changes: object) -> ModelEntry:
    return model_entry({"slug": "own", "role": "embed", "file": "/m.gguf", "dims": 8, "context": 64, **changes})


@pytest.mark.parametrize(
    ("title", "heading", "expected"),
    [
        ("Guide", "Install > Linux", "Guide\nInstall > Linux\nRun make."),
        ("", "Install", "Install\nRun make."),
        ("Guide", "", "Guide\nRun make."),
        ("", "", "Run make."),
    ],
)
def test_empty_parts_of_a_passage_leave_no_blank_line(title: str, heading: str, expected: str) -> None:
    assert format_document(own(), title=title, heading=heading, text="Run make.") == expected


def test_embeddinggemma_is_prompted_as_it_was_trained() -> None:
    entry = builtin()["embeddinggemma-300m"]
    assert format_document(entry, text="Run make.") == "title: none | text: Run make."
    assert format_document(entry, title="Guide", heading="Linux", text="Run.") == "title: Guide | text: Linux\nRun."
    assert format_query(entry, "how to install") == "task: search result | query: how to install"


def test_braces_in_a_text_are_text() -> None:
    text = "f'{title} {text} {0} {{}}' and \\n"
    assert format_document(own(), title="{text}", text=text) == "{text}\n" + text
    assert format_query(own(), text) == text


def test_a_passage_keeps_its_own_line_breaks() -> None:
    assert format_document(own(), text="\n a\n\n") == "\n a\n\n"


@pytest.mark.parametrize(
    "changes",
    [
        {"document_template": "passage: {text}"},
        {"untitled": "none"},
        {"context": 128},
        {"pooling": "cls"},
        {"matryoshka": True, "stored_dims": 4},
    ],
)
def test_whatever_changes_a_stored_vector_changes_the_fingerprint(changes: dict[str, Any]) -> None:
    assert fingerprint(own(**changes), WEIGHTS) != fingerprint(own(), WEIGHTS)


def test_other_weights_have_another_fingerprint() -> None:
    assert fingerprint(own(), "b" * 64) != fingerprint(own(), WEIGHTS)


@pytest.mark.parametrize(
    "changes",
    [{"query_template": "query: {text}"}, {"file": "/elsewhere.gguf"}, {"slug": "renamed"}, {"licence": "MIT"}],
)
def test_what_leaves_stored_vectors_alone_leaves_the_fingerprint_alone(changes: dict[str, Any]) -> None:
    assert fingerprint(own(**changes), WEIGHTS) == fingerprint(own(), WEIGHTS)


def test_opening_a_model_obtains_it_first(tiny: Any, offline_index: Path, tmp_path: Path) -> None:
    embedder = open_embedder(tiny.entry(), tmp_path, threads=1)
    assert (tmp_path / "tiny.gguf").is_file()
    assert embedder.embed_query("abc").shape == (embedder.dims,) == (32,)
    embedder.close()
