"""The standing checks: what a person wants to be told of. They look at whole assets, never at one partition.

A check evaluated outside a run names no materialization, and the list of checks does not count partitioned ones; so all
are unpartitioned and name the sources that fail.
"""

from datetime import UTC, datetime, timedelta

import dagster as dg

from garage.inference.catalogue import ModelEntry
from garage.store import documents, embeddings, runs, sources
from garage_assets.configured import CONFIG, enabled_models
from garage_assets.ingest import documents as documents_asset
from garage_assets.ingest import source_files
from resources import GarageDatabase

NO_REFUSED_SOURCE = "no_refused_source"
EXPECTED_OUTCOMES = frozenset({"ok", "no_text", "rejected", "placeholder", "deferred"})


@dg.asset_check(
    asset=source_files,
    name=NO_REFUSED_SOURCE,
    description="Fails while a source's deletions are refused: too much of it is gone, or its root cannot be read.",
)
def no_refused_source(database: GarageDatabase) -> dg.AssetCheckResult:
    """Look at the refusals on record."""
    with database.database.connection() as conn:
        refused = {refusal.source: refusal.detail for refusal in runs.refusals(conn)}
    return dg.AssetCheckResult(passed=not refused, metadata={"refused": dg.MetadataValue.json(refused)})


@dg.asset_check(
    asset=source_files,
    description="Freshness policies look at an asset's last materialization, of whatever partition; this looks at each"
    " source, and warns of those that no completed walk has seen for too long.",
)
def every_source_is_fresh(database: GarageDatabase) -> dg.AssetCheckResult:
    """Look at when each source was last walked to the end."""
    limit = timedelta(hours=CONFIG.dagster.fresh_hours)
    now = datetime.now(UTC)
    with database.database.connection() as conn:
        active = sources.sources(conn, active=True)
    late = {
        row.slug: "never" if row.walked_at is None else f"{(now - row.walked_at) / timedelta(hours=1):.1f} h ago"
        for row in active
        if row.walked_at is None or now - row.walked_at > limit
    }
    return dg.AssetCheckResult(
        passed=not late, severity=dg.AssetCheckSeverity.WARN, metadata={"last_walk": dg.MetadataValue.json(late)}
    )


@dg.asset_check(
    asset=documents_asset,
    description="How reading the files ended, by source and kind of outcome; warns when some could not be read.",
)
def every_file_was_read(database: GarageDatabase) -> dg.AssetCheckResult:
    """Look at how each file's last attempt ended."""
    with database.database.connection() as conn:
        outcomes = documents.outcomes_by_source(conn)
    failed = sum(
        count for counts in outcomes.values() for outcome, count in counts.items() if outcome not in EXPECTED_OUTCOMES
    )
    return dg.AssetCheckResult(
        passed=failed == 0,
        severity=dg.AssetCheckSeverity.WARN,
        metadata={"outcomes": dg.MetadataValue.json(outcomes), "not_read": failed},
    )


def complete_vectors(entry: ModelEntry) -> dg.AssetChecksDefinition:
    """The check that a model has a current vector of every passage."""

    @dg.asset_check(
        asset=dg.AssetKey(["embeddings", entry.slug]),
        name="every_passage_has_a_vector",
        description="Names the sources with passages that have no current vector of this model.",
    )
    def every_passage_has_a_vector(database: GarageDatabase) -> dg.AssetCheckResult:
        with database.database.connection() as conn:
            model = embeddings.model(conn, entry.slug)
            missing = embeddings.pending_by_source(conn, model) if model is not None else {}
        return dg.AssetCheckResult(passed=not missing, metadata={"missing": dg.MetadataValue.json(missing)})

    return every_passage_has_a_vector


checks = [
    no_refused_source,
    every_source_is_fresh,
    every_file_was_read,
    *(complete_vectors(entry) for entry in enabled_models()),
]
