"""BERT sentence encoders with a lower-casing WordPiece vocabulary."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
from gguf import TokenType

from garage.inference.errors import UnsupportedModel
from garage.inference.gguf_convert.blueprint import Blueprint, Weight, gguf_name, pooling, read_json
from garage.inference.gguf_convert.safetensors import read_index

_WORD_START = "\u2581"
# llama.cpp adds these to its f32 activations directly and has no half-precision path for them.
_EXACT = ("position_embd.weight", "token_types.weight")


def blueprint(folder: Path, config: Mapping[str, Any], name: str) -> Blueprint:
    """The plan for the BERT model in `folder`. Raises `UnsupportedModel`."""
    if config.get("hidden_act", "gelu") != "gelu" or config.get("position_embedding_type", "absolute") != "absolute":
        raise UnsupportedModel(name, "it is not a plain BERT (GELU, absolute positions)")
    layers = int(config["num_hidden_layers"])
    tokens, types, special = _vocabulary(folder, int(config["vocab_size"]), name)
    pooled = pooling(folder, name)

    def describe(writer: gguf.GGUFWriter) -> None:
        writer.add_block_count(layers)
        writer.add_context_length(config["max_position_embeddings"])
        writer.add_embedding_length(config["hidden_size"])
        writer.add_feed_forward_length(config["intermediate_size"])
        writer.add_head_count(config["num_attention_heads"])
        writer.add_layer_norm_eps(config["layer_norm_eps"])
        writer.add_causal_attention(False)
        writer.add_pooling_type(pooled)
        writer.add_token_type_count(config.get("type_vocab_size", 1))
        writer.add_tokenizer_model("bert")
        writer.add_tokenizer_pre("bert-bge")
        writer.add_token_list(tokens)
        writer.add_token_types(types)
        writer.add_bos_token_id(special["[CLS]"])
        writer.add_eos_token_id(special["[SEP]"])
        writer.add_sep_token_id(special["[SEP]"])
        writer.add_unk_token_id(special["[UNK]"])
        writer.add_pad_token_id(special["[PAD]"])
        writer.add_mask_token_id(special["[MASK]"])

    return Blueprint(gguf.MODEL_ARCH.BERT, describe, tuple(_weights(folder, layers, name)))


def _weights(folder: Path, layers: int, name: str) -> list[Weight]:
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.BERT, layers)
    weights = []
    for original, tensor in read_index(folder / "model.safetensors").items():
        # The pooler and the masked-language head serve tasks other than sentence vectors.
        short = original.removeprefix("bert.")
        if short.startswith(("pooler.", "cls.")):
            continue
        # Checkpoints converted from TensorFlow name the parts of a layer norm differently.
        short = short.replace(".gamma", ".weight").replace(".beta", ".bias")
        target = gguf_name(names, short, name)
        weights.append(Weight(target, tensor, exact=target in _EXACT or target.endswith(".bias")))
    return weights


def _vocabulary(folder: Path, size: int, name: str) -> tuple[list[str], list[int], dict[str, int]]:
    """Tokens and their types in GGUF's convention, and the ids of the special tokens.

    WordPiece marks what continues a word ("##ing"); llama.cpp expects the start marked instead.
    """
    tokenizer = read_json(folder / "tokenizer.json")
    if tokenizer["model"]["type"] != "WordPiece":
        raise UnsupportedModel(name, f"its tokenizer is {tokenizer['model']['type']}, not WordPiece")
    if not (tokenizer.get("normalizer") or {}).get("lowercase"):
        raise UnsupportedModel(name, "its tokenizer keeps case, which llama.cpp's WordPiece does not")
    special = {str(token["content"]): int(token["id"]) for token in tokenizer["added_tokens"] if token["special"]}
    if missing := {"[CLS]", "[SEP]", "[UNK]", "[PAD]", "[MASK]"} - special.keys():
        raise UnsupportedModel(name, f"its tokenizer lacks {', '.join(sorted(missing))}")
    tokens = [f"[PAD{index}]" for index in range(size)]
    types = [int(TokenType.UNUSED)] * size
    for piece, index in (tokenizer["model"]["vocab"] | special).items():
        if piece in special:
            tokens[index], types[index] = piece, int(TokenType.CONTROL)
        else:
            continued = piece.startswith("##")
            tokens[index] = piece[2:] if continued else _WORD_START + piece
            types[index] = int(TokenType.NORMAL)
    return tokens, types, special
