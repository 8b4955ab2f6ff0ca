"""Switches of one run, set under `resources.options.config` in the launchpad, the command line or a request."""

import dagster as dg
from pydantic import Field


class RunOptions(dg.ConfigurableResource):  # type: ignore[type-arg]  # the resource is its own value
    """What a person asks of one run; the same text works in the UI, `--config-json`, GraphQL and a backfill."""

    allow_deletes: bool = Field(
        default=False, description="Let deletions past the guard: more of the source may go than it would allow."
    )
    rebuild: bool = Field(default=False, description="Redo what is current.")
