from __future__ import annotations

from pathlib import Path

from bench.embedding import measure


def test_the_benchmark_compares_engines_that_compute_the_same(models_dir: Path) -> None:
    result = measure(texts=4, rounds=1, models=models_dir)
    assert {"garage", "bare"} <= result["chunks_per_second"].keys()
    assert min(result["chunks_per_second"].values()) > 0
    assert result["lowest_cosine"]["bare"] > 0.9999
    assert result["ratio"] > 0
    assert result["onnx"]
