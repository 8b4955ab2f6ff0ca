"""documents -> attribution: class, trust and people of every document."""

import dagster as dg

from garage import stages, worklist
from garage.store import attribution as store
from garage.store import documents as documents_store
from garage_assets import versions
from garage_assets.ingest import GROUP, documents
from garage_assets.partitions import source_partitions
from garage_assets.policies import FRESH, ON_CHANGE
from garage_assets.running import held, materialized, observer
from resources import GarageDatabase, GarageSettings, RunOptions


@dg.asset(
    deps=[documents],
    partitions_def=source_partitions,
    group_name=GROUP,
    kinds={"postgres", "git"},
    freshness_policy=FRESH,
    code_version=versions.attribution_version(),
    automation_condition=ON_CHANGE,
)
def attribution(
    context: dg.AssetExecutionContext, database: GarageDatabase, settings: GarageSettings, options: RunOptions
) -> dg.MaterializeResult[None]:
    """Whose every document is: authored, received or reference, by git, what the file names, its folders, its source.

    Only documents are decided again whose rules, identities or history are other ones; nothing is read or embedded.
    """
    slug, db = context.partition_key, database.database
    with held(context, db, f"ingest/{slug}"):
        config = settings.config()  # by now: it may have changed while this waited
        row = stages.source(db, config, slug)
        git = stages.histories(db, row, observe=observer(context))
        stage = stages.attribution(db, config, row, rebuild=options.rebuild)
        report = worklist.run(db, stage, run_id=context.run.run_id, observe=observer(context))
        with db.connection() as conn:
            rows = documents_store.count(conn, row.id)
            # Counting what decided reads every signal: only when something was decided.
            found = store.summary(conn, row.id) if report.counts else {}
    table = "| | | documents |\n|---|---|--:|\n" + "".join(
        f"| {what} | {value} | {count} |\n" for what, counts in found.items() for value, count in counts.most_common()
    )
    return materialized(
        report,
        **({"decided": dg.MetadataValue.md(table)} if found else {}),
        repositories=git.repositories,
        commits_read=git.commits,
        git_warnings=dg.MetadataValue.json(list(git.warnings)),
        **{"dagster/partition_row_count": rows},
    )
