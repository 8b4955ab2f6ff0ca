"""The stages of one source, put together from the configuration: what an asset, a test or a benchmark runs."""

from collections.abc import Callable

from garage.attribute import stage as attributing
from garage.attribute.histories import HistoryReport, refresh
from garage.attribute.stage import AttributionStage
from garage.chunk import stage as chunking
from garage.chunk.stage import ChunksStage
from garage.config import Config
from garage.embed import stage as embedding
from garage.embed.stage import VectorsStage
from garage.extract.registry import SUFFIXES
from garage.extract.stage import DocumentsStage
from garage.inference.catalogue import ModelEntry
from garage.inference.embedder import Embedder, fingerprint
from garage.inference.fetch import weights_sha256
from garage.store import sources
from garage.store.database import Database
from garage.store.sources import Source
from garage.walk import stage as walking
from garage.worklist import Progress, Report


def source(database: Database, config: Config, slug: str) -> Source:
    """A source as the configuration has it now. Raises UnknownSource."""
    with database.transaction() as conn:
        sources.sync(conn, config.sources)
        return sources.source(conn, slug)


def walk(
    database: Database,
    config: Config,
    row: Source,
    *,
    allow_deletes: bool = False,
    run_id: str | None = None,
    observe: Callable[[Progress], None] = lambda progress: None,
) -> Report:
    """Walks a source and records what it saw; see `garage.walk.stage.record`."""
    return walking.record(database, row, config, SUFFIXES, allow_deletes=allow_deletes, run_id=run_id, observe=observe)


def preview(database: Database, config: Config, row: Source) -> walking.Seen:
    """What a walk would find now; stores nothing."""
    return walking.preview(database, row, config, SUFFIXES)


def documents(database: Database, config: Config, row: Source, *, rebuild: bool = False) -> DocumentsStage:
    """Files -> documents with their passages."""
    return DocumentsStage(
        database,
        row.slug,
        row,
        limits=config.extraction,
        max_bytes=config.walk.max_file_bytes,
        sizes=chunking.settings(config.chunking),
        gate=config.quality.reject_machine_generated,
        rebuild=rebuild,
        placeholders=config.placeholders,
    )


def chunks(database: Database, config: Config, row: Source, *, rebuild: bool = False) -> ChunksStage:
    """Documents -> passages, where another chunker made those there are."""
    return ChunksStage(database, row.id, row.slug, chunking.settings(config.chunking), rebuild=rebuild)


def histories(
    database: Database, row: Source, *, observe: Callable[[Progress], None] = lambda progress: None
) -> HistoryReport:
    """Reads what is new in the git repositories of a source; see `garage.attribute.histories.refresh`."""
    return refresh(database, row, observe=observe)


def attribution(database: Database, config: Config, row: Source, *, rebuild: bool = False) -> AttributionStage:
    """Documents -> whose they are, where other rules, identities or histories decided; puts the owner on record."""
    return attributing.stage(database, row, identity=config.identity, settings=config.attribution, rebuild=rebuild)


def vectors(
    database: Database,
    config: Config,
    row: Source,
    entry: ModelEntry,
    *,
    load: Callable[[], Embedder],
    rebuild: bool = False,
) -> VectorsStage:
    """Passages -> vectors of one model; `load` opens it, and is called only when something is left to embed."""
    space = fingerprint(entry, weights_sha256(entry, config.models_dir))
    return VectorsStage(
        database,
        row.id,
        row.slug,
        model=embedding.register(database, entry, space),
        entry=entry,
        load=load,
        wanted_default=config.embedding.default,
        batch=config.embedding.batch,
        rebuild=rebuild,
    )
