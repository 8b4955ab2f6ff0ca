"""The table of sources follows the configuration."""

from pathlib import Path

import pytest

from garage.config import Source
from garage.store import files, runs, sources
from garage.store.database import Database
from garage.store.errors import UnknownSource


def configured(name: str, **changes: object) -> Source:
    return Source.model_validate({"name": name, "root": f"/{name}", **changes})


def test_new_sources_are_added_and_unchanged_ones_left_alone(database: Database) -> None:
    with database.connection() as conn:
        first = sources.sync(conn, [configured("notes"), configured("letters")])
        assert (first.added, first.changed, first.retired) == (("notes", "letters"), (), ())
        again = sources.sync(conn, [configured("letters"), configured("notes")])
        assert (again.added, again.changed, again.retired) == ((), (), ())
        assert [row.slug for row in sources.sources(conn)] == ["letters", "notes"]


@pytest.mark.parametrize(
    ("change", "column", "value"),
    [
        ({"root": "/elsewhere"}, "root", "/elsewhere"),
        ({"class": "communication"}, "default_class", "communication"),
        ({"trust": "received"}, "default_trust", "received"),
        ({"egress": "lan"}, "egress", "lan"),
        ({"include_code": True}, "settings", {"include_code": True, "exclude": []}),
        ({"exclude": ["*.bak"]}, "settings", {"include_code": False, "exclude": ["*.bak"]}),
        ({"enabled": False}, "active", False),
    ],
)
def test_every_setting_of_a_source_is_followed(
    database: Database, change: dict[str, object], column: str, value: object
) -> None:
    with database.connection() as conn:
        sources.sync(conn, [configured("notes")])
        id_ = sources.source(conn, "notes").id
        assert sources.sync(conn, [configured("notes", **change)]).changed == ("notes",)
        row = sources.source(conn, "notes")
        assert getattr(row, column) == value
        assert row.id == id_
        assert sources.sync(conn, [configured("notes", **change)]).changed == ()


def test_a_source_that_is_no_longer_named_is_retired_and_comes_back_as_it_was(database: Database) -> None:
    with database.connection() as conn:
        sources.sync(conn, [configured("notes"), configured("letters")])
        id_ = sources.source(conn, "notes").id
        sources.record_walk(conn, id_, device=7, seconds=1.5)
        assert sources.sync(conn, [configured("letters")]).retired == ("notes",)
        assert sources.sync(conn, [configured("letters")]).retired == ()
        assert [row.slug for row in sources.sources(conn, active=True)] == ["letters"]
        assert [row.slug for row in sources.sources(conn, active=False)] == ["notes"]
        assert sources.sync(conn, [configured("notes"), configured("letters")]).changed == ("notes",)
        back = sources.source(conn, "notes")
        assert (back.id, back.active, back.root_device, back.walk_seconds) == (id_, True, 7, 1.5)


def test_an_unknown_source_names_those_there_are(database: Database) -> None:
    with database.connection() as conn:
        with pytest.raises(UnknownSource, match="none yet"):
            sources.source(conn, "notes")
        sources.sync(conn, [configured("letters"), configured("mail")])
        with pytest.raises(UnknownSource, match=r"no source 'notes'.*letters, mail") as unknown:
            sources.source(conn, "notes")
        assert unknown.value.fields["source"] == "notes"


def test_all_sources_are_walked_when_every_active_one_was(database: Database) -> None:
    with database.connection() as conn:
        assert sources.all_walked(conn)
        sources.sync(conn, [configured("notes"), configured("letters")])
        assert not sources.all_walked(conn)
        sources.record_walk(conn, sources.source(conn, "notes").id, device=None, seconds=0.1)
        assert not sources.all_walked(conn)
        sources.sync(conn, [configured("notes")])
        assert sources.all_walked(conn)


def test_purging_a_source_takes_all_that_it_contributed_and_nothing_else(
    database: Database, source_id: int, second_source: int, put: object, file: type
) -> None:
    for id_ in (source_id, second_source):
        put("a.txt", ["one", "two"], source=id_)  # type: ignore[operator]  # a function
        with database.transaction() as conn:
            files.load(conn, [file("a.txt")])
            files.apply(conn, id_, delete=True)
        with database.connection() as conn:
            runs.finish(conn, runs.begin(conn, id_, "walk", None, 1), done=1, counts={})
            runs.refuse(conn, id_, cause="vanished", known=4, vanished=2, detail="x")
            sources.record_walk(conn, id_, device=1, seconds=1)
    with database.transaction() as conn:
        assert sources.purge(conn, source_id) == 1
    tables = ("documents", "chunks", "source_files", "stage_runs", "refusals")
    with database.connection() as conn:
        for table in tables:
            found = conn.execute(f"select distinct source_id from {table}".encode()).fetchall()
            assert found == [(second_source,)], table
        row = sources.source(conn, "notes")
    assert (row.active, row.root_device, row.walked_at) == (False, None, None)
    assert Path(row.root) == Path("/notes")
