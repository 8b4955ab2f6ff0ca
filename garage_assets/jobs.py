"""The two jobs: everything of a source, and the standing checks."""

import dagster as dg

SOURCE_PIPELINE = "source_pipeline"

# In one process: eight steps cost 2.5 s that way and 36 to 51 s with a process a step.
source_pipeline = dg.define_asset_job(
    SOURCE_PIPELINE,
    # The checks too: the UI counts one as passed only since the last materialization.
    selection=dg.AssetSelection.all(),
    description="Brings one source up to date: walk, documents, whose they are, passages, vectors.",
    executor_def=dg.in_process_executor,
)

standing_checks = dg.define_asset_job(
    "standing_checks",
    selection=dg.AssetSelection.all_asset_checks(),
    description="Looks at every source: refusals, freshness, files that could not be read, passages without vectors.",
    executor_def=dg.in_process_executor,
)
