from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gguf
import numpy as np
import pytest

from garage.inference.catalogue import Conversion, builtin, model_entry
from garage.inference.errors import UnsupportedModel
from garage.inference.gguf_convert import convert
from garage.inference.gguf_convert.safetensors import read_index
from garage.inference.gguf_convert.sentencepiece import Piece, read_pieces
from garage.inference.llama import LlamaEmbedder

if TYPE_CHECKING:
    from tests.inference.conftest import Writers


def converted(folder: Path, target: Path, kind: Conversion = "f16") -> Path:
    convert(folder, target, name="tests/tiny", licence="CC0-1.0", kind=kind)
    return target


def tensors(path: Path) -> dict[str, Any]:
    return {tensor.name: tensor for tensor in gguf.GGUFReader(path).tensors}


def metadata(path: Path) -> dict[str, Any]:
    return {name: field.contents() for name, field in gguf.GGUFReader(path).fields.items()}


def change(path: Path, **values: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


@pytest.mark.parametrize("kind", ["f32", "f16", "q8_0"])
def test_the_same_model_gives_the_same_bytes(
    kind: Conversion, tiny_folder: Path, write: Writers, tmp_path: Path
) -> None:
    again = write.bert(tmp_path / "elsewhere" / "under-another-name")
    one = converted(tiny_folder, tmp_path / "one.gguf", kind)
    two = converted(again, tmp_path / "two.gguf", kind)
    assert one.read_bytes() == two.read_bytes()


def test_the_pinned_hash_is_that_of_the_file_in_use(models_dir: Path, minilm: LlamaEmbedder) -> None:
    published = builtin()[minilm.slug].published
    assert published is not None
    digest = hashlib.sha256((models_dir / f"{minilm.slug}.gguf").read_bytes()).hexdigest()
    assert digest == published.gguf_sha256


def test_matrices_are_stored_as_asked_and_the_rest_exactly(tiny_folder: Path, tmp_path: Path) -> None:
    source = read_index(tiny_folder / "model.safetensors")
    query = source["encoder.layer.0.attention.self.query.weight"].read()
    types = gguf.GGMLQuantizationType
    for kind, stored, tolerance in (("f32", types.F32, 0.0), ("f16", types.F16, 1e-3), ("q8_0", types.Q8_0, 1e-2)):
        path = converted(tiny_folder, tmp_path / f"{kind}.gguf", kind)  # type: ignore[arg-type]  # a loop forgets that these are literals
        made = tensors(path)
        assert made["blk.0.attn_q.weight"].tensor_type == stored
        values = gguf.quants.dequantize(made["blk.0.attn_q.weight"].data, stored)
        assert np.abs(values - query).max() <= tolerance
        for exact in ("position_embd.weight", "token_types.weight", "blk.0.attn_q.bias", "token_embd_norm.weight"):
            assert made[exact].tensor_type == types.F32
        assert not [name for name in made if "pooler" in name or "position_ids" in name]


def test_the_vocabulary_marks_the_start_of_words_and_the_special_tokens(tiny_folder: Path, tmp_path: Path) -> None:
    found = metadata(converted(tiny_folder, tmp_path / "tiny.gguf"))
    tokens, types = found["tokenizer.ggml.tokens"], found["tokenizer.ggml.token_type"]
    assert tokens[:6] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "\u2581a"]
    assert tokens[-1] == "z"
    assert types[:6] == [3, 3, 3, 3, 3, 1]
    assert found["bert.pooling_type"] == 1
    assert found["general.license"] == "CC0-1.0"


def test_ids_without_a_token_are_marked_unused(tiny_folder: Path, tmp_path: Path) -> None:
    config = json.loads((tiny_folder / "config.json").read_text())
    change(tiny_folder / "config.json", vocab_size=config["vocab_size"] + 1)
    found = metadata(converted(tiny_folder, tmp_path / "tiny.gguf"))
    assert found["tokenizer.ggml.tokens"][-1] == f"[PAD{config['vocab_size']}]"
    assert found["tokenizer.ggml.token_type"][-1] == 5


