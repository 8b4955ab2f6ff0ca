"""People as lists and searches ask for them, on a real database."""

from collections.abc import Callable
from typing import Any

import pytest

from garage.store import authors, authors_listing
from garage.store.authors import Who
from garage.store.database import Database

MARY = Who((("email", "mary@example.net"), ("git_email", "mary@example.net")), "Mary Somerville")
JOSE = Who((("name", "josé da straße"),), "José da Straße")


@pytest.fixture
def ids(database: Database, put: Callable[..., Any]) -> dict[Who, int]:
    """Two authors; Mary wrote two documents and committed one of them, José none."""
    put("a.md", ["A"])
    put("b.md", ["B"])
    with database.transaction() as conn:
        made = authors.resolve(conn, [MARY, JOSE])
        for uri, role in (("a.md", "author"), ("b.md", "author"), ("b.md", "committer")):
            conn.execute(
                "insert into document_authors select id, %s, %s, 1, '' from documents where uri = %s",
                (made[MARY], role, uri),
            )
    return made


def test_authors_are_listed_with_their_documents_by_role(database: Database, ids: dict[Who, int]) -> None:
    with database.connection() as conn:
        mary, jose = authors_listing.listed(conn)
        assert authors_listing.count(conn) == 2
        assert [one.id for one in authors_listing.listed(conn, limit=1)] == [ids[MARY]]
        assert authors_listing.listed(conn, only_self=True) == []
    assert (mary.name, mary.documents, mary.roles) == ("Mary Somerville", 2, {"author": 2, "committer": 1})
    assert mary.identities == ["email:mary@example.net"]
    assert (jose.documents, jose.roles) == (0, {})


@pytest.mark.parametrize(
    ("text", "who"),
    [("SOMER", MARY), ("mary@EXAMPLE", MARY), ("da straße", JOSE), ("DA STRASSE", None), ("JOSÉ", JOSE), ("%", None)],
)
def test_a_part_of_a_name_or_identity_is_enough(
    database: Database, ids: dict[Who, int], text: str, who: Who | None
) -> None:
    with database.connection() as conn:
        found = authors_listing.named_like(conn, text)
    assert [number for number, _ in found] == ([ids[who]] if who else [])


def test_all_that_people_go_by_is_known(database: Database, ids: dict[Who, int]) -> None:
    with database.connection() as conn:
        assert authors_listing.names(conn) == [
            ("José da Straße", "José da Straße"),
            ("Mary Somerville", "Mary Somerville"),
            ("josé da straße", "José da Straße"),
            ("mary@example.net", "Mary Somerville"),
        ]


def test_authors_without_a_conversation_speak_in_none(database: Database, ids: dict[Who, int]) -> None:
    with database.connection() as conn:
        voices = authors_listing.voices(conn, [ids[MARY]])
    assert (voices.conversations, voices.senders, voices.owner) == (False, (), False)
    assert voices.identities == {("email", "mary@example.net")}
