"""The one configuration: `garage.yaml`, strict, read once a process.

JSON is accepted as well, being YAML. The file is `--config` or GARAGE_CONFIG where given, else
`GARAGE_HOME/garage.yaml`; without a file everything has its default.
"""

import difflib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator, model_validator

from garage.errors import GarageError

HOME_VARIABLE, FILE_VARIABLE = "GARAGE_HOME", "GARAGE_CONFIG"
MIB = 1 << 20
Slug = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")]
ModelSlug = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,40}$")]
IdentityText = Annotated[str, Field(pattern=r"^(email|git_email|git_name|name|phone|handle):\s*\S")]
CorpusClass = Literal["document", "code", "communication"]
Trust = Literal["authored", "received", "reference"]
SourceKind = Literal["filesystem", "messages"]
Egress = Literal["local_only", "lan", "remote"]


class ConfigError(GarageError):
    """The configuration cannot be read or says something it may not (`path`)."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)

    @field_validator("*", mode="before")
    @classmethod
    def _no_truth_for_a_number(cls, value: object, info: ValidationInfo) -> object:
        if isinstance(value, bool) and cls.model_fields[info.field_name or ""].annotation in (int, float):
            raise ValueError("a number is wanted; YAML reads yes, no, on and off as true and false")
        return value


class Source(_Section):
    """One folder to read, or one database of messages."""

    name: Slug = Field(description="Short name: the partition key, and what searches filter on.")
    root: Path = Field(description="The folder, or the file of a database; `~` is the home folder.")
    kind: SourceKind = Field(
        default="filesystem",
        description="A folder of files (filesystem), or the chat.db of Apple's Messages (messages).",
    )
    corpus_class: CorpusClass = Field(
        default="document", alias="class", description="What its files are when nothing else says."
    )
    trust: Trust = Field(default="authored", description="Whose its files are when nothing else says.")
    egress: Egress = Field(default="local_only", description="How far its content may travel.")
    include_code: bool = Field(default=False, description="Read source code and structured data files as well.")
    exclude: tuple[str, ...] = Field(default=(), description="Patterns as in .gitignore, relative to the root.")
    enabled: bool = Field(default=True, description="False: kept, but neither walked nor searched.")

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    @field_validator("root")
    @classmethod
    def _absolute(cls, root: Path) -> Path:
        if "\0" in str(root):
            raise ValueError("a path holds no NUL character")
        return Path(os.path.abspath(root.expanduser()))


class Walk(_Section):
    """What the walk leaves out, and when it may delete."""

    max_file_bytes: int = Field(default=64 * MIB, ge=1, description="Larger files are not read.")
    max_deleted_share: float = Field(
        default=0.25,
        ge=0,
        le=1,
        description="A run that would delete a larger share of a source is refused without --force.",
    )
    exclude: tuple[str, ...] = Field(default=(), description="Patterns as in .gitignore, for every source.")


class Placeholders(_Section):
    """Files whose bytes are with a cloud provider: whether they may be fetched, and how many in one run."""

    materialize: bool = Field(
        default=False,
        description="Fetch them to read them; otherwise they are never opened and their text stays as it is.",
    )
    limit: int = Field(
        default=2000, ge=0, description="Files fetched in one run; the rest waits for the next. 0: no limit."
    )
    max_bytes: int = Field(default=20 << 30, ge=0, description="Bytes fetched in one run; 0: no limit.")
    timeout_seconds: float = Field(default=120.0, ge=0, description="Time to fetch and read one file; 0: no limit.")


class Extraction(_Section):
    """Reading files into text, in worker processes."""

    workers: int = Field(default=0, ge=0, description="Worker processes; 0: one a core.")
    seconds: float = Field(default=60.0, gt=0, description="Time limit of one file.")
    memory_bytes: int = Field(default=1024 * MIB, ge=64 * MIB, description="Memory limit of one file.")
    pdf_min_chars_per_page: int = Field(
        default=32, ge=0, description="A page of a PDF with fewer characters is read by a second library, then by OCR."
    )
    ocr_languages: tuple[Annotated[str, Field(pattern=r"^[A-Za-z_]{3,20}$")], ...] = Field(
        default=("eng",), description="Languages that Tesseract is told to expect; each needs its data package."
    )
    ocr_min_chars: int = Field(default=16, ge=1, description="Fewer characters recognised in a picture are no text.")
    ocr_max_pages: int = Field(default=40, ge=0, description="Scanned pages of one file that are recognised; 0: none.")
    index_images: bool = Field(
        default=True, description="A picture without text becomes a document that is found by its name."
    )
    max_sheet_rows: int = Field(default=5000, ge=1, description="Rows of one sheet; those beyond are dropped.")
    max_cell_chars: int = Field(default=500, ge=1, description="Characters of one cell; those beyond are dropped.")


class Quality(_Section):
    """What is worth keeping."""

    reject_machine_generated: bool = Field(
        default=True, description="Logs, dumps, bundles and lock files become outcomes instead of documents."
    )


class Chunking(_Section):
    """Sizes in code points."""

    size: int = Field(default=1000, ge=50, description="Prose, Markdown and tables.")
    overlap: int = Field(default=150, ge=0, description="Repeated between neighbouring passages of prose.")
    code_size: int = Field(default=1200, ge=50, description="Source code.")
    code_overlap: int = Field(default=100, ge=0, description="Repeated between neighbouring passages of code.")
    max_chunks_per_document: int = Field(default=1500, ge=1, description="Passages beyond are dropped and counted.")

    @model_validator(mode="after")
    def _overlaps_fit(self) -> Self:
        if self.overlap >= self.size or self.code_overlap >= self.code_size:
            raise ValueError("an overlap must be smaller than its size")
        return self


class Model(_Section):
    """A model of one's own, or changes to a built-in one of the same name (only what is set changes)."""

    file: Path | None = Field(default=None, description="A GGUF file on this machine.")
    role: Literal["embed"] = Field(default="embed", description="What the model is for.")
    description: str = Field(default="", description="Shown by `garage models list`.")
    dims: int | None = Field(default=None, ge=1, le=65_536, description="Width of its vectors.")
    stored_dims: int | None = Field(default=None, ge=1, description="Width kept; smaller only for Matryoshka models.")
    context: int | None = Field(default=None, ge=16, description="Tokens of one text it reads; the rest is cut.")
    document_template: str | None = Field(
        default=None, description="How a passage is put to it: uses {title}, {heading} and {text}."
    )
    query_template: str | None = Field(default=None, description="How a question is put to it: uses {text}.")
    untitled: str | None = Field(default=None, description="Stands for a missing title.")
    pooling: Literal["file", "mean", "cls", "last"] = Field(default="file", description="Overrides what the file says.")
    matryoshka: bool = Field(default=False, description="Its vectors may be truncated and renormalised.")

    @field_validator("file")
    @classmethod
    def _absolute(cls, file: Path | None) -> Path | None:
        return None if file is None else Path(os.path.abspath(file.expanduser()))


