"""People on a real database: found by what they are known by, merged without loss, the owner one of them."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from garage.store import authors
from garage.store.authors import OWNER, UnknownAuthor, Who
from garage.store.database import Database

MAIL = Who((("email", "mary@example.net"), ("git_email", "mary@example.net")), "Mary")
GIT = Who((("git_email", "mary@example.net"), ("email", "mary@example.net")), "Mary Somerville")
NAMED = Who((("name", "mary somerville"),), "Mary Somerville")
BOB = Who((("phone", "+15550109999"),), "+15550109999")


def resolve(database: Database, *people: Who) -> list[int]:
    with database.transaction() as conn:
        found = authors.resolve(conn, people)
    return [found[who] for who in people if who in found]


def everyone(database: Database) -> list[tuple[str, bool, tuple[tuple[str, str], ...], int]]:
    """Name, whether the owner, identities and number of documents; the owner first, then as they were made."""
    with database.connection() as conn:
        ids = conn.execute("select id from authors order by not is_self, id").fetchall()
        found = [authors.author(conn, number) for (number,) in ids]
    return [(one.name, one.is_self, one.identities, one.documents) for one in found]


def own(database: Database, name: str, *identities: tuple[str, str]) -> Sequence[tuple[str, str]]:
    with database.transaction() as conn:
        return authors.set_owner(conn, name, identities)


@pytest.fixture
def credit(database: Database, put: Callable[..., Any]) -> Callable[..., None]:
    """Credits an author with a part in a document, which is made where there is none."""

    def give(author: int, uri: str, role: str = "author", confidence: float = 1.0, evidence: str = "said") -> None:
        put(uri, ["text"])
        with database.connection() as conn:
            conn.execute(
                "insert into document_authors select id, %s, %s, %s, %s from documents where uri = %s",
                (author, role, confidence, evidence, uri),
            )

    return give


def test_the_same_address_is_one_person_in_mail_and_git(database: Database) -> None:
    assert len({*resolve(database, MAIL, GIT)}) == 1
    assert [*resolve(database, GIT), *resolve(database, MAIL)] == resolve(database, GIT, MAIL)
    assert everyone(database) == [("Mary Somerville", False, (("email", "mary@example.net"),), 0)]


def test_a_name_alone_never_makes_two_people_one(database: Database) -> None:
    other = Who((("git_email", "mary@elsewhere.example"), ("email", "mary@elsewhere.example")), "Mary Somerville")
    assert len({*resolve(database, MAIL, NAMED, other)}) == 3
    assert len({*resolve(database, MAIL, NAMED, other)}) == 3
    assert len(everyone(database)) == 3


def test_the_owner_is_nobody_until_configured(database: Database) -> None:
    assert resolve(database, OWNER) == []
    assert own(database, "Ada Lovelace", ("email", "ada@example.org")) == (("email", "ada@example.org"),)
    (owner,) = resolve(database, OWNER)
    assert resolve(database, Who((("email", "ada@example.org"),), "ada")) == [owner]
    assert everyone(database)[0][:2] == ("Ada Lovelace", True)


def test_who_has_an_identity_of_the_owner_becomes_one_with_them(
    database: Database, credit: Callable[..., None]
) -> None:
    mail, named, _bob = resolve(database, MAIL, NAMED, BOB)
    credit(mail, "a.txt", "sender")
    credit(named, "b.txt")
    known = own(database, "Mary S.", ("email", "mary@example.net"), ("name", "mary somerville"), ("handle", "mary"))
    assert set(known) == {("email", "mary@example.net"), ("name", "mary somerville"), ("handle", "mary")}
    assert everyone(database) == [
        ("Mary S.", True, tuple(sorted(known)), 2),
        ("+15550109999", False, (("phone", "+15550109999"),), 0),
    ]
    assert own(database, "Mary S.", ("email", "mary@example.net")) == tuple(sorted(known))
    own(database, "Mary Somerville", ("phone", "+15550109999"), ("handle", "mary"))
    assert len(everyone(database)) == 1


def test_another_owner_leaves_the_one_before_as_an_author_like_any_other(database: Database) -> None:
    own(database, "Ada", ("email", "ada@example.org"), ("name", "ada"))
    assert own(database, "Mary", ("email", "mary@example.net")) == (("email", "mary@example.net"),)
    assert {(name, is_self) for name, is_self, _, _ in everyone(database)} == {("Mary", True), ("Ada", False)}
    own(database, "Ada", ("email", "ada@example.org"))
    assert {(name, is_self) for name, is_self, _, _ in everyone(database)} == {("Mary", False), ("Ada", True)}


def test_putting_the_same_owner_on_record_again_writes_nothing(database: Database) -> None:
    own(database, "Ada", ("email", "ada@example.org"))

    def places() -> list[Any]:
        with database.connection() as conn:
            return conn.execute(
                "select ctid, xmin from authors union all select ctid, xmin from author_identities"
            ).fetchall()

    before = places()
    own(database, "Ada", ("email", "ada@example.org"))
    assert places() == before


def test_without_configuration_nobody_is_the_owner_any_more(database: Database) -> None:
    own(database, "Ada", ("email", "ada@example.org"))
    assert own(database, "") == ()
    assert [(name, is_self) for name, is_self, _, _ in everyone(database)] == [("Ada", False)]


def test_a_merge_keeps_everything(database: Database, credit: Callable[..., None]) -> None:
    kept, other = resolve(database, MAIL, NAMED)
    credit(kept, "both.txt", "author", 0.5, "weak")
    credit(other, "both.txt", "author", 0.75, "strong")
    credit(kept, "sure.txt", "author", 1.0, "sure")
    credit(other, "sure.txt", "author", 0.25, "unsure")
    credit(other, "both.txt", "cc", 1.0, "copy")
    credit(other, "own.txt", "sender", 1.0, "sent")
    with database.transaction() as conn:
        conn.execute("update authors set notes = case id when %s then 'first' else 'second' end", (kept,))
    with database.connection() as conn:
        merged = authors.merge(conn, kept, other)
        found = conn.execute(
            "select d.uri, role, confidence, evidence from document_authors a join documents d on d.id = a.document_id"
            " where author_id = %s order by 1, 2",
            (kept,),
        ).fetchall()
        author = authors.author(conn, kept)
    assert found == [
        ("both.txt", "author", 0.75, "strong"),
        ("both.txt", "cc", 1.0, "copy"),
        ("own.txt", "sender", 1.0, "sent"),
        ("sure.txt", "author", 1.0, "sure"),
    ]
    assert (merged.author, merged.identities) == (kept, 1)
    assert (author.name, author.notes, author.documents) == ("Mary", "first\nsecond", 3)
    assert author.identities == (("email", "mary@example.net"), ("name", "mary somerville"))
    assert resolve(database, NAMED) == [kept]


def test_the_owner_is_kept_whichever_is_named_first(database: Database) -> None:
    own(database, "Ada", ("email", "ada@example.org"))
    owner, mail = resolve(database, OWNER, MAIL)
    with database.connection() as conn:
        assert authors.merge(conn, mail, owner).author == owner
    assert [(name, is_self) for name, is_self, _, _ in everyone(database)] == [("Ada", True)]
    assert set(own(database, "Ada", ("email", "ada@example.org"))) == {
        ("email", "ada@example.org"),
        ("email", "mary@example.net"),
    }


def test_merging_one_with_themselves_does_nothing_and_with_nobody_is_refused(database: Database) -> None:
    (mail,) = resolve(database, MAIL)
    with database.connection() as conn:
        assert authors.merge(conn, mail, mail).identities == 0
        with pytest.raises(UnknownAuthor, match="no author 99"):
            authors.merge(conn, mail, 99)
    assert len(everyone(database)) == 1


def test_an_identity_that_is_taken_away_becomes_somebody_of_its_own(
    database: Database, credit: Callable[..., None]
) -> None:
    kept, other = resolve(database, MAIL, NAMED)
    credit(kept, "a.txt")
    with database.connection() as conn:
        authors.merge(conn, kept, other)
        conn.execute("update documents set attributed_as = '1'")
        new = authors.detach(conn, ("name", "mary somerville"))
        assert conn.execute("select attributed_as from documents").fetchall() == [(None,)]
        with pytest.raises(UnknownAuthor, match="email:nobody"):
            authors.detach(conn, ("email", "nobody"))
    assert resolve(database, MAIL, NAMED) == [kept, new]


def test_people_whom_no_document_names_are_forgotten(database: Database, credit: Callable[..., None]) -> None:
    own(database, "Ada", ("email", "ada@example.org"))
    mail, _named, _bob, noted = resolve(database, MAIL, NAMED, BOB, Who((("handle", "eve"),), "Eve"))
    credit(mail, "a.txt")
    with database.transaction() as conn:
        conn.execute("update authors set notes = 'a friend' where id = %s", (noted,))
        assert authors.prune(conn) == 2
    assert [name for name, _, _, _ in everyone(database)] == ["Ada", "Mary", "Eve"]


def test_authors_are_found_by_identity_and_by_name(database: Database) -> None:
    mail, named = resolve(database, MAIL, NAMED)
    with database.connection() as conn:
        assert [one.id for one in authors.find(conn, pairs=MAIL.identities)] == [mail]
        assert [one.id for one in authors.find(conn, name="MARY SOMERVILLE")] == [named]
        assert authors.find(conn, name="nobody") == []
        assert authors.author(conn, mail).name == "Mary"
        with pytest.raises(UnknownAuthor):
            authors.author(conn, 99)


def test_two_runs_at_once_make_one_person(database: Database) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: resolve(database, MAIL, NAMED, BOB), range(12)))
    assert len({tuple(ids) for ids in found}) == 1
    assert len(everyone(database)) == 3
