"""The address of a file inside its source: its path made safe to show, store and print, and back again.

A path is bytes and may hold anything but NUL; an address is text that every terminal, JSON document and Postgres
column takes. Bytes that are not UTF-8, control characters, characters that reorder or break a line on screen, and
the percent sign itself are written %XX, byte by byte; everything else stays readable.
"""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

from garage.errors import GarageError

LIMIT = 2_600
"""Bytes of the longest address: it is a key of tables, and a B-tree of Postgres takes keys of up to 2,704 bytes."""

_plain = re.compile(rb"[ -$&-~]*").fullmatch

# Control characters (C0, DEL, C1), marks and overrides of writing direction (a name that reads as another), line and
# paragraph separators, and the stand-ins that surrogateescape puts for bytes that are not UTF-8.
_unsafe = re.compile("[%\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]+")


class BadUri(GarageError):
    """An address that `uri_of` never writes, so no file can be behind it."""

    uri: str

    def __init__(self, *, uri: str, reason: str) -> None:
        super().__init__(
            f"{uri!r} is not the address of a file: {reason}.",
            hint="Copy the address as a search result shows it.",
            uri=uri,
        )


def uri_of(relative: bytes) -> str:
    """Return the address of the path `relative` ('/'-separated, relative to the root of its source).

    Addresses join like paths do: `uri_of(a + b"/" + c) == uri_of(a) + "/" + uri_of(c)`.
    """
    if _plain(relative):
        return relative.decode("ascii")
    return _unsafe.sub(_escaped, relative.decode("utf-8", "surrogateescape"))


def path_of(uri: str) -> bytes:
    """Return the path whose address is `uri`: the exact inverse of `uri_of`.

    Raises:
        BadUri: `uri` is not what `uri_of` writes for any path. A second spelling of an address is refused as well:
            one file has one address.
    """
    try:
        path = unquote_to_bytes(uri)
    except UnicodeEncodeError:
        raise BadUri(uri=uri, reason="it holds a lone surrogate") from None
    if b"\x00" in path:
        raise BadUri(uri=uri, reason="no path holds a NUL")
    if uri_of(path) != uri:
        raise BadUri(uri=uri, reason="it is not escaped the way Garage escapes it")
    return path


def fits(uri: str) -> bool:
    """Whether tables take an address of this length."""
    return len(uri) <= LIMIT // 4 or len(uri.encode()) <= LIMIT


def _escaped(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "surrogateescape"))
