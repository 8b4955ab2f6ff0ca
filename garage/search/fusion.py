"""Reciprocal rank fusion: only each side's ranking counts, for distances and term scores share no scale."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

MatchedBy = Literal["both", "vector", "keyword"]


@dataclass(frozen=True, slots=True)
class Fused:
    """A candidate: its score is the sum of 1 / (k + rank) over the sides that found it; ranks count from 1."""

    chunk_id: int
    score: float
    vector_rank: int | None
    keyword_rank: int | None

    @property
    def matched_by(self) -> MatchedBy:
        if self.vector_rank is not None and self.keyword_rank is not None:
            return "both"
        return "vector" if self.vector_rank is not None else "keyword"


def fuse(vector: Sequence[int], keyword: Sequence[int], *, k: int = 60) -> list[Fused]:
    """Fuses two rankings of chunk ids, best first; ties go to the lower id."""
    vector_ranks = {chunk_id: rank for rank, chunk_id in enumerate(vector, 1)}
    keyword_ranks = {chunk_id: rank for rank, chunk_id in enumerate(keyword, 1)}
    fused = [
        Fused(
            chunk_id,
            sum(1.0 / (k + rank) for rank in (vector_ranks.get(chunk_id), keyword_ranks.get(chunk_id)) if rank),
            vector_ranks.get(chunk_id),
            keyword_ranks.get(chunk_id),
        )
        for chunk_id in vector_ranks.keys() | keyword_ranks.keys()
    ]
    return sorted(fused, key=lambda hit: (-hit.score, hit.chunk_id))
