"""The settings of chunking and what comes out of it."""

from dataclasses import dataclass

from garage.chunk.errors import ChunkSettingsInvalid
from garage.passage import Part


@dataclass(frozen=True, slots=True)
class ChunkSettings:
    """Sizes in code points; `max_chunks` is the most passages that one document may have.

    Raises:
        ChunkSettingsInvalid: a size or `max_chunks` below 1, an overlap below 0 or not smaller than its size.
    """

    size: int = 1000
    overlap: int = 150
    code_size: int = 1200
    code_overlap: int = 100
    max_chunks: int = 1500

    def __post_init__(self) -> None:
        for name in ("size", "code_size", "max_chunks"):
            value = getattr(self, name)
            if value < 1:
                raise ChunkSettingsInvalid(
                    f"chunking: {name} is {value}.", hint="Give it a value of 1 or more.", setting=name, value=value
                )
        for name, limit in (("overlap", self.size), ("code_overlap", self.code_size)):
            value = getattr(self, name)
            if not 0 <= value < limit:
                raise ChunkSettingsInvalid(
                    f"chunking: {name} is {value}, beside a size of {limit}.",
                    hint=f"Give it a value from 0 to {limit - 1}.",
                    setting=name,
                    value=value,
                )


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage: always `text == content[start:end]`, with no white space at either end.

    `ord` counts from 0. Offsets are code points into the document's canonical mirror; lines count from 1 and include
    the last. `heading_path` names the section of a Markdown document or sheet ("A > B > C"), None outside of any.
    `token_count` is an estimate, four code points a token. `chunker` is the signature of the splitting.
    `part` is what it was cut from where a document has parts.
    """

    ord: int
    text: str
    start: int
    end: int
    start_line: int
    end_line: int
    heading_path: str | None
    token_count: int
    chunker: str
    part: Part | None = None


@dataclass(frozen=True, slots=True)
class Chunked:
    """A document's passages in order, and how many more there would be without the limit."""

    chunks: tuple[Chunk, ...]
    truncated: int
