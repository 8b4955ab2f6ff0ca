"""Stage 6: from a canonical mirror to passages."""

from garage.chunk.errors import ChunkSettingsInvalid
from garage.chunk.languages import LANGUAGES
from garage.chunk.passages import chunk, signature
from garage.chunk.records import Chunk, Chunked, ChunkSettings

__all__ = ["LANGUAGES", "Chunk", "ChunkSettings", "ChunkSettingsInvalid", "Chunked", "chunk", "signature"]
