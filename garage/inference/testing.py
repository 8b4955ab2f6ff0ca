"""An embedder without a model, for tests of everything but embedding."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_WORD = re.compile(r"\w+")


class HashEmbedder:
    """Adds up a fixed vector of signs for every word: texts that share words are near, always and everywhere alike.

    An `Embedder` that needs no file and no time. It knows nothing of meaning, so no test of search quality or of the
    embedding stage's speed may use it.
    """

    def __init__(self, *, slug: str = "hash", dims: int = 32) -> None:
        self.slug = slug
        self.dims = dims
        self.fingerprint = hashlib.sha256(f"words hashed to {dims} dimensions".encode()).hexdigest()

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of `texts`: (len(texts), dims), L2-normalised."""
        return np.array([self.embed_query(text) for text in texts], np.float32).reshape(len(texts), self.dims)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Vector of `text`, (dims,), L2-normalised; the first axis for a text without words."""
        total = np.zeros(self.dims, np.float32)
        for word in _WORD.findall(text.casefold()):
            digest = hashlib.shake_128(word.encode("utf-8", "replace")).digest(-(-self.dims // 8))
            total += np.unpackbits(np.frombuffer(digest, np.uint8), count=self.dims) * np.float32(2) - np.float32(1)
        if not total.any():
            total[0] = 1.0
        unit: NDArray[np.float32] = total / np.linalg.norm(total)
        return unit

    def close(self) -> None:
        """Nothing to free."""
