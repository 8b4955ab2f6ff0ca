"""The work list of attribution, and what is recorded of each document, on a real database."""

from collections.abc import Callable
from typing import Any

import pytest

from garage.store import attribution
from garage.store.attribution import Attribution, Credit, DocumentFacts
from garage.store.authors import OWNER, Who
from garage.store.database import Database
from garage.store.digest import partition_digest

MARY = Who((("email", "mary@example.net"), ("git_email", "mary@example.net")), "Mary Somerville")


def rows(database: Database, query: str, *parameters: object) -> list[Any]:
    with database.connection() as conn:
        return conn.execute(query.encode(), parameters).fetchall()


def listed(database: Database, source_id: int, version: str = "1", *, rebuild: bool = False) -> list[DocumentFacts]:
    with database.connection() as conn:
        found = [one for page in attribution.pending(conn, source_id, version, rebuild=rebuild) for one in page]
        assert attribution.count_pending(conn, source_id, version, rebuild=rebuild) == len(found)
    return found


def decided(document: DocumentFacts, *credits_: Credit, trust: str = "reference") -> Attribution:
    signal = {"signal": "path", "said": trust, "evidence": "path-rule:Books/", "won": True}
    return Attribution(document, "document", trust, (signal,), credits_)


def record(database: Database, *decisions: Attribution) -> int:
    with database.transaction() as conn:
        return attribution.put(conn, decisions)


@pytest.fixture
def repository(database: Database, source_id: int) -> Callable[..., None]:
    """Records a repository: who (name, email) committed which file how often."""

    def make(path: str, files: dict[str, dict[tuple[str, str], int]]) -> None:
        with database.transaction() as conn:
            row = conn.execute(
                "insert into git_repositories (source_id, path, head, version, commits) values (%s, %s, 'h', '1', 1)"
                " on conflict (source_id, path) do update set head = 'h' returning id",
                (source_id, path),
            ).fetchone()
            assert row is not None
            people = list({person: None for said in files.values() for person in said})
            conn.execute("delete from git_people where repository_id = %s", row)
            conn.execute("delete from git_files where repository_id = %s", row)
            for number, person in enumerate(people):
                conn.execute("insert into git_people values (%s, %s, %s, %s)", (row[0], number, *person))
            for file, said in files.items():
                who = [people.index(person) for person in said]
                conn.execute("insert into git_files values (%s, %s, %s, %s)", (row[0], file, who, list(said.values())))

    return make


def test_a_document_is_pending_until_it_is_decided_by_the_version_that_holds(
    database: Database, source_id: int, put: Callable[..., Any]
) -> None:
    put("a.txt", ["one"], meta={"author": "Mary"})
    (pending,) = listed(database, source_id)
    assert (pending.uri, pending.author, pending.history) == ("a.txt", "Mary", None)
    assert record(database, decided(pending)) == 1
    assert listed(database, source_id) == []
    assert len(listed(database, source_id, "2")) == len(listed(database, source_id, rebuild=True)) == 1
    assert rows(database, "select corpus_class, trust_tier, attributed_as from documents") == [
        ("document", "reference", "1")
    ]
    (again,) = listed(database, source_id, rebuild=True)
    assert record(database, decided(again)) == 0


def test_a_document_that_is_written_again_is_pending_again(
    database: Database, source_id: int, put: Callable[..., Any]
) -> None:
    put("a.txt", ["one"])
    record(database, *map(decided, listed(database, source_id)))
    put("a.txt", ["one", "two"])
    assert [one.uri for one in listed(database, source_id)] == ["a.txt"]


def test_a_commit_makes_only_the_documents_of_its_file_pending(
    database: Database, source_id: int, put: Callable[..., Any], repository: Callable[..., None]
) -> None:
    for uri in ("code/a.txt", "code/b.txt", "code/sub/c.txt", "codex/a.txt"):
        put(uri, ["text"])
    mary, ada = ("Mary", "mary@example.net"), ("Ada", "ada@example.org")
    repository("code", {"a.txt": {mary: 2, ada: 1}, "b.txt": {mary: 1}})
    repository("code/sub", {"c.txt": {ada: 1}})
    found = {one.uri: one for one in listed(database, source_id)}
    assert [(p.name, p.commits) for p in found["code/a.txt"].history or ()] == [("Mary", 2), ("Ada", 1)]
    assert [(p.name, p.commits) for p in found["code/sub/c.txt"].history or ()] == [("Ada", 1)]
    assert found["codex/a.txt"].history is None
    record(database, *map(decided, found.values()))
    assert listed(database, source_id) == []
    repository("code", {"a.txt": {mary: 2, ada: 2}, "b.txt": {mary: 1}})
    assert [one.uri for one in listed(database, source_id)] == ["code/a.txt"]


