"""The configuration, read anew by every run: a source added since the code location was loaded is there."""

from pathlib import Path

import dagster as dg

from garage.config import Config, load


class GarageSettings(dg.ConfigurableResource):  # type: ignore[type-arg]  # the resource is its own value
    """`garage.yaml`."""

    path: str = ""

    def config(self) -> Config:
        """The configuration as it is now. Raises ConfigError."""
        return load(Path(self.path) if self.path else None)
