"""JSON Lines: exports of notes, conversations and records, a value a line.

Read as text and not as code, because what people have in this form is what some program exported for them; measurements
and logs in it are for the quality gate to refuse.
"""

import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice

from garage.config import Extraction
from garage.extract.mirror import canonical, clean_line, decode, looks_binary
from garage.extract.model import Extracted, Malformed, Unsupported

NAME = "json_lines"
LIBRARIES = ("charset-normalizer",)
SETTINGS: tuple[str, ...] = ()
TOOLS: tuple[str, ...] = ()
SUFFIXES = dict.fromkeys((".jsonl", ".ndjson"), "markdown")

_TITLES = ("title", "subject", "headline", "name", "summary")
_TITLE = 200  # code points; a longer one is a text
_SHORT = 200  # code points of a value that stands beside its key; a longer one is a paragraph below it
_DEPTH = 8  # names of what is inside of something; what lies deeper stands as it was written
_SAMPLE = 200  # records that decide whether records have titles


def extract(raw: bytes, *, name: str, settings: Extraction) -> Extracted:
    """Return each record as lines `key: value`, long texts as paragraphs; one with a title becomes a section.

    A line that is no JSON costs itself only.

    Raises:
        Unsupported: it is no text at all.
        Malformed: no line is JSON.
    """
    del name, settings
    if looks_binary(raw):
        raise Unsupported("it is a binary file with the name of JSON Lines")
    text, encoding = decode(raw)
    parsed = _Lines(text.lstrip("\ufeff"))
    records = iter(parsed)
    first = list(islice(records, _SAMPLE))
    if not first:
        raise Malformed("no line of it is JSON")
    titled = sum(_title(record) is not None for record in first) * 2 >= len(first)
    blocks = (_block(record, number, titled=titled) for number, record in enumerate(chain(first, records), 1))
    content = canonical("\n\n".join(block for block in blocks if block))
    return Extracted(
        content=content,
        kind="markdown",
        meta={"records": parsed.good, **({} if encoding in {"utf-8", "utf-8-sig"} else {"encoding": encoding})},
        warnings=(f"lines that are no JSON, left out: {parsed.bad}",) if parsed.bad else (),
    )


@dataclass(slots=True)
class _Lines:
    """The records of a text, read one by one, since parsed they take many times the space; and how many there were."""

    text: str
    good: int = 0
    bad: int = 0

    def __iter__(self) -> Iterator[object]:
        for line in io.StringIO(self.text, newline="\n"):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                self.bad += 1
                continue
            self.good += 1
            yield record


def _title(record: object) -> tuple[str, str] | None:
    """The key and the words of what names a record; None for one without a name."""
    if isinstance(record, Mapping):
        for key in _TITLES:
            value = record.get(key)
            if isinstance(value, str) and len(value) <= _TITLE and (title := clean_line(value)):
                return key, title
    return None


def _block(record: object, number: int, *, titled: bool) -> str:
    named = _title(record) if titled else None
    if named and isinstance(record, Mapping):
        record = {key: value for key, value in record.items() if key != named[0]}
    lines = "\n".join(_lines("", record, _DEPTH)).strip("\n")
    if not titled:
        return lines
    return f"## {named[1] if named else f'Record {number}'}\n\n{lines}"


def _lines(key: str, value: object, depth: int) -> Iterator[str]:
    """The lines of a value under its key; what is inside of something is named by both keys, "author.name"."""
    if value is None or value in ("", [], {}):
        return
    if isinstance(value, Mapping) and depth:
        for inner, item in value.items():
            yield from _lines(f"{key}.{_label(inner)}" if key else _label(inner), item, depth - 1)
    elif isinstance(value, list) and all(isinstance(item, bool | int | float) or _is_short(item) for item in value):
        yield _beside(key, ", ".join(map(_scalar, value)))
    elif isinstance(value, list) and depth:
        for item in value:
            yield from _lines(key, item, depth - 1)
    elif isinstance(value, Mapping | list):
        yield _beside(key, _written(value))
    elif isinstance(value, str) and not _is_short(value):
        yield f"\n{key}:\n" if key else ""
        yield from (_plain(line) for line in canonical(value).strip().split("\n"))
        yield ""
    else:
        yield _beside(key, _scalar(value))


def _is_short(value: object) -> bool:
    return isinstance(value, str) and len(value) <= _SHORT and "\n" not in value.strip()


def _beside(key: str, value: str) -> str:
    return f"{key}: {value}" if key else _plain(value)


def _scalar(value: object) -> str:
    if isinstance(value, str):
        return " ".join(value.split())
    return json.dumps(value)


def _written(value: object) -> str:
    """As JSON, of what is nested too deep to be named."""
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:  # what was read can be too deep to be written
        return "..."


def _label(key: object) -> str:
    return " ".join(str(key).split()) or "-"


def _plain(line: str) -> str:
    """A line that begins no heading: the sections of this document are its records."""
    return f"\\{line}" if line.lstrip(" ").startswith("#") else line
