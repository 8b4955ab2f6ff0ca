from __future__ import annotations

import numpy as np

from garage.inference.embedder import Embedder
from garage.inference.testing import HashEmbedder


def test_texts_that_share_words_are_near() -> None:
    embedder: Embedder = HashEmbedder()
    red, also_red, other = embedder.embed_documents(["the red door", "The red DOOR!", "gravity of planets"])
    assert red @ also_red > 0.999
    assert red @ other < 0.8
    assert red @ embedder.embed_query("red door") > 0.7


def test_vectors_are_the_same_in_every_process() -> None:
    signs = np.sign(HashEmbedder(dims=8).embed_query("stable"))
    assert signs.tolist() == [1, 1, -1, 1, 1, -1, 1, 1]


def test_no_texts_and_texts_without_words_have_the_right_shape() -> None:
    embedder = HashEmbedder(dims=16)
    assert embedder.embed_documents([]).shape == (0, 16)
    vectors = embedder.embed_documents(["", "...", "日本語"])
    assert vectors.shape == (3, 16)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)
