"""Follows what someone materialized by hand; off until a person turns it on (it costs a tick a minute)."""

import dagster as dg

from garage_assets.partitions import TRIGGER_TAG

automation = dg.AutomationConditionSensorDefinition(
    "automation",
    target=dg.AssetSelection.all(),
    minimum_interval_seconds=60,
    emit_backfills=False,
    run_tags={TRIGGER_TAG: "automation"},
    default_status=dg.DefaultSensorStatus.STOPPED,
    description="Rebuilds what depends on an asset that was materialized by hand and came out different.",
)
