"""People as lists and searches ask for them: with their documents by role, and by a part of a name."""

from collections.abc import Sequence
from dataclasses import dataclass

from psycopg import Connection
from psycopg.rows import class_row

from garage.store.database import Row


@dataclass(frozen=True, slots=True)
class Listed:
    """An author; identities are written `kind:value`. `documents` counts those with any part, `roles` those by part."""

    id: int
    name: str
    is_self: bool
    notes: str
    identities: list[str]
    documents: int
    roles: dict[str, int]


_ROLES = ("author", "sender", "recipient", "cc", "committer")


def listed(conn: Connection[Row], *, only_self: bool = False, limit: int | None = None) -> list[Listed]:
    """Authors: the owner first, then those of the most documents."""
    with conn.cursor(row_factory=class_row(Listed)) as cursor:
        found = cursor.execute(
            "with parts as (select author_id, role, count(*) as documents from document_authors group by 1, 2),"
            " totals as (select author_id, count(distinct document_id) as documents from document_authors group by 1)"
            " select a.id, a.display_name as name, a.is_self, a.notes,"
            "  array(select i.kind || ':' || i.value from author_identities i where i.author_id = a.id"
            "    order by i.kind, i.value) as identities,"
            "  coalesce(t.documents, 0) as documents,"
            "  coalesce((select jsonb_object_agg(p.role, p.documents) from parts p where p.author_id = a.id), '{}')"
            "    as roles"
            " from authors a left join totals t on t.author_id = a.id where a.is_self or not %(only_self)s"
            " order by a.is_self desc, documents desc, a.display_name, a.id limit %(limit)s",
            {"only_self": only_self, "limit": limit},
        ).fetchall()
    return [
        Listed(
            *(row.id, row.name, row.is_self, row.notes, row.identities, row.documents),
            roles={role: row.roles[role] for role in _ROLES if role in row.roles},
        )
        for row in found
    ]


def count(conn: Connection[Row]) -> int:
    """Number of authors."""
    row = conn.execute("select count(*) from authors").fetchone()
    return int(row[0]) if row else 0


def named_like(conn: Connection[Row], text: str) -> list[tuple[int, str]]:
    """(id, name) of the authors whose name or one of whose identities contains `text`, whatever its case."""
    return conn.execute(
        "select a.id, a.display_name from authors a where strpos(lower(a.display_name), lower(%(text)s)) > 0"
        " or exists (select from author_identities i where i.author_id = a.id"
        "  and (strpos(i.value, %(folded)s) > 0 or strpos(lower(i.value), lower(%(text)s)) > 0))"
        " order by a.display_name, a.id",
        {"text": text, "folded": text.casefold()},
    ).fetchall()


def names(conn: Connection[Row]) -> list[tuple[str, str]]:
    """(what an author goes by, the name that is shown), for all authors."""
    return conn.execute(
        "select display_name, display_name from authors union select i.value, a.display_name"
        " from author_identities i join authors a on a.id = i.author_id order by 1, 2"
    ).fetchall()


@dataclass(frozen=True, slots=True)
class Voices:
    """Conversations that some authors speak in.

    `conversations`: whether there are any. `senders` are all who speak there besides the owner, as messages name them;
    `identities` are the authors', as (kind, value); `owner`: the owner is one of the authors.
    """

    conversations: bool
    senders: tuple[str, ...]
    identities: frozenset[tuple[str, str]]
    owner: bool


def voices(conn: Connection[Row], authors: Sequence[int]) -> Voices:
    """Who speaks in the conversations of these authors."""
    rows = conn.execute(
        "select distinct c.sender, c.direction from document_authors a"
        " join documents d on d.id = a.document_id and d.kind = 'conversation'"
        " join chunks c on c.document_id = d.id where a.author_id = any(%s) and a.role = 'sender'",
        (list(authors),),
    ).fetchall()
    identities = conn.execute(
        "select kind, value from author_identities where author_id = any(%s)", (list(authors),)
    ).fetchall()
    owner = conn.execute("select from authors where is_self and id = any(%s)", (list(authors),)).fetchone()
    senders = sorted({sender for sender, direction in rows if sender is not None and direction != "sent"})
    return Voices(bool(rows), tuple(senders), frozenset(identities), owner is not None)
