"""Where a host lies, by its number or by its spelling. Nothing is looked up here."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from garage.inference.policy import Zone

Address = IPv4Address | IPv6Address

# RFC 1918, RFC 4193 and the two of link-local addresses. What Python calls private is more: documentation, benchmarks,
# the shared addresses of a provider (100.64.0.0/10), which are somebody else's network.
_PRIVATE = tuple(
    ip_network(network)
    for network in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "fc00::/7", "fe80::/10")
)
_THIS_NETWORK = ip_network("0.0.0.0/8")  # Linux takes 0.0.0.0 for the machine itself
_TRANSLATED = ip_network("64:ff9b::/96")  # IPv4 behind a translator (RFC 6052): reserved to Python, in use all the same
# What C libraries read as an IPv4 address in another notation (127.1, 0x7f.1, 2130706433): the last label is a number.
_NUMERIC = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)\.?", re.IGNORECASE)
_NAME = re.compile(
    r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)*\.?", re.IGNORECASE
)
_LONGEST_NAME = 253

LOCALHOST = ("127.0.0.1", "::1")
"""What `localhost` means here, whatever the resolver and its files say."""


def parsed(text: str) -> Address | None:
    """The address that `text` is, in the notation of RFC 4291 or four decimals; else None."""
    try:
        return ip_address(text)
    except ValueError:
        return None


def zone_of(address: Address) -> Zone | None:
    """How far away an address is; None for one that no single host can have (unspecified, multicast, reserved).

    An IPv4 address written as IPv6 (::ffff:a.b.c.d) lies where the IPv4 address does.
    """
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return zone_of(address.ipv4_mapped)
    if address.is_loopback:
        return Zone.LOOPBACK
    if any(address.version == network.version and address in network for network in _PRIVATE):
        return Zone.LAN
    if isinstance(address, IPv6Address) and address in _TRANSLATED:
        return Zone.REMOTE
    if isinstance(address, IPv4Address) and address in _THIS_NETWORK:
        return None
    if address.is_multicast or address.is_reserved or address.is_unspecified:
        return None
    return Zone.REMOTE


def ambiguous(host: str) -> str:
    """Why `host` might be read as another address than it seems to be; empty when it cannot.

    An address has one notation here. Every other one is refused instead of being interpreted, since the resolver may
    interpret it in its own way.
    """
    address = parsed(host)
    if address is None:
        return "it is an address in a notation that programs read differently" if _NUMERIC.fullmatch(host) else ""
    if isinstance(address, IPv6Address) and (address.ipv4_mapped is not None or address.scope_id is not None):
        return "it is an IPv6 address that stands for another address or for one interface"
    return ""


def is_name(host: str) -> bool:
    """Whether `host` can be the name of a host, in ASCII."""
    return len(host) <= _LONGEST_NAME and _NAME.fullmatch(host) is not None
