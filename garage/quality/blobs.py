"""Runs of characters that carry no words: hexadecimal digests and addresses, base64, long unbroken lines."""

import re

from garage.quality.sample import Sample

_HEX_RUN = 16
_BASE64_RUN = 40
_LOOKED_AT = 400  # code points of a run that tell whether it is base64

# Which bytes belong to which run, for finding candidates at the speed of memory.
_HEX_CLASS = bytes(0x68 if chr(b) in "0123456789abcdefABCDEF" else 0x2D if b == 0x2D else 0x20 for b in range(256))
_BASE64_CLASS = bytes(0x62 if chr(b).isascii() and (chr(b).isalnum() or chr(b) in "+/_-") else 0x20 for b in range(256))

_UUID_START = b"hhhhhhhh-hhhh-hhhh-"

_HEX = re.compile(
    r"(?<![0-9A-Za-z])(?:"
    r"0x[0-9a-fA-F]{6,}"
    r"|[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
    r"|[0-9a-fA-F]{16,})(?![0-9A-Za-z])"
)
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{40,}={0,2}")
_CASES = re.compile(r"[A-Z]+|[a-z]+|[0-9]+|[^A-Za-z0-9]+")
# A digest or a piece of base64 as a line of its own: quoted, labelled, before or behind the name of a file.
_BLOB_LINE = re.compile(
    r"""(?:\S{1,400},|[\w-]{1,20} ?\([^()]{1,400}\) ?=|\S{1,200} (?:\S{1,100} )??)??\W*(?:(?:sha\d*|md5|h1)[:=-])?"""
    r"""([0-9a-fA-F]{16,}|[A-Za-z0-9+/_-]{40,}={0,2})\W*(?:,\d*|\s\S.{0,400})?""",
    re.IGNORECASE,
)
_PEM = re.compile(r"-----(?:BEGIN|END) [A-Z0-9 ]+-----")


def hex_runs(taken: Sample, least: float) -> int:
    """How many digests, UUIDs and addresses the text holds; 0 when it cannot be more than `least`."""
    classes = taken.encoded.translate(_HEX_CLASS)
    possible = classes.count(b"h" * _HEX_RUN) + classes.count(_UUID_START) + taken.encoded.count(b"0x")
    if possible <= least:
        return 0
    return sum(1 for match in _HEX.finditer(taken.text) if _is_hex(match[0]))


def base64_runs(taken: Sample, least: float) -> int:
    """How many stretches of base64, each at least 40 characters long, it holds; 0 if it cannot be more than `least`."""
    if taken.encoded.translate(_BASE64_CLASS).count(b"b" * _BASE64_RUN) <= least:
        return 0
    return sum(1 for match in _BASE64.finditer(taken.text) if is_base64(match[0]))


def _is_hex(run: str) -> bool:
    """Long numbers are written by people, and so are words of the letters a to f."""
    return run.startswith("0x") or not (run.isdigit() or run.isalpha())


def is_base64(run: str) -> bool:
    """Whether upper case, lower case and digits change places as often as chance has it, unlike in paths and names."""
    run = run[:_LOOKED_AT]
    if _is_hex(run) and all(c in "0123456789abcdefABCDEF" for c in run):
        return False
    if run.islower() or run.isupper() or run.isdigit():
        return False
    return len(_CASES.findall(run)) * 3 > len(run)


def is_blob(line: str) -> bool:
    """Whether a line is nothing but a digest or base64, perhaps with the name of the file that it belongs to."""
    match = _BLOB_LINE.fullmatch(line)
    if match is not None:
        return _is_hex(match[1]) and (len(match[1]) < _BASE64_RUN or _looks_random(match[1]))
    return _PEM.fullmatch(line) is not None


def _looks_random(run: str) -> bool:
    return all(c in "0123456789abcdefABCDEF" for c in run[:_LOOKED_AT]) or is_base64(run)
