"""How fast are documents attributed? 100,000, half in repositories, a fifth mail: `python -m bench.attribution`.

The first run decides about all, the second finds nothing to do, the third decides again because a rule changed.
"""

import random
import time
from typing import Any

from bench.scratch import scratch_database
from garage.attribute.stage import stage
from garage.config import Attribution, Identity, Source
from garage.store import sources
from garage.store.database import Database
from garage.worklist import run

DOCUMENTS = 100_000
REPOSITORIES = 60
OWNER = Identity(name="Person 7", identities=("email:p7@example.org",))


def fill(database: Database, documents: int) -> None:
    """Documents with a text of about 4 kB, written by SQL; histories of a few people each."""
    rng = random.Random(1)
    with database.transaction() as conn:
        sources.sync(conn, [Source.model_validate({"name": "lib", "root": "/lib"})])
        source = sources.source(conn, "lib").id
        conn.execute(
            "insert into documents (source_id, file_uri, title, kind, corpus_class, trust_tier, content, meta,"
            " source_sha256, content_sha256, byte_size, mtime_ns, extractor, extractor_fingerprint)"
            " select %(source)s, case n %% 10 when 0 then 'Mail/' || n || '.eml' when 1 then 'Mail/old/' || n || '.eml'"
            "   when 2 then 'Papers/' || n || '.pdf' when 3 then 'Letters/' || n || '.docx'"
            "   when 4 then 'Notes/' || n || '.md'"
            "   else 'code/repository-' || n %% %(repositories)s || '/' || n || '.md' end,"
            " 'Title', 'prose', 'document', 'authored', t.text, case when n %% 10 < 2 then jsonb_build_object("
            "   'from', 'Person ' || n %% 997 || ' <p' || n %% 997 || '@example.org>', 'author', 'x',"
            "   'to', jsonb_build_array('p' || n %% 991 || '@example.org', 'p7@example.org'))"
            "   when n %% 10 < 4 then jsonb_build_object('author', 'Author ' || chr(97 + n %% 26) || chr(97 + n %% 17))"
            "   else '{}' end, h.h, h.h, 4000, 1, case when n %% 10 < 2 then 'mail' else 'text' end, '1'"
            " from generate_series(1, %(documents)s) n,"
            " lateral (select string_agg(md5(n::text || k), ' ') as text from generate_series(1, 120) k) t,"
            " lateral (select sha256(t.text::bytea) as h) h",
            {"source": source, "documents": documents, "repositories": REPOSITORIES},
        )
        for number in range(REPOSITORIES):
            conn.execute(
                "insert into git_repositories (source_id, path, head, version, commits) values (%s, %s, 'h', '1', 1)",
                (source, f"code/repository-{number}"),
            )
        conn.execute(
            "insert into git_people select r.id, p, 'Person ' || p, 'p' || p || '@example.org'"
            " from git_repositories r, generate_series(0, 199) p"
        )
        files = [
            (f"code/repository-{n % REPOSITORIES}", f"{n}.md", rng.sample(range(200), 3), [5, 2, 1])
            for n in range(1, documents + 1)
            if n % 10 > 4
        ]
        with conn.cursor() as cursor:
            cursor.executemany(
                "insert into git_files select id, %s, %s, %s from git_repositories where path = %s",
                [(path, people, commits, repository) for repository, path, people, commits in files],
            )
    with database.connection() as conn:
        conn.execute("analyze")


def measure(documents: int = DOCUMENTS) -> dict[str, Any]:
    """Documents a second of a first run and of one after a change of the rules, and how long one without work takes."""
    figures: dict[str, Any] = {"documents": documents, "repositories": REPOSITORIES}
    with scratch_database() as database:
        fill(database, documents)
        with database.connection() as conn:
            row = sources.source(conn, "lib")

        def seconds(settings: Attribution) -> tuple[float, int]:
            started = time.perf_counter()
            report = run(database, stage(database, row, identity=OWNER, settings=settings))
            return time.perf_counter() - started, report.counts.get("attributed", 0)

        for name, settings in (
            ("first", Attribution()),
            ("nothing_to_do", Attribution()),
            ("another_rule", Attribution(path_rules={"Letters/": "received"})),
        ):
            taken, attributed = seconds(settings)
            figures[f"{name}_s"] = taken
            if attributed:
                figures[f"{name}_documents_per_s"] = attributed / taken
    return figures


def main() -> None:
    """Print the figures."""
    from bench.__main__ import leaves

    for name, value in leaves(measure()):
        print(f"  {name:<40} {value}")


if __name__ == "__main__":
    main()
