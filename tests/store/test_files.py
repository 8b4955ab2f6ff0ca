"""A walk against the record, compared and applied as sets."""

import random
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from garage.store import files
from garage.store.database import Database
from garage.store.files import Difference

Record = dict[str, tuple[int, int, str]]


def walk(database: Database, source_id: int, seen: Iterable[Any], *, delete: bool = True) -> tuple[Difference, int]:
    with database.transaction() as conn:
        files.load(conn, seen)
        difference = files.difference(conn, source_id)
        return difference, files.apply(conn, source_id, delete=delete)


def recorded(database: Database, source_id: int) -> Record:
    with database.connection() as conn:
        rows = conn.execute(
            "select uri, size, mtime_ns, extractor from source_files where source_id = %s", (source_id,)
        ).fetchall()
    return {uri: (size, mtime_ns, extractor) for uri, size, mtime_ns, extractor in rows}


def test_random_walks_end_like_a_dictionary_would(database: Database, source_id: int, file: Callable[..., Any]) -> None:
    rng = random.Random(4)
    model: Record = {}
    for _ in range(25):
        seen = {
            f"{number}.txt": (rng.randint(0, 2), rng.randint(0, 2), rng.choice(["text", "markdown"]))
            for number in range(30)
            if rng.random() < 0.6
        }
        delete = rng.random() < 0.7
        difference, forgotten = walk(
            database,
            source_id,
            [file(uri, size=s, mtime_ns=m, extractor=e) for uri, (s, m, e) in seen.items()],
            delete=delete,
        )
        gone = model.keys() - seen.keys()
        assert difference.known == len(model)
        assert difference.added == len(seen.keys() - model.keys())
        assert difference.changed == sum(1 for uri in seen.keys() & model.keys() if seen[uri] != model[uri])
        assert difference.vanished == len(gone)
        assert difference.examples == tuple(sorted(gone))[:20]
        assert difference.nothing == (seen == model)
        assert forgotten == (len(gone) if delete else 0)
        model = {**({} if delete else model), **seen}
        assert recorded(database, source_id) == model
        with database.connection() as conn:
            assert files.count(conn, source_id) == len(model)


def test_a_walk_of_nothing_new_writes_nothing(database: Database, source_id: int, file: Callable[..., Any]) -> None:
    seen = [file(f"{number}.txt", inode=number) for number in range(50)]
    walk(database, source_id, seen)
    with database.connection() as conn:
        before = conn.execute("select ctid, xmin from source_files order by uri").fetchall()
    difference, _ = walk(database, source_id, [file(f.uri, inode=f.inode + 1) for f in seen])
    assert difference.nothing
    with database.connection() as conn:
        assert conn.execute("select ctid, xmin from source_files order by uri").fetchall() == before


@pytest.mark.parametrize(
    "uri", ["tab\there", "back\\slash", "\\N", "\\.", "ключ/猫.md", "a" * 2000, "quote'\"", "%0A", " ", "$1"]
)
def test_any_name_is_recorded_as_it_is(database: Database, source_id: int, file: Callable[..., Any], uri: str) -> None:
    walk(database, source_id, [file(uri, size=2**40, mtime_ns=2**62, inode=2**64 - 1)])
    assert recorded(database, source_id) == {uri: (2**40, 2**62, "text")}
    assert walk(database, source_id, [file(uri, size=2**40, mtime_ns=2**62, inode=2**64 - 1)])[0].nothing


def test_a_file_from_before_1970_is_a_file(database: Database, source_id: int, file: Callable[..., Any]) -> None:
    walk(database, source_id, [file("old.txt", mtime_ns=-5)])
    assert recorded(database, source_id) == {"old.txt": (1, -5, "text")}


def test_sources_do_not_touch_each_other(
    database: Database, source_id: int, second_source: int, file: Callable[..., Any]
) -> None:
    walk(database, source_id, [file("a.txt"), file("b.txt")])
    difference, _ = walk(database, second_source, [file("a.txt")])
    assert (difference.known, difference.added) == (0, 1)
    assert walk(database, second_source, [])[1] == 1
    assert set(recorded(database, source_id)) == {"a.txt", "b.txt"}


def test_a_walk_that_fails_leaves_the_record_as_it_was(
    database: Database, source_id: int, file: Callable[..., Any]
) -> None:
    walk(database, source_id, [file("a.txt")])

    def breaking() -> Iterable[Any]:
        yield file("b.txt")
        raise OSError("the disk went away")

    with pytest.raises(OSError, match="went away"):
        walk(database, source_id, breaking())
    assert set(recorded(database, source_id)) == {"a.txt"}
    assert walk(database, source_id, [file("a.txt")])[0].nothing
