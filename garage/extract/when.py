"""Times of calendar entries in words: days, or clock times with their zone."""

import datetime as dt


def moment(value: object) -> str | None:
    """A date or a time of an entry as a person reads it; None where there is none."""
    at = getattr(value, "dt", None)
    return between(at, None, zone=zone(value)) if isinstance(at, dt.date) else None


def span(start: object, end: object, duration: object = None) -> str | None:
    """When something begins and ends, from the properties of its entry; None where no beginning is told."""
    first, last, length = (getattr(value, "dt", None) for value in (start, end, duration))
    if not isinstance(first, dt.date):
        return None
    if last is None and isinstance(length, dt.timedelta):
        last = first + length
    return between(first, last if isinstance(last, dt.date) else None, zone=zone(start))


def between(first: dt.date, last: dt.date | None, *, zone: str = "") -> str:
    """Two moments in words, without what the second has in common with the first.

    The end of something that lasts whole days is the day after the last one. A time without a zone means that of
    wherever one is.
    """
    if isinstance(first, dt.datetime):
        suffix = f" ({zone})" if zone else " UTC" if first.tzinfo else ""
        if not isinstance(last, dt.datetime) or bool(first.tzinfo) != bool(last.tzinfo) or last <= first:
            return f"{_shown(first)}{suffix}"
        if first.tzinfo:
            last = last.astimezone(first.tzinfo)
        end = f"{last:%H:%M}" if last.date() == first.date() else _shown(last)
        return f"{_shown(first)} to {end}{suffix}"
    if last is None or isinstance(last, dt.datetime) or last - first <= dt.timedelta(days=1):
        return _shown(first)
    return f"{_shown(first)} to {_shown(last - dt.timedelta(days=1))}"


def zone(value: object) -> str:
    """The name that a property gives its time zone, empty for none."""
    parameters = getattr(value, "params", None) or {}
    return " ".join(str(parameters.get("TZID", "")).split())


def _shown(at: dt.date) -> str:
    day = f"{at.year:04}-{at.month:02}-{at.day:02}"
    return f"{day} {at:%H:%M}" if isinstance(at, dt.datetime) else day
