"""The content of a signed S/MIME message (CMS, RFC 5652): the words are readable, only wrapped in BER."""

_SIGNED_DATA = bytes.fromhex("2a864886f70d010702")
_DATA = bytes.fromhex("2a864886f70d010701")
_SEQUENCE, _SET, _OID, _INTEGER, _OCTETS, _OCTET_PIECES, _CONTEXT_0 = 0x30, 0x31, 0x06, 0x02, 0x04, 0x24, 0xA0
_PIECES = 100_000


class _Reader:
    """Reads tags and lengths one after the other; an indefinite length is told by -1."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self.at = 0

    def head(self) -> tuple[int, int]:
        tag, length = self.raw[self.at], self.raw[self.at + 1]
        self.at += 2
        if length == 0x80:
            return tag, -1
        if length > 0x80:
            count = length & 0x7F
            length = int.from_bytes(self.raw[self.at : self.at + count], "big")
            self.at += count
        return tag, length

    def expect(self, wanted: int) -> int:
        tag, length = self.head()
        if tag != wanted:
            raise ValueError(f"tag {tag:#x} where {wanted:#x} belongs")
        return length

    def take(self, wanted: int) -> bytes:
        length = self.expect(wanted)
        if length < 0:
            raise ValueError("a primitive value of indefinite length")
        value = self.raw[self.at : self.at + length]
        self.at += length
        return value


def signed_content(raw: bytes) -> bytes | None:
    """The message inside a signed one; None when it is not signed but encrypted, or cannot be read."""
    reader = _Reader(raw)
    try:
        reader.expect(_SEQUENCE)
        if reader.take(_OID) != _SIGNED_DATA:
            return None
        reader.expect(_CONTEXT_0)
        reader.expect(_SEQUENCE)
        reader.take(_INTEGER)
        length = reader.expect(_SET)
        if length < 0:
            return None
        reader.at += length
        reader.expect(_SEQUENCE)
        if reader.take(_OID) != _DATA:
            return None
        reader.expect(_CONTEXT_0)
        return _octets(reader)
    except (IndexError, ValueError):
        return None


def _octets(reader: _Reader) -> bytes:
    tag, length = reader.head()
    if tag == _OCTETS and length >= 0:
        return reader.raw[reader.at : reader.at + length]
    if tag != _OCTET_PIECES:
        raise ValueError("no octets")
    end = len(reader.raw) if length < 0 else reader.at + length
    pieces: list[bytes] = []
    while reader.at < end and len(pieces) < _PIECES and reader.raw[reader.at : reader.at + 2] != b"\0\0":
        pieces.append(reader.take(_OCTETS))
    return b"".join(pieces)