@pytest.mark.parametrize(
    ("file", "values", "said"),
    [
        ("config.json", {"architectures": ["T5EncoderModel"]}, "T5EncoderModel"),
        ("config.json", {"architectures": ["Gemma3TextModel"]}, "Gemma3TextModel"),
        ("config.json", {"hidden_act": "relu"}, "not a plain BERT"),
        ("config.json", {"position_embedding_type": "relative_key"}, "not a plain BERT"),
        ("tokenizer.json", {"normalizer": {"lowercase": False}}, "keeps case"),
        ("tokenizer.json", {"normalizer": None}, "keeps case"),
        ("tokenizer.json", {"model": {"type": "BPE"}}, "BPE"),
        ("tokenizer.json", {"added_tokens": []}, "[CLS], [MASK], [PAD], [SEP], [UNK]"),
        ("1_Pooling/config.json", {"pooling_mode_mean_tokens": False}, "not stated"),
        ("1_Pooling/config.json", {"pooling_mode_cls_token": True}, "pooling_mode_cls_token, pooling_mode_mean_tokens"),
    ],
)
def test_what_llama_cpp_would_compute_differently_is_refused(
    file: str, values: dict[str, Any], said: str, tiny_folder: Path, tmp_path: Path
) -> None:
    change(tiny_folder / file, **values)
    with pytest.raises(UnsupportedModel) as refused:
        converted(tiny_folder, tmp_path / "out.gguf")
    assert said in refused.value.reason


def test_a_tensor_without_a_place_is_refused(tiny_folder: Path, write: Writers, tmp_path: Path) -> None:
    weights = {name: tensor.read() for name, tensor in read_index(tiny_folder / "model.safetensors").items()}
    write.safetensors(tiny_folder / "model.safetensors", {**weights, "adapter.weight": np.ones((2, 2), np.float32)})
    with pytest.raises(UnsupportedModel, match=r"adapter\.weight has no place"):
        converted(tiny_folder, tmp_path / "out.gguf")


def test_every_float_type_is_read_to_the_same_numbers(write: Writers, tmp_path: Path) -> None:
    values = np.array([[1.0, -2.5], [0.15625, 3e4]], np.float32)
    write.safetensors(tmp_path / "a.safetensors", {"f32": values, "f16": values.astype(np.float16)})
    header = json.dumps({"bf16": {"dtype": "BF16", "shape": [2, 2], "data_offsets": [0, 8]}}).encode()
    upper = (values.view(np.uint32) >> 16).astype("<u2").tobytes()
    (tmp_path / "b.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + upper)
    index = read_index(tmp_path / "a.safetensors") | read_index(tmp_path / "b.safetensors")
    assert index.keys() == {"f32", "f16", "bf16"}
    assert np.array_equal(index["f32"].read(), values)
    assert np.array_equal(index["f16"].read(), values.astype(np.float16).astype(np.float32))
    assert np.allclose(index["bf16"].read(), values, rtol=1 / 128)


@pytest.mark.parametrize("keep", [0, 4, 100, -1])
def test_a_safetensors_file_cut_short_is_noticed(keep: int, tiny_folder: Path) -> None:
    path = tiny_folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ValueError, match=r"model\.safetensors"):
        read_index(path)


def field(number: int, wire: int, payload: bytes) -> bytes:
    length = bytes([len(payload)]) if wire == 2 else b""
    return bytes([number << 3 | wire]) + length + payload


def spm(pieces: list[Piece]) -> bytes:
    message = b""
    for piece in pieces:
        body = field(1, 2, piece.text) + field(2, 5, struct.pack("<f", piece.score)) + field(3, 0, bytes([piece.type]))
        message += field(1, 2, body)
    return message + field(2, 2, b"\x08\x01")  # trainer settings follow in a real file


def test_sentencepiece_vocabularies_are_read(tmp_path: Path) -> None:
    pieces = [Piece(b"<unk>", 0.0, 2), Piece("\u2581é".encode(), -1.5, 1), Piece(b"<0x0A>", 0.0, 6)]
    (tmp_path / "m").write_bytes(spm(pieces))
    assert read_pieces(tmp_path / "m") == pieces


@pytest.mark.parametrize("content", [b"\x0a\x7f", b"\x0a\xff", b"\x0b\x00", b"\x15\x00"])
def test_bytes_that_are_no_sentencepiece_model_are_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(content)
    with pytest.raises(ValueError, match="not a protobuf message"):
        read_pieces(tmp_path / "m")


