"""Rules of repetition (RFC 5545, RRULE) in words; none is expanded into its dates."""

import datetime as dt
from collections.abc import Mapping

_UNITS = {
    "SECONDLY": "second",
    "MINUTELY": "minute",
    "HOURLY": "hour",
    "DAILY": "day",
    "WEEKLY": "week",
    "MONTHLY": "month",
    "YEARLY": "year",
}
_DAYS = {
    "MO": "Monday",
    "TU": "Tuesday",
    "WE": "Wednesday",
    "TH": "Thursday",
    "FR": "Friday",
    "SA": "Saturday",
    "SU": "Sunday",
}
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_PLACES = {1: "first", 2: "second", 3: "third", 4: "fourth", 5: "fifth", -1: "last", -2: "second to last"}


def in_words(rule: object) -> str | None:
    """A rule as a sentence, "every 2 weeks on Monday and Friday until 2024-06-01"; None for what is no rule."""
    if not isinstance(rule, Mapping):
        return None
    unit = _UNITS.get(str(_first(rule, "FREQ")).upper())
    if unit is None:
        return None
    every = _number(_first(rule, "INTERVAL")) or 1
    said = [f"every {unit}" if every == 1 else f"every {every} {unit}s"]
    place = _number(_first(rule, "BYSETPOS"))
    if days := [_day(str(day), place) for day in _all(rule, "BYDAY")]:
        said.append(f"on {_listed(days)}")
    if dates := [_date(number) for day in _all(rule, "BYMONTHDAY") if (number := _number(day))]:
        said.append(f"on {_listed(dates)}")
    months = [_MONTHS[number - 1] for month in _all(rule, "BYMONTH") if 1 <= (number := _number(month) or 0) <= 12]
    if months:
        said.append(f"in {_listed(months)}")
    if count := _number(_first(rule, "COUNT")):
        said.append("once" if count == 1 else f"{count} times")
    until = _first(rule, "UNTIL")
    if isinstance(until, dt.date):
        said.append(f"until {until.year:04}-{until.month:02}-{until.day:02}")
    return " ".join(said)


def _all(rule: Mapping[str, object], name: str) -> list[object]:
    values = rule.get(name, [])
    return values if isinstance(values, list) else [values]


def _first(rule: Mapping[str, object], name: str) -> object:
    return next(iter(_all(rule, name)), None)


def _number(value: object) -> int | None:
    try:
        return int(str(value))
    except ValueError:
        return None


def _day(day: str, place: int | None) -> str:
    """A weekday, with which one of the month it is: "-1FR", or "FR" of a rule that names its place apart."""
    name = _DAYS.get(day[-2:].upper(), day)
    number = _number(day[:-2]) or place
    return f"the {_PLACES.get(number, f'{number}th')} {name}" if number else name


def _date(day: int) -> str:
    return f"day {day}" if day > 0 else "the last day" if day == -1 else f"day {-day} from the end"


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
