"""How answers look."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from garage.errors import GarageError
from garage.serve.output import ago, columns, duration, error_json, joined, plural, printable, to_json
from garage.serve.sources import Removed

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_columns_line_up_and_numbers_stand_to_the_right() -> None:
    rows = [("NAME", "PASSAGES", "FOLDER"), ("a", "1,200", "/x"), ("longer", "7", "/y")]
    assert list(columns(rows)) == ["NAME    PASSAGES  FOLDER", "a          1,200  /x", "longer         7  /y"]


def test_wide_characters_take_two_columns_and_combining_ones_none() -> None:
    lines = list(columns([("日本", "x"), ("e\u0301e\u0301ab", "x")]))
    assert lines == ["日本  x", "e\u0301e\u0301ab  x"]


def test_no_rows_are_no_lines() -> None:
    assert list(columns([])) == []


def test_numbers_agree_with_their_noun() -> None:
    assert [plural(n, "document") for n in (0, 1, 2, 1000)] == [
        "0 documents",
        "1 document",
        "2 documents",
        "1,000 documents",
    ]
    assert plural(2, "entry", "entries") == "2 entries"


def test_a_list_reads_as_a_sentence_does() -> None:
    assert [joined("abc"[:n]) for n in range(4)] == ["", "a", "a and b", "a, b and c"]


def test_a_moment_is_told_in_its_largest_unit() -> None:
    spans = {0: "just now", 1: "1 second ago", 59: "59 seconds ago", 61: "1 minute ago", 7300: "2 hours ago"}
    assert {s: ago(NOW - timedelta(seconds=s), now=NOW) for s in spans} == spans
    assert ago(NOW - timedelta(days=3), now=NOW) == "3 days ago"
    assert ago(None) == "never"
    assert duration(0.2) == "less than a second"


def test_a_clock_that_was_set_back_tells_no_negative_time() -> None:
    assert ago(NOW + timedelta(seconds=5), now=NOW) == "just now"


def test_what_a_terminal_would_act_on_is_taken_out_of_other_people_s_text() -> None:
    assert printable("a\x1b[31mb\nc\x9bd") == "a [31mb c d"


def test_records_times_and_paths_become_json() -> None:
    data = json.loads(to_json({"at": NOW, "path": Path("/x"), "record": Removed("ä", 1, 2)}))
    assert data == {
        "at": "2026-03-01T12:00:00+00:00",
        "path": "/x",
        "record": {"name": "ä", "documents": 1, "passages": 2},
    }


def test_an_error_keeps_its_fields_in_json() -> None:
    error = GarageError("It is gone.", hint="Bring it back.", source="notes")
    assert json.loads(error_json(error, error.message, error.hint)) == {
        "error": {"kind": "GarageError", "message": "It is gone.", "hint": "Bring it back.", "source": "notes"}
    }
