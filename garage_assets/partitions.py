"""One dynamic partition a source, shared by every asset: that is what lets all stages share a run.

A document is never a partition: a million keys would take Dagster days of process start-up, and the work lists find
what changed without any. Keys are only ever added. Taking one away would leave its materializations behind, and
open-source Dagster cannot wipe a partition; a source that is retired keeps its key and is not asked for.
"""

import dagster as dg

SOURCE = "source"
source_partitions = dg.DynamicPartitionsDefinition(name=SOURCE)
TRIGGER_TAG = "garage/trigger"
BY_COMMAND = "garage update"
