"""Tables `git_repositories`, `git_people` and `git_files`: what git says of the files of a source.

A file's history reaches its documents by address, in two ways. `left join lateral (DOCUMENT_HISTORY) g on true` beside
some `documents d` looks the file of each up. `left join (SOURCE_HISTORIES) g on g.file_uri = d.file_uri` beside all of
a source's goes through all there is once, which is ten times faster a document. `g.digest` changes exactly when the
people, or how often each committed the file, change; reading a repository again leaves it as it is. `contributors`
tells who they are.

A row without people is a file whose history lies beyond where a shallow clone ends: git has it, and not who wrote it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from psycopg import Connection
from psycopg.rows import class_row

from garage.store.copying import copy_lines, masked
from garage.store.database import Row

# One row at most; the limit tells the planner, which would else go through all there is for a few documents.
DOCUMENT_HISTORY = """
    select f.repository_id, f.people, f.commits, md5(f.people::text || f.commits::text) as digest
    from git_repositories r join git_files f on f.repository_id = r.id
     and f.path = case r.path when '' then d.file_uri else substr(d.file_uri, length(r.path) + 2) end
    where r.source_id = d.source_id and (r.path = '' or starts_with(d.file_uri, r.path || '/'))
    limit 1
"""
"""What is known of the file of the document `d`: `repository_id`, `people`, `commits`, `digest`; at most one row."""

SOURCE_HISTORIES = """
    select case r.path when '' then f.path else r.path || '/' || f.path end as file_uri,
           md5(f.people::text || f.commits::text) as digest
    from git_repositories r join git_files f on f.repository_id = r.id
    where r.source_id = %(source)s
"""
"""`file_uri` and `digest` of all files of the source %(source)s of which something is known, each once."""

Shares = tuple[tuple[int, int], ...]
"""(number of a person, commits written), the most commits first; 0: only committed what others wrote."""


@dataclass(frozen=True, slots=True)
class RepositoryRow:
    """A repository as it was last read: `head` is the commit, `version` what else decided the outcome."""

    id: int
    path: str
    head: str
    version: str
    commits: int


@dataclass(frozen=True, slots=True)
class Contributor:
    """Somebody who wrote `commits` commits of a file; 0: only committed what others wrote."""

    name: str
    email: str
    commits: int


def folders(conn: Connection[Row], source_id: int) -> list[str]:
    """The addresses of the folders that hold files of a source; the root's is ''."""
    found = conn.execute(
        "select distinct case strpos(uri, '/') when 0 then '' else left(uri, -strpos(reverse(uri), '/')) end"
        " from source_files where source_id = %s",
        (source_id,),
    )
    return [folder for (folder,) in found]


def repositories(conn: Connection[Row], source_id: int) -> dict[str, RepositoryRow]:
    """What is recorded of a source's repositories, by their address below its root."""
    with conn.cursor(row_factory=class_row(RepositoryRow)) as cursor:
        rows = cursor.execute(
            "select id, path, head, version, commits from git_repositories where source_id = %s", (source_id,)
        ).fetchall()
    return {row.path: row for row in rows}


def people(conn: Connection[Row], repository_id: int) -> dict[int, tuple[str, str]]:
    """(name, email) of a repository's people by their numbers."""
    rows = conn.execute("select id, name, email from git_people where repository_id = %s", (repository_id,))
    return {number: (name, email) for number, name, email in rows}


def shares(conn: Connection[Row], repository_id: int, paths: Sequence[str]) -> dict[str, Shares]:
    """What is recorded of some files of a repository; those that it does not know are missing."""
    rows = conn.execute(
        "select f.path, f.people, f.commits from unnest(%s::text[]) as asked(path)"
        " join git_files f on f.repository_id = %s and f.path = asked.path",
        (list(paths), repository_id),
    )
    return {path: tuple(zip(who, commits, strict=True)) for path, who, commits in rows}


