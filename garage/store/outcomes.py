"""Table `ingest_outcomes` as a person reads it, and the files in it that are not read in this run."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from psycopg import Connection
from psycopg.rows import class_row

from garage.store.database import Row

KINDS = (
    "ok", "no_text", "rejected", "encrypted", "unsupported", "too_large", "timeout", "memory", "error", "unreadable",
    "placeholder", "deferred",
)  # fmt: skip
"""How an attempt at a file can end."""

REASONS = {
    "placeholder": "its bytes are with a cloud provider, and placeholders.materialize is off",
    "deferred": "its bytes are with a cloud provider, and the budget of the last run was used up",
}


@dataclass(frozen=True, slots=True)
class Attempt:
    """How the last attempt at a file ended."""

    source: str
    uri: str
    outcome: str
    reason: str
    at: datetime


_CHOSEN = """
    from ingest_outcomes o join sources s on s.id = o.source_id
    where (s.slug = %(source)s or %(source)s::text is null and s.active)
      and (o.outcome = %(kind)s or %(kind)s::text is null)
"""


def attempts(conn: Connection[Row], *, source: str | None, kind: str | None, limit: int) -> list[Attempt]:
    """The first `limit` attempts by outcome, source and address; without a `kind` those that are not 'ok'."""
    with conn.cursor(row_factory=class_row(Attempt)) as cursor:
        return cursor.execute(
            "select s.slug as source, o.uri, o.outcome, o.reason, o.at"
            + _CHOSEN
            + " and (o.outcome <> 'ok' or %(kind)s::text is not null)"
            " order by o.outcome, s.slug, o.uri limit %(limit)s",
            {"source": source, "kind": kind, "limit": limit},
        ).fetchall()


def summary(conn: Connection[Row], *, source: str | None = None, kind: str | None = None) -> dict[str, int]:
    """How many files ended in which outcome, the most frequent first."""
    return dict(
        conn.execute(
            "select o.outcome, count(*)" + _CHOSEN + " group by o.outcome order by 2 desc, 1",
            {"source": source, "kind": kind},
        ).fetchall()
    )


def put_off(conn: Connection[Row], source_id: int, versions: Mapping[str, str], outcome: str) -> int:
    """Records `outcome`, 'placeholder' or 'deferred', for every placeholder that no attempt has read; their number.

    One that was read before, and has that time still (and that size, where it shows one), keeps what is recorded, and
    so does one whose fetching failed. Rows that say so already are not written.
    """
    row = conn.execute(
        "with waiting as ("
        "  select f.uri, f.size, f.mtime_ns, f.inode, f.kind, now.fingerprint from source_files f"
        "  join unnest(%(extractors)s::text[], %(fingerprints)s::text[]) as now(extractor, fingerprint)"
        "    on now.extractor = f.extractor"
        "  left join ingest_outcomes o on o.source_id = f.source_id and o.uri = f.uri"
        "  where f.source_id = %(source)s and f.kind <> 'file' and (o.uri is null"
        "    or o.outcome in ('placeholder', 'deferred') or o.mtime_ns <> f.mtime_ns"
        "    or (f.kind = 'dataless' and o.size <> f.size))"
        "), written as ("
        "  insert into ingest_outcomes as old (source_id, uri, outcome, reason, size, mtime_ns, inode, kind,"
        "    extractor_fingerprint)"
        "  select %(source)s, uri, %(outcome)s, %(reason)s, size, mtime_ns, inode, kind, fingerprint from waiting"
        "  order by uri"
        "  on conflict (source_id, uri) do update set outcome = excluded.outcome, reason = excluded.reason,"
        "    size = excluded.size, mtime_ns = excluded.mtime_ns, inode = excluded.inode, kind = excluded.kind,"
        "    extractor_fingerprint = excluded.extractor_fingerprint, source_sha256 = null, at = now()"
        "  where (old.outcome, old.size, old.mtime_ns, old.kind)"
        "    is distinct from (excluded.outcome, excluded.size, excluded.mtime_ns, excluded.kind)"
        ") select count(*) from waiting",
        {
            "source": source_id,
            "extractors": list(versions),
            "fingerprints": list(versions.values()),
            "outcome": outcome,
            "reason": REASONS[outcome],
        },
    ).fetchone()
    return int(row[0]) if row else 0
