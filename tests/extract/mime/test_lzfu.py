import struct

import pytest

from garage.extract.mime.lzfu import unpacked


def packed(body: bytes, size: int, mark: bytes = b"LZFu") -> bytes:
    return struct.pack("<II4sI", len(body) + 12, size, mark, 0) + body


def test_the_example_of_the_specification_is_unpacked() -> None:
    body = bytes.fromhex("03000a007263706731323542320af32068656c090020627705b06c647d0a800fa0")
    assert unpacked(packed(body, 43)) == b"{\\rtf1\\ansi\\ansicpg1252\\pard hello world}\r\n"


def test_a_copy_may_read_what_it_writes() -> None:
    assert unpacked(packed(b"\x02X" + bytes.fromhex("0cf5"), 8)) == b"XXXXXXXX"


def test_what_is_stored_is_handed_on() -> None:
    assert unpacked(packed(b"{\\rtf1 tea}", 11, b"MELA")) == b"{\\rtf1 tea}"


@pytest.mark.parametrize("raw", [b"", b"short", packed(b"x", 1, b"ABCD")])
def test_what_is_no_compressed_rtf_is_refused(raw: bytes) -> None:
    with pytest.raises(ValueError, match="compressed RTF"):
        unpacked(raw)


def test_a_size_that_is_a_lie_costs_nothing() -> None:
    assert unpacked(packed(b"\x00abc", 0xFFFFFFFF)) == b"abc"
