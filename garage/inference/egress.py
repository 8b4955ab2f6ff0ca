"""Who may be contacted. Every connection of Garage is opened by a client made here.

The rules: loopback (its literal addresses and the name `localhost`, nothing that merely resolves to it) and the origins
named exactly, scheme, host and port. No proxy is used, whatever the environment says; a redirect is followed only to
where a direct request would be allowed as well; credentials in an address are refused.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

import httpx

from garage.inference.errors import EgressRefused

_PORTS = {"http": 80, "https": 443}
_MAX_REDIRECTS = 5


def origin_of(url: httpx.URL) -> str:
    """`scheme://host:port` with the port always written, the form in which origins are compared."""
    host = f"[{url.host}]" if ":" in url.host else url.host
    return f"{url.scheme}://{host}:{url.port or _PORTS.get(url.scheme, 0)}"


def is_loopback(url: httpx.URL) -> bool:
    """Whether the host is `localhost` or a literal loopback address, decided by its spelling: no name is looked up."""
    if url.host == "localhost":
        return True
    try:
        return ipaddress.ip_address(url.host).is_loopback
    except ValueError:
        return False


class Guard:
    """A policy: exact origins, and loopback unless that is switched off."""

    def __init__(self, allowed: Iterable[str] = (), *, loopback: bool = True) -> None:
        self._allowed = frozenset(origin_of(httpx.URL(origin)) for origin in allowed)
        self._loopback = loopback

    def check(self, url: httpx.URL) -> None:
        """Raises `EgressRefused` unless a request to `url` is allowed."""
        origin = origin_of(url)
        if url.scheme not in _PORTS:
            raise EgressRefused(origin, f"'{url.scheme}' is not http or https")
        if url.userinfo:
            raise EgressRefused(origin, "the address carries credentials")
        if is_loopback(url):
            if not self._loopback:
                raise EgressRefused(origin, "a request that leaves this machine may not lead back to it")
        elif origin not in self._allowed:
            raise EgressRefused(origin, "this origin is not allowed")


class _GuardedTransport(httpx.HTTPTransport):
    """Checks the address that is really used, at every hop of a redirect."""

    def __init__(self, guard: Guard) -> None:
        super().__init__(trust_env=False)
        self._guard = guard

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self._guard.check(request.url)
        return super().handle_request(request)


def client(guard: Guard, *, timeout: float = 30.0) -> httpx.Client:
    """An HTTP client that can reach nothing the guard does not allow. `timeout` is in seconds, for each read."""
    return httpx.Client(
        transport=_GuardedTransport(guard),
        timeout=timeout,
        trust_env=False,
        follow_redirects=True,
        max_redirects=_MAX_REDIRECTS,
    )
