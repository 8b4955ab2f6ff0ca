"""Conversion of published sentence-embedding models (safetensors) to GGUF, without torch.

Known architectures: BERT encoders with a lower-casing WordPiece vocabulary (the MiniLM, BGE, E5 and GTE families) and
EmbeddingGemma. The output depends on the input files and the arguments alone, byte for byte, so its hash can be pinned.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING

from garage.inference.catalogue import Conversion
from garage.inference.errors import UnsupportedModel
from garage.inference.gguf_convert.blueprint import Blueprint

if TYPE_CHECKING:
    import gguf

__all__ = ["convert"]


def convert(folder: Path, target: Path, *, name: str, licence: str, kind: Conversion) -> None:
    """Write the model in `folder` (config.json, model.safetensors, tokenizer files, modules.json) to `target`.

    Matrices are stored as `kind` says, everything else as f32. Tensors are read, converted and written one at a time,
    so memory stays below twice the largest tensor in f32. Raises `UnsupportedModel`, and `ValueError` for files that
    are not what their names say.
    """
    import gguf

    plan = _blueprint(folder, name)
    writer = gguf.GGUFWriter(target, gguf.MODEL_ARCH_NAMES[plan.architecture])
    try:
        writer.add_type(gguf.GGUFType.MODEL)
        writer.add_name(name)
        writer.add_license(licence)
        writer.add_file_type(_file_type(kind))
        writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
        plan.describe(writer)
        _write_tensors(writer, plan, kind)
    finally:
        writer.close()


def _blueprint(folder: Path, name: str) -> Blueprint:
    from garage.inference.gguf_convert import bert, gemma

    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    architecture = str((config.get("architectures") or ["?"])[0])
    if architecture in ("BertModel", "BertForMaskedLM"):
        return bert.blueprint(folder, config, name)
    if architecture == "Gemma3TextModel" and config.get("use_bidirectional_attention"):
        return gemma.blueprint(folder, config, name)
    raise UnsupportedModel(name, f"its architecture is {architecture}")


def _file_type(kind: Conversion) -> gguf.LlamaFileType:
    import gguf

    return {
        "f32": gguf.LlamaFileType.ALL_F32,
        "f16": gguf.LlamaFileType.MOSTLY_F16,
        "q8_0": gguf.LlamaFileType.MOSTLY_Q8_0,
    }[kind]


def _write_tensors(writer: gguf.GGUFWriter, plan: Blueprint, kind: Conversion) -> None:
    import gguf
    import numpy as np

    quantised = gguf.GGMLQuantizationType
    block, block_bytes = gguf.GGML_QUANT_SIZES[quantised.Q8_0]
    storage: list[gguf.GGMLQuantizationType] = []
    for weight in plan.weights:
        shape = weight.tensor.shape
        count = math.prod(shape)
        if kind == "f32" or len(shape) < 2 or weight.exact:
            stored, size = quantised.F32, 4 * count
        elif kind == "f16" or shape[-1] % block:
            stored, size = quantised.F16, 2 * count
        else:
            stored, size = quantised.Q8_0, count // block * block_bytes
        storage.append(stored)
        writer.add_tensor_info(weight.name, shape, np.dtype(np.float32), size, raw_dtype=stored)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for weight, stored in zip(plan.weights, storage, strict=True):
        values = weight.tensor.read()
        if weight.add_one:
            values = values + np.float32(1)
        if stored == quantised.Q8_0:
            writer.write_tensor_data(gguf.quants.quantize(values, stored))
        else:
            writer.write_tensor_data(values.astype(np.float16 if stored == quantised.F16 else np.float32))
