"""What `garage models` does: the catalogue beside what is fetched, enabled, and answering."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from garage.config import Config, Model
from garage.errors import GarageError
from garage.inference.catalogue import ModelEntry, entries, find, model_entry
from garage.serve import configuration_file
from garage.serve.opening import opened, opened_if_running
from garage.store import embeddings, sources

if TYPE_CHECKING:
    from garage.inference.fetch import Progress


class NotEnabled(GarageError):
    """A model that gives no vectors cannot answer searches (`slug`)."""


class ModelNameTaken(GarageError):
    """A model of that name is there already (`slug`)."""


@dataclass(frozen=True, slots=True)
class ModelState:
    """A model: what the catalogue says of it, and how far it is here (`vectors` None: the database is stopped)."""

    slug: str
    description: str
    licence: str
    dims: int
    stored_dims: int
    context: int
    storage: str
    file: Path
    fetched: bool
    enabled: bool
    default: bool
    serving: bool
    vectors: int | None
    missing: int | None


@dataclass(frozen=True, slots=True)
class Enabled:
    """A model that gives vectors from now on; `added` is False when it did already."""

    slug: str
    added: bool
    file: Path
    licence_note: str
    configuration: Path


@dataclass(frozen=True, slots=True)
class Chosen:
    """The model that is to answer searches, and the one that does until that one is complete (the same when it is)."""

    default: str
    serving: str | None
    missing: int


def listed(config: Config) -> list[ModelState]:
    """Every model of the catalogue and the configuration. Raises InvalidModelEntry."""
    counts: dict[str, tuple[int, int]] = {}
    serving = None
    with opened_if_running(config) as database:
        if database is not None:
            with database.connection() as conn:
                answering = embeddings.serving(conn)
                serving = answering.slug if answering else None
                active = sources.sources(conn, active=True)
                for row in embeddings.models(conn):
                    missing = sum(embeddings.count_pending(conn, row, source.id) for source in active)
                    counts[row.slug] = (embeddings.count_vectors(conn, row), missing)
    found = []
    for slug, entry in entries(config.models).items():
        file = _file(entry, config.models_dir)
        vectors, missing_vectors = counts.get(slug, (None, None) if database is None else (0, None))
        found.append(
            ModelState(
                slug=slug,
                description=entry.description,
                licence=entry.licence,
                dims=entry.dims,
                stored_dims=entry.stored_dims,
                context=entry.context,
                storage=entry.storage,
                file=file,
                fetched=file.is_file(),
                enabled=slug in config.embedding.models,
                default=slug == config.embedding.default,
                serving=slug == serving,
                vectors=vectors,
                missing=missing_vectors,
            )
        )
    return found


def enable(config: Config, slug: str, *, described: Mapping[str, Any] | None, progress: Progress | None) -> Enabled:
    """Fetches a model and adds it to those that give vectors; `described` is the entry of a GGUF of one's own.

    The file is opened before anything is written down, so that an entry it contradicts is refused here. Raises
    UnknownModel, ModelNameTaken, InvalidModelEntry, and what fetching and loading a model raise.
    """
    known = entries(config.models)
    if described is not None and slug in known:
        raise ModelNameTaken(f"There is a model '{slug}' already.", hint="Give the file a name of its own.", slug=slug)
    entry = find(slug, known) if described is None else _described(slug, described)
    from garage.inference.embedder import open_embedder

    open_embedder(entry, config.models_dir, threads=1, progress=progress).close()
    added = slug not in config.embedding.models
    if added:
        configuration_file.enable_model(
            config.path, slug, enabled=config.embedding.models, described=_as_written(described)
        )
    return Enabled(slug, added, _file(entry, config.models_dir), entry.licence_note, config.path)


def choose(config: Config, slug: str) -> Chosen:
    """Makes an enabled model the one that answers searches: now where it is complete, else as soon as it is.

    Raises UnknownModel and NotEnabled.
    """
    find(slug, entries(config.models))
    if slug not in config.embedding.models:
        raise NotEnabled(
            f"The model '{slug}' gives no vectors yet.", hint=f"`garage models add {slug}` enables it.", slug=slug
        )
    changed = configuration_file.choose_default_model(config.path, slug, enabled=config.embedding.models)
    with opened(changed) as database, database.transaction() as conn:
        row = embeddings.model(conn, slug)
        if row is not None and embeddings.count_vectors(conn, row) and embeddings.is_complete(conn, row):
            embeddings.serve(conn, slug)
        answering = embeddings.serving(conn)
        active = sources.sources(conn, active=True)
        if row is None:
            from garage.store.documents import counts

            missing = sum(counts(conn, source.id)[1] for source in active)
        else:
            missing = sum(embeddings.count_pending(conn, row, source.id) for source in active)
    return Chosen(slug, answering.slug if answering else None, missing)


def _file(entry: ModelEntry, directory: Path) -> Path:
    return entry.file or directory / f"{entry.slug}.gguf"


def _described(slug: str, described: Mapping[str, Any]) -> ModelEntry:
    own = Model.model_validate(described).model_dump(exclude_unset=True, exclude_none=True)
    return model_entry({"slug": slug, "role": "embed", **own})


def _as_written(described: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The entry as the file holds it: paths as text."""
    if described is None:
        return None
    return {name: str(value) if isinstance(value, Path) else value for name, value in described.items()}
