"""Recursive splitting: the strongest separator that occurs, weaker ones only inside pieces that are still too long.

The result is the one that langchain-text-splitters gives for the same separators (as regular expressions, kept at the
start of the piece, white space stripped), but it is computed on offsets. So a passage is a slice of the text by
construction, nothing has to be searched for afterwards, and the time is proportional to the text: every separator
reads a character once, and pieces are neither copied nor joined.
"""

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

Span = tuple[int, int]
"""Start and end of a stretch of text, in code points, the end exclusive."""


@dataclass(frozen=True, slots=True)
class Splitter:
    """Cuts text into passages of at most `size` code points that share at most `overlap` with their neighbour.

    `separators` are regular expressions, strongest first, none of which matches both an empty and a non-empty string;
    the last one is the empty string, "between any two characters".
    """

    separators: tuple[str, ...]
    size: int
    overlap: int

    def split(self, text: str, start: int, end: int) -> Iterator[Span]:
        """The passages of `text[start:end]` in order, without white space around them; none is empty."""
        for span in self._cut(text, start, end, self.separators):
            stripped = strip(text, *span)
            if stripped is not None:
                yield stripped

    def _cut(self, text: str, start: int, end: int, separators: tuple[str, ...]) -> Iterator[Span]:
        if end - start <= self.size:
            yield start, end
            return
        for level, separator in enumerate(separators):
            if not separator:
                break
            cuts = (match.start() for match in re.compile(separator).finditer(text, start, end))
            # A match at the very start cuts nothing off, so it does not count as an occurrence.
            first = next((cut for cut in cuts if cut > start), end)
            if first < end:
                yield from self._merge(text, start, chain((first,), cuts, (end,)), separators[level + 1 :])
                return
        yield from self._windows(start, end)

    def _merge(self, text: str, start: int, cuts: Iterator[int], weaker: tuple[str, ...]) -> Iterator[Span]:
        """Join the pieces that end at `cuts` while they fit; cut further those that are too long by themselves."""
        run: deque[int] = deque()  # where the pieces of the passage being filled start
        for end in cuts:
            if end - start > self.size:
                if run:
                    yield run[0], start
                    run.clear()
                yield from self._cut(text, start, end, weaker)
            else:
                if run and end - run[0] > self.size:
                    yield run[0], start
                    # The next passage begins with as many whole pieces of this one as the overlap and the size allow.
                    while run and (start - run[0] > self.overlap or end - run[0] > self.size):
                        run.popleft()
                run.append(start)
            start = end
        if run:
            yield run[0], start

    def _windows(self, start: int, end: int) -> Iterator[Span]:
        """Cut between any two characters: windows of `size` that overlap by exactly `overlap`."""
        while end - start > self.size:
            yield start, start + self.size
            start += self.size - self.overlap
        yield start, end


def strip(text: str, start: int, end: int) -> Span | None:
    """The span without the white space at its ends, or None when there is nothing else in it."""
    passage = text[start:end].rstrip()
    bare = passage.lstrip()
    return (start + len(passage) - len(bare), start + len(passage)) if bare else None