def test_the_list_is_read_page_by_page(
    database: Database, source_id: int, put: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attribution, "PAGE", 2)
    for number in range(5):
        put(f"{number}.txt", ["text"])
    with database.connection() as conn:
        pages = list(attribution.pending(conn, source_id, "1", rebuild=False))
    assert [[one.uri for one in page] for page in pages] == [["0.txt", "1.txt"], ["2.txt", "3.txt"], ["4.txt"]]


def test_the_people_of_mail_and_conversations_come_with_it(
    database: Database, source_id: int, put: Callable[..., Any]
) -> None:
    put("a.eml", ["hi"], meta={"from": "Mary <m@x.y>", "to": ["ada@x.y"], "cc": ["bob@x.y"]}, extractor="mail")
    from garage.passage import Part

    parts = [Part(0, 1, "Me", "sent"), Part(1, 2, "+15550109999", "received"), Part(2, 3, "Me", "sent")]
    put("chat.db", ["abc"], kind="conversation", parts=parts, meta={"participants": ["+15550109999"]})
    mail, talk = listed(database, source_id)
    assert (mail.sender, mail.recipients, mail.cc, mail.extractor) == ("Mary <m@x.y>", ["ada@x.y"], ["bob@x.y"], "mail")
    assert (mail.speakers, talk.participants) == ((), ["+15550109999"])
    assert talk.speakers == (("Me", "sent", 2), ("+15550109999", "received", 1))


def test_credits_replace_those_of_before(database: Database, source_id: int, put: Callable[..., Any]) -> None:
    put("a.txt", ["one"])
    (pending,) = listed(database, source_id)
    bob = Who((("name", "bob"),), "Bob")
    low, high = Credit(MARY, "author", 0.5, "first"), Credit(MARY, "author", 0.75, "second")
    record(database, decided(pending, low, high, Credit(bob, "author", 1, "third"), Credit(OWNER, "cc", 1, "nobody")))
    query = (
        "select a.display_name, role, confidence, evidence from document_authors join authors a on a.id = author_id"
        " order by 1"
    )
    assert rows(database, query) == [("Bob", "author", 1.0, "third"), ("Mary Somerville", "author", 0.75, "second")]
    record(database, decided(pending, Credit(bob, "committer", 1, "fourth")))
    assert rows(database, query) == [("Bob", "committer", 1.0, "fourth")]


def test_a_document_that_vanished_meanwhile_is_passed_over(
    database: Database, source_id: int, put: Callable[..., Any]
) -> None:
    put("a.txt", ["one"])
    (pending,) = listed(database, source_id)
    rows(database, "delete from documents returning id")
    assert record(database, decided(pending, Credit(MARY, "author", 1, "x"))) == 0
    assert rows(database, "select * from document_authors") == []


def test_the_data_version_follows_what_was_decided_and_those_of_text_do_not(
    database: Database, source_id: int, put: Callable[..., Any]
) -> None:
    put("a.txt", ["one"])

    def versions() -> list[str]:
        with database.connection() as conn:
            return [partition_digest(conn, table, source_id) for table in ("attribution", "documents", "chunks")]

    before = versions()
    (pending,) = listed(database, source_id)
    record(database, decided(pending))
    after = versions()
    assert after[0] != before[0]
    assert after[1:] == before[1:]
    record(database, decided(pending, trust="authored"))
    assert versions()[0] != after[0]


def test_a_summary_counts_classes_trusts_and_the_signals_that_won(
    database: Database, source_id: int, put: Callable[..., Any]
) -> None:
    put("a.txt", ["one"])
    put("b.txt", ["two"])
    record(database, decided(listed(database, source_id)[0]))
    with database.connection() as conn:
        found = attribution.summary(conn, source_id)
    assert found == {
        "class": {"document": 2},
        "trust": {"reference": 1, "authored": 1},
        "signal": {"path": 1, "undecided": 1},
    }


def test_a_name_that_is_better_is_shown_from_then_on(
    database: Database, source_id: int, put: Callable[..., Any]
) -> None:
    put("a.txt", ["one"])
    (pending,) = listed(database, source_id)
    for name in ("mary@example.net", "Mary", "Mary Somerville", "Mary"):
        with database.transaction() as conn:
            credit = Credit(Who(MARY.identities, name), "author", 1, "x")
            attribution.put(conn, [decided(pending, credit)], better=lambda one, other: max(one, other, key=len))
    assert rows(database, "select display_name from authors") == [("mary@example.net",)]
