"""Documents -> whose they are: the work list of documents that other rules, identities or histories decided about."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import PurePath

from garage.attribute import owner as owners
from garage.attribute.identity import Identity, better_name
from garage.attribute.rules import PathRule, path_rules
from garage.attribute.signals import Rules, attribute
from garage.config import Attribution as Settings
from garage.config import Identity as Configured
from garage.fingerprint import code_digest
from garage.store import attribution as store
from garage.store import authors
from garage.store.attribution import Attribution, DocumentFacts
from garage.store.database import Database
from garage.store.digest import partition_digest
from garage.store.sources import Source
from garage.worklist import Executor, Inline

STAGE = "attribution"
_DATA = ("path_rules.yaml", "tool_names.yaml")


@cache
def code_version() -> str:
    """Digest of the code and the data that decide whose a document is."""
    data = {name: files("garage.attribute").joinpath(name).read_text(encoding="utf-8") for name in _DATA}
    return code_digest("garage.attribute.signals", "garage.attribute.stage", parameters=data)


def sync_owner(database: Database, configured: Configured) -> tuple[owners.Owner, str]:
    """Makes the owner on record the one that is configured; what tells them apart, and a text that changes with it."""
    wanted = [(one.kind, one.value) for one in owners.configured(configured.name, configured.identities)]
    with database.transaction() as conn:
        known = authors.set_owner(conn, configured.name, wanted)
    return owners.owner([Identity(kind, value) for kind, value in known]), repr(known)


@dataclass(slots=True)
class AttributionStage:
    """Decides class, trust and people of the documents whose `attributed_as` is not the version that holds now.

    Nothing is read from the files and nothing is embedded again: a decision is a projection of what is stored.
    """

    database: Database
    row: Source
    rules: Rules
    version: str
    rebuild: bool = False
    name: str = STAGE

    @property
    def source_id(self) -> int:
        return self.row.id

    @property
    def source(self) -> str:
        return self.row.slug

    def count(self) -> int:
        with self.database.connection() as conn:
            return store.count_pending(conn, self.source_id, self.version, rebuild=self.rebuild)

    def pending(self) -> Iterator[list[DocumentFacts]]:
        with self.database.connection() as conn:
            yield from store.pending(conn, self.source_id, self.version, rebuild=self.rebuild)

    @property
    def work(self) -> Callable[[list[DocumentFacts]], list[Attribution]]:
        return self._attribute

    def _attribute(self, documents: Sequence[DocumentFacts]) -> list[Attribution]:
        return [attribute(document, self.rules) for document in documents]

    def size(self, item: list[DocumentFacts]) -> int:
        return len(item)

    def commit(self, item: list[DocumentFacts], result: list[Attribution]) -> Mapping[str, int]:
        """A page in one transaction: a projection has nothing to lose, and 100,000 documents take seconds."""
        with self.database.transaction() as conn:
            changed = store.put(conn, result, better=better_name)
        return {"attributed": len(item), "reclassified": changed}

    def finish(self) -> Mapping[str, int]:
        """Forgets people whom no document names any more."""
        with self.database.transaction() as conn:
            forgotten = authors.prune(conn)
        return {"authors_forgotten": forgotten} if forgotten else {}

    def digest(self) -> str:
        with self.database.connection() as conn:
            return partition_digest(conn, "attribution", self.source_id)

    def executor(self) -> AbstractContextManager[Executor[list[DocumentFacts], list[Attribution]]]:
        return nullcontext(Inline())


def stage(
    database: Database, row: Source, *, identity: Configured, settings: Settings, rebuild: bool = False
) -> AttributionStage:
    """The stage of a source as configured; puts the owner on record."""
    owner, known = sync_owner(database, identity)
    own = tuple(PathRule(glob, trust) for glob, trust in settings.path_rules.items())
    # Where the configuration says something else than the default, it says more than the folder's name.
    folder = PurePath(row.root).name if row.kind == "filesystem" and row.default_trust == "authored" else ""
    rules = Rules(
        owner=owner,
        paths=path_rules(own),
        default_class=row.default_class,
        default_trust=row.default_trust,
        folder=folder,
    )
    decides = [known, [repr(rule) for rule in own], row.default_class, row.default_trust, folder]
    version = code_digest(parameters={"code": code_version(), "decides": decides})
    return AttributionStage(database, row, rules, version, rebuild=rebuild)
