"""`garage authors`: who is known, and two that are made one."""

import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from garage.config import Config, load
from garage.store import authors, authors_listing
from garage.store.authors import Who
from garage.store.database import Database

CHECKOUT = Path(__file__).resolve().parents[2]
ADA = Who((("email", "ada@example.org"), ("git_email", "ada@example.org")), "Ada Byron")
MARY = Who((("email", "mary@example.net"), ("git_email", "mary@example.net")), "Mary Somerville")
NAMED = Who((("name", "mary somerville"),), "Mary Somerville")
TOM = Who((("handle", "tom"),), "Tom")


@pytest.fixture
def people(database: Database, stocked: Config, garage_home: Any) -> dict[str, int]:
    """Ada, who owns the garage, Mary twice, and Tom; with parts in the three stocked documents."""
    garage_home.configure(
        {"name": "garden", "root": str(stocked.sources[0].root)},
        identity={"name": "Ada Byron", "identities": ["email:ada@example.org"]},
    )
    load()
    with database.transaction() as conn:
        authors.set_owner(conn, "Ada Byron", [("email", "ada@example.org")])
        ids = authors.resolve(conn, [ADA, MARY, NAMED, TOM])
        numbers = [row[0] for row in conn.execute("select id from documents order by uri").fetchall()]
        heating, helpers, press = numbers
        for document, who, role in (
            (heating, MARY, "author"),
            (helpers, MARY, "sender"),
            (helpers, ADA, "recipient"),
            (press, NAMED, "author"),
            (press, TOM, "committer"),
        ):
            conn.execute(
                "insert into document_authors (document_id, author_id, role, confidence, evidence)"
                " values (%s, %s, %s, 1, 'by hand')",
                (document, ids[who], role),
            )
    return {"ada": ids[ADA], "mary": ids[MARY], "named": ids[NAMED], "tom": ids[TOM]}


def test_the_owner_comes_first_and_then_those_of_the_most_documents(garage: Any, people: dict[str, int]) -> None:
    answer = garage("authors", "list")
    assert answer.code == 0
    lines = [line.split() for line in answer.out.splitlines()]
    assert lines[0] == ["ID", "NAME", "DOCUMENTS", "AS"]
    assert lines[1][1:] == ["Ada", "Byron", "(you)", "1", "recipient", "1"]
    assert lines[2][0] == "email:ada@example.org"
    assert lines[3][1:] == ["Mary", "Somerville", "2", "author", "1,", "sender", "1"]
    assert answer.out.rstrip().endswith("handle:tom")


def test_the_list_in_json_and_its_limit(garage: Any, people: dict[str, int]) -> None:
    data = garage("authors", "list", "--json", "-n", "2").data
    assert data["total"] == 4
    assert [author["id"] for author in data["authors"]] == [people["ada"], people["mary"]]
    assert data["authors"][1]["roles"] == {"author": 1, "sender": 1}
    assert data["authors"][1]["identities"] == ["email:mary@example.net"]
    assert "... and 2 more; --limit shows them." in garage("authors", "list", "-n", "2").out


def test_one_may_ask_for_oneself(garage: Any, people: dict[str, int]) -> None:
    data = garage("authors", "list", "--self", "--json").data
    assert [(author["name"], author["is_self"]) for author in data["authors"]] == [("Ada Byron", True)]


def test_nobody_is_said(garage: Any, garage_home: Any) -> None:
    assert "No author is known yet." in garage("authors", "list").out
    assert "`identity` in the configuration says who you are" in garage("authors", "list", "--self").out


@pytest.mark.parametrize("gone", ["{named}", "name:Somerville, Mary"])
@pytest.mark.parametrize("kept", ["{mary}", "email:MARY@example.net", "git_email:mary@example.net"])
def test_two_authors_become_one_however_they_are_named(
    garage: Any, database: Database, people: dict[str, int], gone: str, kept: str
) -> None:
    answer = garage("authors", "merge", gone.format(**people), kept.format(**people), "--yes")
    assert answer.code == 0, answer.err
    assert f"Mary Somerville (id {people['named']}; 1 document; name:mary somerville) goes into" in answer.out
    assert f"They are one now: author {people['mary']} took over 1 identity and 1 part in documents." in answer.out
    with database.connection() as conn:
        kept_author = authors.author(conn, people["mary"])
    assert kept_author.identities == (("email", "mary@example.net"), ("name", "mary somerville"))
    assert kept_author.documents == 3


def test_the_owner_stays_whichever_comes_first(garage: Any, people: dict[str, int]) -> None:
    data = garage("authors", "merge", "email:ada@example.org", "Tom", "--yes", "--json").data
    assert data == {"author": people["ada"], "gone": people["tom"], "identities": 1, "documents": 1}


