"""The compression of RTF within Outlook's files (MS-OXRTFCP)."""

import struct

_COMPRESSED, _STORED = b"LZFu", b"MELA"
_WINDOW = 4096
# What the window holds before the first byte, as the format lays down.
_PRELOADED = (
    b"{\\rtf1\\ansi\\mac\\deff0\\deftab720{\\fonttbl;}{\\f0\\fnil \\froman \\fswiss \\fmodern \\fscript "
    b"\\fdecor MS Sans SerifSymbolArialTimes New RomanCourier{\\colortbl\\red0\\green0\\blue0\r\n\\par "
    b"\\pard\\plain\\f0\\fs20\\b\\i\\u\\tab\\tx"
)
_LIMIT = 64 << 20


def unpacked(raw: bytes) -> bytes:
    """Return the RTF.

    Raises:
        ValueError: it is no compressed RTF.
    """
    if len(raw) < 16:
        raise ValueError("it is too short for compressed RTF")
    _, size, mark, _ = struct.unpack_from("<II4sI", raw)
    size = min(size, _LIMIT)
    if mark == _STORED:
        return raw[16 : 16 + size]
    if mark != _COMPRESSED:
        raise ValueError("it is no compressed RTF")
    window = bytearray(_WINDOW)
    window[: len(_PRELOADED)] = _PRELOADED
    write, at = len(_PRELOADED), 16
    out = bytearray()
    while at < len(raw) and len(out) < size:
        control = raw[at]
        at += 1
        for bit in range(8):
            if not control & 1 << bit:
                taken = raw[at : at + 1]
                at += 1
            else:
                if at + 1 >= len(raw):
                    return bytes(out)
                pair = raw[at] << 8 | raw[at + 1]
                at += 2
                offset, length = pair >> 4, (pair & 0xF) + 2
                if offset == write % _WINDOW:
                    return bytes(out)
                taken = bytes(_copied(window, offset, length, write))
            for byte in taken:
                window[write % _WINDOW] = byte
                write += 1
            out += taken
    return bytes(out[:size])


def _copied(window: bytearray, offset: int, length: int, write: int) -> bytearray:
    """Bytes of the window; those that the copy itself writes are read again."""
    found = bytearray()
    for step in range(length):
        place = (offset + step) % _WINDOW
        behind = (place - write) % _WINDOW
        found.append(found[behind] if behind < len(found) else window[place])
    return found
