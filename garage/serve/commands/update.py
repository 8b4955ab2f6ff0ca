"""`garage update`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from garage.serve.invocation import Invocation, takes_invocation

if TYPE_CHECKING:
    from garage.serve.updating import SourceUpdate, Updated, Watch
    from garage.store.runs import StageRun


@click.command()
@click.option("--source", "names", multiple=True, metavar="NAME", help="Only this source; may be repeated.")
@click.option("--force", is_flag=True, help="Let deletions past the guard: the missing files are really gone.")
@click.option("--rebuild", is_flag=True, help="Redo what is current.")
@takes_invocation
def update(invocation: Invocation, names: tuple[str, ...], *, force: bool, rebuild: bool) -> int:
    """Read the sources, and redo what changed.

    Runs the job that the Dagster UI and the nightly schedule run as well, with the same lineage and history. After an
    interruption, the next update goes on from there. The exit code is 1 when a source was refused or failed.
    """
    from garage.serve.updating import update as run

    config = invocation.config()
    with _progress(invocation) as watch:
        result = run(
            config,
            names,
            force=force,
            rebuild=rebuild,
            watch=watch,
            starting=lambda: invocation.note("Starting the database"),
        )
    invocation.answer(result, lambda: _updated(result))
    return 0 if result.succeeded else 1


@contextmanager
def _progress(invocation: Invocation) -> Iterator[Watch]:
    """Draws the stages on a terminal, a line each, for as long as the block runs."""
    if not invocation.interactive:
        yield lambda running: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

    layout = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    with Progress(*layout, console=Console(stderr=True), transient=True) as progress:
        waiting = progress.add_task("starting the run", total=None)
        shown: dict[tuple[str, str], TaskID] = {}

        def watch(running: Sequence[StageRun]) -> None:
            for run in running:
                progress.update(waiting, visible=False)
                key = (run.source, run.stage)
                if key not in shown:
                    shown[key] = progress.add_task(f"{run.source}  {run.stage}", total=None)
                # A stage without a total is drawn as busy; one that has ended is drawn as full, whatever it had to do.
                ended = run.finished_at is not None
                total = max(run.done, run.total or 1) if ended else run.total or None
                progress.update(shown[key], completed=total if ended and total else run.done, total=total)

        yield watch


def _updated(result: Updated) -> Iterator[str]:
    from garage.serve.output import columns, joined, plural, printable

    rows = [row for source in result.sources for row in _rows(source)]
    yield from columns(rows)
    for source in result.sources:
        if not source.succeeded:
            yield ""
            yield f"{source.source} {source.status}: {printable(source.message)}"
    if rows:
        yield ""
    yield joined(plural(number, what.removesuffix("s")) for what, number in result.written.items()) + " written."


def _rows(source: SourceUpdate) -> Iterator[tuple[str, str, str]]:
    for stage, counts in source.stages.items():
        yield source.source, stage, _counted(counts)


def _counted(counts: Mapping[str, int]) -> str:
    """`documents written 3, chunks written 40`; what is zero is left out."""
    said = [f"{name.replace('_', ' ')} {number:,}" for name, number in counts.items() if number]
    return ", ".join(said) or "nothing to do"
