"""EmbeddingGemma: Gemma 3 with attention in both directions, and two dense layers after pooling."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
from gguf import TokenType

from garage.inference.errors import UnsupportedModel
from garage.inference.gguf_convert.blueprint import Blueprint, Weight, gguf_name, modules, pooling, read_json
from garage.inference.gguf_convert.safetensors import read_index
from garage.inference.gguf_convert.sentencepiece import read_pieces

_SPACE = "\u2581"
_UNKNOWN = 3
# Added tokens that are never text although the tokenizer does not call them special.
_NEVER_TEXT = re.compile(r"<unused\d+>|<mask>")
_ADDED_SCORE = -1000.0
_PADDING_SCORE = -10000.0


def blueprint(folder: Path, config: Mapping[str, Any], name: str) -> Blueprint:
    """The plan for the EmbeddingGemma model in `folder`. Raises `UnsupportedModel`."""
    layers = int(config["num_hidden_layers"])
    tokens, scores, types = _vocabulary(folder, int(config["vocab_size"]))
    pooled = pooling(folder, name)
    dense = _dense_layers(folder, name)

    def describe(writer: gguf.GGUFWriter) -> None:
        writer.add_block_count(layers)
        writer.add_context_length(config["max_position_embeddings"])
        writer.add_embedding_length(config["hidden_size"])
        writer.add_feed_forward_length(config["intermediate_size"])
        writer.add_head_count(config["num_attention_heads"])
        writer.add_head_count_kv(config["num_key_value_heads"])
        writer.add_key_length(config["head_dim"])
        writer.add_value_length(config["head_dim"])
        writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
        writer.add_rope_freq_base(config["rope_theta"])
        writer.add_sliding_window(config["sliding_window"])
        writer.add_pooling_type(pooled)
        for layer, module in dense.items():
            shape = read_json(folder / module / "config.json")
            writer.add_dense_features_dims(layer, shape["in_features"], shape["out_features"])
        writer.add_tokenizer_model("llama")
        writer.add_tokenizer_pre("default")
        writer.add_token_list(tokens)
        writer.add_token_scores(scores)
        writer.add_token_types(types)
        writer.add_bos_token_id(config["bos_token_id"])
        writer.add_eos_token_id(config["eos_token_id"])
        writer.add_unk_token_id(_UNKNOWN)
        writer.add_pad_token_id(config["pad_token_id"])
        writer.add_add_bos_token(True)
        writer.add_add_eos_token(True)
        writer.add_add_space_prefix(False)

    weights = tuple(_weights(folder, layers, dense, name))
    return Blueprint(gguf.MODEL_ARCH.GEMMA_EMBEDDING, describe, weights)


def _dense_layers(folder: Path, name: str) -> dict[str, str]:
    """GGUF's names of the two dense layers and the module folders that hold them."""
    found = modules(folder, "Dense")
    if len(found) != 2:
        raise UnsupportedModel(name, f"it has {len(found)} dense layers, EmbeddingGemma has 2")
    return dict(zip(("dense_2", "dense_3"), found, strict=True))


def _weights(folder: Path, layers: int, dense: Mapping[str, str], name: str) -> list[Weight]:
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.GEMMA_EMBEDDING, layers)
    weights = []
    for layer, module in dense.items():
        for original, tensor in read_index(folder / module / "model.safetensors").items():
            weights.append(Weight(gguf_name(names, original.replace("linear", layer), name), tensor))
    for original, tensor in read_index(folder / "model.safetensors").items():
        target = gguf_name(names, original if original.startswith("model.") else f"model.{original}", name)
        # Gemma stores the scale of a norm as its difference from one.
        weights.append(Weight(target, tensor, add_one=original.endswith("norm.weight")))
    return weights


def _vocabulary(folder: Path, size: int) -> tuple[list[bytes], list[float], list[int]]:
    tokens = [f"[PAD{index}]".encode() for index in range(size)]
    scores = [_PADDING_SCORE] * size
    types = [int(TokenType.UNUSED)] * size
    for index, piece in enumerate(read_pieces(folder / "tokenizer.model")[:size]):
        # SentencePiece and GGUF number the types of pieces alike.
        tokens[index], scores[index], types[index] = piece.text, piece.score, piece.type
    added = read_json(folder / "tokenizer_config.json").get("added_tokens_decoder", {})
    for key, token in added.items():
        index, content = int(key), str(token["content"])
        if index >= size:
            continue
        if token.get("special") or _NEVER_TEXT.fullmatch(content):
            types[index] = int(TokenType.CONTROL)
        else:
            content = content.replace(_SPACE, " ")
            types[index] = int(TokenType.USER_DEFINED)
        tokens[index], scores[index] = content.encode(), _ADDED_SCORE
    return tokens, scores, types
