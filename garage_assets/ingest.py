"""sources -> source_files -> documents -> chunks: a folder becomes passages."""

import dagster as dg

from garage import stages, worklist
from garage.store import documents as store
from garage.store import files
from garage.store.digest import text_digest
from garage_assets import versions
from garage_assets.partitions import source_partitions
from garage_assets.policies import FRESH, ON_CHANGE
from garage_assets.running import held, materialized, observer
from resources import GarageDatabase, GarageSettings, RunOptions

GROUP = "ingest"


@dg.asset(
    partitions_def=source_partitions,
    group_name=GROUP,
    kinds={"postgres", "yaml"},
    freshness_policy=FRESH,
    code_version="1",
)
def sources(
    context: dg.AssetExecutionContext, database: GarageDatabase, settings: GarageSettings
) -> dg.MaterializeResult[None]:
    """A registered folder and how it is read: its root, what its files are by default, how far they may travel."""
    slug = context.partition_key
    with held(context, database.database, f"ingest/{slug}"):
        row = stages.source(database.database, settings.config(), slug)
    said = (row.root, row.default_class, row.default_trust, row.egress, row.active, sorted(row.settings.items()))
    return dg.MaterializeResult(
        metadata={"root": dg.MetadataValue.path(row.root), "active": row.active, "egress": row.egress},
        data_version=dg.DataVersion(text_digest(repr(said))),
    )


@dg.asset(
    deps=[sources],
    partitions_def=source_partitions,
    group_name=GROUP,
    kinds={"postgres", "file"},
    freshness_policy=FRESH,
    code_version=versions.walk_version(),
    automation_condition=ON_CHANGE,
)
def source_files(
    context: dg.AssetExecutionContext, database: GarageDatabase, settings: GarageSettings, options: RunOptions
) -> dg.MaterializeResult[None]:
    """What the walk sees of a folder: every file's name, size and time; no file is opened.

    Fails before anything is deleted when more than a quarter of the source is gone, unless `allow_deletes` is set.
    """
    slug, db = context.partition_key, database.database
    with held(context, db, f"ingest/{slug}"):
        config = settings.config()  # by now: it may have changed while this waited
        row = stages.source(db, config, slug)
        report = stages.walk(
            db, config, row, allow_deletes=options.allow_deletes, run_id=context.run.run_id, observe=observer(context)
        )
        with db.connection() as conn:
            rows = files.count(conn, row.id)
    return materialized(report, **{"dagster/partition_row_count": rows})


@dg.asset(
    deps=[source_files],
    partitions_def=source_partitions,
    group_name=GROUP,
    kinds={"postgres", "python"},
    freshness_policy=FRESH,
    code_version=versions.documents_version(),
    automation_condition=ON_CHANGE,
)
def documents(
    context: dg.AssetExecutionContext, database: GarageDatabase, settings: GarageSettings, options: RunOptions
) -> dg.MaterializeResult[None]:
    """The text of every file, as one canonical mirror each, stored together with its passages in one transaction.

    Only files whose stat or extractor changed are opened. A file that cannot be read becomes an outcome with a reason.
    """
    slug, db = context.partition_key, database.database
    with held(context, db, f"ingest/{slug}"):
        config = settings.config()  # by now: it may have changed while this waited
        row = stages.source(db, config, slug)
        stage = stages.documents(db, config, row, rebuild=options.rebuild)
        report = worklist.run(db, stage, run_id=context.run.run_id, observe=observer(context))
        with db.connection() as conn:
            rows = store.count(conn, row.id)
            outcomes = store.outcome_counts(conn, row.id)
    return materialized(report, outcomes=dg.MetadataValue.json(outcomes), **{"dagster/partition_row_count": rows})


@dg.asset(
    deps=[documents],
    partitions_def=source_partitions,
    group_name=GROUP,
    kinds={"postgres", "python"},
    freshness_policy=FRESH,
    code_version=versions.chunks_version(),
    automation_condition=ON_CHANGE,
)
def chunks(
    context: dg.AssetExecutionContext, database: GarageDatabase, settings: GarageSettings, options: RunOptions
) -> dg.MaterializeResult[None]:
    """The passages of every document: exact slices of its text, with line range and heading path.

    Documents whose passages another chunker made are cut again; a passage that stays the same keeps its vectors.
    """
    slug, db = context.partition_key, database.database
    with held(context, db, f"ingest/{slug}"):
        config = settings.config()  # by now: it may have changed while this waited
        row = stages.source(db, config, slug)
        stage = stages.chunks(db, config, row, rebuild=options.rebuild)
        report = worklist.run(db, stage, run_id=context.run.run_id, observe=observer(context))
        with db.connection() as conn:
            _, rows = store.counts(conn, row.id)
    return materialized(report, **{"dagster/partition_row_count": rows})
