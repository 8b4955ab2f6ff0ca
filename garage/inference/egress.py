"""Who may be contacted. Every connection of Garage is opened by a client made here.

The rules: this machine by its literal addresses and as `localhost` (nothing that merely resolves to it), and the
origins named exactly, scheme, host and port. A name is looked up once, only after its origin was found to be allowed;
what it resolves to decides how far away it is; the connection is made to those addresses and to no other, and the
address at its other end is compared before the first byte is sent. No proxy, certificate or password is taken from the
environment. Redirects are not followed; a download may ask for it, and then gets only where a direct request would.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Sequence

import httpcore
import httpx

from garage.inference.addresses import LOCALHOST, ambiguous, is_name, parsed, zone_of
from garage.inference.errors import EgressRefused
from garage.inference.policy import Destination, Obstacle, Reason, Zone

Resolver = Callable[[str], Sequence[str]]

_PORTS = {"http": 80, "https": 443}
_MAX_REDIRECTS = 5
_LONGEST_ORIGIN = 300  # code points; a longer one is no host's, and it is stored


def origin_of(url: httpx.URL) -> str:
    """`scheme://host:port`, the port always written, names in ASCII, addresses in short: how origins are compared."""
    name = url.raw_host.decode("ascii")
    host = f"[{parsed(name) or name}]" if ":" in name else name
    return f"{url.scheme}://{host}:{_port(url)}"[:_LONGEST_ORIGIN]


def _port(url: httpx.URL) -> int:
    return _PORTS.get(url.scheme, 0) if url.port is None else url.port


def is_loopback(url: httpx.URL) -> bool:
    """Whether the host is `localhost` or a literal loopback address, decided by its spelling: no name is looked up."""
    if url.host == "localhost":
        return True
    address = parsed(url.host)
    return address is not None and address.is_loopback and not ambiguous(url.host)


def resolve(host: str) -> list[str]:
    """The addresses of a name, by the system's resolver. Raises OSError when it has none."""
    return list(dict.fromkeys(str(found[4][0]) for found in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)))


class Guard:
    """A policy about destinations: exact origins, and loopback unless that is switched off.

    An allowed origin on loopback stays allowed then. `resolver` gives the addresses of a name and raises OSError when
    it has none.
    """

    def __init__(self, allowed: Iterable[str] = (), *, loopback: bool = True, resolver: Resolver = resolve) -> None:
        self._allowed = frozenset(origin_of(httpx.URL(origin)) for origin in allowed)
        self._loopback = loopback
        self._resolver = resolver

    def check(self, url: httpx.URL) -> None:
        """Raises `EgressRefused` unless a request to `url` is allowed by its spelling. No name is looked up."""
        obstacle = self._spelled(url)
        if obstacle is not None:
            raise _refused(origin_of(url), obstacle)

    def destination(self, text: str) -> Destination:
        """Where `text` leads, by name and by the addresses it has now; what forbids it is told in the answer."""
        try:
            url = httpx.URL(text)
            origin = origin_of(url)
        except (httpx.InvalidURL, UnicodeError, ValueError):
            invalid = Obstacle(Reason.URL_INVALID, "the destination is not a URL")
            return Destination("invalid", Zone.REMOTE, obstacle=invalid)
        obstacle = self._spelled(url)
        if obstacle is not None:
            return Destination(origin, Zone.LOOPBACK if is_loopback(url) else Zone.REMOTE, obstacle=obstacle)
        return self._located(origin, url.raw_host.decode("ascii"))

    def addresses(self, host: str) -> tuple[str, ...]:
        """What a connection to `host` may be made to. Raises EgressRefused, and OSError for a name without any."""
        found = self._located(host, host)
        if found.obstacle is None:
            return found.addresses
        if found.obstacle.reason is Reason.NAME_NOT_RESOLVED:
            raise OSError(found.obstacle.explanation)
        raise _refused(host, found.obstacle)

    def pinned(self, destination: Destination) -> Guard:
        """A guard that lets nothing through but this destination, at the addresses that were found."""
        allowed = () if destination.obstacle else (destination.origin,)
        return Guard(allowed, loopback=False, resolver=lambda _: destination.addresses)

    def _spelled(self, url: httpx.URL) -> Obstacle | None:
        if url.scheme not in _PORTS:
            return Obstacle(Reason.SCHEME_UNSUPPORTED, f"'{url.scheme[:20]}' is not http or https")
        if url.userinfo:
            return Obstacle(Reason.CREDENTIALS_IN_URL, "the address carries credentials")
        host = url.raw_host.decode("ascii")
        unclear = ambiguous(host)
        if unclear:
            return Obstacle(Reason.ADDRESS_AMBIGUOUS, unclear)
        if (parsed(host) is None and not is_name(host)) or not 0 < _port(url) < 65_536:
            return Obstacle(Reason.URL_INVALID, "there is no such host or port")
        if origin_of(url) in self._allowed:
            return None
        if is_loopback(url):
            if self._loopback:
                return None
            return Obstacle(Reason.LOOPBACK_CLOSED, "a request that leaves this machine may not lead back to it")
        return Obstacle(
            Reason.ORIGIN_NOT_CONFIGURED, "this origin is neither on this machine nor one that was configured"
        )

    def _located(self, origin: str, host: str) -> Destination:
        if host == "localhost":
            return Destination(origin, Zone.LOOPBACK, LOCALHOST)
        literal = parsed(host) is not None
        try:
            found = (host,) if literal else tuple(self._resolver(host))
        except OSError as error:
            found, why = (), error.strerror or str(error)
        else:
            why = "no addresses"
        if not found:
            obstacle = Obstacle(Reason.NAME_NOT_RESOLVED, f"the name {host} cannot be resolved ({why})")
            return Destination(origin, Zone.REMOTE, obstacle=obstacle)
        zones = [None if (address := parsed(text)) is None else zone_of(address) for text in found]
        known = [zone for zone in zones if zone is not None]
        if len(known) < len(zones):
            obstacle = Obstacle(Reason.ADDRESS_UNUSABLE, f"{host} is or has an address that belongs to no host")
            return Destination(origin, Zone.REMOTE, found, obstacle)
        if Zone.LOOPBACK in known and not literal:
            obstacle = Obstacle(
                Reason.NAME_IS_LOOPBACK, f"the name {host} resolves to this machine; only localhost may stand for it"
            )
            return Destination(origin, Zone.REMOTE, found, obstacle)
        return Destination(origin, max(known, key=lambda zone: zone.distance), found)


