"""What an architecture has to say for itself to be written as GGUF, and what several of them share."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gguf

from garage.inference.errors import UnsupportedModel
from garage.inference.gguf_convert.safetensors import StoredTensor


@dataclass(frozen=True, slots=True)
class Weight:
    """One tensor to write. `exact` ones stay f32; `add_one` is for norms stored as their difference from one."""

    name: str
    tensor: StoredTensor
    exact: bool = False
    add_one: bool = False


@dataclass(frozen=True, slots=True)
class Blueprint:
    """The GGUF architecture, a function that writes its metadata, and its tensors in the order they are stored."""

    architecture: gguf.MODEL_ARCH
    describe: Callable[[gguf.GGUFWriter], None]
    weights: tuple[Weight, ...]


def read_json(path: Path) -> Any:  # noqa: ANN401 - JSON is what its writer made it
    """The parsed content of a JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))


def modules(folder: Path, kind: str) -> list[str]:
    """Folders of the sentence-transformers modules whose type ends with `kind`, in pipeline order."""
    return [str(m["path"]) for m in read_json(folder / "modules.json") if str(m["type"]).rsplit(".", 1)[-1] == kind]


def pooling(folder: Path, name: str) -> gguf.PoolingType:
    """How the model turns token vectors into one: the single mode its pooling module switches on."""
    for module in modules(folder, "Pooling"):
        config = read_json(folder / module / "config.json")
        modes = {key for key, on in config.items() if key.startswith("pooling_mode_") and on}
        if modes == {"pooling_mode_mean_tokens"}:
            return gguf.PoolingType.MEAN
        if modes == {"pooling_mode_cls_token"}:
            return gguf.PoolingType.CLS
        raise UnsupportedModel(name, f"its pooling is {', '.join(sorted(modes)) or 'not stated'}")
    raise UnsupportedModel(name, "it has no pooling module")


def gguf_name(names: gguf.TensorNameMap, original: str, model: str) -> str:
    """The GGUF name of an upstream tensor. Raises `UnsupportedModel` for one that the architecture does not have."""
    found = names.get_name(original, try_suffixes=(".weight", ".bias"))
    if found is None:
        raise UnsupportedModel(model, f"its tensor {original} has no place in the architecture")
    return found
