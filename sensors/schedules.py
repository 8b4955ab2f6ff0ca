"""The nightly run of every source: the guarantee. Sensors only make it sooner."""

from collections.abc import Iterator

import dagster as dg

from garage.store import sources
from garage_assets.configured import CONFIG
from garage_assets.jobs import source_pipeline, standing_checks
from garage_assets.partitions import TRIGGER_TAG, source_partitions
from resources import GarageDatabase, GarageSettings


@dg.schedule(
    job=source_pipeline,
    cron_schedule=CONFIG.dagster.nightly,
    execution_timezone=CONFIG.dagster.timezone,
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Every source once a night. What no event asked for is caught here: missed changes, failed runs, an"
    " upgraded extractor. A source with nothing to do takes seconds.",
)
def nightly(
    context: dg.ScheduleEvaluationContext, database: GarageDatabase, settings: GarageSettings
) -> Iterator[dg.RunRequest]:
    """Ask for every active source, adding the keys of new ones first."""
    with database.database.transaction() as conn:
        sources.sync(conn, settings.config().sources)
        active = [row.slug for row in sources.sources(conn, active=True)]
    known = set(context.instance.get_dynamic_partitions(str(source_partitions.name)))
    if missing := [slug for slug in active if slug not in known]:
        context.instance.add_dynamic_partitions(str(source_partitions.name), missing)
    for slug in active:
        yield dg.RunRequest(
            partition_key=slug,
            run_key=f"nightly/{slug}/{context.scheduled_execution_time.isoformat()}",
            tags={TRIGGER_TAG: "nightly"},
        )


hourly_checks = dg.ScheduleDefinition(
    name="hourly_checks",
    job=standing_checks,
    cron_schedule="7 * * * *",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="The standing checks, every hour.",
)