def record(
    conn: Connection[Row],
    source_id: int,
    row: RepositoryRow,
    people: Mapping[int, tuple[str, str]],
    files: Mapping[str, Shares],
    *,
    since: RepositoryRow | None,
) -> bool:
    """Records a repository's history; call it inside one transaction.

    `since` None: this is all of it, in place of what was recorded before. Otherwise it is what changes of that row:
    `row.id` is its id, `people` and `files` are the ones to add and to replace. Returns False, with nothing written,
    when that row is not the recorded one any more: another run was faster.
    """
    number = _replace(conn, source_id, row) if since is None else _advance(conn, row, since)
    if number is None:
        return False
    if since is not None:
        conn.execute("delete from git_files where repository_id = %s and path = any(%s)", (number, list(files)))
    with conn.cursor().copy("copy git_people (repository_id, id, name, email) from stdin") as copy:
        for person, (name, email) in people.items():
            copy.write_row((number, person, name, email))
    copy_lines(conn, "copy git_files (repository_id, path, people, commits) from stdin", _lines(number, files))
    return True


def _replace(conn: Connection[Row], source_id: int, row: RepositoryRow) -> int:
    found = conn.execute(
        "insert into git_repositories (source_id, path, head, version, commits) values (%s, %s, %s, %s, %s)"
        " on conflict (source_id, path) do update set head = excluded.head, version = excluded.version,"
        " commits = excluded.commits, read_at = now() returning id, xmax = 0",
        (source_id, row.path, row.head, row.version, row.commits),
    ).fetchone()
    assert found is not None
    number, is_new = found
    if not is_new:
        conn.execute("delete from git_files where repository_id = %s", (number,))
        conn.execute("delete from git_people where repository_id = %s", (number,))
    # What a larger repository had committed here before; when it cannot be read again, it still says so.
    conn.execute(
        "delete from git_files f using git_repositories r where f.repository_id = r.id and r.source_id = %(source)s"
        " and r.path <> %(path)s and (r.path = '' or starts_with(%(path)s, r.path || '/'))"
        " and starts_with(f.path, substr(%(path)s, length(r.path) + case r.path when '' then 1 else 2 end) || '/')",
        {"source": source_id, "path": row.path},
    )
    return int(number)


def _advance(conn: Connection[Row], row: RepositoryRow, since: RepositoryRow) -> int | None:
    advanced = conn.execute(
        "update git_repositories set head = %s, version = %s, commits = %s, read_at = now()"
        " where id = %s and (head, version) = (%s, %s)",
        (row.head, row.version, row.commits, since.id, since.head, since.version),
    )
    return since.id if advanced.rowcount else None


def _lines(number: int, files: Mapping[str, Shares]) -> Iterator[str]:
    """Rows in the text format of COPY."""
    endings: dict[Shares, str] = {}  # a few people share most of the files
    for path, given in files.items():
        ending = endings.get(given)
        if ending is None:
            who, commits = (",".join(map(str, column)) for column in zip(*given, strict=True)) if given else ("", "")
            ending = endings[given] = f"\t{{{who}}}\t{{{commits}}}\n"
        yield f"{number}\t{masked(path)}{ending}"


def forget(conn: Connection[Row], source_id: int, paths: Iterable[str]) -> int:
    """Forgets repositories of a source; returns how many there were."""
    return conn.execute(
        "delete from git_repositories where source_id = %s and path = any(%s)", (source_id, list(paths))
    ).rowcount


def analyze(conn: Connection[Row]) -> None:
    """Tells the planner of rows that came in bulk; it learns of them by itself only minutes later."""
    conn.execute("analyze git_repositories, git_people, git_files")


def contributors(conn: Connection[Row], document_ids: Sequence[int]) -> dict[int, tuple[Contributor, ...]]:
    """Who committed the files of some documents, the most commits first.

    A document that no repository knows is missing; () says that its file's history is cut off (a shallow clone).
    """
    rows = conn.execute(
        "select d.id, coalesce(array_agg(p.name order by c.place) filter (where c.place is not null), '{}'),"
        " coalesce(array_agg(p.email order by c.place) filter (where c.place is not null), '{}'), g.commits"
        f" from documents d cross join lateral ({DOCUMENT_HISTORY}) g"
        " left join lateral unnest(g.people) with ordinality as c(person, place) on true"
        " left join git_people p on p.repository_id = g.repository_id and p.id = c.person"
        " where d.id = any(%s) group by d.id, g.commits",
        (list(document_ids),),
    )
    return {document: tuple(map(Contributor, names, emails, commits)) for document, names, emails, commits in rows}
