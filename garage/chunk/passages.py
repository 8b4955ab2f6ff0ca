"""From a document's canonical mirror to its passages: which splitting serves which kind of document."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType

from garage.chunk.headings import markdown_headings
from garage.chunk.languages import LANGUAGES, MARKDOWN, PROSE
from garage.chunk.records import Chunk, Chunked, ChunkSettings
from garage.chunk.sections import Section, sections
from garage.chunk.splitters import Span, Splitter
from garage.chunk.tabular import sheet_headings, split_rows
from garage.passage import Part

# A signature is stored with every passage, and passages under another one are made again. So whatever changes where a
# splitting cuts, a separator included, must change its version here ("", then "/v2", ...).
VERSIONS: Mapping[str, str] = MappingProxyType(
    {
        "recursive": "",
        "markdown-header+recursive": "/v2",
        "code": "",
        "tabular": "",
        "message": "",
    }
)

CODE = "code:"
ANY_LANGUAGE = "text"
CHARACTERS_PER_TOKEN = 4

_DEFAULTS = ChunkSettings()
Cut = tuple[Span, str | None, Part | None]
"""The span of a passage, the heading path above it and the part that it belongs to."""


def signature(kind: str, settings: ChunkSettings) -> str:
    """The name of the splitting that documents of this kind get, as stored with each passage.

    Raises:
        ValueError: `kind` is none of prose, markdown, tabular, conversation and code:<language>.
    """
    name, _, language = kind.partition(":")
    if name == "code" and language:
        return f"code{VERSIONS['code']}:{_table(language)}:{settings.code_size}/{settings.code_overlap}"
    match kind:
        case "prose":
            return f"recursive{VERSIONS['recursive']}:{settings.size}/{settings.overlap}"
        case "markdown":
            header = "markdown-header+recursive"
            return f"{header}{VERSIONS[header]}:{settings.size}/{settings.overlap}"
        case "tabular":
            return f"tabular{VERSIONS['tabular']}:{settings.size}"
        case "conversation":
            return f"message{VERSIONS['message']}:{settings.size}/{settings.overlap}"
    known = "prose, markdown, tabular, conversation or code:<language>"
    raise ValueError(f"{kind!r} is no kind of document: it is {known}")


def chunk(
    content: str,
    *,
    kind: str,
    body_start: int = 0,
    parts: Sequence[Part] = (),
    settings: ChunkSettings = _DEFAULTS,
) -> Chunked:
    """Cut a canonical mirror into passages, in time proportional to its length.

    Every passage equals its slice of `content`, holds something else than white space and adds something to its
    neighbours. Together the passages hold everything in `content[body_start:]` but white space, unless `max_chunks`
    cut them off; conversations are never cut off. `body_start` is the beginning of a line: what stands before it (front
    matter) is in no passage. Where there are `parts`, only they are cut, each on its own: one that is short enough is
    one passage.

    Raises:
        ValueError: an unknown `kind`, a `body_start` outside of `content`, parts that overlap or lie outside of it.
    """
    if not 0 <= body_start <= len(content):
        raise ValueError(f"body_start {body_start} lies outside of a text of {len(content)} characters")
    ends = [0, *(edge for part in parts for edge in (part.start, part.end)), len(content)]
    if any(before > after for before, after in pairwise(ends)):
        raise ValueError("the parts of a text lie in it one behind the other")
    chunker = signature(kind, settings)
    made: list[Chunk] = []
    truncated = 0
    seen = line = 0  # `line` line feeds in content[:seen]
    cut = _parts(content, kind, parts, settings) if parts else _whole(content, kind, body_start, settings)
    # The cap keeps one file from filling the index; of a thread it would drop what was said last.
    cap = None if kind == "conversation" else settings.max_chunks
    for (start, end), path, part in cut:
        if len(made) == cap:
            truncated += 1
            continue
        line += content.count("\n", seen, start)
        seen = start
        text = content[start:end]
        made.append(
            Chunk(
                ord=len(made),
                text=text,
                start=start,
                end=end,
                start_line=line + 1,
                end_line=line + 1 + text.count("\n"),
                heading_path=path,
                token_count=-(-len(text) // CHARACTERS_PER_TOKEN),
                chunker=chunker,
                part=part,
            )
        )
    return Chunked(tuple(made), truncated)


def _parts(content: str, kind: str, parts: Sequence[Part], settings: ChunkSettings) -> Iterator[Cut]:
    """The passages of each part."""
    splitter = Splitter(MARKDOWN if kind == "markdown" else PROSE, settings.size, settings.overlap)
    for part in parts:
        for span in _without_repeats(splitter.split(content, part.start, part.end)):
            yield span, None, part


def _whole(content: str, kind: str, start: int, settings: ChunkSettings) -> Iterator[Cut]:
    """The passages of a text without parts. A section's passages share nothing with the next section's."""
    if kind == "tabular":
        for sheet in sections(content, start, sheet_headings(content, start)):
            for span in split_rows(content, sheet.start, sheet.end, settings.size):
                yield span, sheet.path, None
        return
    pieces: Iterable[Section] = (Section(start, len(content)),)
    if kind == "markdown":
        pieces = sections(content, start, markdown_headings(content, start))
        splitter = Splitter(MARKDOWN, settings.size, settings.overlap)
    elif not kind.startswith(CODE):
        splitter = Splitter(PROSE, settings.size, settings.overlap)
    else:
        separators = LANGUAGES[_table(kind.removeprefix(CODE))]
        splitter = Splitter(separators, settings.code_size, settings.code_overlap)
    for piece in pieces:
        for span in _without_repeats(splitter.split(content, piece.start, piece.end)):
            yield span, piece.path, None


def _without_repeats(spans: Iterator[Span]) -> Iterator[Span]:
    """Leave out passages that lie inside a neighbour.

    They arise where all that a passage adds to its overlap is white space, at the end of nearly every text that is
    cut. Starts and ends both never decrease, so a passage lies inside its neighbour when either is the same.
    """
    held: Span | None = None
    for span in spans:
        if held is not None and held[0] < span[0] and held[1] < span[1]:
            yield held
            held = span
        elif held is None or span[1] > held[1]:
            held = span
    if held is not None:
        yield held


def _table(language: str) -> str:
    return language if language in LANGUAGES else ANY_LANGUAGE