def _refused(origin: str, obstacle: Obstacle) -> EgressRefused:
    return EgressRefused(origin, obstacle.explanation, code=obstacle.reason)


class _PinnedBackend(httpcore.NetworkBackend):
    """Opens connections to the addresses that the guard gives, one lookup a connection, and looks who is there."""

    def __init__(self, guard: Guard, network: httpcore.NetworkBackend) -> None:
        self._guard = guard
        self._network = network

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        try:
            addresses = self._guard.addresses(host)
        except OSError as error:
            raise httpcore.ConnectError(str(error)) from error
        failure: Exception = httpcore.ConnectError(f"{host} has no addresses")
        for address in addresses:
            try:
                stream = self._network.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
                continue
            _require_peer(stream, host, address)
            return stream
        raise failure


def _require_peer(stream: httpcore.NetworkStream, host: str, address: str) -> None:
    """Closes a connection whose other end is not where it was to lead, before anything is sent."""
    try:
        peer = str(stream.get_extra_info("server_addr")[0])
    except (OSError, TypeError) as error:  # it was closed at once
        stream.close()
        raise httpcore.ConnectError(f"{host} closed the connection") from error
    if parsed(peer) != parsed(address):
        stream.close()
        raise EgressRefused(host, f"the connection to {address} ended at another address", code=Reason.PEER_CHANGED)


class _GuardedTransport(httpx.HTTPTransport):
    """Checks the address that is really used, at every hop of a redirect and for every connection."""

    def __init__(self, guard: Guard, network: httpcore.NetworkBackend) -> None:
        super().__init__(trust_env=False)
        self._guard = guard
        self._pool.close()
        # In the place of the pool that httpx made: there is no parameter for what a pool connects with.
        self._pool = httpcore.ConnectionPool(
            ssl_context=httpx.create_ssl_context(trust_env=False),
            keepalive_expiry=5.0,
            network_backend=_PinnedBackend(guard, network),
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self._guard.check(request.url)
        return super().handle_request(request)


def client(
    guard: Guard,
    *,
    timeout: float = 30.0,
    follow_redirects: bool = False,
    network: httpcore.NetworkBackend | None = None,
) -> httpx.Client:
    """An HTTP client that can reach nothing the guard does not allow. `timeout` is in seconds, for each read.

    For content of documents it is `client(guard.pinned(destination))`, with the destination that the content was
    cleared for. `follow_redirects` is for downloads, whose requests carry nothing. `network` opens the connections.
    """
    return httpx.Client(
        transport=_GuardedTransport(guard, network or httpcore.SyncBackend()),
        timeout=timeout,
        trust_env=False,
        follow_redirects=follow_redirects,
        max_redirects=_MAX_REDIRECTS,
    )