class Embedding(_Section):
    """Which models give passages their vectors."""

    models: tuple[ModelSlug, ...] = Field(
        default=("all-minilm-l6-v2",), min_length=1, description="Every one gets its own table, asset and index."
    )
    default: ModelSlug = Field(default="all-minilm-l6-v2", description="Answers searches, as soon as it is complete.")
    batch: int = Field(default=64, ge=1, le=4096, description="Passages of one transaction.")
    threads: int = Field(default=0, ge=0, description="Texts embedded at the same time; 0: one a core.")

    @model_validator(mode="after")
    def _default_is_one_of_them(self) -> Self:
        if self.default not in self.models:
            raise ValueError(f"the default model {self.default!r} is not among `models`")
        if len(set(self.models)) < len(self.models):
            raise ValueError("a model is named twice")
        return self


class Search(_Section):
    """How searches rank."""

    rrf_k: int = Field(default=60, ge=1, description="k of reciprocal rank fusion.")
    candidates: int = Field(default=200, ge=1, le=5000, description="Candidates each engine contributes.")
    ef_search: int = Field(default=100, ge=1, le=1000, description="Breadth of the HNSW scan.")


class Leaving(_Section):
    """Which programs content may be handed to; what may go there is decided by source and class."""

    origins: tuple[
        Annotated[str, Field(pattern=r"^https?://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)(:[0-9]{1,5})?/?$")], ...
    ] = Field(
        default=(),
        description="Exact origins, as scheme://host:port; this machine by its literal addresses and as localhost"
        " needs none. Names of other scripts are written as xn--.",
    )


