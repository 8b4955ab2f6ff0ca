"""`garage source`: the folders that Garage reads."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from garage.serve.choices import CLASSES, EGRESS, KINDS, TRUSTS
from garage.serve.invocation import Invocation, takes_invocation

if TYPE_CHECKING:
    from garage.serve.sources import Added, Listed


@click.group()
def source() -> None:
    """Register the folders that Garage reads, list them, remove them."""


@source.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--name", help="Short name: what searches filter on; default the folder's own, simplified.")
@click.option("--kind", type=click.Choice(KINDS), help="What FOLDER is; default filesystem, a folder of files.")
@click.option("--class", "corpus_class", type=click.Choice(CLASSES), help="What its files are; default document.")
@click.option("--trust", type=click.Choice(TRUSTS), help="Whose its files are; default authored.")
@click.option("--egress", type=click.Choice(EGRESS), help="How far its content may travel; default local_only.")
@click.option("--include-code", is_flag=True, help="Read source code and structured data files as well.")
@click.option("--exclude", multiple=True, metavar="PATTERN", help="Leave out, as in .gitignore; may be repeated.")
@takes_invocation
def add(
    invocation: Invocation,
    folder: Path,
    *,
    name: str | None,
    kind: str | None,
    corpus_class: str | None,
    trust: str | None,
    egress: str | None,
    include_code: bool,
    exclude: tuple[str, ...],
) -> None:
    """Register FOLDER as a source; garage update then reads it.

    The entry goes into garage.yaml, whose comments stay. A folder that is a source already stays as it is.
    """
    from garage.serve import sources

    settings: dict[str, object] = {}
    if kind:
        settings["kind"] = kind
    if corpus_class:
        settings["class"] = corpus_class
    if trust:
        settings["trust"] = trust
    if egress:
        settings["egress"] = egress
    if include_code:
        settings["include_code"] = True
    if exclude:
        settings["exclude"] = list(exclude)
    config = invocation.config(may_be_missing=True)
    result = sources.add(config, folder, name=name, settings=settings)
    left_alone = not result.added and bool(settings or (name and name != result.name))
    invocation.answer(result, lambda: _added(result, config.path, left_alone=left_alone))


def _added(result: Added, path: Path, *, left_alone: bool) -> Iterator[str]:
    if not result.added:
        yield f"{result.root} is already the source '{result.name}'."
        if left_alone:
            yield f"Its settings stay as they are; change them in {path}."
        return
    yield f"Added the source '{result.name}': {result.root}"
    for pattern in result.excluded:
        yield f"GARAGE_HOME lies in it and is left out (exclude: {pattern})."
    yield f"Run `garage update --source {result.name}` to read it."


@source.command("list")
@takes_invocation
def list_(invocation: Invocation) -> None:
    """List the sources with what they have: documents, passages, last walk, refusal."""
    from garage.serve import sources

    found = sources.listed(invocation.config())
    invocation.answer({"sources": found}, lambda: _listed(found))


def _listed(found: list[Listed]) -> Iterator[str]:
    from garage.serve.output import ago, columns, printable

    if not found:
        yield "There are no sources yet. `garage source add FOLDER` registers one."
        return
    rows = [("NAME", "DOCUMENTS", "PASSAGES", "LAST WALK", "FOLDER")]
    for row in found:
        name = row.name if row.enabled else f"{row.name} (off)"
        rows.append((name, f"{row.documents:,}", f"{row.passages:,}", ago(row.walked_at), printable(row.root)))
    yield from columns(rows)
    for row in found:
        if row.refusal:
            yield ""
            yield printable(row.refusal)
            yield f"If it is meant: garage update --source {row.name} --force"


@source.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@takes_invocation
def remove(invocation: Invocation, name: str, *, yes: bool) -> None:
    """Remove the source NAME, and delete what it contributed.

    Its documents, passages and vectors go out of Garage; the files themselves are not touched.
    """
    from garage.errors import GarageError
    from garage.serve import sources
    from garage.serve.opening import opened
    from garage.serve.output import plural

    config = invocation.config()
    with opened(config) as database:
        documents, passages = sources.contents(database, name)
        what = f"{plural(documents, 'document')} and {plural(passages, 'passage')} of '{name}'"
        if not yes:
            if not sys.stdin.isatty():
                raise GarageError(
                    f"This would delete {what} from Garage, and there is nobody to ask.",
                    hint="Say --yes if it is meant.",
                )
            if not click.confirm(f"Delete {what} from Garage? The files themselves stay.", err=True):
                raise GarageError("Nothing was removed.")
        result = sources.remove(config, database, name)
    invocation.answer(result, lambda: [f"Removed '{name}': {what} deleted. The files themselves are untouched."])
