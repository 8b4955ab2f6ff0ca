"""Embedding in this process with llama.cpp.

The settings are the fastest measured on small processors: one text a decode (attention is computed over everything in
a batch, so packing texts together is quadratic work), flash attention, and one single-threaded context a core over one
shared model. A text's vector is therefore the same whatever it is embedded with.
"""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from garage.inference import native
from garage.inference.catalogue import ModelEntry
from garage.inference.embedder import fingerprint, format_query
from garage.inference.errors import ModelUnusable

_CONTEXT_STEP = 256
"""llama.cpp aborts the process on some context sizes that are not multiples of this."""

_POOLING = {"mean": 1, "cls": 2, "last": 3}
"""llama_pooling_type, for an entry that overrides what its file says."""

Tokens = NDArray[np.int32]
Vector = NDArray[np.float32]


class LlamaEmbedder:
    """A GGUF embedding model, loaded. Safe to share between threads; see `garage.inference.embedder.Embedder`.

    A batch uses all its contexts, so batches run one after the other. Queries have a context of their own and never
    wait for a batch. Contexts are made when they are first needed.
    """

    def __init__(self, entry: ModelEntry, path: Path, *, weights_sha256: str, threads: int = 0) -> None:
        """Load `path` as `entry` describes it; `threads` texts are embedded at once.

        0 stands for one a core, or fewer when the contexts would take more than a quarter of the machine's memory;
        then each of them uses several cores.

        Raises `EngineMissing`, and `ModelUnusable` for a file that cannot be loaded or contradicts its entry.
        """
        self.slug = entry.slug
        self.dims = entry.stored_dims
        self.fingerprint = fingerprint(entry, weights_sha256)
        self._entry = entry
        self._model = _Model(entry, path)
        self._parallel, self._cores_each = _share_out(threads, self._model.context_bytes)
        self._query_lock = threading.Lock()
        self._query_context: _Context | None = None
        self._batch_lock = threading.Lock()
        self._batch_contexts: list[_Context] = []
        self._pool = ThreadPoolExecutor(self._parallel, thread_name_prefix=f"embed-{entry.slug}")
        self._closed = False

    def embed_documents(self, texts: Sequence[str]) -> Vector:
        """Vectors of texts already put through `format_document`: (len(texts), dims), L2-normalised, in order."""
        vectors = np.empty((len(texts), self._model.dims), np.float32)
        # Longest first, each taken by whoever is free: the contexts then finish together.
        pending = deque(sorted(range(len(texts)), key=lambda index: len(texts[index]), reverse=True))

        def drain(context: _Context) -> None:
            while True:
                try:
                    index = pending.popleft()
                except IndexError:
                    return
                vectors[index] = context.run(self._model.tokens(texts[index]))

        with self._batch_lock:
            self._require_open()
            contexts = self._contexts(min(self._parallel, len(texts)))
            running = [self._pool.submit(drain, context) for context in contexts]
            try:
                for future in running:
                    future.result()
            except BaseException:
                # An interrupted or failed batch must not leave a context at work behind it.
                pending.clear()
                wait(running)
                raise
        return self._finished(vectors)

    def embed_query(self, text: str) -> Vector:
        """Vector of a person's words, (dims,), L2-normalised. The entry's query template is applied here."""
        with self._query_lock:
            self._require_open()
            if self._query_context is None:
                self._query_context = self._model.context(cores=1)
            vector = self._query_context.run(self._model.tokens(format_query(self._entry, text)))
        finished: Vector = self._finished(vector[np.newaxis])[0]
        return finished

    def close(self) -> None:
        """Free the model after the work under way. Harmless when closed already."""
        with self._batch_lock, self._query_lock:
            self._closed = True
            self._pool.shutdown()
            self._batch_contexts.clear()
            self._query_context = None
            self._model.close()

    def _contexts(self, count: int) -> list[_Context]:
        while len(self._batch_contexts) < count:
            self._batch_contexts.append(self._model.context(cores=self._cores_each))
        return self._batch_contexts[:count]

    def _require_open(self) -> None:
        if self._closed:
            raise RuntimeError(f"the model '{self.slug}' is closed")

    def _finished(self, vectors: Vector) -> Vector:
        """The first `dims` numbers of each vector, at length one."""
        kept = vectors[:, : self.dims]
        if not np.isfinite(kept).all():
            raise ModelUnusable(self.slug, str(self._model.path), "it computes vectors that are not numbers")
        lengths: Vector = np.maximum(np.linalg.norm(kept, axis=1, keepdims=True), np.float32(1e-12))
        return kept / lengths


