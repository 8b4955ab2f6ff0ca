"""The code location: `defs` is all that Dagster loads."""

import dagster as dg

from garage_assets import embed, ingest
from garage_assets.attribution import attribution
from garage_assets.checks import checks
from garage_assets.jobs import source_pipeline, standing_checks
from resources import EmbeddingModels, GarageDatabase, GarageSettings, RunOptions
from sensors import automation, hourly_checks, nightly, source_watch

defs = dg.Definitions(
    assets=[ingest.sources, ingest.source_files, ingest.documents, attribution, ingest.chunks, *embed.embeddings],
    asset_checks=checks,
    jobs=[source_pipeline, standing_checks],
    schedules=[nightly, hourly_checks],
    sensors=[source_watch, automation],
    resources={
        "database": GarageDatabase(),
        "settings": GarageSettings(),
        "models": EmbeddingModels(),
        "options": RunOptions(),
    },
    executor=dg.in_process_executor,
)
