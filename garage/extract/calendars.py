"""Calendars: each event, task, note and busy time as a section that says in words what, when, where and with whom."""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from garage.config import Extraction
from garage.extract.mirror import JSON, canonical, clean_line, decode, looks_binary
from garage.extract.model import Extracted, NoText, Unsupported
from garage.extract.recurrence import in_words
from garage.extract.web.markup import to_markdown
from garage.extract.when import between, moment, span, zone

if TYPE_CHECKING:
    from icalendar import Component

NAME = "calendars"
LIBRARIES = ("icalendar", "selectolax", "charset-normalizer")
SETTINGS: tuple[str, ...] = ()
TOOLS: tuple[str, ...] = ()
SUFFIXES = dict.fromkeys((".ics", ".ifb", ".ical"), "markdown")

_KINDS = {"VEVENT": "Event", "VTODO": "Task", "VJOURNAL": "Note", "VFREEBUSY": "Busy times"}
_ENTRY = "VEVENT|VTODO|VJOURNAL|VFREEBUSY"
_PIECE = re.compile(
    rf"^BEGIN:({_ENTRY})\s*$(.*?)(?=^END:\1\s*$|^BEGIN:(?:{_ENTRY})\s*$|^(?:BEGIN|END):VCALENDAR\s*$|\Z)",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
_WRAPPED = "BEGIN:VCALENDAR\n{timezones}BEGIN:{kind}\n{body}END:{kind}\nEND:VCALENDAR\n"
_TIMEZONES = re.compile(r"^BEGIN:VTIMEZONE\s*$.*?^END:VTIMEZONE\s*$\n?", re.MULTILINE | re.DOTALL | re.IGNORECASE)
_NESTED = re.compile(r"^BEGIN:(\w+)\s*$.*?(?:^END:\1\s*$\n?|\Z)", re.MULTILINE | re.DOTALL | re.IGNORECASE)
_LAST_LINE_CUT = re.compile(r"\n[^\n]*\Z")
_MARKUP = re.compile(r"<(?:br|p|div|span|b|i|u|a|ul|ol|li|html|h\d)\b[^<>]*/?>", re.IGNORECASE)
_BREAK = re.compile(r"<(?:br|p|div|li|h\d)\b[^<>]*>", re.IGNORECASE)
_STATES = {"CANCELLED": "cancelled", "TENTATIVE": "tentative", "COMPLETED": "completed", "IN-PROCESS": "in progress"}
_ANSWERS = {"DECLINED": "declined", "TENTATIVE": "maybe", "DELEGATED": "delegated"}


def extract(raw: bytes, *, name: str, settings: Extraction) -> Extracted:
    """Return the entries of all calendars of a file, in their order; alarms and attached files are left out.

    A broken line costs itself only. Where the whole is broken, the entries are read one by one.

    Raises:
        Unsupported: it is no calendar.
        NoText: there is no entry in it.
    """
    del name, settings
    if looks_binary(raw):
        raise Unsupported("it is a binary file with the name of a calendar")
    text, encoding = decode(raw)
    text = canonical(text)
    if "BEGIN:" not in text.upper():
        raise Unsupported("it is no calendar")
    calendars, lost = _parsed(text)
    entries = [entry for calendar in calendars for entry in calendar.subcomponents if entry.name in _KINDS]
    broken = sum(len(component.errors) for calendar in calendars for component in calendar.walk())
    titles = [title for calendar in calendars if (title := _line(calendar.get("X-WR-CALNAME")))]
    if not entries:
        raise NoText("it holds no event, task or note")
    title = titles[0] if titles else _line(entries[0].get("SUMMARY")) if len(entries) == 1 else None
    warnings = [
        *([f"entries that cannot be read: {lost}"] if lost else []),
        *([f"lines that cannot be read: {broken}"] if broken else []),
    ]
    meta: dict[str, JSON] = {"entries": len(entries)}
    if encoding not in {"utf-8", "utf-8-sig"}:
        meta["encoding"] = encoding
    return Extracted(
        content=canonical("\n\n".join(_pieces(calendars))),
        kind="markdown",
        title=title,
        meta=meta,
        warnings=tuple(warnings),
    )


def _parsed(text: str) -> "tuple[list[Component], int]":
    """The calendars of a text, and how many entries of it are lost."""
    from icalendar import Component

    begun = sum(1 for _ in _PIECE.finditer(text))
    try:
        calendars = Component.from_ical(text, multiple=True)
    except (ValueError, LookupError, TypeError, AttributeError):
        calendars = []
    found = sum(entry.name in _KINDS for calendar in calendars for entry in calendar.subcomponents)
    if found >= begun:
        return calendars, 0
    salvaged = []
    timezones = "".join(_TIMEZONES.findall(text))
    for piece in _PIECE.finditer(text):
        body = piece[2].lstrip("\n")
        if piece.end() == len(text):  # the file ends within it: its last line may be half of one
            body = _LAST_LINE_CUT.sub("\n", body.rstrip("\n"))
        wrapped = _WRAPPED.format(timezones=timezones, kind=piece[1].upper(), body=_NESTED.sub("", body))
        try:
            salvaged += Component.from_ical(wrapped, multiple=True)
        except (ValueError, LookupError, TypeError, AttributeError):
            continue
    return salvaged, begun - len(salvaged)


def _pieces(calendars: "list[Component]") -> Iterator[str]:
    for calendar in calendars:
        entries = [entry for entry in calendar.subcomponents if entry.name in _KINDS]
        if entries and (name := _line(calendar.get("X-WR-CALNAME"))):
            yield f"# {name}"
            if about := _text(calendar.get("X-WR-CALDESC")):
                yield about
        yield from map(_section, entries)


def _section(entry: "Component") -> str:
    title = _line(entry.get("SUMMARY")) or _KINDS[entry.name or ""]
    fields = [f"{label}: {value}" for label, value in _fields(entry) if value]
    texts = [_text(text) for name in ("DESCRIPTION", "COMMENT") for text in _all(entry, name)]
    blocks = ["\n".join(fields), *texts]
    return "\n\n".join([f"## {title}", *(block for block in blocks if block)])


def _fields(entry: "Component") -> Iterator[tuple[str, str | None]]:
    if entry.name != "VFREEBUSY":
        yield "When", span(_one(entry, "DTSTART"), _one(entry, "DTEND"), _one(entry, "DURATION"))
    yield "Due", moment(_one(entry, "DUE"))
    yield "Completed", moment(_one(entry, "COMPLETED"))
    yield "Repeats", in_words(_one(entry, "RRULE"))
    yield "Instead of", moment(_one(entry, "RECURRENCE-ID"))
    for period in _all(entry, "FREEBUSY"):
        if _is_read(period):
            yield "Busy", between(period.start, period.end, zone=zone(period))
    yield "Where", _line(entry.get("LOCATION"))
    yield "Organiser", _person(_one(entry, "ORGANIZER"))
    yield "Attendees", _listed(map(_person, _all(entry, "ATTENDEE")))
    yield "Contact", _listed(map(_line, _all(entry, "CONTACT")))
    yield "Categories", _listed(map(_line, _categories(entry)))
    yield "Status", _STATES.get(str(entry.get("STATUS", "")).upper())
    yield "Link", _line(entry.get("URL"))


def _listed(values: Iterable[str | None]) -> str:
    return ", ".join(value for value in values if value)


def _all(entry: "Component", name: str) -> list[Any]:
    found = entry.get(name, [])
    return found if isinstance(found, list) else [found]


def _one(entry: "Component", name: str) -> object:
    """The first value of a property that could be read, None where there is none."""
    return next(filter(_is_read, _all(entry, name)), None)


def _is_read(value: object) -> bool:
    # Of one that could not be read, the library tells by raising whenever anything is asked of it.
    return type(value).__name__ != "vBroken"


def _categories(entry: "Component") -> Iterator[Any]:
    for group in _all(entry, "CATEGORIES"):
        yield from getattr(group, "cats", [group])


def _person(address: object) -> str | None:
    """Name and address of somebody, and their answer unless they come."""
    if address is None or not _is_read(address):
        return None
    parameters = getattr(address, "params", {})
    mail = _line(re.sub(r"^mailto:", "", str(address), flags=re.IGNORECASE))
    name = _line(str(parameters.get("CN", "")))
    shown = f"{name} <{mail}>" if name and mail and name != mail else name or mail
    answer = _ANSWERS.get(str(parameters.get("PARTSTAT", "")).upper())
    return f"{shown} ({answer})" if shown and answer else shown


def _line(value: object) -> str | None:
    return None if value is None else clean_line(_unescaped(value))


def _text(value: object) -> str:
    """A text of several lines: markup as what it shows, and no line that would begin a section."""
    text = _unescaped(value)
    if _MARKUP.search(text):
        text = to_markdown(text if _BREAK.search(text) else text.replace("\n", "<br>"), fences=False).text
    lines = (line.rstrip() for line in canonical(text).strip().split("\n"))
    return "\n".join(f"\\{line}" if re.match(r" {0,3}#{1,6}\s", line) else line for line in lines)


def _unescaped(value: object) -> str:
    """What a property says. One that the library does not know, or could not read, still has its escapes."""
    text = "" if value is None else str(value)
    if type(value).__name__ in {"vUnknown", "vBroken"}:
        text = re.sub(r"\\([nN,;\\])", lambda match: "\n" if match[1] in "nN" else match[1], text)
    return text