class _Model:
    """Weights and vocabulary, shared by the contexts."""

    def __init__(self, entry: ModelEntry, path: Path) -> None:
        self.path = path
        self._entry = entry
        self._lib = lib = native.library()
        native.forget_errors()
        handle = lib.llama_model_load_from_file(os.fsencode(path), lib.llama_model_default_params())
        if handle is None:
            raise ModelUnusable(entry.slug, str(path), f"it does not load: {native.first_error()}")
        self._handles = _Handles(lib, handle)
        # At exit the system takes the memory back; freeing it then could pull it from under a running thread.
        weakref.finalize(self, self._handles.free).atexit = False
        self._handle = handle
        self._vocabulary = lib.llama_model_get_vocab(handle)
        self.dims = int(lib.llama_model_n_embd_out(handle))
        self._require_agreement(int(lib.llama_model_n_ctx_train(handle)))
        # What a context grows to: llama.cpp keeps room for a score of every word for every token, also for models that
        # compute none. A GiB for 1,024 tokens of EmbeddingGemma.
        self.context_bytes = 4 * int(lib.llama_vocab_n_tokens(self._vocabulary)) * entry.context
        self._closing = self._closing_tokens()

    def tokens(self, text: str) -> Tokens:
        """The model's input for `text`, at most the entry's context long; what closes a sequence is never cut off."""
        tokens = self._tokenize(text, special=True)
        limit = self._entry.context
        if len(tokens) <= limit:
            return tokens
        return np.concatenate([tokens[: limit - len(self._closing)], self._closing])

    def context(self, *, cores: int) -> _Context:
        """A new context that computes on `cores` threads."""
        lib = self._lib
        params = lib.llama_context_default_params()
        size = -(-self._entry.context // _CONTEXT_STEP) * _CONTEXT_STEP
        # An encoder needs its whole input in one micro-batch, and pooling its whole sequence in one batch.
        params.n_ctx = params.n_batch = params.n_ubatch = size
        params.n_seq_max = 1
        params.n_threads = params.n_threads_batch = cores
        params.embeddings = True
        params.flash_attn_type = lib.LLAMA_FLASH_ATTN_TYPE_AUTO  # on wherever the backend has it
        if self._entry.pooling != "file":
            params.pooling_type = _POOLING[self._entry.pooling]
        native.forget_errors()
        handle = lib.llama_init_from_model(self._handle, params)
        if handle is None:
            raise self._unusable(f"no context of {size} tokens could be made: {native.first_error()}")
        self._handles.contexts.append(handle)
        if lib.llama_pooling_type(handle) not in _POOLING.values():
            raise self._unusable(
                "it does not say how to pool token vectors into one, so it is probably not an embedding model",
                "Choose an embedding model, or set `pooling` in its entry.",
            )
        return _Context(self, lib, handle)

    def close(self) -> None:
        self._handles.free()

    def _unusable(self, reason: str, hint: str = "") -> ModelUnusable:
        return ModelUnusable(self._entry.slug, str(self.path), reason, hint)

    def _require_agreement(self, trained_context: int) -> None:
        """Refuse an entry that the file contradicts: too long an input aborts the whole process inside llama.cpp."""
        entry = self._entry
        if self.dims != entry.dims:
            raise self._unusable(
                f"its vectors have {self.dims} dimensions, its entry says {entry.dims}", f"Set `dims` to {self.dims}."
            )
        if entry.context > trained_context:
            raise self._unusable(
                f"it reads at most {trained_context} tokens, its entry says {entry.context}",
                f"Set `context` to {trained_context} or less.",
            )

    def _tokenize(self, text: str, *, special: bool) -> Tokens:
        # A lone surrogate (from a file name, say) has no UTF-8; it becomes a question mark.
        raw = text.encode("utf-8", errors="replace")
        room = len(raw) + 16  # a token is at least a byte, special ones aside
        while True:
            buffer = np.empty(room, np.int32)
            pointer = buffer.ctypes.data_as(ctypes.POINTER(ctypes.c_int32))
            # Never parse_special: "[SEP]" in somebody's text is text.
            count = self._lib.llama_tokenize(self._vocabulary, raw, len(raw), pointer, room, special, False)
            if count >= 0:
                return buffer[:count]
            room = -count

    def _closing_tokens(self) -> Tokens:
        """The special tokens that this vocabulary puts after a text, found by looking at one."""
        plain, whole = self._tokenize("a", special=False), self._tokenize("a", special=True)
        for start in range(len(whole) - len(plain) + 1):
            if np.array_equal(whole[start : start + len(plain)], plain):
                return whole[start + len(plain) :]
        return whole[:0]


class _Context:
    """One computation at a time: whoever calls `run` holds the lock that goes with it."""

    def __init__(self, model: _Model, lib: ModuleType, handle: int) -> None:
        self._model = model  # keeps the weights alive
        self._lib = lib
        self._handle = handle
        self._memory = lib.llama_get_memory(handle)

    def run(self, tokens: Tokens) -> Vector:
        """The pooled vector of one sequence, (dims,), not normalised."""
        lib = self._lib
        if self._memory is not None:
            lib.llama_memory_clear(self._memory, False)
        batch = lib.llama_batch_get_one(tokens.ctypes.data_as(ctypes.POINTER(ctypes.c_int32)), len(tokens))
        native.forget_errors()
        status = lib.llama_decode(self._handle, batch)
        pooled = lib.llama_get_embeddings_seq(self._handle, 0) if status == 0 else None
        if not pooled:
            raise RuntimeError(
                f"llama.cpp could not embed {len(tokens)} tokens (status {status}): {native.first_error()}"
            )
        return np.ctypeslib.as_array(pooled, (self._model.dims,)).copy()


class _Handles:
    """What has to be given back to llama.cpp, contexts before their model."""

    def __init__(self, lib: ModuleType, model: int) -> None:
        self._lib = lib
        self._model: int | None = model
        self.contexts: list[int] = []

    def free(self) -> None:
        while self.contexts:
            self._lib.llama_free(self.contexts.pop())
        if self._model is not None:
            self._lib.llama_model_free(self._model)
            self._model = None


def _share_out(threads: int, context_bytes: int) -> tuple[int, int]:
    """How many contexts, and how many threads for each: what was asked for, or what this machine can carry."""
    if threads:
        return threads, 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    contexts = max(1, min(cores, memory // 4 // context_bytes))
    return contexts, cores // contexts
