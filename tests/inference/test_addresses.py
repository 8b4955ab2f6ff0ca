from __future__ import annotations

import socket

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from garage.inference.addresses import ambiguous, is_name, parsed, zone_of
from garage.inference.policy import Zone


@pytest.mark.parametrize(
    ("address", "zone"),
    [
        ("127.0.0.1", Zone.LOOPBACK),
        ("127.255.255.254", Zone.LOOPBACK),
        ("::1", Zone.LOOPBACK),
        ("0:0:0:0:0:0:0:1", Zone.LOOPBACK),
        ("::ffff:127.0.0.1", Zone.LOOPBACK),
        ("10.0.0.1", Zone.LAN),
        ("172.16.0.1", Zone.LAN),
        ("172.31.255.255", Zone.LAN),
        ("192.168.255.1", Zone.LAN),
        ("169.254.169.254", Zone.LAN),
        ("fd12::1", Zone.LAN),
        ("fc00::1", Zone.LAN),
        ("fe80::1", Zone.LAN),
        ("::ffff:192.168.0.1", Zone.LAN),
        ("172.15.255.255", Zone.REMOTE),
        ("172.32.0.1", Zone.REMOTE),
        ("192.169.0.1", Zone.REMOTE),
        ("100.64.0.1", Zone.REMOTE),  # a provider's network, not the owner's
        ("192.0.2.1", Zone.REMOTE),
        ("198.18.0.1", Zone.REMOTE),
        ("8.8.8.8", Zone.REMOTE),
        ("2001:4860:4860::8888", Zone.REMOTE),
        ("64:ff9b::a00:1", Zone.REMOTE),  # 10.0.0.1, but behind a translator somewhere
        ("2002:7f00:1::", Zone.REMOTE),  # 127.0.0.1, but through a relay
        ("::ffff:8.8.8.8", Zone.REMOTE),
        ("0.0.0.0", None),
        ("0.1.2.3", None),
        ("::", None),
        ("::ffff:0.0.0.0", None),
        ("::127.0.0.1", None),
        ("224.0.0.1", None),
        ("ff02::1", None),
        ("255.255.255.255", None),
        ("240.0.0.1", None),
    ],
)
def test_the_number_of_an_address_tells_how_far_away_it_is(address: str, zone: Zone | None) -> None:
    number = parsed(address)
    assert number is not None
    assert zone_of(number) is zone


@pytest.mark.parametrize(
    "host",
    [
        "127.1",
        "127.0.1",
        "0x7f.1",
        "0x7f000001",
        "2130706433",
        "017700000001",
        "0177.0.0.1",
        "127.0.0.01",
        "127.0.0.1.",
        "2130706433.",
        "0X7F.0.0.1",
        "1.2.3.4.5",
        "host.1",
        "host.0x",
        "::ffff:127.0.0.1",
        "::ffff:7f00:1",
        "::FFFF:10.0.0.1",
        "::1%eth0",
        "::1%25eth0",
        "fe80::1%eth0",
    ],
)
def test_a_second_notation_of_an_address_is_ambiguous(host: str) -> None:
    assert ambiguous(host)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "::1", "fd00::1", "0:0:0:0:0:0:0:1", "1e100.net", "a1", "4chan.example", "0x.example", "a.b"]
)
def test_a_plain_address_or_name_is_not(host: str) -> None:
    assert not ambiguous(host)


@pytest.mark.parametrize("host", ["a", "a.b", "a_b.example", "xn--bcher-kva.example", "A.B.", "x" * 63, "1e100.net"])
def test_what_a_host_may_be_called(host: str) -> None:
    assert is_name(host)


@pytest.mark.parametrize(
    "host", ["", ".", "a..b", ".a", "-a", "a-", "a b", "a%20b", "a%2f", "bücher.example", "x" * 64, "a." * 127 + "aa"]
)
def test_what_it_may_not_be_called(host: str) -> None:
    assert not is_name(host)


@given(st.text(alphabet="0123456789.xXaAfF", min_size=1, max_size=16))
@example("127.1")
@example("0x7f.1")
@example("0X7F000001")
@example("017700000001")
@example("1.0xa.3")
@example("00000000177.1")
def test_whatever_the_c_library_reads_as_an_address_is_one_in_four_decimals_or_ambiguous(host: str) -> None:
    try:
        number = socket.inet_aton(host)
    except OSError:
        return
    address = parsed(host)
    assert ambiguous(host) or (address is not None and address.packed == number)
