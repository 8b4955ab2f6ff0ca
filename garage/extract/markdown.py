"""Markdown with YAML front matter.

The front matter stays in the mirror, so that its lines are those of the file, and is parsed into metadata; the body
begins behind it. What cannot be parsed as front matter is body: nothing of a file is ever lost to a typing error.
"""

import re
from collections.abc import Iterator, Mapping

from garage.config import Extraction
from garage.extract.mirror import JSON, clean_line, clean_metadata
from garage.extract.model import Extracted, kind_of
from garage.extract.text import verbatim

NAME = "markdown"
LIBRARIES = ("PyYAML", "charset-normalizer")
SETTINGS: tuple[str, ...] = ()
TOOLS: tuple[str, ...] = ()
SUFFIXES = dict.fromkeys((".md", ".markdown", ".mdown", ".mkd", ".mkdn", ".mdx", ".qmd", ".rmd"), "markdown")

_FRONT_MATTER = 64 * 1024  # code points
_DEPTH = 32
_TITLE_LINES = 2_000
_OPENING = re.compile(r"---[ \t]*\n")
_CLOSING = re.compile(r"^(?:---|\.\.\.)[ \t]*$", re.MULTILINE)
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}#[ \t]+(.*)")
_UNDERLINE = re.compile(r" {0,3}=+[ \t]*$")
_LINK = re.compile(r"!?\[([^\[\]]*)\](?:\([^()]*\)|\[[^\[\]]*\])")
_ATTRIBUTES = re.compile(r"[ \t]*\{[#.][^{}]*\}$")


class _Refused(ValueError):
    """Front matter that will not be parsed: an alias, which can grow without bound, or nesting beyond all reason."""


def extract(raw: bytes, *, name: str, settings: Extraction) -> Extracted:
    """Return the text as it stands, with `meta.front_matter` where it has any.

    The title is the front matter's, else the first heading of the first level. `meta.author` repeats the front matter's
    author.

    Raises:
        Unsupported: it is no text at all.
    """
    del settings
    plain = verbatim(raw, kind_of(name, SUFFIXES, "markdown"))
    found, body_start, warning = _front_matter(plain.content)
    meta = dict(plain.meta)
    title = None
    if found is not None:
        meta["front_matter"] = found
        said = found.get("title")
        title = clean_line(str(said) if isinstance(said, int | float) else said)
        if author := _author(found):
            meta["author"] = author
    return Extracted(
        content=plain.content,
        kind=plain.kind,
        title=title or _first_heading(plain.content, body_start),
        meta=meta,
        body_start=body_start,
        warnings=(*plain.warnings, *([warning] if warning else [])),
    )


def _front_matter(mirror: str) -> tuple[dict[str, JSON] | None, int, str | None]:
    """The parsed block, the offset of the line behind it, and what was wrong with it; None and 0 when there is none."""
    opening = _OPENING.match(mirror)
    closing = _CLOSING.search(mirror, opening.end(), _FRONT_MATTER) if opening else None
    if opening is None or closing is None:
        return None, 0, None
    try:
        found = _yaml(mirror[opening.end() : closing.start()])
    except ValueError as error:
        return None, 0, f"the front matter was left as text: {' '.join(str(error).split())[:200]}"
    if found is None:
        found = {}
    if not isinstance(found, Mapping):
        return None, 0, None  # a text between two rules
    cleaned = clean_metadata(found)
    return (cleaned if isinstance(cleaned, dict) else {}), min(closing.end() + 1, len(mirror)), None


def _yaml(text: str) -> object:
    """Parse YAML with the safe types only.

    Raises:
        ValueError: it is no YAML, or is refused.
    """
    import yaml

    safe = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    plain = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        depth = 0
        for event in yaml.parse(text, Loader=safe):
            if isinstance(event, yaml.AliasEvent):
                raise _Refused("it uses a YAML alias")
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _DEPTH:
                raise _Refused("it is nested too deeply")
        try:
            return yaml.load(text, Loader=safe)  # noqa: S506 - a safe loader
        except (ValueError, TypeError, OverflowError):
            # A date such as 0000-00-00, or a key that Python cannot use: every value is a string then.
            return yaml.load(text, Loader=plain)  # noqa: S506 - makes strings, lists and mappings only
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
    except TypeError as error:
        raise ValueError(str(error)) from error


def _author(front_matter: Mapping[str, JSON]) -> str | None:
    said = front_matter.get("author") or front_matter.get("authors")
    names = said if isinstance(said, list) else [said]
    return ", ".join(name for name in map(clean_line, names) if name) or None


def _first_heading(mirror: str, start: int) -> str | None:
    """The text of the first heading of level one, both ways of writing it, outside of fenced code."""
    fence = ""
    before = ""
    for line in _lines(mirror, start):
        marks = _FENCE.match(line)
        if fence:
            if marks and marks[1].startswith(fence) and not line[marks.end() :].strip():
                fence = ""
            continue
        if marks:
            fence, before = marks[1], ""
            continue
        if heading := _HEADING.match(line):
            if title := _unmarked(heading[1]):
                return title
        elif before and _UNDERLINE.match(line):
            return _unmarked(before)
        before = line if line.strip() and not line.startswith(("    ", "\t", ">", "#", "|", "- ", "* ")) else ""
    return None


def _lines(mirror: str, start: int) -> Iterator[str]:
    for _ in range(_TITLE_LINES):
        end = mirror.find("\n", start)
        if end < 0:
            return
        yield mirror[start : min(end, start + 2_000)]
        start = end + 1


def _unmarked(heading: str) -> str | None:
    """A heading without what marks it up: links, emphasis, code, an identifier behind it."""
    heading = heading.strip()
    without_closing = heading.rstrip("#")
    if without_closing[-1:] in ("", " ", "\t"):
        heading = without_closing.rstrip()
    text = _LINK.sub(r"\1", _ATTRIBUTES.sub("", heading))
    return clean_line(re.sub(r"[*`]+|(?<!\w)_+|_+(?!\w)", "", text))