def gemma_pieces() -> list[Piece]:
    special = [Piece(b"<pad>", 0, 3), Piece(b"<eos>", 0, 3), Piece(b"<bos>", 0, 3), Piece(b"<unk>", 0, 2)]
    byte_pieces = [Piece(f"<0x{value:02X}>".encode(), 0, 6) for value in range(256)]
    letters = [Piece(letter.encode(), -float(at), 1) for at, letter in enumerate("abcdefghij\u2581")]
    return [*special, Piece(b"<mask>", 0, 4), Piece(b"\n\n", 0, 4), *byte_pieces, *letters]


def gemma_layer_shapes(*, hidden: int, inner: int, heads: int, size: int) -> Mapping[str, tuple[int, ...]]:
    return {
        "self_attn.q_proj": (heads * size, hidden),
        "self_attn.k_proj": (size, hidden),
        "self_attn.v_proj": (size, hidden),
        "self_attn.o_proj": (hidden, heads * size),
        "self_attn.q_norm": (size,),
        "self_attn.k_norm": (size,),
        "mlp.gate_proj": (inner, hidden),
        "mlp.up_proj": (inner, hidden),
        "mlp.down_proj": (hidden, inner),
        "input_layernorm": (hidden,),
        "post_attention_layernorm": (hidden,),
        "pre_feedforward_layernorm": (hidden,),
        "post_feedforward_layernorm": (hidden,),
    }


def write_tiny_gemma(folder: Path, write: Writers) -> Path:
    """EmbeddingGemma's architecture in miniature, with random weights.

    Every sixth layer attends to everything; llama.cpp aborts on a model that has none of these.
    """
    random = np.random.default_rng(3)
    hidden, inner, heads, size = 32, 64, 2, 16
    pieces = gemma_pieces()

    def matrix(*shape: int) -> np.ndarray[Any, Any]:
        return random.standard_normal(shape).astype(np.float32) * np.float32(0.2)

    weights: dict[str, np.ndarray[Any, Any]] = {"embed_tokens.weight": matrix(len(pieces) + 2, hidden)}
    shapes = gemma_layer_shapes(hidden=hidden, inner=inner, heads=heads, size=size)
    for layer in range(6):
        weights |= {f"layers.{layer}.{name}.weight": matrix(*shape) for name, shape in shapes.items()}
    weights["norm.weight"] = np.full(hidden, 0.25, np.float32)
    write.safetensors(folder / "model.safetensors", weights)
    write.safetensors(folder / "2_Dense" / "model.safetensors", {"linear.weight": matrix(48, hidden)})
    write.safetensors(folder / "3_Dense" / "model.safetensors", {"linear.weight": matrix(hidden, 48)})
    write.json(folder / "2_Dense" / "config.json", {"in_features": hidden, "out_features": 48})
    write.json(folder / "3_Dense" / "config.json", {"in_features": 48, "out_features": hidden})
    write.json(folder / "1_Pooling" / "config.json", {"pooling_mode_mean_tokens": True})
    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Dense": "Dense", "3_Dense": "Dense"}
    write.json(folder / "modules.json", [{"path": path, "type": f"st.{kind}"} for path, kind in kinds.items()])
    (folder / "tokenizer.model").write_bytes(spm(pieces))
    added = {
        "0": {"content": "<pad>", "special": True},
        "4": {"content": "<mask>", "special": False},
        "5": {"content": "\n\n", "special": False},
        "999999": {"content": "<image>", "special": True},
    }
    write.json(folder / "tokenizer_config.json", {"added_tokens_decoder": added})
    config = {
        "architectures": ["Gemma3TextModel"],
        "use_bidirectional_attention": True,
        "bos_token_id": 2,
        "eos_token_id": 1,
        "pad_token_id": 0,
        "head_dim": size,
        "hidden_size": hidden,
        "intermediate_size": inner,
        "max_position_embeddings": 128,
        "num_attention_heads": heads,
        "num_hidden_layers": 6,
        "num_key_value_heads": 1,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "sliding_window": 32,
        "vocab_size": len(pieces) + 2,
    }
    write.json(folder / "config.json", config)
    return folder


