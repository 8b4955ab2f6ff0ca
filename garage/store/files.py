"""Table `source_files`: a walk against what is recorded, compared and applied as sets."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from psycopg import Connection

from garage.store.database import Row


class Walked(Protocol):
    """What a walk yields of one file."""

    @property
    def uri(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def mtime_ns(self) -> int: ...
    @property
    def inode(self) -> int: ...
    @property
    def extractor(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Difference:
    """A walk against the record: numbers of files, and up to 20 examples of what vanished."""

    known: int
    added: int
    changed: int
    vanished: int
    examples: tuple[str, ...]

    @property
    def nothing(self) -> bool:
        return not (self.added or self.changed or self.vanished)


def load(conn: Connection[Row], files: Iterable[Walked]) -> None:
    """Streams a walk into a table that lives until the end of this transaction."""
    conn.execute(
        "create temporary table walked (uri text not null, size bigint not null, mtime_ns bigint not null,"
        " inode numeric(20) not null, extractor text not null) on commit drop"
    )
    with conn.cursor().copy("copy walked from stdin") as copy:
        for file in files:
            copy.write_row((file.uri, file.size, file.mtime_ns, file.inode, file.extractor))


def difference(conn: Connection[Row], source_id: int) -> Difference:
    """What the loaded walk would add, change and take away."""
    row = conn.execute(
        "select count(f.uri), count(*) filter (where f.uri is null),"
        " count(*) filter (where (f.size, f.mtime_ns, f.extractor) is distinct from (w.size, w.mtime_ns, w.extractor)"
        "   and f.uri is not null and w.uri is not null),"
        " count(*) filter (where w.uri is null)"
        " from (select * from source_files where source_id = %s) f full join walked w on w.uri = f.uri",
        (source_id,),
    ).fetchone()
    assert row is not None
    known, added, changed, vanished = row
    examples: tuple[str, ...] = ()
    if vanished:
        found = conn.execute(
            "select uri from source_files f where source_id = %s"
            " and not exists (select from walked w where w.uri = f.uri) order by uri limit 20",
            (source_id,),
        )
        examples = tuple(uri for (uri,) in found)
    return Difference(known, added, changed, vanished, examples)


def apply(conn: Connection[Row], source_id: int, *, delete: bool) -> int:
    """Records the loaded walk; with `delete`, forgets the files it did not see. Returns how many it forgot."""
    conn.execute(
        "insert into source_files (source_id, uri, size, mtime_ns, inode, extractor)"
        " select %s, w.uri, w.size, w.mtime_ns, w.inode, w.extractor from walked w"
        " left join source_files f on f.source_id = %s and f.uri = w.uri"
        " where (f.size, f.mtime_ns, f.extractor) is distinct from (w.size, w.mtime_ns, w.extractor)"
        " on conflict (source_id, uri) do update set size = excluded.size, mtime_ns = excluded.mtime_ns,"
        " inode = excluded.inode, extractor = excluded.extractor",
        (source_id, source_id),
    )
    if not delete:
        return 0
    return conn.execute(
        "delete from source_files f where source_id = %s and not exists (select from walked w where w.uri = f.uri)",
        (source_id,),
    ).rowcount


def count(conn: Connection[Row], source_id: int) -> int:
    """Number of files recorded of a source."""
    row = conn.execute("select count(*) from source_files where source_id = %s", (source_id,)).fetchone()
    return int(row[0]) if row else 0
