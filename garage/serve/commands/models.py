"""`garage models`: the embedding models."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from garage.serve.choices import POOLINGS
from garage.serve.invocation import Invocation, takes_invocation

if TYPE_CHECKING:
    from garage.inference.fetch import Progress
    from garage.serve.embedding_models import Chosen, Enabled, ModelState


@click.group()
def models() -> None:
    """See the embedding models, add one, choose the one that answers searches."""


@models.command("list")
@takes_invocation
def list_(invocation: Invocation) -> None:
    """List the models that Garage knows, and how far each is here."""
    from garage.serve.embedding_models import listed

    found = listed(invocation.config())
    invocation.answer({"models": found}, lambda: _listed(found))


def _listed(found: list[ModelState]) -> Iterator[str]:
    from garage.serve.output import columns

    rows = [("MODEL", "STATE", "VECTORS", "DIMENSIONS", "LICENCE", "")]
    rows += [
        (
            m.slug,
            _said(m),
            "" if m.vectors is None else f"{m.vectors:,}",
            f"{m.stored_dims:,}",
            m.licence,
            m.description,
        )
        for m in found
    ]
    yield from columns(rows)


def _said(model: ModelState) -> str:
    words = ["fetched" if model.fetched else "not fetched"]
    if model.enabled:
        words.append("enabled")
    if model.default:
        words.append("default")
    if model.serving:
        words.append("answers searches")
    if model.enabled and model.missing:
        words.append(f"{model.missing:,} missing")
    return ", ".join(words)


@models.command()
@click.argument("name")
@click.option("--file", type=click.Path(path_type=Path), help="A GGUF file of your own; needs --dims and --context.")
@click.option("--dims", type=click.IntRange(1), help="Width of its vectors.")
@click.option("--context", type=click.IntRange(16), help="Tokens of one text that it reads.")
@click.option("--document-template", help="How a passage is put to it: uses {title}, {heading} and {text}.")
@click.option("--query-template", help="How a question is put to it: uses {text}.")
@click.option(
    "--pooling", type=click.Choice(POOLINGS), help="How token vectors become one; default: what the file says."
)
@click.option("--matryoshka", is_flag=True, help="Its vectors may be cut short.")
@click.option("--stored-dims", type=click.IntRange(1), help="Width kept of a Matryoshka model's vectors.")
@takes_invocation
def add(invocation: Invocation, /, name: str, **described: object) -> None:
    """Fetch the model NAME and let it give every passage a vector.

    With --file, a GGUF of your own becomes the model NAME. Searches are answered as before until the new model is the
    default and complete.
    """
    from garage.serve.embedding_models import enable
    from garage.serve.services import definitions_changed

    given = {key: value for key, value in described.items() if value is not None and value is not False}
    if given and "file" not in given:
        raise click.UsageError("These options describe a model of your own: give its --file as well.")
    config = invocation.config(may_be_missing=True)
    if "file" in given:
        given["file"] = Path(str(given["file"])).expanduser().absolute()
    with _progress(invocation) as progress:
        result = enable(config, name, described=given or None, progress=progress)
    reloaded = definitions_changed(invocation.config(), tell=invocation.note) if result.added else False
    invocation.answer(result, lambda: _enabled(result, reloaded=reloaded))


@contextmanager
def _progress(invocation: Invocation) -> Iterator[Progress | None]:
    """Draws a bar on a terminal while a model is fetched."""
    if not invocation.interactive:
        yield lambda step, done, total: invocation.note(step) if not done else None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    layout = (TextColumn("{task.description}"), BarColumn(bar_width=30), TaskProgressColumn())
    with Progress(*layout, console=Console(stderr=True), transient=True) as drawn:
        task = drawn.add_task("", total=None, visible=False)

        def told(step: str, done: int, total: int) -> None:
            drawn.update(task, description=step, completed=done, total=total or None, visible=True)

        yield told


def _enabled(result: Enabled, *, reloaded: bool) -> Iterator[str]:
    if not result.added:
        yield f"{result.slug} gives vectors already ({result.file})."
        return
    yield f"{result.slug} gives vectors from now on: {result.file}"
    if result.licence_note:
        yield f"Its licence: {result.licence_note}"
    if reloaded:
        yield "The Dagster UI shows its asset now, the daemon follows within a minute."
    yield "Give the passages there are its vectors with `garage update`, or with a backfill of its asset in Dagster."
    yield f"Then let it answer searches with `garage models default {result.slug}`."


@models.command()
@click.argument("name")
@takes_invocation
def default(invocation: Invocation, name: str) -> None:
    """Let the model NAME answer searches.

    At once where it is complete; else the present one goes on answering until it is.
    """
    from garage.serve.embedding_models import choose
    from garage.serve.services import definitions_changed

    config = invocation.config(may_be_missing=True)
    result = choose(config, name)
    definitions_changed(invocation.config(), tell=invocation.note)
    invocation.answer(result, lambda: [_chosen(result)])


def _chosen(result: Chosen) -> str:
    from garage.serve.output import plural

    if result.serving == result.default:
        return f"{result.default} answers searches."
    lacks = f"it lacks {plural(result.missing, 'vector')}, which `garage update` computes"
    if result.serving is None:
        return f"{result.default} will answer searches; {lacks}."
    return f"{result.default} is the default; {result.serving} answers searches until it is complete: {lacks}."
