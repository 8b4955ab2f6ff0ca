"""Tables `authors`, `author_identities` and `document_authors`: people, and what tells them apart.

An identity, a kind and a value, belongs to one author. Values are compared as they are: `garage.attribute.identity`
puts them into the form that does not depend on how they are spelt.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from psycopg import Connection

from garage.store.database import Row
from garage.store.errors import StoreError

Pair = tuple[str, str]
"""A kind and a value."""

_LOCK = "select pg_advisory_xact_lock(hashtext('garage.authors'))"
"""Who makes or merges authors does so alone, to the end of the transaction: two would make one person twice."""


class UnknownAuthor(StoreError):
    """There is no author of that id, name or identity (`author`)."""


@dataclass(frozen=True, slots=True)
class Who:
    """Whom a document names: looked up by their `identities` in this order, made with the first; none: the owner."""

    identities: tuple[Pair, ...]
    name: str = ""


OWNER = Who(())


@dataclass(frozen=True, slots=True)
class Author:
    """A row of `authors` with what belongs to it; `documents` counts those that it has a part in."""

    id: int
    name: str
    is_self: bool
    notes: str
    identities: tuple[Pair, ...]
    documents: int


@dataclass(frozen=True, slots=True)
class Merged:
    """What a merge moved."""

    author: int
    identities: int
    documents: int


def set_owner(conn: Connection[Row], name: str, identities: Sequence[Pair]) -> tuple[Pair, ...]:
    """Makes the author that is the owner what the configuration says; call it inside one transaction.

    Another author who has one of the identities becomes one with the owner. An owner who has none of them is somebody
    else, who becomes an author like any other; so does the owner when there is neither a name nor an identity. Returns
    all identities of the owner: what a merge brought stays, and is taken away by `detach`.
    """
    current = conn.execute("select id, display_name from authors where is_self").fetchone()
    if not name and not identities:
        if current is not None:
            conn.execute(_LOCK)
            conn.execute("update authors set is_self = false where is_self")
        return ()
    kinds, values = [kind for kind, _ in identities], [value for _, value in identities]
    owned = conn.execute(
        "select count(*) from author_identities i join authors a on a.id = i.author_id and a.is_self"
        " join unnest(%s::text[], %s::text[]) as n(kind, value) using (kind, value)",
        (kinds, values),
    ).fetchone()
    display = name or identities[0][1]
    if current is None or owned is None or owned[0] < len(set(identities)) or current[1] != display:
        conn.execute(_LOCK)
        _set_owner(conn, display, kinds, values)
    return tuple(
        conn.execute(
            "select kind, value from author_identities i join authors a on a.id = i.author_id and a.is_self"
            " order by 1, 2"
        ).fetchall()
    )


def _set_owner(conn: Connection[Row], name: str, kinds: list[str], values: list[str]) -> None:
    holders = [
        author
        for (author,) in conn.execute(
            "select distinct i.author_id from author_identities i"
            " join unnest(%s::text[], %s::text[]) as n(kind, value) using (kind, value) order by 1",
            (kinds, values),
        )
    ]
    conn.execute("update authors set is_self = false where is_self and id <> all(%s)", (holders,))
    row = conn.execute("select id from authors where is_self").fetchone()
    if row is None and holders:
        row = conn.execute("update authors set is_self = true where id = %s returning id", (holders[0],)).fetchone()
    if row is None:
        row = conn.execute(
            "insert into authors (display_name, is_self) values (%s, true) returning id", (name,)
        ).fetchone()
    assert row is not None
    owner = int(row[0])
    for holder in holders:
        if holder != owner:
            _merge(conn, owner, holder)
    conn.execute("update authors set display_name = %s where id = %s", (name, owner))
    conn.execute(
        "insert into author_identities (author_id, kind, value) select %s, n.* from unnest(%s::text[], %s::text[])"
        " as n(kind, value) on conflict (kind, value) do nothing",
        (owner, kinds, values),
    )


def resolve(conn: Connection[Row], people: Iterable[Who], *, better: Callable[[str, str], str] = max) -> dict[Who, int]:
    """The authors whom documents name, made where nobody has their identities; call it inside one transaction.

    The owner is missing where nobody is configured. `better` chooses of two names of one person the one to show; it
    must not depend on their order.
    """
    people = list(dict.fromkeys(people))
    conn.execute(_LOCK)
    known = _known(conn, {pair for who in people for pair in who.identities})
    owner = conn.execute("select id from authors where is_self").fetchone()
    found: dict[Who, int] = {}
    names: dict[int, str] = {}
    fresh: list[tuple[int, str, str]] = []
    unused = _new_ids(conn, len({who.identities[0] for who in people if who.identities and not _any(known, who)}))
    for who in people:
        if not who.identities:
            if owner is not None:
                found[who] = owner[0]
            continue
        author = _any(known, who)
        if author is None:
            author = next(unused)
            fresh.append((author, *who.identities[0]))
            known |= dict.fromkeys(who.identities, author)
        found[who] = author
        if who.name:
            names[author] = better(names[author], who.name) if author in names else who.name
    _insert(conn, fresh, names)
    _rename(conn, {author: name for author, name in names.items() if author not in {f[0] for f in fresh}}, better)
    return found


def _any(known: Mapping[Pair, int], who: Who) -> int | None:
    return next((known[pair] for pair in who.identities if pair in known), None)


def _known(conn: Connection[Row], pairs: Iterable[Pair]) -> dict[Pair, int]:
    wanted = list(pairs)
    rows = conn.execute(
        "select i.kind, i.value, i.author_id from author_identities i"
        " join unnest(%s::text[], %s::text[]) as n(kind, value) using (kind, value)",
        ([kind for kind, _ in wanted], [value for _, value in wanted]),
    )
    return {(kind, value): author for kind, value, author in rows}


def _new_ids(conn: Connection[Row], count: int) -> Iterator[int]:
    rows = conn.execute(
        "select nextval(pg_get_serial_sequence('authors', 'id')) from generate_series(1, %s)", (count,)
    ).fetchall()
    return iter([int(number) for (number,) in rows])


def _insert(conn: Connection[Row], fresh: Sequence[tuple[int, str, str]], names: Mapping[int, str]) -> None:
    if not fresh:
        return
    ids, kinds, values = (list(column) for column in zip(*fresh, strict=True))
    conn.execute(
        "insert into authors (id, display_name) overriding system value select * from unnest(%s::bigint[], %s::text[])",
        (ids, [names.get(author, value) for author, _, value in fresh]),
    )
    conn.execute(
        "insert into author_identities (author_id, kind, value)"
        " select * from unnest(%s::bigint[], %s::text[], %s::text[])",
        (ids, kinds, values),
    )


def _rename(conn: Connection[Row], names: Mapping[int, str], better: Callable[[str, str], str]) -> None:
    """Shows the better of the name so far and the one seen now; the owner's is the configuration's."""
    if not names:
        return
    shown = conn.execute(
        "select id, display_name from authors where id = any(%s) and not is_self", (list(names),)
    ).fetchall()
    changes = {author: names[author] for author, name in shown if better(name, names[author]) != name}
    if changes:
        conn.execute(
            "update authors a set display_name = n.name from unnest(%s::bigint[], %s::text[]) as n(id, name)"
            " where a.id = n.id",
            (list(changes), list(changes.values())),
        )


def merge(conn: Connection[Row], kept: int, other: int) -> Merged:
    """Makes two authors one, in a transaction of its own; raises UnknownAuthor.

    Nothing is lost: identities and notes go over, and so do the parts in documents, each with the greater confidence
    and its evidence where both have the same part. The owner is the one that is kept, whichever was named first.
    """
    with conn.transaction():
        conn.execute(_LOCK)
        found = conn.execute("select id, is_self from authors where id = any(%s)", ([kept, other],)).fetchall()
        selves: dict[int, bool] = dict(found)
        for author in (kept, other):
            if author not in selves:
                raise UnknownAuthor(
                    f"There is no author {author}.", hint="`garage authors list` shows them.", author=str(author)
                )
        if kept == other:
            return Merged(kept, 0, 0)
        if selves[other]:
            kept, other = other, kept
        return _merge(conn, kept, other)


def _merge(conn: Connection[Row], kept: int, other: int) -> Merged:
    parts = conn.execute(
        "insert into document_authors as a (document_id, author_id, role, confidence, evidence)"
        " select document_id, %s, role, confidence, evidence from document_authors where author_id = %s"
        " on conflict (document_id, author_id, role) do update set confidence = excluded.confidence,"
        " evidence = excluded.evidence where excluded.confidence > a.confidence",
        (kept, other),
    ).rowcount
    moved = conn.execute("update author_identities set author_id = %s where author_id = %s", (kept, other)).rowcount
    conn.execute(
        "update authors k set notes = concat_ws(E'\\n', nullif(k.notes, ''), nullif(o.notes, '')),"
        " created_at = least(k.created_at, o.created_at) from authors o where k.id = %s and o.id = %s",
        (kept, other),
    )
    conn.execute("delete from authors where id = %s", (other,))
    return Merged(kept, moved, parts)


def detach(conn: Connection[Row], pair: Pair) -> int:
    """Makes an identity an author of its own again, in a transaction of its own; the new author's id.

    The documents of the author that had it are attributed again by the next run. Raises UnknownAuthor.
    """
    with conn.transaction():
        conn.execute(_LOCK)
        author = _known(conn, [pair]).get(pair)
        if author is None:
            said = ":".join(pair)
            raise UnknownAuthor(
                f"Nobody has the identity {said}.", hint="`garage authors list` shows them.", author=said
            )
        new = next(_new_ids(conn, 1))
        conn.execute("insert into authors (id, display_name) overriding system value values (%s, %s)", (new, pair[1]))
        conn.execute("update author_identities set author_id = %s where (kind, value) = (%s, %s)", (new, *pair))
        conn.execute(
            "update documents set attributed_as = null where id in"
            " (select document_id from document_authors where author_id = %s)",
            (author,),
        )
        return new


def prune(conn: Connection[Row]) -> int:
    """Forgets authors whom no document names any more, but for those of whom a person said something; how many."""
    conn.execute(_LOCK)
    return conn.execute(
        "delete from authors a where not is_self and notes = ''"
        " and not exists (select from document_authors d where d.author_id = a.id)"
        " and (select count(*) from author_identities i where i.author_id = a.id) <= 1"
    ).rowcount


_AUTHORS = """
    select a.id, a.display_name as name, a.is_self, a.notes,
      coalesce((select jsonb_agg(jsonb_build_array(kind, value) order by kind, value) from author_identities i
        where i.author_id = a.id), '[]') as identities,
      (select count(distinct document_id) from document_authors d where d.author_id = a.id) as documents
    from authors a
"""


def find(conn: Connection[Row], *, pairs: Sequence[Pair] = (), name: str = "") -> list[Author]:
    """The authors that have one of the identities, or are shown by a name, whatever its case; by id."""
    rows = conn.execute(
        _AUTHORS + " where lower(a.display_name) = lower(%s) or exists (select from author_identities i"
        " join unnest(%s::text[], %s::text[]) as n(kind, value) using (kind, value) where i.author_id = a.id)"
        " order by a.id",
        (name, [kind for kind, _ in pairs], [value for _, value in pairs]),
    )
    return [_author(row) for row in rows]


def author(conn: Connection[Row], number: int) -> Author:
    """One author. Raises UnknownAuthor."""
    row = conn.execute(_AUTHORS + " where a.id = %s", (number,)).fetchone()
    if row is None:
        raise UnknownAuthor(
            f"There is no author {number}.", hint="`garage authors list` shows them.", author=str(number)
        )
    return _author(row)


def _author(row: Row) -> Author:
    number, name, is_self, notes, identities, documents = row
    return Author(number, name, is_self, notes, tuple((kind, value) for kind, value in identities), documents)
