"""Git histories in the database: recorded whole or in parts, found by the documents of their files."""

from collections.abc import Callable, Mapping
from typing import Any

from garage.store import files, git
from garage.store.database import Database
from garage.store.git import Contributor, RepositoryRow, Shares

ADA, BEN = ("Ada", "ada@example.org"), ("Ben", "ben@example.org")
PEOPLE = {1: ADA, 2: BEN}
Put = Callable[..., object]


def record(
    database: Database,
    source_id: int,
    path: str,
    rows: Mapping[str, Shares],
    *,
    head: str = "one",
    people: Mapping[int, tuple[str, str]] = PEOPLE,
    since: RepositoryRow | None = None,
) -> bool:
    with database.transaction() as conn:
        row = RepositoryRow(0, path, head, "version", 1)
        return git.record(conn, source_id, row, people, rows, since=since)


def recorded(database: Database, source_id: int, path: str = "") -> RepositoryRow:
    with database.connection() as conn:
        return git.repositories(conn, source_id)[path]


def of_documents(database: Database) -> dict[str, tuple[Contributor, ...]]:
    """What is known of each document's file, by its address."""
    with database.connection() as conn:
        documents = dict(conn.execute("select id, uri from documents").fetchall())
        return {documents[number]: who for number, who in git.contributors(conn, list(documents)).items()}


def digests(database: Database) -> dict[str, str | None]:
    with database.connection() as conn:
        query = f"select d.uri, g.digest from documents d left join lateral ({git.DOCUMENT_HISTORY}) g on true"
        return dict(conn.execute(query.encode()).fetchall())


def test_folders_are_those_of_the_files(database: Database, source_id: int, file: Callable[..., Any]) -> None:
    uris = ["a.txt", "notes/b.txt", "notes/c.txt", "notes/deep er/caf\u00e9/d.txt", "/odd.txt", "\U0001f41d/e.txt"]
    with database.transaction() as conn:
        files.load(conn, [file(uri) for uri in uris])
        files.apply(conn, source_id, delete=True)
        assert sorted(git.folders(conn, source_id)) == ["", "notes", "notes/deep er/caf\u00e9", "\U0001f41d"]


def test_a_document_finds_the_history_of_its_file(
    database: Database, source_id: int, second_source: int, put: Put
) -> None:
    for uri in ("a.txt", "work/a.txt", "work/b/a.txt", "workshop/a.txt", "work/inner/a.txt", "untracked.txt"):
        put(uri, ["text"])
    put("mail.mbox", ["one"], record="1")
    put("mail.mbox", ["two"], record="2")
    record(database, source_id, "", {"a.txt": ((1, 3),), "mail.mbox": ((2, 1),), "work/inner/a.txt": ((1, 9),)})
    record(database, source_id, "work", {"a.txt": ((2, 5), (1, 2)), "b/a.txt": ()})
    record(database, source_id, "work/inner", {"a.txt": ((2, 1), (1, 0))})
    record(database, second_source, "workshop", {"a.txt": ((1, 1),)})
    with database.connection() as conn:
        query = f"select d.uri, g.digest from documents d left join ({git.SOURCE_HISTORIES}) g using (file_uri)"
        assert dict(conn.execute(query.encode(), {"source": source_id}).fetchall()) == digests(database)
    assert of_documents(database) == {
        "a.txt": (Contributor(*ADA, 3),),
        "work/a.txt": (Contributor(*BEN, 5), Contributor(*ADA, 2)),
        "work/b/a.txt": (),
        "work/inner/a.txt": (Contributor(*BEN, 1), Contributor(*ADA, 0)),
        "mail.mbox#1": (Contributor(*BEN, 1),),
        "mail.mbox#2": (Contributor(*BEN, 1),),
    }


def test_addresses_that_look_like_patterns_are_taken_as_they_are(database: Database, source_id: int, put: Put) -> None:
    put("50%25_off/a\\b.txt", ["text"])
    put("50%25xoff/a\\b.txt", ["text"])
    record(database, source_id, "50%25_off", {"a\\b.txt": ((1, 1),)})
    assert of_documents(database) == {"50%25_off/a\\b.txt": (Contributor(*ADA, 1),)}