def test_an_embeddinggemma_model_runs_after_conversion(write: Writers, tmp_path: Path) -> None:
    path = converted(write_tiny_gemma(tmp_path / "gemma", write), tmp_path / "gemma.gguf")
    found, made = metadata(path), tensors(path)
    assert np.allclose(made["output_norm.weight"].data, 1.25)
    assert found["tokenizer.ggml.tokens"][-1] == f"[PAD{len(gemma_pieces()) + 1}]"
    assert found["tokenizer.ggml.token_type"][4:6] == [3, 4]
    described = {"slug": "gemma", "role": "embed", "file": str(path), "dims": 32, "context": 128}
    embedder = LlamaEmbedder(model_entry(described), path, weights_sha256="0" * 64, threads=1)
    one, two, same = embedder.embed_documents(["abc", "jih fed", "abc"])
    assert np.array_equal(one, same)
    assert abs(one @ two) < 0.999
    embedder.close()


def test_a_gemma_without_its_two_dense_layers_is_refused(write: Writers, tmp_path: Path) -> None:
    folder = write_tiny_gemma(tmp_path / "gemma", write)
    write.json(folder / "modules.json", json.loads((folder / "modules.json").read_text())[:3])
    with pytest.raises(UnsupportedModel, match="it has 1 dense layers"):
        converted(folder, tmp_path / "out.gguf")


def bert_by_hand(folder: Path, ids: list[int]) -> Any:
    """The forward pass of a one-layer BERT with mean pooling, from the paper's definition, in float64."""
    weights = {
        name: tensor.read().astype(np.float64) for name, tensor in read_index(folder / "model.safetensors").items()
    }
    heads = json.loads((folder / "config.json").read_text())["num_attention_heads"]

    def linear(name: str, values: Any) -> Any:
        return values @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def norm(name: str, values: Any) -> Any:
        centred = values - values.mean(axis=-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-12)
        return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    def split(values: Any) -> Any:
        return values.reshape(len(ids), heads, -1).transpose(1, 0, 2)

    parts = ("word_embeddings", "position_embeddings", "token_type_embeddings")
    word, position, kind = (weights[f"embeddings.{part}.weight"] for part in parts)
    hidden = norm("embeddings.LayerNorm", word[ids] + position[: len(ids)] + kind[0])
    layer = "encoder.layer.0"
    query, key, value = (split(linear(f"{layer}.attention.self.{name}", hidden)) for name in ("query", "key", "value"))
    scores = np.exp(query @ key.transpose(0, 2, 1) / np.sqrt(query.shape[-1]))
    attended = (scores / scores.sum(axis=-1, keepdims=True) @ value).transpose(1, 0, 2).reshape(len(ids), -1)
    hidden = norm(f"{layer}.attention.output.LayerNorm", hidden + linear(f"{layer}.attention.output.dense", attended))
    inner = linear(f"{layer}.intermediate.dense", hidden)
    gelu = inner * 0.5 * (1 + np.vectorize(math.erf)(inner / math.sqrt(2)))
    hidden = norm(f"{layer}.output.LayerNorm", hidden + linear(f"{layer}.output.dense", gelu))
    pooled = hidden.mean(axis=0)
    return pooled / np.linalg.norm(pooled)


@pytest.mark.parametrize(("kind", "closeness"), [("f32", 0.99999), ("f16", 0.9999), ("q8_0", 0.999)])
def test_a_converted_model_computes_what_its_architecture_defines(
    kind: Conversion, closeness: float, tiny_folder: Path, tmp_path: Path
) -> None:
    path = converted(tiny_folder, tmp_path / "tiny.gguf", kind)
    vocabulary = json.loads((tiny_folder / "tokenizer.json").read_text())["model"]["vocab"]
    ids = [vocabulary[token] for token in ("[CLS]", "c", "##a", "##b", "q", "[SEP]")]
    described = {"slug": "tiny", "role": "embed", "file": str(path), "dims": 32, "context": 64}
    embedder = LlamaEmbedder(model_entry(described), path, weights_sha256="0" * 64, threads=1)
    assert embedder.embed_documents(["Cab q"])[0] @ bert_by_hand(tiny_folder, ids) > closeness
    embedder.close()
