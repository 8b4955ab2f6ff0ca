"""`garage config`: the settings."""

from __future__ import annotations

import click

from garage.serve.invocation import Invocation, takes_invocation


@click.group()
def config() -> None:
    """See the settings: what they are, where they are, what they may be."""


@config.command()
@takes_invocation
def show(invocation: Invocation) -> None:
    """Show every setting with its present value, as YAML."""
    import yaml

    data = invocation.config().model_dump(mode="json", by_alias=True)
    invocation.answer(
        data, lambda: [yaml.dump(data, Dumper=yaml.SafeDumper, sort_keys=False, allow_unicode=True, width=120).rstrip()]
    )


@config.command()
@takes_invocation
def path(invocation: Invocation) -> None:
    """Say which file the settings are read from."""
    found = invocation.config(may_be_missing=True)
    data = {"path": found.path, "exists": found.path.exists(), "home": found.home, "models": found.models_dir}
    invocation.answer(data, lambda: [str(found.path)])


@config.command()
@takes_invocation
def schema(invocation: Invocation) -> None:
    """Print the JSON Schema of garage.yaml."""
    from garage.config import json_schema
    from garage.serve.output import to_json

    data = json_schema()
    invocation.answer(data, lambda: [to_json(data)])