def test_the_digest_of_a_file_changes_with_its_people_and_not_with_its_repositorys(
    database: Database, source_id: int, put: Put
) -> None:
    for uri in ("a.txt", "b.txt", "c.txt"):
        put(uri, ["text"])
    record(database, source_id, "", {"a.txt": ((1, 1),), "b.txt": ((1, 1),)})
    first = digests(database)
    record(database, source_id, "", {"a.txt": ((1, 1),), "b.txt": ((1, 2),)}, head="two")
    second = digests(database)
    assert first["a.txt"] == second["a.txt"] == first["b.txt"] is not None
    assert first["b.txt"] != second["b.txt"]
    assert first["c.txt"] is second["c.txt"] is None


def test_what_is_recorded_whole_replaces_what_was_there(database: Database, source_id: int, put: Put) -> None:
    put("a.txt", ["text"])
    put("b.txt", ["text"])
    record(database, source_id, "", {"a.txt": ((1, 1),)})
    record(database, source_id, "", {"b.txt": ((2, 1),)}, head="two", people={2: BEN})
    assert of_documents(database) == {"b.txt": (Contributor(*BEN, 1),)}
    assert recorded(database, source_id).head == "two"
    with database.connection() as conn:
        assert git.people(conn, recorded(database, source_id).id) == {2: BEN}


def test_what_is_recorded_in_addition_leaves_the_rest(database: Database, source_id: int) -> None:
    record(database, source_id, "", {"a.txt": ((1, 1),), "b.txt": ((1, 1),)}, people={1: ADA})
    before = recorded(database, source_id)
    new: dict[str, Shares] = {"b.txt": ((2, 4), (1, 1)), "c.txt": ()}
    assert record(database, source_id, "", new, head="two", people={2: BEN}, since=before)
    with database.connection() as conn:
        assert git.shares(conn, before.id, ["a.txt", "b.txt", "c.txt", "d.txt"]) == {"a.txt": ((1, 1),), **new}
        assert git.people(conn, before.id) == PEOPLE


def test_what_another_run_recorded_first_is_not_added_a_second_time(database: Database, source_id: int) -> None:
    record(database, source_id, "", {"a.txt": ((1, 1),)})
    before = recorded(database, source_id)
    assert record(database, source_id, "", {"a.txt": ((1, 2),)}, head="two", people={}, since=before)
    assert not record(database, source_id, "", {"a.txt": ((1, 3),)}, head="two", people={}, since=before)
    with database.connection() as conn:
        assert git.shares(conn, before.id, ["a.txt"]) == {"a.txt": ((1, 2),)}


def test_a_file_is_told_by_the_innermost_repository_alone(database: Database, source_id: int, put: Put) -> None:
    put("work/inner/a.txt", ["text"])
    record(database, source_id, "", {"work/inner/a.txt": ((1, 1),), "work/a.txt": ((1, 1),), "x.txt": ((1, 1),)})
    record(database, source_id, "work", {"inner/a.txt": ((1, 2),), "inner.txt": ((1, 2),)})
    record(database, source_id, "work/inner", {"a.txt": ((2, 3),)})
    assert of_documents(database) == {"work/inner/a.txt": (Contributor(*BEN, 3),)}
    with database.connection() as conn:
        known = [uri for uri, _ in conn.execute(git.SOURCE_HISTORIES.encode(), {"source": source_id}).fetchall()]
    assert sorted(known) == ["work/inner.txt", "work/inner/a.txt", "x.txt"]


def test_a_forgotten_repository_leaves_nothing(database: Database, source_id: int) -> None:
    for path in ("", "work"):
        record(database, source_id, path, {"a.txt": ((1, 1),)})
    with database.transaction() as conn:
        assert git.forget(conn, source_id, ["work", "never seen"]) == 1
    with database.connection() as conn:
        assert list(git.repositories(conn, source_id)) == [""]
        counts = conn.execute("select (select count(*) from git_files), (select count(*) from git_people)").fetchone()
        assert counts == (1, 2)
