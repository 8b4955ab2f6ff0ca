"""Values of a spreadsheet's cells as a person sees them: dates in ISO 8601, numbers by the format of their cell."""

import datetime as dt
import re
from functools import cache

_GENERAL = re.compile(r"general|@|", re.IGNORECASE)
# What stands for itself, what is not shown, and what a digit goes into.
_TOKEN = re.compile(
    r'"([^"]*)"|\\(.)|_.|\*.|\[\$([^\]-]*)(?:-[^\]]*)?\]|\[([^\]]*)\]|(E[+-]0+)|([#0?][#0?,.]*|\.[#0?]+)|(.)', re.DOTALL
)
_CONDITION = re.compile(r"[<>=]")
_TIME = re.compile(r"[hs]|am/pm", re.IGNORECASE)
_DAY = re.compile(r"[yd]|mmm", re.IGNORECASE)
_PART_OF_DATE = re.compile(r"[ymdhs]", re.IGNORECASE)
_PART_OF_NUMBER = re.compile(r"general|[#?]|(?<!\.)(?<!\.0)(?<!\.00)0|e[+-]0", re.IGNORECASE)  # but parts of seconds
_LITERAL = re.compile(r'"[^"]*"|\\.|\[(?!h+\]|m+\]|s+\])[^\]]*\]|_.|\*.', re.IGNORECASE)
_ELAPSED = re.compile(r"\[[hms]+\]", re.IGNORECASE)
_SIGNIFICANT = 15  # digits that a spreadsheet keeps of a number
_WHOLE = 1e15  # from here on a number's last digits are not known
_DECIMALS = 30


def general(value: float) -> str:
    """A number that has no format: without the fraction that it does not have, and without noise in its last digits."""
    if isinstance(value, int) or (value == int(value) and abs(value) < _WHOLE if _finite(value) else False):
        return str(int(value))
    return f"{value:.{_SIGNIFICANT}g}"


def shown(value: float, code: str, *, epoch_1904: bool = False) -> str:
    """A number by the format of its cell, such as `0.00%`, `#,##0 "kg"` or `yyyy-mm-dd`.

    What the format says of colours, widths and the order of a date is not followed; a format that is not understood
    counts as none.
    """
    if not _finite(value):
        return str(value)
    if is_date(code):
        return _moment(value, code, epoch_1904=epoch_1904)
    sections = _sections(code)
    index = 0
    if len(sections) > 1 and not any(_CONDITION.search(bracket) for bracket in re.findall(r"\[[^\]]*\]", code)):
        index = 1 if value < 0 else 2 if value == 0 and len(sections) > 2 else 0
    section = sections[index]
    if _GENERAL.fullmatch(section) or "/" in _LITERAL.sub("", section):
        return general(value)
    written = _written(abs(value), section)
    if not written:
        return general(value)
    return f"-{written}" if value < 0 and index == 0 and re.search(r"[1-9]", written) else written


@cache
def is_date(code: str) -> bool:
    """Whether a format shows a date, a time of day or a duration."""
    plain = _LITERAL.sub("", code.partition(";")[0])
    return bool(_PART_OF_DATE.search(plain)) and not _PART_OF_NUMBER.search(plain)


@cache
def _sections(code: str) -> list[str]:
    return re.findall(r'((?:"[^"]*"|\\.|\[[^\]]*\]|[^;])*);', code + ";", re.DOTALL)[:4] or [""]


def _moment(value: float, code: str, *, epoch_1904: bool) -> str:
    """A serial number of days as what its format shows of it: a date, a time, both, or a duration in hours."""
    plain = _LITERAL.sub("", code.partition(";")[0])
    seconds = round((value % 1) * 86_400)
    if _ELAPSED.search(plain):
        whole = round(value * 86_400)
        return f"{'-' if whole < 0 else ''}{abs(whole) // 3600}:{abs(whole) // 60 % 60:02}:{abs(whole) % 60:02}"
    has_time, has_day = bool(_TIME.search(plain)), bool(_DAY.search(plain))
    if not has_time:
        has_day = True
    clock = f"{seconds // 3600 % 24:02}:{seconds // 60 % 60:02}" + (f":{seconds % 60:02}" if seconds % 60 else "")
    if not has_day or (has_time and 0 <= value < 1):
        return clock
    day = int(value // 1) + (1462 if epoch_1904 else 0) + (seconds == 86_400 and has_time)
    if not 1 <= day < 2_958_466:  # from 1900-01-01 to 9999-12-31
        return general(value)
    # The calendar of spreadsheets has a 29th of February 1900, which was none.
    date = dt.date(1899, 12, 30 if day > 59 else 31) + dt.timedelta(days=day)
    return f"{date.isoformat()} {clock}" if has_time else date.isoformat()


def _written(value: float, section: str) -> str | None:
    """A number that is not negative in one section of a format; None where that is not understood."""
    tokens = [match.groups() for match in _TOKEN.finditer(section)]
    slots = [index for index, token in enumerate(tokens) if token[5]]
    if section.count('"') % 2 or any(tokens[slot][5].count(".") > 1 for slot in slots):
        return None
    if any(token[3] is not None and _CONDITION.match(token[3]) for token in tokens) or any(t[6] == "@" for t in tokens):
        return None
    texts = [token[0] or token[1] or token[2] or ("" if token[5] or token[4] else token[6] or "") for token in tokens]
    value *= 100 ** min(sum(token[6] == "%" for token in tokens), 3)
    if not slots:
        return "".join(texts).strip() or None
    exponent = next((token[4] for token in tokens if token[4]), None)
    if exponent:
        decimals = len(tokens[slots[0]][5].partition(".")[2])
        mantissa, _, power = f"{value:.{min(decimals, _DECIMALS)}E}".partition("E")
        texts[slots[0]] = f"{mantissa}E{int(power):+03d}"
    elif len(slots) > 1:
        if any("." in tokens[slot][5] or "," in tokens[slot][5] for slot in slots):
            return None
        _fill(texts, [(slot, tokens[slot][5]) for slot in slots], f"{value:.0f}")
    else:
        texts[slots[0]] = _digits(value, tokens[slots[0]][5])
    return "".join(texts).strip()


def _digits(value: float, pattern: str) -> str:
    """Digits by a pattern such as `#,##0.00`; commas at its end leave thousands out."""
    whole, _, fraction = pattern.partition(".")
    bare = whole.rstrip(",") if not fraction else whole
    scale = len(whole) - len(bare) + len(fraction) - len(fraction.rstrip(","))
    fraction = fraction.rstrip(",")
    most, least = min(len(fraction), _DECIMALS), fraction.count("0")
    text = f"{value / 1000**scale:{',' if ',' in bare else ''}.{most}f}"
    integer, _, decimals = text.partition(".")
    while len(decimals) > least and decimals.endswith("0"):
        decimals = decimals[:-1]
    if integer == "0" and "0" not in bare:
        integer = ""
    elif "," not in bare:
        integer = integer.zfill(bare.count("0"))
    return f"{integer}.{decimals}" if decimals else integer


def _fill(texts: list[str], slots: list[tuple[int, str]], digits: str) -> None:
    """Spread digits over several runs of places from the right, as in a telephone number."""
    for position, (slot, pattern) in reversed(list(enumerate(slots))):
        count = len(pattern) if position else len(digits)
        texts[slot] = digits[len(digits) - count :] if count <= len(digits) else digits.rjust(count, "0")
        digits = digits[: max(0, len(digits) - count)]


def _finite(value: float) -> bool:
    return value == value and abs(value) != float("inf")  # noqa: PLR0124 - tells NaN
