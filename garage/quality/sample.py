"""The part of a text that is judged: its beginning, as much as it takes to see a pattern."""

import re
from dataclasses import dataclass, field

SAMPLE = 64 * 1024
"""Code points that are looked at first."""
WIDENING = 8
ENOUGH_LINES = 40
"""Non-blank lines that a pattern can be told from."""
LINE_LENGTH = 16 * 1024
"""Code points of a line that are looked at, so that a line of any length costs the same."""

_EMBEDDED = re.compile(r"data:[\w.+-]{1,80}/[\w.+-]{1,80}(?:;[\w.+-]{1,40}=[\w.+-]{1,40})*;base64,[A-Za-z0-9+/=]*")
_CUE = re.compile(r"\s*(?:\d+|\[?[\d:.,]+ --> [\d:.,]+.*)\s*")

# Text is measured as UTF-8, for bytes are translated and removed at the speed of memory.
_SPACE = b" \t\r\x0b\x0c"
_NO_LETTERS = bytes(b for b in range(128) if not chr(b).isalpha() and b != 0x0A)
_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_REPLACEMENT = "\ufffd".encode()


@dataclass(frozen=True, slots=True)
class Sample:
    """The non-blank lines at the beginning of a text; `text` is the same lines joined by line feeds.

    `letters` and `visible` count, a line each, what is a letter and what is not white space, in bytes of UTF-8;
    whatever lies beyond ASCII counts as letters, but for the character that stands for damage.
    """

    lines: list[str]
    text: str = field(init=False)
    encoded: bytes = field(init=False)
    letters: list[int] = field(init=False)
    visible: list[int] = field(init=False)

    def __post_init__(self) -> None:
        text = "\n".join(self.lines)
        encoded = text.encode("utf-8", "surrogatepass").replace(_REPLACEMENT, b"?")
        object.__setattr__(self, "text", text)
        object.__setattr__(self, "encoded", encoded)
        object.__setattr__(self, "letters", [*map(len, encoded.translate(None, _NO_LETTERS).split(b"\n"))])
        object.__setattr__(self, "visible", [*map(len, encoded.translate(None, _SPACE).split(b"\n"))])

    @property
    def small(self) -> bool:
        """Whether there are too few lines to tell a pattern from."""
        return len(self.lines) < ENOUGH_LINES

    def folded(self) -> bytes:
        """The text with every run of digits as a single 0."""
        folded = self.encoded.translate(_DIGITS)
        while b"00" in folded:
            folded = folded.replace(b"00", b"0")
        return folded


def sample(text: str) -> Sample:
    """The first 64 KiB of a text, eight times as much while that holds fewer than 40 lines with text.

    Left out is what stands in a person's text without being written: pictures embedded as base64, and the numbers and
    times of subtitles.
    """
    size = SAMPLE
    lines = _lines(text, size)
    while len(lines) < ENOUGH_LINES and size < len(text):
        size *= WIDENING
        lines = _lines(text, size)
    return Sample(lines)


def _lines(text: str, size: int) -> list[str]:
    part = text[:size]
    if ";base64," in part:
        part = _EMBEDDED.sub("", part)
    found = [line for line in part.split("\n") if line and not line.isspace()]
    if len(part) > LINE_LENGTH:
        found = [line[:LINE_LENGTH] for line in found]
    if " --> " in part:
        found = [line for line in found if not _CUE.fullmatch(line)]
    return found
