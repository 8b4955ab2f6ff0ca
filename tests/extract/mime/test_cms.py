import pytest

from garage.extract.mime.cms import signed_content

SIGNED, DATA = bytes.fromhex("06092a864886f70d010702"), bytes.fromhex("06092a864886f70d010701")


def indefinite(tag: int, *values: bytes) -> bytes:
    return bytes([tag, 0x80]) + b"".join(values) + b"\0\0"


def wrapped(octets: bytes, kind: bytes = SIGNED) -> bytes:
    inner = indefinite(0x30, DATA, indefinite(0xA0, octets))
    return indefinite(0x30, kind, indefinite(0xA0, indefinite(0x30, bytes.fromhex("0201013100"), inner)))


def test_the_content_is_put_together_from_its_pieces() -> None:
    assert signed_content(wrapped(indefinite(0x24, b"\x04\x03Sub", b"\x04\x05ject:"))) == b"Subject:"
    assert signed_content(wrapped(b"\x04\x04whole")) == b"whol"


def test_what_is_encrypted_has_no_content_to_read() -> None:
    assert signed_content(wrapped(b"\x04\x01x", bytes.fromhex("06092a864886f70d010703"))) is None


@pytest.mark.parametrize("raw", [b"", b"\x30", b"\x30\x80", b"nonsense", wrapped(b"")[:20], wrapped(b"\x02\x01\x01")])
def test_what_is_no_signed_message_is_none(raw: bytes) -> None:
    assert signed_content(raw) is None


def test_every_truncation_ends() -> None:
    whole = wrapped(indefinite(0x24, b"\x04\x03Sub", b"\x04\x05ject:"))
    for length in range(len(whole)):
        signed_content(whole[:length])
