from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from garage.inference.catalogue import DEFAULT_EMBEDDER, ModelEntry, Published, builtin, entries, find, model_entry
from garage.inference.errors import InvalidModelEntry, UnknownModel

OWN: dict[str, Any] = {"slug": "own", "role": "embed", "file": "/models/own.gguf", "dims": 384, "context": 512}


class Section(BaseModel):
    """The shape of a model in the configuration, as far as it matters here."""

    file: Path | None = None
    role: str = "embed"
    dims: int | None = None
    stored_dims: int | None = None
    context: int | None = None
    document_template: str | None = None


@pytest.mark.parametrize("entry", builtin().values(), ids=lambda entry: entry.slug)
def test_every_built_in_entry_is_complete(entry: ModelEntry) -> None:
    published = entry.source
    assert isinstance(published, Published)
    assert published.upstream.packages
    assert published.upstream.hub is not None
    assert {"config.json", "model.safetensors", "modules.json"} <= published.upstream.files.keys()
    assert entry.description
    assert entry.licence != "not stated"
    assert entry.storage == "vector"
    assert entry.stored_dims == entry.dims


def test_the_default_model_is_in_the_catalogue_and_first() -> None:
    assert next(iter(builtin())) == DEFAULT_EMBEDDER


def test_a_model_whose_licence_is_not_open_says_so() -> None:
    assert all(entry.licence_note for entry in builtin().values() if entry.licence != "Apache-2.0")


def test_no_two_entries_share_their_weights() -> None:
    hashes = [entry.published.gguf_sha256 for entry in builtin().values() if entry.published]
    assert len(set(hashes)) == len(hashes)


def test_a_file_of_ones_own_needs_only_its_width_and_context() -> None:
    entry = model_entry(OWN)
    assert entry.source == Path("/models/own.gguf")
    assert (entry.storage, entry.stored_dims, entry.licence) == ("vector", 384, "not stated")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"slug": "Own Model"}, "slug"),
        ({"role": "chat"}, "role"),
        ({"dims": 0}, "dims"),
        ({"dims": "384"}, "dims"),
        ({"context": 8}, "context"),
        ({"colour": "blue"}, "colour"),
        ({"file": None}, "exactly one of `file` and `published`"),
        ({"document_template": "{title}"}, "`document_template` must contain {text}"),
        ({"document_template": "{author}: {text}"}, "unknown placeholders: author"),
        ({"query_template": "{title} {text}"}, "unknown placeholders: title"),
        ({"stored_dims": 128}, "only for Matryoshka models"),
        ({"stored_dims": 512, "matryoshka": True}, "more than the 384"),
        ({"dims": 3000, "storage": "vector"}, "indexed up to 2000"),
    ],
)
def test_a_wrong_description_is_refused_and_its_fault_named(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidModelEntry) as refused:
        model_entry({**OWN, **changes})
    assert any(said in reason for reason in refused.value.reasons)
    assert refused.value.slug in str(refused.value)


@pytest.mark.parametrize(
    ("origin", "said"),
    [
        ({"requirements": ["tiny>=1"], "folder": "model"}, "requirements"),
        ({"requirements": ["tiny==1 --index-url=http://elsewhere"], "folder": "model"}, "requirements"),
        ({"requirements": ["a==1", "a==2"], "folder": "model"}, "needs `chunk`"),
        ({"requirements": ["a==1"], "folder": "../model"}, "not a path inside"),
        ({"requirements": ["a==1"], "folder": "/model"}, "not a path inside"),
    ],
)
def test_a_package_is_named_exactly_and_read_inside_its_folder(origin: dict[str, Any], said: str) -> None:
    upstream = {"name": "a/b", "files": {"config.json": "0" * 64}, "packages": [origin]}
    published = {"upstream": upstream, "convert": "f16", "gguf_sha256": "0" * 64}
    with pytest.raises(InvalidModelEntry) as refused:
        model_entry({**OWN, "file": None, "published": published})
    assert any(said in reason for reason in refused.value.reasons)


def test_an_upstream_model_must_be_somewhere() -> None:
    upstream = {"name": "a/b", "files": {"config.json": "0" * 64}}
    published = {"upstream": upstream, "convert": "f16", "gguf_sha256": "0" * 64}
    with pytest.raises(InvalidModelEntry, match="needs `packages` or `hub`"):
        model_entry({**OWN, "file": None, "published": published})


@pytest.mark.parametrize(
    ("dims", "matryoshka", "storage", "stored"),
    [
        (2000, False, "vector", 2000),
        (2001, False, "halfvec", 2001),
        (4000, False, "halfvec", 4000),
        (4096, False, "bit", 4096),
        (4096, True, "halfvec", 4000),
    ],
)
def test_storage_follows_from_the_width(dims: int, matryoshka: bool, storage: str, stored: int) -> None:
    entry = model_entry({**OWN, "dims": dims, "matryoshka": matryoshka})
    assert (entry.storage, entry.stored_dims) == (storage, stored)


def test_a_matryoshka_model_may_keep_fewer_dimensions() -> None:
    assert model_entry({**OWN, "matryoshka": True, "stored_dims": 128}).stored_dims == 128


def test_the_configuration_adds_a_model_of_ones_own() -> None:
    models = entries({"mine": Section(file=Path("/m.gguf"), dims=768, context=2048)})
    assert models["mine"].source == Path("/m.gguf")
    assert list(models)[:-1] == list(builtin())


def test_the_configuration_changes_a_built_in_model_and_keeps_the_rest() -> None:
    changed = entries({DEFAULT_EMBEDDER: Section(context=256)})[DEFAULT_EMBEDDER]
    assert changed == builtin()[DEFAULT_EMBEDDER].model_copy(update={"context": 256})


def test_a_file_replaces_the_weights_and_the_licence_of_a_built_in_model() -> None:
    changed = entries({DEFAULT_EMBEDDER: Section(file=Path("/m.gguf"))})[DEFAULT_EMBEDDER]
    assert changed.source == Path("/m.gguf")
    assert changed.licence == "not stated"
    assert changed.context == builtin()[DEFAULT_EMBEDDER].context


def test_an_incomplete_model_of_ones_own_is_refused() -> None:
    with pytest.raises(InvalidModelEntry, match="dims"):
        entries({"mine": Section(file=Path("/m.gguf"), context=512)})


def test_an_unknown_model_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownModel, match="Did you mean 'all-minilm-l6-v2'"):
        find("all-minilm-l6", builtin())
    with pytest.raises(UnknownModel, match="Known models: all-minilm-l6-v2, "):
        find("zzz", builtin())
