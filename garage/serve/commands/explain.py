"""`garage explain`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from garage.serve.commands.status import REASONS
from garage.serve.invocation import Invocation, takes_invocation

if TYPE_CHECKING:
    from garage.serve.explaining import Document, Explanation, File
    from garage.store.explaining import Credited, Stored, Vectors

_PEOPLE = 8  # of a document that are listed


@click.command()
@click.argument("name", metavar="PATH-OR-ID")
@click.option("--source", metavar="NAME", help="Only in this source.")
@takes_invocation
def explain(invocation: Invocation, name: str, *, source: str | None) -> None:
    """Tell whose a document is and why, and how it came about.

    PATH-OR-ID is the id of a document, the source:file that a search shows, a path on this machine, or the end of one
    where that says enough. Of a file without a document it tells why there is none.
    """
    from garage.serve import explaining as library

    found = library.explain(
        invocation.config(), name, source=source, starting=lambda: invocation.note("Starting the database")
    )
    invocation.answer(found, lambda: _lines(found))


def _lines(found: Explanation) -> Iterator[str]:
    from garage.serve.output import columns, printable

    document, file = found.document, found.file
    if document is None:
        yield click.style(printable(f"{file.source}:{file.uri}"), bold=True)
        yield from columns(list(_file(file)), indent="  ")
        yield from _contents(file)
        return
    stored = document.stored
    yield f"{click.style(printable(stored.title), bold=True)}  (document {stored.document_id})"
    place = [("address", click.style(printable(f"{stored.source}:{stored.uri}"), fg="cyan")), *_file(file)]
    yield from columns(place, indent="  ")
    yield "Whose it is"
    yield from columns(list(_decided(stored)), indent="  ")
    yield from columns(list(_signals(stored)), indent="    ")
    yield from columns(list(_people(document.authors)), indent="  ")
    yield "How it is stored"
    yield from columns(list(_stored(document)), indent="  ")
    yield "What made it"
    yield from columns(list(_lineage(document)), indent="  ")
    if document.same_content:
        more = document.same_content_total - len(document.same_content)
        yield "The same content" + (f" ({more:,} more)" if more else "")
        yield from columns(
            [(str(twin.document_id), printable(f"{twin.source}:{twin.uri}")) for twin in document.same_content],
            indent="  ",
        )


def _file(file: File) -> Iterator[tuple[str, str]]:
    """Rows about the file: where it is, whether it was walked and read, and if not, why."""
    from garage.serve.output import ago, printable

    there = f"{file.size:,} bytes, changed {_moment(file.changed_at)}" if file.size is not None else "not there now"
    yield "file", f"{printable(file.path)} ({there})"
    if not file.source_active:
        yield "source", f"'{file.source}' is off: it is neither walked nor searched"
    if file.listed is None:
        yield "walk", _unlisted(file)
    elif file.newer:
        yield "walk", "saw it before it changed; the next `garage update` reads it again"
    if file.attempt is not None:
        reason = f": {printable(file.attempt.reason)}" if file.attempt.reason else ""
        yield "reading", f"ended {ago(file.attempt.at)} as {file.attempt.outcome}{reason}"
        if not file.attempt_current:
            yield "", "by another version of the reader; the next `garage update` reads it again"
    elif file.listed is not None:
        yield "reading", "not tried yet; the next `garage update` does"
    elif not file.records.total and file.fate is not None and not file.fate.reason and file.size is not None:
        yield "reading", f"it would be read as {file.fate.extractor}"


def _unlisted(file: File) -> str:
    """Why the last walk has no record of a file."""
    from garage.serve.output import printable

    if file.fate is not None and file.fate.reason:
        if file.fate.reason == "folder":
            return "it is a folder: only the files in it are documents"
        why = f"{file.fate.reason}: {REASONS[file.fate.reason]}" if file.fate.reason in REASONS else file.fate.reason
        return f"leaves it out at {printable(file.fate.decided_at)} ({why})"
    if file.size is None:
        return "knows no such file"
    if file.records.total:
        return "lists what is in it"
    return "has not seen it yet; the next `garage update` does"


def _contents(file: File) -> Iterator[str]:
    """The documents of a file that holds many."""
    from garage.serve.output import columns, plural, printable

    records = file.records
    if not records.total:
        return
    kinds = ", ".join(f"{name} {number:,}" for name, number in (*records.classes.items(), *records.trusts.items()))
    yield f"It holds {plural(records.total, 'document')}: {kinds}"
    rows = [(str(one.document_id), printable(one.title), printable(one.uri)) for one in records.first]
    yield from columns(rows, indent="  ")
    if records.total > len(records.first):
        yield f"  ... and {records.total - len(records.first):,} more. `garage explain ID` tells of one."


def _decided(stored: Stored) -> Iterator[tuple[str, str]]:
    from garage.serve.output import printable

    won = {signal["signal"] == "class": signal for signal in stored.signals if signal["won"]}
    for name, value, signal in (("class", stored.corpus_class, True), ("trust", stored.trust_tier, False)):
        why = f"because of {printable(won[signal]['evidence'])}" if signal in won else "not decided yet"
        yield name, f"{value}, {why}"
    if stored.attributed_as is None:
        yield "", "the next `garage update` decides again, without reading the file"


def _signals(stored: Stored) -> Iterator[tuple[str, str, str, str]]:
    """Every signal in the order in which they are asked, the one that won marked."""
    from garage.serve.output import printable

    for signal in stored.signals:
        if signal["signal"] != "class":
            said = signal["said"] or "silent"
            yield "->" if signal["won"] else "", signal["signal"], said, printable(signal["evidence"])


def _people(people: tuple[Credited, ...]) -> Iterator[tuple[str, str, str, str]]:
    from garage.serve.output import printable

    for one in people[:_PEOPLE]:
        name = f"{printable(one.name)}{' (you)' if one.is_self else ''}"
        yield one.role, name, f"{one.confidence:.2f}", printable(one.evidence)
    if len(people) > _PEOPLE:
        yield "", f"... and {len(people) - _PEOPLE:,} more", "", ""


def _stored(document: Document) -> Iterator[tuple[str, str]]:
    from garage.serve.output import ago, plural

    stored = document.stored
    text = f"{plural(stored.characters, 'character')} of {stored.kind}, out of {stored.byte_size:,} bytes"
    yield "text", f"{text} of {_moment(datetime.fromtimestamp(stored.mtime_ns / 1e9, UTC))}, {ago(stored.ingested_at)}"
    yield "source_sha256", stored.source_sha256
    yield "content_sha256", stored.content_sha256
    reader = "current" if document.extractor_current else "not the present one: the next `garage update` reads it again"
    yield "extractor", f"{stored.extractor}, {reader}"
    yield "", f"{stored.extractor_fingerprint}"
    cutter = "current" if document.chunker_current else "not the present one: the next `garage update` cuts it again"
    also = "".join(f", {number:,} {what}" for number, what in ((stored.quoted, "quoted"), (stored.dropped, "dropped")))
    yield "passages", f"{stored.passages:,}{also if stored.quoted or stored.dropped else ''}; chunker {cutter}"
    if stored.chunked_as:
        yield "", stored.chunked_as
    for model in document.vectors:
        yield "vectors", _vectors(model, stored.passages)
    if not document.vectors:
        yield "vectors", "none: no model has any yet"


def _vectors(model: Vectors, passages: int) -> str:
    lacking = ((model.outdated, "outdated"), (model.missing, "missing"))
    said = "".join(f", {number:,} {what}" for number, what in lacking if number)
    return f"{model.model}: {model.current:,} of {passages:,}{said}"


def _lineage(document: Document) -> Iterator[tuple[str, str, str]]:
    from garage.serve.output import ago, printable

    for step in document.lineage:
        run = step.run
        ended = f"ended {ago(run.finished_at)}" if run.finished_at else f"began {ago(run.started_at)}"
        failed = f" ({printable(run.error)})" if run.error else ""
        yield run.stage, f"run {run.id}, {ended}{failed}", step.url or run.run_id or "not by Dagster"
    if "documents" not in {step.run.stage for step in document.lineage}:
        yield "documents", f"no longer on record: written {_moment(document.stored.ingested_at)}", ""


def _moment(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d %H:%M}" if moment else "never"