def test_without_a_terminal_yes_is_required_and_what_would_happen_is_said(
    garage: Any, database: Database, people: dict[str, int]
) -> None:
    answer = garage("authors", "merge", "Tom", "email:mary@example.net")
    assert answer.code == 1
    assert "Tom (id" in answer.err
    assert "Mary Somerville (id" in answer.err
    assert "--yes" in answer.err
    with database.connection() as conn:
        assert authors_listing.count(conn) == 4


@pytest.mark.parametrize(("reply", "left"), [("y\n", 3), ("n\n", 4)])
def test_on_a_terminal_it_asks(database: Database, people: dict[str, int], reply: str, left: int) -> None:
    controller, terminal = pty.openpty()
    command = [sys.executable, "-m", "garage", "authors", "merge", "Tom", "email:mary@example.net"]
    os.write(controller, reply.encode())
    ran = subprocess.run(command, cwd=CHECKOUT, stdin=terminal, capture_output=True, text=True, check=False)
    os.close(terminal)
    os.close(controller)
    assert "Make them one? [y/N]" in ran.stderr
    assert ran.returncode == (0 if left == 3 else 1)
    with database.connection() as conn:
        assert authors_listing.count(conn) == left


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["Tim", "email:mary@example.net"], 2, "There is no author 'Tim'.\nDid you mean 'Tom'?"),
        (["email:marie@example.net", "Tom"], 2, "There is no author 'email:marie@example.net'.\nDid you mean 'Mary"),
        (["999", "Tom"], 2, "There is no author 999."),
        (["Mary Somerville", "Tom"], 2, "2 authors are called 'Mary Somerville'.\nName one by its id: "),
        (["Tom", "handle:@Tom"], 1, "'Tom' and 'handle:@Tom' are one author already"),
        (["", "Tom"], 2, "There is no author ''."),
    ],
)
def test_who_cannot_be_merged_is_named(
    garage: Any, people: dict[str, int], arguments: list[str], code: int, said: str
) -> None:
    answer = garage("authors", "merge", *arguments, "--yes")
    assert answer.code == code
    assert answer.err.startswith(said), answer.err


def test_what_was_merged_is_taken_apart_again(garage: Any, database: Database, people: dict[str, int]) -> None:
    assert garage("authors", "merge", "Tom", "email:mary@example.net", "--yes").code == 0
    answer = garage("authors", "detach", "handle:@tom", "--json")
    assert answer.code == 0, answer.err
    assert answer.data["identities"] == [["handle", "tom"]]
    assert answer.data["id"] not in people.values()
    with database.connection() as conn:
        assert authors.author(conn, people["mary"]).identities == (("email", "mary@example.net"),)
        waiting = conn.execute("select count(*) from documents where attributed_as is null").fetchone()
    assert waiting == (3,)
    assert "handle:tom" in garage("authors", "list").out


@pytest.mark.parametrize(
    ("identity", "code", "said"),
    [
        ("handle:tim", 2, "There is no author 'handle:tim'."),
        ("Tom", 2, "There is no author 'Tom'."),
        ("handle:tom", 1, "handle:tom is all that is known of Tom"),
    ],
)
def test_what_cannot_be_taken_apart_is_said(
    garage: Any, people: dict[str, int], identity: str, code: int, said: str
) -> None:
    answer = garage("authors", "detach", identity)
    assert answer.code == code
    assert answer.err.startswith(said), answer.err


def test_a_search_is_narrowed_to_an_author_and_says_whom_it_took(garage: Any, people: dict[str, int]) -> None:
    for asked, found in (
        ("SOMERVILLE", {"greenhouse/heating.md", "people.md", "workshop/press.md"}),
        ("mary@", {"greenhouse/heating.md", "people.md"}),
        ("tom", set()),
        ("ada", set()),
    ):
        answer = garage("search", "greenhouse", "--mode", "vector", "--author", asked, "--json")
        assert {hit["passage"]["uri"] for hit in answer.data["hits"]} == found, asked
    notes = garage("search", "greenhouse", "--mode", "vector", "--author", "somerville", "--json").data["notes"]
    assert notes == ["'somerville' is part of 2 authors: Mary Somerville"]


def test_a_hit_says_class_trust_and_author(garage: Any, people: dict[str, int]) -> None:
    out = garage("search", "press", "--mode", "keyword", "--author", "somerville").out
    assert "   document, authored, by Mary Somerville\n" in out


def test_an_author_whom_nobody_knows_is_a_bad_argument_with_the_nearest(garage: Any, people: dict[str, int]) -> None:
    answer = garage("search", "press", "--author", "somervile")
    assert answer.code == 2
    assert answer.err.startswith("There is no author 'somervile'.\nDid you mean 'Mary Somerville'?")
