"""Whose documents are: the work list of documents to attribute again, and what is recorded of each."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import Connection

from garage.store import authors, git
from garage.store.authors import Who
from garage.store.database import Row
from garage.store.git import Contributor

PAGE = 1000  # documents of one transaction


@dataclass(frozen=True, slots=True)
class DocumentFacts:
    """What tells whose a document is. `version` is the one that holds for it now; class and trust are those so far.

    `author`, `sender`, `recipients`, `cc` and `participants` are as the extractor found them. `speakers` are the
    (sender, direction) of a conversation's messages with how many there are. `history` None: no repository knows the
    file; (): one does, and not who wrote it.
    """

    document_id: int
    uri: str
    kind: str
    extractor: str
    version: str
    corpus_class: str = ""
    trust: str = ""
    author: Any = None
    sender: Any = None
    recipients: Any = None
    cc: Any = None
    participants: Any = None
    speakers: tuple[tuple[str | None, str | None, int], ...] = ()
    history: tuple[Contributor, ...] | None = None


@dataclass(frozen=True, slots=True)
class Credit:
    """Somebody's part in a document; `role` is author, committer, sender, recipient or cc."""

    who: Who
    role: str
    confidence: float
    evidence: str


@dataclass(frozen=True, slots=True)
class Attribution:
    """What is recorded of a document; `signals` are objects of `signal`, `said`, `evidence` and `won`."""

    document: DocumentFacts
    corpus_class: str
    trust: str
    signals: tuple[dict[str, Any], ...]
    credits: tuple[Credit, ...]

    @property
    def is_new(self) -> bool:
        """Whether class or trust are other ones than before."""
        return (self.corpus_class, self.trust) != (self.document.corpus_class, self.document.trust)


_OF_A_PAGE = f" from documents d left join lateral ({git.DOCUMENT_HISTORY}) g on true"
_OF_A_SOURCE = f" from documents d left join ({git.SOURCE_HISTORIES}) g on g.file_uri = d.file_uri"
_PENDING = """
    where d.source_id = %(source)s
      and (%(rebuild)s or d.attributed_as is distinct from (%(version)s::text || coalesce(':' || g.digest, '')))
"""


def count_pending(conn: Connection[Row], source_id: int, version: str, *, rebuild: bool) -> int:
    """Length of the work list."""
    row = conn.execute(
        "select count(*)" + _OF_A_SOURCE + _PENDING, {"source": source_id, "version": version, "rebuild": rebuild}
    ).fetchone()
    return int(row[0]) if row else 0


def pending(conn: Connection[Row], source_id: int, version: str, *, rebuild: bool) -> Iterator[list[DocumentFacts]]:
    """Documents that were not attributed as they would be now: by `version`, and by what git says of their file."""
    last = 0
    while True:
        rows = conn.execute(
            "select d.id, d.file_uri, d.kind, d.extractor, %(version)s::text || coalesce(':' || g.digest, ''),"
            " d.corpus_class, d.trust_tier, d.meta->'author', d.meta->'from', d.meta->'to', d.meta->'cc',"
            " d.meta->'participants', g.digest is not null,"
            " case when d.kind = 'conversation' then"
            "   (select coalesce(jsonb_agg(s), '[]') from (select p->>2 as sender, p->>3 as direction, count(*)"
            "    from jsonb_array_elements(d.parts) p group by 1, 2 order by 3 desc, 1, 2) s) end"
            + _OF_A_PAGE
            + _PENDING
            + " and d.id > %(last)s order by d.id limit %(page)s",
            {"source": source_id, "version": version, "rebuild": rebuild, "last": last, "page": PAGE},
        ).fetchall()
        known = git.contributors(conn, [row[0] for *row, tracked, _ in rows if tracked])
        page = [
            DocumentFacts(
                *facts,
                speakers=tuple((s["sender"], s["direction"], s["count"]) for s in speakers or ()),
                history=known.get(facts[0]),
            )  # type: ignore[misc]  # twelve values stand before the last two
            for *facts, _, speakers in rows
        ]
        if page:
            yield page
        if len(page) < PAGE:
            return
        last = page[-1].document_id


def put(conn: Connection[Row], decided: Sequence[Attribution], *, better: Callable[[str, str], str] = max) -> int:
    """Records attributions; call it inside one transaction. Returns how many documents took another class or trust.

    A document that is gone by now is passed over. `better` is that of `garage.store.authors.resolve`.
    """
    # Before anything else, as it waits for other runs: nothing is locked meanwhile that they may wait for.
    ids = authors.resolve(conn, (credit.who for one in decided for credit in one.credits), better=better)
    # As one text: an array of texts with that many quotes takes three times as long.
    written = [
        {
            "id": one.document.document_id,
            "class": one.corpus_class,
            "trust": one.trust,
            "version": one.document.version,
            "signals": one.signals,
        }
        for one in decided
    ]
    moved = conn.execute(
        "update documents d set corpus_class = n.class, trust_tier = n.trust, attributed_as = n.version,"
        " signals = n.signals from jsonb_to_recordset(%s::jsonb)"
        " as n(id bigint, class text, trust text, version text, signals jsonb) where d.id = n.id returning d.id",
        (json.dumps(written, ensure_ascii=False),),
    ).fetchall()
    _put_credits(conn, decided, ids)
    there = {document for (document,) in moved}
    return sum(one.is_new and one.document.document_id in there for one in decided)


def _put_credits(conn: Connection[Row], decided: Sequence[Attribution], ids: Mapping[Who, int]) -> None:
    best: dict[tuple[int, int, str], Credit] = {}
    for one in decided:
        for credit in one.credits:
            if (author := ids.get(credit.who)) is None:
                continue  # the owner, where nobody is configured
            key = (one.document.document_id, author, credit.role)
            if key not in best or credit.confidence > best[key].confidence:
                best[key] = credit
    documents = [one.document.document_id for one in decided]
    conn.execute("delete from document_authors where document_id = any(%s)", (documents,))
    written = [
        {"document": document, "author": author, "role": role, "confidence": c.confidence, "evidence": c.evidence}
        for (document, author, role), c in best.items()
    ]
    conn.execute(
        "insert into document_authors (document_id, author_id, role, confidence, evidence) select n.*"
        " from jsonb_to_recordset(%s::jsonb)"
        " as n(document bigint, author bigint, role text, confidence real, evidence text)"
        " join documents d on d.id = n.document",
        (json.dumps(written, ensure_ascii=False),),
    )


def summary(conn: Connection[Row], source_id: int) -> dict[str, Counter[str]]:
    """How many documents of a source have which class, which trust, and which signal that won."""
    found = {"class": Counter[str](), "trust": Counter[str](), "signal": Counter[str]()}
    for corpus_class, trust, signal, documents in conn.execute(
        "select corpus_class, trust_tier, coalesce((select s->>'signal' from jsonb_array_elements(signals) s"
        " where (s->>'won')::boolean and s->>'signal' <> 'class' limit 1), 'undecided'), count(*)"
        " from documents where source_id = %s group by 1, 2, 3",
        (source_id,),
    ):
        found["class"][corpus_class] += documents
        found["trust"][trust] += documents
        found["signal"][signal] += documents
    return found
