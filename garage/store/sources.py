"""Table `sources`: the configuration's folders, and what was learnt of them."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg import Connection
from psycopg.rows import class_row

from garage.config import Source as Configured
from garage.store.database import Row
from garage.store.errors import UnknownSource

_COLUMNS = (
    "id, slug, kind, root, default_class, default_trust, egress, settings, active, root_device, walked_at,"
    " walk_seconds, mounts"
)


@dataclass(frozen=True, slots=True)
class Source:
    """A row of `sources`. `root_device` and the walk's times are those of the last completed walk.

    So are `mounts`: ids of file systems by address, ending in '/', of the folders below the root where they begin.
    """

    id: int
    slug: str
    kind: str
    root: str
    default_class: str
    default_trust: str
    egress: str
    settings: dict[str, Any]
    active: bool
    root_device: int | None
    walked_at: datetime | None
    walk_seconds: float | None
    mounts: dict[str, int]


@dataclass(frozen=True, slots=True)
class Synced:
    """What bringing the table in line with the configuration changed, by slug."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    retired: tuple[str, ...]


def sync(conn: Connection[Row], configured: Iterable[Configured]) -> Synced:
    """Makes the table say what the configuration says. Sources it no longer names are retired, never deleted here."""
    wanted = {source.name: source for source in configured}
    before = {row.slug: row for row in sources(conn)}
    added: list[str] = []
    changed: list[str] = []
    for slug, source in wanted.items():
        settings = {"include_code": source.include_code, "exclude": list(source.exclude)}
        values = (
            source.kind,
            str(source.root),
            source.corpus_class,
            source.trust,
            source.egress,
            settings,
            source.enabled,
        )
        old = before.get(slug)
        if old is not None and values == (
            old.kind, old.root, old.default_class, old.default_trust, old.egress, old.settings, old.active,
        ):  # fmt: skip
            continue
        (added if old is None else changed).append(slug)
        conn.execute(
            "insert into sources (slug, kind, root, default_class, default_trust, egress, settings, active)"
            " values (%s, %s, %s, %s, %s, %s, %s, %s) on conflict (slug) do update set kind = excluded.kind,"
            " root = excluded.root,"
            " default_class = excluded.default_class, default_trust = excluded.default_trust,"
            " egress = excluded.egress, settings = excluded.settings, active = excluded.active",
            (slug, *values[:5], json.dumps(settings), source.enabled),
        )
    retired = [slug for slug, row in before.items() if slug not in wanted and row.active]
    if retired:
        conn.execute("update sources set active = false where slug = any(%s)", (retired,))
    return Synced(tuple(added), tuple(changed), tuple(retired))


def sources(conn: Connection[Row], *, active: bool | None = None) -> list[Source]:
    """Sources in order of their slugs; `active` narrows to those in use, or those retired."""
    with conn.cursor(row_factory=class_row(Source)) as cursor:
        return cursor.execute(
            f"select {_COLUMNS} from sources where %(active)s::boolean is null or active = %(active)s order by slug",
            {"active": active},
        ).fetchall()


def source(conn: Connection[Row], slug: str) -> Source:
    """One source. Raises UnknownSource, naming those that exist."""
    with conn.cursor(row_factory=class_row(Source)) as cursor:
        row = cursor.execute(f"select {_COLUMNS} from sources where slug = %s", (slug,)).fetchone()
    if row is None:
        known = ", ".join(other.slug for other in sources(conn)) or "none yet"
        raise UnknownSource(
            f"There is no source {slug!r}.",
            hint=f"Known sources: {known}. `garage source add` registers a folder.",
            source=slug,
        )
    return row


def record_walk(conn: Connection[Row], source_id: int, *, device: int | None, seconds: float) -> None:
    """Remembers a completed walk: the root's device, and how long it took."""
    conn.execute(
        "update sources set root_device = %s, walked_at = now(), walk_seconds = %s where id = %s",
        (device, seconds, source_id),
    )


def record_mounts(conn: Connection[Row], source_id: int, mounts: Mapping[str, int]) -> None:
    """Remembers which folders below the root have a file system of their own."""
    conn.execute("update sources set mounts = %s where id = %s", (json.dumps(dict(mounts)), source_id))


def purge(conn: Connection[Row], source_id: int) -> int:
    """Deletes all that a source contributed, and retires it; the number of documents deleted."""
    conn.execute("set local synchronous_commit = on")  # who is told that it is gone can rely on it
    deleted = conn.execute("delete from documents where source_id = %s", (source_id,)).rowcount
    for table in ("source_files", "ingest_outcomes", "refusals", "stage_runs", "git_repositories"):
        conn.execute(f"delete from {table} where source_id = %s".encode(), (source_id,))
    conn.execute(
        "update sources set active = false, root_device = null, walked_at = null, mounts = '{}' where id = %s",
        (source_id,),
    )
    return deleted


def all_walked(conn: Connection[Row]) -> bool:
    """Whether every active source was walked to the end at least once."""
    row = conn.execute("select not exists (select from sources where active and walked_at is null)").fetchone()
    return bool(row and row[0])
