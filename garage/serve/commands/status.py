"""`garage status`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from garage.serve.invocation import Invocation, takes_invocation

if TYPE_CHECKING:
    from garage.serve.state import Running, Serving, SourceState, State

_READ = ("ok", "no_text")  # outcomes that need nobody's attention
_SERVICES = {"postgres": "Postgres", "webserver": "Dagster UI", "daemon": "Daemon"}


@click.command()
@click.option("--source", metavar="NAME", help="Only this source.")
@takes_invocation
def status(invocation: Invocation, *, source: str | None) -> None:
    """Show what runs, what there is, and what needs attention.

    Looks only: it neither starts the database nor walks a folder.
    """
    from garage.serve.state import state

    found = state(invocation.config(), source)
    invocation.answer(found, lambda: _state(found))


def _state(state: State) -> Iterator[str]:
    from garage.serve.output import columns

    yield f"{state.home} (settings: {state.configuration})"
    yield from columns(
        [
            (_SERVICES[s.name], "running" if s.running else "stopped", s.where if s.running else "")
            for s in state.services
        ],
        indent="  ",
    )
    if state.database == "stopped":
        yield "The database is stopped, so there is nothing to tell of what it holds. `garage up` starts everything."
        return
    for name, instead in state.missing_extensions.items():
        yield f"The server has no {name}: {instead}."
    yield ""
    yield from _sources(state.sources)
    if state.serving is not None and state.sources:
        yield ""
        yield _serving(state.serving)
    if state.running:
        yield ""
        yield from columns([_running(run) for run in state.running])
    for source in state.sources:
        yield from _attention(source)


def _sources(sources: tuple[SourceState, ...]) -> Iterator[str]:
    from garage.serve.output import ago, columns, printable

    if not sources:
        yield "There are no sources yet. `garage source add FOLDER` registers one."
        return
    models = sorted({slug for source in sources for slug in source.vectors})
    rows = [("SOURCE", "DOCUMENTS", "PASSAGES", *(f"VECTORS {slug}" for slug in models), "LAST WALK", "FOLDER")]
    for source in sources:
        vectors = []
        for slug in models:
            held = source.vectors.get(slug)
            missing = f" ({held.missing:,} missing)" if held and held.missing else ""
            vectors.append(f"{held.stored:,}{missing}" if held else "")
        name = source.name if source.active else f"{source.name} (off)"
        walked = ago(source.walked_at)
        rows.append((name, f"{source.documents:,}", f"{source.passages:,}", *vectors, walked, printable(source.root)))
    yield from columns(rows)


def _serving(serving: Serving) -> str:
    from garage.serve.output import plural

    lacks = f"{plural(serving.missing, 'passage')} still without its vector"
    if serving.model is None:
        return f"No model answers searches yet: {serving.default} starts with the first `garage update`."
    if serving.model == serving.default:
        return f"{serving.model} answers searches" + (f"; {lacks}." if serving.missing else ".")
    waits = lacks if serving.missing else "the next `garage update` lets it take over"
    return f"{serving.model} answers searches until {serving.default} is complete: {waits}."


def _running(run: Running) -> tuple[str, ...]:
    from garage.serve.output import ago, duration

    total = f" of {run.total:,} ({run.done / run.total:.0%})" if run.total else ""
    life = f"no sign of life for {duration(run.silent_seconds)}: it may have been killed" if run.stalled else ""
    return ("running", run.source, run.stage, f"{run.done:,}{total}", f"started {ago(run.started_at)}", life)


def _attention(source: SourceState) -> Iterator[str]:
    from garage.serve.output import printable

    if source.refusal is not None:
        yield ""
        yield f"{source.name}: {printable(source.refusal.detail)}"
        yield f"  Put the files back, or if they are meant to go: garage update --source {source.name} --force"
    elif source.active and not source.folder_found:
        yield ""
        yield f"{source.name}: {printable(source.root)} is not there. Nothing of it is deleted; connect its drive."
    failed = {
        stage: error for stage, error in source.failed.items() if not (source.refusal and stage == "source_files")
    }
    if failed:
        yield ""
        said = ", ".join(f"{stage} ({error})" for stage, error in failed.items())
        yield f"{source.name}: the last run of {said} did not succeed. `garage update --source {source.name}` says why."
    unread = {kind: number for kind, number in source.outcomes.items() if kind not in _READ}
    if unread:
        yield ""
        yield f"{source.name}: files that could not be read: " + ", ".join(f"{k} {n:,}" for k, n in unread.items())
