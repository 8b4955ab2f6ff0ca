"""chunks -> embeddings/<model>: one asset a configured model, each with its own code version, table and index."""

import dagster as dg

from garage import stages, worklist
from garage.inference.catalogue import ModelEntry
from garage.store import embeddings as store
from garage_assets import versions
from garage_assets.configured import enabled_models
from garage_assets.ingest import chunks
from garage_assets.partitions import source_partitions
from garage_assets.policies import FRESH, ON_CHANGE
from garage_assets.running import held, materialized, observer
from resources import EmbeddingModels, GarageDatabase, GarageSettings, RunOptions

GROUP = "embed"
POOL = "model"


def embeddings_of(entry: ModelEntry) -> dg.AssetsDefinition:
    """The asset of one model's vectors."""

    @dg.asset(
        key=["embeddings", entry.slug],
        deps=[chunks],
        partitions_def=source_partitions,
        group_name=GROUP,
        kinds={"postgres", "pgvector", "llama.cpp"},
        freshness_policy=FRESH,
        code_version=versions.vectors_version(entry),
        automation_condition=ON_CHANGE,
        pool=POOL,
        description=(
            f"A vector of every passage by {entry.slug} ({entry.stored_dims} dimensions), in a table and an index of"
            " its own. A passage whose exact text has a vector already takes a copy of it."
        ),
        metadata={"dagster/relation_identifier": f"garage.{store.table_name(entry.slug)}"},
    )
    def embeddings(
        context: dg.AssetExecutionContext,
        database: GarageDatabase,
        settings: GarageSettings,
        models: EmbeddingModels,
        options: RunOptions,
    ) -> dg.MaterializeResult[None]:
        slug, db = context.partition_key, database.database
        # One stream of inference at a time on this machine, for runs that the pool does not see as well.
        with held(context, db, f"model/{entry.slug}"):
            config = settings.config()  # by now: it may have changed while this waited
            row = stages.source(db, config, slug)
            stage = stages.vectors(
                db, config, row, entry, load=lambda: models.embedder(entry, config), rebuild=options.rebuild
            )
            report = worklist.run(db, stage, ahead=2, run_id=context.run.run_id, observe=observer(context))
            with db.connection() as conn:
                rows = store.count_vectors(conn, stage.model, row.id)
        return materialized(report, **{"dagster/partition_row_count": rows})

    return embeddings


embeddings = [embeddings_of(entry) for entry in enabled_models()]
