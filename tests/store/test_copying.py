"""Rows copied as text come out as they went in, however many."""

import pytest

from garage.store.copying import copy_lines, masked
from garage.store.database import Database

VALUES = [
    "plain",
    "",
    "tab\there",
    "two\nlines",
    "carriage\rreturn",
    "back\\slash",
    "\\N",
    "\\.",
    "naïve 🦩",
    "\x85\u2028",
]


@pytest.mark.parametrize("times", [1, 150, 300])
def test_every_text_survives_being_copied(database: Database, times: int) -> None:
    wanted = list(enumerate(VALUES * times))
    with database.transaction() as conn:
        conn.execute("create temporary table copied (number integer, text text)")
        copy_lines(conn, "copy copied from stdin", (f"{number}\t{masked(text)}\n" for number, text in wanted))
        assert conn.execute("select number, text from copied order by number").fetchall() == wanted


def test_nothing_is_copied_from_nothing(database: Database) -> None:
    with database.transaction() as conn:
        conn.execute("create temporary table copied (text text)")
        copy_lines(conn, "copy copied from stdin", [])
        assert conn.execute("select count(*) from copied").fetchone() == (0,)
