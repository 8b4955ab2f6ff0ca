"""Cutting a document at its headings, each part with the path of headings above it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from garage.chunk.headings import Heading

PATH_SEPARATOR = " > "


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a document: `content[start:end]`, below the headings of `path` ("A > B > C"), None above the first."""

    start: int
    end: int
    path: str | None = None


def sections(content: str, start: int, headings: Iterable[Heading]) -> Iterator[Section]:
    """Cut `content[start:]` in front of each heading.

    The sections leave nothing out and overlap nowhere. A heading that has no text of its own before a deeper one
    follows begins that one's section, since by itself it would be a passage that says nothing.
    """
    above: list[Heading] = []
    for heading in headings:
        if not (above and heading.level > above[-1].level and not content[above[-1].end : heading.start].strip()):
            if heading.start > start:
                yield Section(start, heading.start, _path(above))
            start = heading.start
        while above and above[-1].level >= heading.level:
            above.pop()
        above.append(heading)
    if start < len(content):
        yield Section(start, len(content), _path(above))


def _path(above: list[Heading]) -> str | None:
    return PATH_SEPARATOR.join(heading.title for heading in above if heading.title) or None
