"""Lines that a program has stamped with the time.

What counts is a date with a time to the second, as loggers write it, near the beginning of the line. People write
times as well, and so do programs that keep what people say: diaries and calendars seldom name seconds, subtitles and
transcripts have no date, messengers and chat rooms put a name behind the time.
"""

import re

from garage.quality.sample import Sample

_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_FRAMES = ("\tat ", "    at ", '  File "', "\t... ", "Caused by: ")
_WITHIN = 120  # code points at the beginning of a line in which its stamp stands

_TIME = r"[ T,_:]{1,3}\d{1,2}:\d\d:\d\d"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_STAMP = re.compile(
    rf"(?:\b\d{{4}}[-/.]\d\d?[-/.]\d\d?{_TIME}"  # 2024-03-01T10:00:00
    rf"|\b\d\d?[-/.]\d\d?(?:[-/.]\d{{2,4}})?{_TIME}"  # 01.03.2024 10:00:00, and logcat's 03-01 10:00:00
    rf"|\b\d{{1,2}}[-/ ]{_MONTH}[-/ ]\d{{4}}{_TIME}"  # 01/Mar/2024:10:00:00
    rf"|\b{_MONTH} [ \d]\d(?:[ ,]+\d{{4}})?{_TIME}"  # Mar  1 10:00:00
    rf"|\b\d{{8}}{_TIME}"  # 20240301 10:00:00
    r"|^[EIWDFV]\d{4} \d\d:\d\d:\d\d\.\d"  # I0301 10:00:00.000000
    # Without a date only what no transcript has: a level or a bracket behind it, or millionths of a second.
    r"|^[\[(]?\d\d:\d\d:\d\d(?:[.,]\d{1,6})?[\])]? +"
    r"(?:\[|[\w/.-]+\[\d+\]|(?:[A-Z]+ +)?(?:TRACE|DEBUG|INFO|NOTICE|WARN|ERROR|FATAL)\b)"
    r"|^\[?\d\d:\d\d:\d\d\.\d{6}\b"
    r"|^\[ *\d+\.\d{6}\]"  # the kernel's seconds since the start
    r"|(?:^|[\[(:=\" ])1\d{9}(?:\.\d{3,9}|\d{3})\b)"  # seconds or milliseconds since 1970
)
_PREFILTER = re.compile(r"\d:\d\d:\d\d|\d\.\d{3}|1\d{9}")
# [01.03.24, 10:00:00] Anna: ..., and <anna> or * anna behind any stamp.
_SPOKEN = re.compile(
    r"\W{0,3}\d[\d./-]+(?:, ?| )\d\d?:\d\d:\d\d(?:[  ][AP]M)?(?:\] [^\[\]:]{1,40}: |[\])]? +(?:<[^<>]{1,40}> |\* \w))"
)


def timestamped(taken: Sample, folded: bytes, least: float) -> float:
    """The share of lines with a program's stamp; 0 when it cannot be more than `least`.

    Frames of a stack go on with the entry above them, so they do not count. `folded` is the text with every run of
    digits as a single 0.
    """
    possible = folded.count(b":0:0") + folded.count(b"0.0]") + taken.encoded.translate(_DIGITS).count(b"0" * 10)
    if possible < least * len(taken.lines) / 4:
        return 0.0
    entries = sum(1 for line in taken.lines if not line.startswith(_FRAMES))
    if possible <= least * entries:
        return 0.0
    return sum(1 for line in taken.lines if _is_stamped(line[:_WITHIN])) / entries


def _is_stamped(line: str) -> bool:
    if _PREFILTER.search(line) is None or " --> " in line:
        return False
    return _STAMP.search(line) is not None and _SPOKEN.match(line) is None
