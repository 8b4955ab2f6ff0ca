"""Answers as text and as JSON."""

from __future__ import annotations

import dataclasses
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from garage.errors import GarageError

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_SCALES = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


def to_json(data: object) -> str:
    """`data`, records and times among it, as indented JSON."""
    return json.dumps(data, default=_plain, ensure_ascii=False, indent=2)


def error_json(error: Exception, message: str, hint: str) -> str:
    """What failed, for a program: the class and its fields beside what a person reads."""
    fields = error.fields if isinstance(error, GarageError) else {}
    return to_json({"error": {"kind": type(error).__name__, "message": message, "hint": hint, **fields}})


def _plain(value: object) -> object:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Path):
        return str(value)
    return str(value)


def printable(text: str) -> str:
    """One line without what a terminal would act on: file names and titles are other people's text."""
    return _CONTROL.sub(" ", text)


def columns(rows: Sequence[Sequence[str]], *, indent: str = "") -> Iterator[str]:
    """Rows of equal length as aligned lines; cells that are numbers stand to the right."""
    if not rows:
        return
    widths = [max(_width(row[at]) for row in rows) for at in range(len(rows[0]))]
    for row in rows:
        cells = []
        for cell, width in zip(row, widths, strict=True):
            space = " " * (width - _width(cell))
            cells.append(space + cell if re.fullmatch(r"[\d,]+", cell) else cell + space)
        yield (indent + "  ".join(cells)).rstrip()


def _width(text: str) -> int:
    """Columns that a terminal gives to `text`."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 0 if unicodedata.combining(c) else 1 for c in text)


def plural(number: int, singular: str, plural_form: str = "") -> str:
    """`3 documents`, `1 document`, `1,000 documents`."""
    return f"{number:,} {singular if number == 1 else plural_form or singular + 's'}"


def joined(parts: Iterable[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    *most, last = list(parts) or [""]
    return f"{', '.join(most)} and {last}" if most else last


def ago(moment: datetime | None, *, now: datetime | None = None) -> str:
    """How long ago something was, in one unit; `never` for None."""
    if moment is None:
        return "never"
    seconds = max(0.0, ((now or datetime.now(UTC)) - moment).total_seconds())
    return "just now" if seconds < 1 else f"{duration(seconds)} ago"


def duration(seconds: float) -> str:
    """A length of time in its largest unit."""
    for size, unit in _SCALES:
        if seconds >= size:
            return plural(int(seconds // size), unit)
    return "less than a second"