class Identity(_Section):
    """Who the owner is: what tells their own documents, commits and mail from those of others."""

    name: str = Field(default="", description="The owner's name, as documents bear it.")
    identities: tuple[IdentityText, ...] = Field(
        default=(),
        description="What else they go by, as kind:value: email, git_email, git_name, name, phone or handle.",
    )

    @field_validator("identities")
    @classmethod
    def _addresses_are_addresses(cls, identities: tuple[str, ...]) -> tuple[str, ...]:
        for identity in identities:
            kind, _, value = identity.partition(":")
            if kind in {"email", "git_email"} and not all(part.strip() for part in value.partition("@")):
                raise ValueError(f"{value.strip()!r} is no address")
        return identities


class Attribution(_Section):
    """Whose documents are, where neither git nor the file itself tells."""

    path_rules: dict[Annotated[str, Field(pattern=r"[^/\s]")], Trust] = Field(
        default={},
        description='Globs of folders ("Clients/*/In/") or files, and whose these are; they go before the built-in'
        " ones, and the first that matches decides.",
    )


class Dagster(_Section):
    """The orchestrator's services."""

    port: int = Field(
        default=3000, ge=1, le=65535, description="Port of the web page; a free one is taken when it is in use."
    )
    nightly: str = Field(default="0 3 * * *", description="When every source is read again, as a cron expression.")
    timezone: str = Field(default="UTC", description="Of the nightly schedule.")
    watch_seconds: int = Field(default=60, ge=10, description="Interval at which sources are watched.")
    fresh_hours: float = Field(default=26, gt=0, description="A source that was not read for longer is stale.")


class Config(_Section):
    """Everything a person can set."""

    sources: tuple[Source, ...] = Field(default=(), description="The folders to read.")
    walk: Walk = Field(default=Walk(), description="What is left out, and when a run may delete.")
    placeholders: Placeholders = Field(default=Placeholders(), description="Files that are with a cloud provider.")
    extraction: Extraction = Field(default=Extraction(), description="Limits of reading one file.")
    quality: Quality = Field(default=Quality(), description="What is worth keeping.")
    chunking: Chunking = Field(default=Chunking(), description="Sizes of passages.")
    embedding: Embedding = Field(default=Embedding(), description="Which models give vectors.")
    models: dict[ModelSlug, Model] = Field(default={}, description="Models beyond the built-in catalogue.")
    models_directory: Path | None = Field(
        default=None, description="Where model files are kept; default GARAGE_HOME/models."
    )
    search: Search = Field(default=Search(), description="How searches rank.")
    egress: Leaving = Field(default=Leaving(), description="Where content may be handed to.")
    identity: Identity = Field(default=Identity(), description="Who the owner is.")
    attribution: Attribution = Field(default=Attribution(), description="Whose documents are.")
    dagster: Dagster = Field(default=Dagster(), description="The orchestrator's services.")

    _home: Path = Path()
    _path: Path = Path()

    @model_validator(mode="after")
    def _names_are_unique(self) -> Self:
        names = [source.name for source in self.sources]
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise ValueError(f"source names must be unique: {', '.join(sorted(twice))}")
        return self

    def at(self, home: Path, path: Path) -> Self:
        """This configuration, as the one read from `path` for `home`."""
        self._home, self._path = home, path
        return self

    @property
    def home(self) -> Path:
        """GARAGE_HOME: database, instance, models and logs."""
        return self._home

    @property
    def path(self) -> Path:
        """The file this was read from, or would be."""
        return self._path

    @property
    def models_dir(self) -> Path:
        directory = self.models_directory or self._home / "models"
        return Path(os.path.abspath(directory.expanduser()))

    @property
    def logs_dir(self) -> Path:
        return self._home / "logs"


