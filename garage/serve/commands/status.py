"""`garage status`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from garage.serve.invocation import Invocation, takes_invocation

if TYPE_CHECKING:
    from garage.serve.state import LastWalk, Running, Serving, SourceState, State

_NOT_TOLD = ("ok", "no_text", "placeholder", "deferred")  # need nobody's attention, or have a line of their own
# What the walk's reasons mean, where the word alone does not say.
REASONS = {
    "address too long": "its path has more than 2,600 bytes",
    "application": "the inside of an application",
    "build": "what a build made",
    "code": "source code and structured data; `include_code: true` reads them",
    "dependency": "packages that a tool installed",
    "diagnostic": "what a system reports of itself, lists of checksums",
    "extension": "no reader for such files",
    "generated": "written by a tool",
    "hidden": "its name begins with a dot",
    "link": "links are not followed",
    "loop": "a folder that contains itself",
    "pattern": "an `exclude` pattern of yours",
    "special": "a pipe, a socket or a device",
    "system": "the system's own",
    "temporary": "half-written, lock and backup files",
    "test_data": "made for tests",
}
_SERVICES = {"postgres": "Postgres", "webserver": "Dagster UI", "daemon": "Daemon"}


@click.command()
@click.option("--source", metavar="NAME", help="Only this source.")
@takes_invocation
def status(invocation: Invocation, *, source: str | None) -> None:
    """Show what runs, what there is, and what needs attention; of one source also what its last walk left out.

    Looks only: it neither starts the database nor walks a folder.
    """
    from garage.serve.state import state

    found = state(invocation.config(), source)
    invocation.answer(found, lambda: _state(found, alone=source is not None))


def _state(state: State, *, alone: bool) -> Iterator[str]:
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
        if alone and source.last_walk is not None:
            yield ""
            yield from _walk(source.last_walk)
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


def _walk(walk: LastWalk) -> Iterator[str]:
    from garage.serve.output import ago, columns, plural, printable

    counts = walk.counts
    held = f", {counts['placeholders']:,} of them with a cloud provider" if counts.get("placeholders") else ""
    yield (
        f"The last walk ({ago(walk.at)}) listed {plural(counts['files'], 'file')} in"
        f" {plural(counts['folders'], 'folder')}{held}."
    )
    if walk.skipped:
        yield "It left out, by reason (a folder counts once, whatever it holds):"
        rows = [(reason, f"{number:,}", REASONS.get(reason, "")) for reason, number in walk.skipped.items()]
        yield from columns(rows, indent="  ")
    if walk.incomplete:
        yield f"It did not see everything ({walk.incomplete}), so it deleted nothing."
    for uri in walk.unreadable:
        yield f"  unreadable: {printable(uri)}"


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
    if source.last_walk is not None and source.last_walk.lost_drives:
        drives = ", ".join(printable(folder.removesuffix("/")) for folder in source.last_walk.lost_drives)
        yield ""
        yield (
            f"{source.name}: the drive at {drives} is gone or is another one. What was read of it is kept; connect it,"
            f" or if its files are meant to go: garage update --source {source.name} --force"
        )
    yield from _unread(source)


def _unread(source: SourceState) -> Iterator[str]:
    from garage.serve.output import plural, printable

    unread = {kind: number for kind, number in source.outcomes.items() if kind not in _NOT_TOLD}
    if unread:
        yield ""
        yield f"{source.name}: files that could not be read: " + ", ".join(f"{k} {n:,}" for k, n in unread.items())
        yield f"  `garage outcomes --source {source.name}` says which and why."
    if absent := source.outcomes.get("placeholder"):
        yield ""
        yield (
            f"{source.name}: {plural(absent, 'file')} with a cloud provider not read; `placeholders.materialize: true`"
            " in the settings has them fetched."
        )
    if waiting := source.outcomes.get("deferred"):
        first = ", ".join(printable(uri) for uri in source.deferred[:3])
        yield ""
        yield f"{source.name}: {plural(waiting, 'file')} with a cloud provider left for the next update: {first} ..."
