"""Registering folders: what `garage source` does."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from garage.config import Config, Source
from garage.errors import GarageError
from garage.serve import configuration_file
from garage.serve.opening import opened
from garage.store import documents, runs
from garage.store import sources as store
from garage.store.database import Database

_MESSAGES = "The database of Apple's Messages is added with --kind messages."


class NotAFolder(GarageError):
    """The path that was named cannot be a source of its kind (`root`)."""


class SourceOverlaps(GarageError):
    """A folder would be read twice: it lies in another source or holds one (`other`)."""


class NameTaken(GarageError):
    """Another folder has that name already (`name`)."""


@dataclass(frozen=True, slots=True)
class Added:
    """A registered folder. `added` is False when it was one already; `excluded` were left out without being asked."""

    name: str
    root: Path
    added: bool
    excluded: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Listed:
    """A source with what it has. `enabled` False: kept, neither walked nor searched."""

    name: str
    root: str
    corpus_class: str
    trust: str
    enabled: bool
    documents: int
    passages: int
    walked_at: datetime | None
    refusal: str | None


@dataclass(frozen=True, slots=True)
class Removed:
    """A source that is gone, with what was deleted of it; the files themselves are never touched."""

    name: str
    documents: int
    passages: int


def slug_of(name: str) -> str:
    """A source's name made from its folder's: ASCII letters, digits and dashes."""
    ascii_only = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", ascii_only.lower()).strip("-")[:63].strip("-") or "source"


def add(config: Config, folder: Path, *, name: str | None, settings: dict[str, Any]) -> Added:
    """Registers `folder` in the configuration and in the database; `settings` are keys of a source in the file.

    A folder that is a source already stays as it is. Raises NotAFolder, SourceOverlaps, NameTaken, BadPattern and
    ConfigError.
    """
    kind = settings.get("kind", "filesystem")
    root = _readable(folder) if kind == "filesystem" else _database(folder)
    for other in config.sources:
        if _same(other.root, root):
            with opened(config):
                return Added(other.name, other.root, added=False, excluded=())
    exclude = tuple(settings.get("exclude", ()))
    _check_patterns(exclude)
    excluded: tuple[str, ...] = ()
    if kind == "filesystem":
        excluded = _own_home(config, root)
        _check_overlaps(config.sources, root, exclude)
    values = {"name": _name(config.sources, root, name), "root": str(root), **settings}
    if exclude or excluded:
        values["exclude"] = [*exclude, *excluded]
    with opened(configuration_file.add_source(config.path, values)):
        return Added(values["name"], root, added=True, excluded=excluded)


def listed(config: Config) -> list[Listed]:
    """The configured sources, and retired ones that still have documents, by name."""
    with opened(config) as database, database.connection() as conn:
        refusals = {refusal.source: refusal.detail for refusal in runs.refusals(conn)}
        configured = {source.name for source in config.sources}
        found = []
        for row in store.sources(conn):
            number, passages = documents.counts(conn, row.id)
            if row.slug in configured or number:
                found.append(
                    Listed(
                        name=row.slug,
                        root=row.root,
                        corpus_class=row.default_class,
                        trust=row.default_trust,
                        enabled=row.active,
                        documents=number,
                        passages=passages,
                        walked_at=row.walked_at,
                        refusal=refusals.get(row.slug),
                    )
                )
        return found


def contents(database: Database, name: str) -> tuple[int, int]:
    """Documents and passages of a source. Raises UnknownSource."""
    with database.connection() as conn:
        return documents.counts(conn, store.source(conn, name).id)


def remove(config: Config, database: Database, name: str) -> Removed:
    """Takes a source out of the configuration and deletes what it contributed; its row stays, retired.

    Raises UnknownSource, and SourceBusy while a run is at work on it.
    """
    number, passages = contents(database, name)
    with database.exclusive(f"ingest/{name}"):
        if name in {source.name for source in config.sources}:
            config = configuration_file.remove_source(config.path, name)
        with database.transaction() as conn:
            store.sync(conn, config.sources)
            store.purge(conn, store.source(conn, name).id)
    return Removed(name, number, passages)


def _database(file: Path) -> Path:
    """The path of a Messages database that can be read. Raises NotAFolder and ChatDatabaseError."""
    from garage.store.chat import snapshot

    root = Path(os.path.abspath(file.expanduser()))
    if not root.is_file():
        raise NotAFolder(
            f"{root} cannot be a source of messages: it is not a file.",
            hint="On a Mac the database is ~/Library/Messages/chat.db.",
            root=root,
        )
    with snapshot(root):
        return root


def _readable(folder: Path) -> Path:
    root = Path(os.path.abspath(folder.expanduser()))
    try:
        os.fsencode(root).decode("utf-8")
        next(root.iterdir(), None)
    except UnicodeDecodeError:
        raise NotAFolder(
            "The folder's path is not UTF-8, so the configuration cannot name it.",
            hint="Register it through a symbolic link with another name.",
            root=root,
        ) from None
    except OSError as error:
        reason = {FileNotFoundError: "there is no such folder", NotADirectoryError: "it is not a folder"}
        raise NotAFolder(
            f"{root} cannot be a source: {reason.get(type(error), f'it cannot be read ({error.strerror})')}.",
            hint=_MESSAGES if root.name == "chat.db" else "Name a folder that you can read.",
            root=root,
        ) from None
    return root


def _same(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _below(inner: Path, outer: Path) -> str | None:
    """`inner` relative to `outer` with slashes, links resolved; None when it does not lie in it."""
    inner, outer = Path(os.path.realpath(inner)), Path(os.path.realpath(outer))
    return inner.relative_to(outer).as_posix() if inner != outer and inner.is_relative_to(outer) else None


def _check_overlaps(sources: Iterable[Source], root: Path, exclude: tuple[str, ...]) -> None:
    """A file must not be two documents; a source may lie in another that leaves it out."""
    for other in sources:
        inside, holds = _below(root, other.root), _below(other.root, root)
        if inside is not None and not _left_out(inside, other.exclude):
            raise SourceOverlaps(
                f"{root} lies in the source '{other.name}' ({other.root}), so its files would be read twice.",
                hint=f"If it is to be a source of its own, first add '/{inside}/' to `exclude` of '{other.name}'.",
                root=root,
                other=other.name,
            )
        if holds is not None and not _left_out(holds, exclude):
            raise SourceOverlaps(
                f"{root} holds the source '{other.name}' ({other.root}), so its files would be read twice.",
                hint=f"Leave it out with --exclude '/{holds}/', or remove '{other.name}' first.",
                root=root,
                other=other.name,
            )


def _left_out(inside: str, exclude: Iterable[str]) -> bool:
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(exclude).match_file(f"{inside}/")


def _check_patterns(exclude: tuple[str, ...]) -> None:
    from pathspec import GitIgnoreSpec

    from garage.walk.errors import BadPattern

    for pattern in exclude:
        try:
            GitIgnoreSpec.from_lines([pattern])
        except ValueError:
            raise BadPattern(pattern=pattern) from None


def _own_home(config: Config, root: Path) -> tuple[str, ...]:
    """The pattern that leaves GARAGE_HOME out of a source that would hold it. Raises NotAFolder for one inside it."""
    if _same(root, config.home) or _below(root, config.home) is not None:
        raise NotAFolder(
            f"{root} lies in GARAGE_HOME ({config.home}), where Garage keeps its own files.",
            hint="Name a folder of yours.",
            root=root,
        )
    inside = _below(config.home, root)
    return () if inside is None else (f"/{inside}/",)


def _name(sources: Iterable[Source], root: Path, wanted: str | None) -> str:
    taken = {source.name: source.root for source in sources}
    if wanted is not None:
        wanted.encode()  # bytes that are no text are refused as such, before anything is written
        if wanted in taken:
            raise NameTaken(
                f"The name '{wanted}' belongs to the source {taken[wanted]}.",
                hint="Choose another with --name.",
                name=wanted,
            )
        return wanted
    base = slug_of(root.name)
    numbered = (f"{base[:59]}-{number}" for number in range(2, len(taken) + 3))
    return next(name for name in (base, *numbered) if name not in taken)
