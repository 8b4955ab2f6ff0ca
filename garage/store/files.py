"""Table `source_files`: a walk against what is recorded, compared and applied as sets."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from psycopg import Connection

from garage.store.copying import copy_lines, masked
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
    @property
    def kind(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Difference:
    """A walk against the record: numbers of files, and up to 20 examples of what vanished.

    `changed` includes the `swapped`, which differ by their inode alone. `kept` were not found either, and lie on a
    drive that is gone.
    """

    known: int
    added: int
    changed: int
    vanished: int
    examples: tuple[str, ...]
    kept: int = 0
    swapped: int = 0

    @property
    def nothing(self) -> bool:
        return not (self.added or self.changed or self.vanished)


# A file that took another's place with the same size and time has another inode. Some file systems (FUSE, some network
# shares) number their files anew with every mount; there an inode tells nothing, and many differ at once.
_FEW_SWAPPED, _SHARE_SWAPPED = 2, 0.1
_STAT = "({0}.size, {0}.mtime_ns, {0}.extractor, {0}.kind)"
_SAME = f"{_STAT.format('f')} = {_STAT.format('w')}"
_MOVED = f"{_SAME} and w.kind = 'file' and f.inode <> w.inode"
_ON_LOST_DRIVE = "exists (select from unnest(%(lost)s::text[]) as drive where starts_with(f.uri, drive))"


def load(conn: Connection[Row], files: Iterable[Walked]) -> None:
    """Streams a walk into a table that lives until the end of this transaction."""
    conn.execute(
        "create temporary table walked (uri text not null, size bigint not null, mtime_ns bigint not null,"
        " inode numeric(20) not null, extractor text not null, kind text not null) on commit drop"
    )
    copy_lines(
        conn,
        "copy walked from stdin",
        (f"{masked(f.uri)}\t{f.size}\t{f.mtime_ns}\t{f.inode}\t{f.extractor}\t{f.kind}\n" for f in files),
    )


def vanished_below(conn: Connection[Row], source_id: int, folders: Iterable[str]) -> dict[str, int]:
    """How many recorded files below each of `folders` (addresses ending in '/') the loaded walk did not see."""
    return dict(
        conn.execute(
            "select drive, count(*) from unnest(%s::text[]) as drive join source_files f on f.source_id = %s"
            " and starts_with(f.uri, drive) where not exists (select from walked w where w.uri = f.uri) group by drive",
            (list(folders), source_id),
        ).fetchall()
    )


def difference(conn: Connection[Row], source_id: int, *, lost: Sequence[str] = (), inodes: bool = True) -> Difference:
    """What the loaded walk would add, change and take away.

    `lost` are folders (addresses ending in '/') whose drive is gone: what lies below them does not count as vanished.
    `inodes` False: they are those of another device and tell nothing.
    """
    row = conn.execute(
        "select count(f.uri), count(*) filter (where f.uri is null),"
        f" count(*) filter (where f.uri is not null and w.uri is not null and not {_SAME}),"
        f" count(*) filter (where w.uri is null and not {_ON_LOST_DRIVE}),"
        f" count(*) filter (where w.uri is null and {_ON_LOST_DRIVE}),"
        f" count(*) filter (where {_SAME}), count(*) filter (where {_MOVED})"
        " from (select * from source_files where source_id = %(source)s) f full join walked w on w.uri = f.uri",
        {"source": source_id, "lost": list(lost)},
    ).fetchone()
    assert row is not None
    known, added, changed, vanished, kept, same, moved = row
    swapped = moved if inodes and moved <= max(_FEW_SWAPPED, same * _SHARE_SWAPPED) else 0
    examples: tuple[str, ...] = ()
    if vanished:
        found = conn.execute(
            "select uri from source_files f where source_id = %(source)s"
            f" and not exists (select from walked w where w.uri = f.uri) and not {_ON_LOST_DRIVE}"
            " order by uri limit 20",
            {"source": source_id, "lost": list(lost)},
        )
        examples = tuple(uri for (uri,) in found)
    return Difference(known, added, changed + swapped, vanished, examples, kept, swapped)


def apply(
    conn: Connection[Row], source_id: int, *, delete: bool, lost: Sequence[str] = (), swapped: bool = False
) -> int:
    """Records the loaded walk; with `delete`, forgets the files it did not see, except below the folders `lost`.

    `swapped`: a file that differs by its inode alone is recorded as well. Returns how many it forgot.
    """
    conn.execute(
        "insert into source_files (source_id, uri, size, mtime_ns, inode, extractor, kind)"
        " select %(source)s, w.uri, w.size, w.mtime_ns, w.inode, w.extractor, w.kind from walked w"
        " left join source_files f on f.source_id = %(source)s and f.uri = w.uri"
        f" where f.uri is null or not {_SAME} or (%(swapped)s and {_MOVED})"
        " on conflict (source_id, uri) do update set size = excluded.size, mtime_ns = excluded.mtime_ns,"
        " inode = excluded.inode, extractor = excluded.extractor, kind = excluded.kind",
        {"source": source_id, "swapped": swapped},
    )
    if not delete:
        return 0
    return conn.execute(
        "delete from source_files f where source_id = %(source)s"
        f" and not exists (select from walked w where w.uri = f.uri) and not {_ON_LOST_DRIVE}",
        {"source": source_id, "lost": list(lost)},
    ).rowcount


def adopt_inodes(conn: Connection[Row], source_id: int) -> None:
    """Takes over the loaded walk's inodes without a file being read again: the source moved to another device."""
    conn.execute(
        "update source_files f set inode = w.inode from walked w"
        f" where f.source_id = %s and f.uri = w.uri and {_SAME} and f.inode <> w.inode",
        (source_id,),
    )
    conn.execute(
        "update ingest_outcomes o set inode = f.inode from source_files f where o.source_id = %s"
        " and f.source_id = o.source_id and f.uri = o.uri and o.inode <> f.inode"
        " and (o.size, o.mtime_ns) = (f.size, f.mtime_ns)",
        (source_id,),
    )


def count(conn: Connection[Row], source_id: int) -> int:
    """Number of files recorded of a source."""
    row = conn.execute("select count(*) from source_files where source_id = %s", (source_id,)).fetchone()
    return int(row[0]) if row else 0
