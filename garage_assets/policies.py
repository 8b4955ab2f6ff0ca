"""Freshness and automation, shared by the assets."""

from datetime import timedelta

import dagster as dg

from garage_assets.configured import CONFIG

FRESH = dg.FreshnessPolicy.time_window(
    fail_window=timedelta(hours=CONFIG.dagster.fresh_hours),
    warn_window=timedelta(hours=CONFIG.dagster.fresh_hours / 2),
)
"""Seen per asset, never per partition: the check `every_source_is_fresh` looks at each source."""

_C = dg.AutomationCondition

ON_CHANGE = (
    (
        _C.any_deps_updated().replace("newly_updated", _C.data_version_changed())
        | _C.newly_missing()
        | _C.code_version_changed()
    ).since_last_handled()  # type: ignore[misc]  # declared for conditions on checks as well, which these are not
    & ~_C.any_deps_missing()
    & ~_C.any_deps_in_progress()
    & ~_C.in_progress()
).with_label("on_change")
"""Follows what someone materialized by hand: an input's data version moved, not merely its materialization.

It is edge-triggered and may lose a change that lands in the tick of a run, so its sensor is off until a person turns it
on, and the nightly schedule is what guarantees.
"""
