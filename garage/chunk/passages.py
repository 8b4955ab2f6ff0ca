"""From a document's canonical mirror to its passages: which splitting serves which kind of document."""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from garage.chunk.headings import markdown_headings
from garage.chunk.languages import LANGUAGES, MARKDOWN, PROSE
from garage.chunk.records import Chunk, Chunked, ChunkSettings
from garage.chunk.sections import Section, sections
from garage.chunk.splitters import Span, Splitter
from garage.chunk.tabular import sheet_headings, split_rows

# A signature is stored with every passage, and passages under another one are made again. So whatever changes where a
# splitting cuts, a separator included, must change its version here ("", then "/v2", ...).
VERSIONS: Mapping[str, str] = MappingProxyType(
    {
        "recursive": "",
        "markdown-header+recursive": "/v2",
        "code": "",
        "tabular": "",
    }
)

CODE = "code:"
ANY_LANGUAGE = "text"
CHARACTERS_PER_TOKEN = 4

_DEFAULTS = ChunkSettings()


def signature(kind: str, settings: ChunkSettings) -> str:
    """The name of the splitting that documents of this kind get, as stored with each passage.

    Raises:
        ValueError: `kind` is none of prose, markdown, tabular and code:<language>.
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
    raise ValueError(f"{kind!r} is no kind of document: it is prose, markdown, tabular or code:<language>")


def chunk(content: str, *, kind: str, body_start: int = 0, settings: ChunkSettings = _DEFAULTS) -> Chunked:
    """Cut a canonical mirror into passages, in time proportional to its length.

    Every passage equals its slice of `content`, holds something else than white space and adds something to its
    neighbours. Together the passages hold everything in `content[body_start:]` but white space, unless `max_chunks`
    cut them off. `body_start` is the beginning of a line: what stands before it (front matter) is in no passage.

    Raises:
        ValueError: an unknown `kind`, or a `body_start` outside of `content`.
    """
    if not 0 <= body_start <= len(content):
        raise ValueError(f"body_start {body_start} lies outside of a text of {len(content)} characters")
    chunker = signature(kind, settings)
    made: list[Chunk] = []
    truncated = 0
    seen = line = 0  # `line` line feeds in content[:seen]
    for (start, end), path in _passages(content, kind, body_start, settings):
        if len(made) == settings.max_chunks:
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
            )
        )
    return Chunked(tuple(made), truncated)


def _passages(content: str, kind: str, start: int, settings: ChunkSettings) -> Iterator[tuple[Span, str | None]]:
    """The span and heading path of each passage. A section's passages share nothing with the next section's."""
    if kind == "tabular":
        for sheet in sections(content, start, sheet_headings(content, start)):
            for span in split_rows(content, sheet.start, sheet.end, settings.size):
                yield span, sheet.path
        return
    parts: Iterable[Section] = (Section(start, len(content)),)
    if kind == "markdown":
        parts = sections(content, start, markdown_headings(content, start))
        splitter = Splitter(MARKDOWN, settings.size, settings.overlap)
    elif kind == "prose":
        splitter = Splitter(PROSE, settings.size, settings.overlap)
    else:
        separators = LANGUAGES[_table(kind.removeprefix(CODE))]
        splitter = Splitter(separators, settings.code_size, settings.code_overlap)
    for part in parts:
        for span in _without_repeats(splitter.split(content, part.start, part.end)):
            yield span, part.path


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