def home() -> Path:
    """GARAGE_HOME, else the platform's data folder (for root: the state folder that its other services use)."""
    given = os.environ.get(HOME_VARIABLE)
    if given:
        return Path(os.path.abspath(Path(given).expanduser()))
    from platformdirs import PlatformDirs

    dirs = PlatformDirs("garage", appauthor=False, use_site_for_root=True)
    return dirs.user_state_path if hasattr(os, "geteuid") and os.geteuid() == 0 else dirs.user_data_path


def config_path() -> Path:
    """The file that `load` reads when none is named."""
    given = os.environ.get(FILE_VARIABLE)
    return Path(os.path.abspath(Path(given).expanduser())) if given else home() / "garage.yaml"


def load(path: Path | None = None) -> Config:
    """Reads and checks the configuration. Raises ConfigError for what it does not know, naming the nearest known."""
    named = path is not None or FILE_VARIABLE in os.environ
    path = config_path() if path is None else Path(os.path.abspath(path.expanduser()))
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        if named:
            raise ConfigError(
                f"There is no configuration file {path}.", hint="Check --config and GARAGE_CONFIG.", path=path
            ) from None
        text = ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"The configuration {path} cannot be read: {error}.", path=path) from error
    return parse(text, path)


class _Strict(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # one or the other
    """A safe loader that takes no key twice; YAML's own would let the last one win."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002  # as yaml declares it
        seen: set[str] = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                said = f"the key {key.value!r} is given twice"
                raise yaml.constructor.ConstructorError(None, None, said, key.start_mark)
            seen.add(key.value)
        mapping: dict[Any, Any] = super().construct_mapping(node, deep=deep)
        return mapping


def parse(text: str, path: Path) -> Config:
    """A configuration from YAML (or JSON) text; `path` names it in messages."""
    try:
        raw = yaml.load(text, Loader=_Strict)  # noqa: S506  # it is a safe loader
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not YAML: {error}", path=path) from error
    if raw is None:
        raw = {}
    if not isinstance(raw, dict):
        raise ConfigError(f"{path} must hold keys and values.", hint="See docs/configuration.md.", path=path)
    try:
        config = Config.model_validate(raw)
    except ValidationError as error:
        said = "; ".join(_explain(detail) for detail in error.errors())
        raise ConfigError(f"{path}: {said}.", hint="See docs/configuration.md.", path=path) from error
    return config.at(home(), path)


def _explain(detail: Mapping[str, Any]) -> str:
    where = ".".join(str(part) for part in detail["loc"])
    if detail["type"] != "extra_forbidden":
        return f"{where}: {detail['msg']}" if where else str(detail["msg"])
    *parents, key = detail["loc"]
    known = list(_keys_at(parents))
    near = difflib.get_close_matches(str(key), known, n=1, cutoff=0.0)
    return f"unknown key {where!r}" + (f" (nearest known: {near[0]!r})" if near else "")


def _keys_at(parents: list[Any]) -> Iterator[str]:
    """The keys that may stand where an unknown one stood."""
    model: type[BaseModel] = Config
    for part in parents:
        if not isinstance(part, str):
            continue
        field = next((f for name, f in model.model_fields.items() if part in (name, f.alias)), None)
        if field is None:
            continue
        for candidate in (field.annotation, *getattr(field.annotation, "__args__", ())):
            if isinstance(candidate, type) and issubclass(candidate, BaseModel):
                model = candidate
    for name, field in model.model_fields.items():
        yield field.alias or name


def json_schema() -> dict[str, Any]:
    """The published JSON Schema of `garage.yaml`."""
    schema = Config.model_json_schema(by_alias=True)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "garage.yaml"
    return schema
