"""`garage search`: the answer of the library, with the place in the document, by the real model."""

import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest

from garage.config import Config
from garage.serve.commands.search import _snippet, _words

CHECKOUT = Path(__file__).resolve().parents[2]


def test_a_hit_says_title_place_headings_score_and_who_found_it(garage: Any, stocked: Config) -> None:
    answer = garage("search", "at what temperature does the greenhouse heating start")
    assert answer.code == 0
    first = answer.out.split("\n\n")[0].splitlines()
    assert first[0].startswith("1. Greenhouse  0.03")
    assert first[0].endswith(", by both sides")
    assert first[1] == "   garden:greenhouse/heating.md:1-5"
    assert first[2] == "   document, authored"
    assert first[3] == "   Greenhouse > Heating"
    assert "when the night falls below four degrees" in first[4]


def test_a_search_in_json_holds_what_a_program_needs(garage: Any, stocked: Config) -> None:
    data = garage("search", "greenhouse", "heating", "--json", "-n", "1").data
    assert (data["query"], data["mode"], data["model"]) == ("greenhouse heating", "hybrid", "all-minilm-l6-v2")
    assert data["keyword_ranking"] in ("bm25", "ts_rank")
    (hit,) = data["hits"]
    assert (hit["matched_by"], hit["vector_rank"], hit["keyword_rank"]) == ("both", 1, 1)
    passage = hit["passage"]
    assert (passage["source"], passage["uri"], passage["start_line"]) == ("garden", "greenhouse/heating.md", 1)
    assert passage["text"].startswith("# Greenhouse")


def test_one_side_alone_can_be_asked(garage: Any, stocked: Config) -> None:
    by_words = garage("search", "treasurer", "--mode", "keyword", "--json").data
    assert by_words["model"] is None
    assert [hit["passage"]["uri"] for hit in by_words["hits"]] == ["people.md"]
    by_meaning = garage("search", "squeezing apples", "--mode", "vector", "--json").data
    assert by_meaning["keyword_ranking"] is None
    assert by_meaning["hits"][0]["passage"]["uri"] == "workshop/press.md"
    assert {hit["matched_by"] for hit in by_meaning["hits"]} == {"vector"}


def test_filters_narrow_a_search(garage: Any, stocked: Config) -> None:
    for option, value, found in (
        ("--source", "garden", 3),
        ("--class", "document", 3),
        ("--class", "code", 0),
        ("--trust", "authored", 3),
        ("--trust", "received", 0),
    ):
        answer = garage("search", "greenhouse", option, value, "--json")
        assert len(answer.data["hits"]) == found, (option, value)


def test_nothing_found_is_said_and_is_no_error(garage: Any, stocked: Config) -> None:
    answer = garage("search", "zyxwvu", "--mode", "keyword")
    assert (answer.code, answer.out) == (0, "Nothing was found.\n")


def test_before_any_model_has_vectors_words_alone_answer_and_that_is_said(garage: Any, garage_home: Any) -> None:
    answer = garage("search", "anything")
    assert answer.code == 0
    assert "no model has vectors yet" in answer.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["search", " "], "The query is empty."),
        (["search", "x", "--source", "nowhere"], "There is no source 'nowhere'."),
        (["search", "x", "--mode", "both"], "'both' is not one of"),
        (["search", "x", "-n", "0"], "0 is not in the range"),
        (["search"], "Missing argument"),
    ],
)
def test_what_cannot_be_asked_is_a_bad_argument(garage: Any, garage_home: Any, arguments: list[str], said: str) -> None:
    answer = garage(*arguments)
    assert answer.code == 2
    assert said in answer.err
    assert answer.out == ""


def test_a_query_that_is_no_text_is_asked_as_far_as_it_is(garage: Any, stocked: Config) -> None:
    answer = garage("search", "--mode", "keyword", "treasurer \udcff\x00")
    assert answer.code == 0
    assert "people.md" in answer.out


def test_a_model_that_is_not_what_it_was_is_not_asked(garage: Any, garage_home: Any, stocked: Config) -> None:
    with psycopg.connect(garage_home.database_url) as conn:
        conn.execute("update garage.embedding_models set fingerprint = 'another'")
    answer = garage("search", "greenhouse")
    assert answer.code == 1
    assert "is not what it was when the vectors were made" in answer.err
    assert garage("search", "greenhouse", "--mode", "keyword").code == 0


def test_on_a_terminal_the_words_of_the_query_are_marked(stocked: Config) -> None:
    controller, terminal = pty.openpty()
    command = [sys.executable, "-m", "garage", "search", "treasurer", "--mode", "keyword"]
    ran = subprocess.run(command, cwd=CHECKOUT, stdout=terminal, stderr=subprocess.PIPE, check=True)
    os.close(terminal)
    shown = os.read(controller, 65536).decode()
    os.close(controller)
    assert "The \x1b[33m\x1b[1mtreasurer\x1b[0m keeps" in shown
    assert ran.stderr == b""


def test_a_snippet_shows_where_the_words_are() -> None:
    text = "Filler goes on and on. " * 40 + "Here the greenhouse heating starts. " + "More filler follows. " * 40
    cut = _snippet(text, _words("greenhouse heating"))
    assert "the greenhouse heating starts" in cut
    assert len(cut) <= 290
    assert cut.startswith("... ")
    assert cut.endswith(" ...")


def test_a_short_passage_is_shown_whole_on_one_line() -> None:
    assert _snippet("One\n\ntwo  three\n", _words("two")) == "One two three"


def test_a_passage_without_spaces_is_cut_all_the_same() -> None:
    assert len(_snippet("あ" * 2000, _words("い"))) <= 290


def test_a_query_without_words_marks_nothing() -> None:
    assert _words("?! -") is None
    assert _snippet("x " * 400, None).endswith(" ...")
