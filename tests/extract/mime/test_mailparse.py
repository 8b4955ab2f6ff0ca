import pytest

from garage.extract.mime.mailparse import begins, parse


@pytest.mark.parametrize(
    "raw",
    [
        b"Subject: Tea\nFrom: ann@x.org\n\nbody\n",
        b"\n\n\nSubject: Tea\nFrom: ann@x.org\n\nbody\n",
        b"\xef\xbb\xbfSubject: Tea\nFrom: ann@x.org\n\nbody\n",
        b"Subject  : Tea\nFrom\t: ann@x.org\n\nbody\n",
        b"Subject: Tea\r\nFrom: ann@x.org\r\n\r\nbody\r\n",
        b"X-Mozilla-Status: 0001\nMIME-Version: 1.0\nSubject: Tea\nFrom: ann@x.org\n\nbody\n",
        b"From ann@x.org Mon Jan  1 10:00:00 2024\nSubject: Tea\nFrom: ann@x.org\n\nbody\n",
    ],
)
def test_a_header_is_found_in_whatever_state_it_is(raw: bytes) -> None:
    parsed, warnings = parse(raw)
    assert (parsed["Subject"], parsed["From"]) == ("Tea", "ann@x.org")
    assert str(parsed.get_payload()).strip() == "body"
    assert warnings == ()


def test_a_stray_line_within_the_header_goes_on_the_line_before_it() -> None:
    parsed, _ = parse(b"Subject: Tea\nat noon\nFrom: ann@x.org\n\nbody\n")
    assert (parsed["Subject"], parsed["From"]) == ("Tea\n at noon", "ann@x.org")


def test_without_a_header_everything_is_the_body() -> None:
    parsed, _ = parse(b"Hello Ann,\nwe meet at noon: be there.\n")
    assert parsed.keys() == []
    assert parsed.get_payload() == "Hello Ann,\nwe meet at noon: be there.\n"


def test_lines_of_the_body_are_left_alone() -> None:
    parsed, _ = parse(b"Subject: Tea\n\nFrom: here\nno header\nTo  : there\n")
    assert parsed.get_payload() == "From: here\nno header\nTo  : there\n"


def test_of_a_message_nested_beyond_reason_the_header_is_read() -> None:
    opened = b"".join(b'Content-Type: multipart/mixed; boundary="b%d"\n\n--b%d\n' % (n, n) for n in range(3_000))
    parsed, warnings = parse(b"Subject: Tea\n" + opened)
    assert parsed["Subject"] == "Tea"
    assert warnings == ("it is nested too deeply; only its header was read",)


def test_what_begins_with_a_field_begins_as_a_mail() -> None:
    assert begins(b"\n Subject: x")
    assert begins(b"X-Mozilla-Status: 0001\n")
    assert not begins(b"\x00\x01\x02")
    assert not begins(b"Dear Ann,\n")
