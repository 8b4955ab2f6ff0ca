"""Subtitles as paragraphs of what is said, each with the time at which it begins.

Not word for word like other text files: a cue is a fragment of a sentence between two lines of digits, and neither
finds anything. The cues are joined until a pause, or the end of a sentence once a paragraph is long enough.
"""

import html
import io
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath

from garage.config import Extraction
from garage.extract.mirror import canonical, clean_line, decode, looks_binary
from garage.extract.model import Extracted, Malformed, Unsupported

NAME = "subtitles"
LIBRARIES = ("srt", "webvtt-py", "charset-normalizer")
SETTINGS: tuple[str, ...] = ()
TOOLS: tuple[str, ...] = ()
SUFFIXES = dict.fromkeys((".srt", ".vtt", ".sbv"), "prose")

_PAUSE = 3.0  # seconds of silence that end a paragraph
_LENGTH = 400  # code points from which on the end of a sentence ends a paragraph
_LONGEST = 900
_CONTIGUOUS = 0.1
_SENTENCE_END = re.compile(r"[.!?…。！？]['\"”’»)\]]*$")
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>|<\d[\d:.]*>|\{\\[^{}]*\}")
_TURN = re.compile(r"[-–—]\s*\S")


@dataclass(frozen=True, slots=True)
class _Cue:
    """Seconds from the beginning, and the lines shown."""

    start: float
    end: float
    lines: tuple[str, ...]


def extract(raw: bytes, *, name: str, settings: Extraction) -> Extracted:
    """Return what is said; styles, notes, positions and counters are left out.

    Raises:
        Unsupported: it is no text at all.
        Malformed: there is not one cue in it.
    """
    del settings
    if looks_binary(raw):
        raise Unsupported("it is a binary file with the name of subtitles")
    text, encoding = decode(raw)
    text = canonical(text)
    suffix = PurePath(name).suffix.lower()
    # A file is often named after the other format; only one of them has a name of its own in the first line.
    if text.startswith("WEBVTT") or suffix == ".sbv":
        cues = list(_webvtt_cues(text, "sbv" if suffix == ".sbv" and not text.startswith("WEBVTT") else "vtt"))
    else:
        cues = list(_srt_cues(text))
    if not cues:
        raise Malformed("no line of it says when something is shown")
    content = canonical("\n\n".join(_paragraphs(cues)))
    shown = text.count("-->")
    lost = f"cues that cannot be read: {shown - len(cues)}"
    return Extracted(
        content=content,
        kind="prose",
        meta={} if encoding in {"utf-8", "utf-8-sig"} else {"encoding": encoding},
        warnings=(lost,) if shown > len(cues) else (),
    )


def _srt_cues(text: str) -> Iterator[_Cue]:
    import srt  # type: ignore[import-untyped]  # it ships no type information

    logging.getLogger("srt").setLevel(logging.CRITICAL)  # it reports each damaged cue; they are counted here
    for cue in srt.parse(text, ignore_errors=True):
        yield _Cue(cue.start.total_seconds(), cue.end.total_seconds(), tuple(_lines(cue.content)))


def _webvtt_cues(text: str, form: str) -> Iterator[_Cue]:
    import webvtt

    try:
        captions = webvtt.from_buffer(io.StringIO(text), format=form)
    except webvtt.errors.MalformedFileError as error:
        raise Malformed("it is not of the format that its name says") from error
    for cue in captions.captions:
        spoken = f"{cue.voice}: {cue.raw_text}" if cue.voice else cue.raw_text
        yield _Cue(_seconds(cue.start), _seconds(cue.end), tuple(_lines(spoken)))


def _seconds(stamp: str) -> float:
    hours, minutes, seconds = stamp.split(":")
    return int(hours) * 3600 + int(minutes) * 60 + float(seconds)


def _lines(shown: str) -> Iterator[str]:
    for line in shown.splitlines():
        if visible := clean_line(html.unescape(_TAG.sub("", line))):
            yield visible


def _paragraphs(cues: list[_Cue]) -> Iterator[str]:
    """Join the lines of cues; a turn of speech keeps its line.

    Captions made while somebody speaks show each line twice, at the bottom and then moved up: what was just shown is
    not said again.
    """
    held: list[str] = []
    start = ended = 0.0
    last = ""
    length = 0
    for cue in cues:
        pause = cue.start - ended
        done = length >= _LONGEST or (length >= _LENGTH and _SENTENCE_END.search(last) is not None)
        if held and (pause > _PAUSE or done):
            yield _paragraph(start, held)
            held, length = [], 0
        for line in cue.lines:
            if line == last and pause <= _CONTIGUOUS:
                continue
            if not held:
                start = cue.start
            held.append(line)
            length += len(line) + 1
            last = line
        ended = max(ended, cue.end)
    if held:
        yield _paragraph(start, held)


def _paragraph(start: float, lines: list[str]) -> str:
    words = lines[0]
    for line in lines[1:]:
        words += ("\n" if _TURN.match(line) else " ") + line
    minutes, seconds = divmod(int(start), 60)
    hours, minutes = divmod(minutes, 60)
    return f"[{hours}:{minutes:02}:{seconds:02}] {words}"
