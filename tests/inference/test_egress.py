"""The guard against real servers: who is contacted, and who never hears of it."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpcore
import httpx
import psutil
import pytest

from garage.inference.addresses import zone_of
from garage.inference.egress import Guard, client
from garage.inference.errors import EgressRefused
from garage.inference.policy import Reason, Zone

if TYPE_CHECKING:
    from tests.inference.conftest import Server


def no_lookup(host: str) -> list[str]:
    raise AssertionError(f"{host} was looked up")


class Listener:
    """An HTTP server at any address of this machine, which remembers what it was asked."""

    def __init__(self, host: str) -> None:
        heard: list[tuple[str, str, dict[str, str], bytes]] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                heard.append((self.command, self.path, dict(self.headers.items()), body))
                self.send_response(200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"ok")

            do_GET = do_CONNECT = do_POST  # noqa: N815  # the names that http.server asks for

            def log_message(self, format: str, *args: object) -> None:
                pass

        class Listening(ThreadingHTTPServer):
            address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

        self.heard = heard
        self.server = Listening((host, 0), Handler)
        self.port = int(self.server.server_address[1])
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{self.port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()


@pytest.fixture
def listen() -> Iterator[Callable[[str], Listener]]:
    running: list[Listener] = []

    def start(host: str) -> Listener:
        try:
            running.append(Listener(host))
        except OSError as error:
            pytest.skip(f"nothing can listen at {host} here: {error}")
        return running[-1]

    yield start
    for listener in running:
        listener.server.shutdown()
        listener.server.server_close()


@pytest.fixture
def private_address() -> str:
    """An address of this machine in a private network; skips where it has none."""
    for addresses in psutil.net_if_addrs().values():
        for found in addresses:
            if found.family not in {socket.AF_INET, socket.AF_INET6} or "%" in found.address:
                continue
            if zone_of(ip_address(found.address)) is Zone.LAN:
                return found.address
    pytest.skip("this machine has no address in a private network")


class Answers:
    """A resolver whose answers change: each lookup takes the next, the last one stays."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    def __call__(self, host: str) -> Sequence[str]:
        self.asked.append(host)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


class Elsewhere(httpcore.SyncBackend):
    """A network in which every connection ends at one place, as behind a gateway that redirects."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__()
        self.place = host, port
        self.asked: list[str] = []

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        self.asked.append(host)
        return super().connect_tcp(*self.place, timeout, local_address, socket_options)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_loopback_is_reached_by_both_of_its_addresses_and_by_name(listen: Callable[[str], Listener], host: str) -> None:
    listener = listen(host)
    guard = Guard(resolver=no_lookup)
    for url in (listener.url, f"http://localhost:{listener.port}"):
        assert guard.destination(url).zone is Zone.LOOPBACK
        with client(guard) as http:
            assert http.post(f"{url}/v1", content=b"text").text == "ok"
    assert [(method, path, body) for method, path, _, body in listener.heard] == [("POST", "/v1", b"text")] * 2


def test_a_name_that_resolves_to_loopback_is_not_loopback(listen: Callable[[str], Listener]) -> None:
    listener = listen("127.0.0.1")
    origin = f"http://printer.home.arpa:{listener.port}"
    for addresses in (["127.0.0.1"], ["10.0.0.1", "127.0.1.1"], ["::1"], ["::ffff:127.0.0.1"]):
        guard = Guard([origin], resolver=Answers(addresses))
        destination = guard.destination(origin)
        assert destination.zone is Zone.REMOTE
        assert destination.obstacle is not None
        assert destination.obstacle.reason is Reason.NAME_IS_LOOPBACK
        with client(guard) as http, pytest.raises(EgressRefused, match="resolves to this machine"):
            http.get(origin)
    assert listener.heard == []


@pytest.mark.parametrize(
    ("addresses", "zone", "reason"),
    [
        (["10.0.0.5"], Zone.LAN, None),
        (["192.168.1.9", "fd00::9", "fe80::9%eth0"], Zone.LAN, None),
        (["93.184.216.34"], Zone.REMOTE, None),
        (["10.0.0.5", "93.184.216.34"], Zone.REMOTE, None),  # private addresses only make it private
        (["10.0.0.5", "2606:2800:220:1::1"], Zone.REMOTE, None),
        (["100.64.0.1"], Zone.REMOTE, None),
        (["0.0.0.0"], Zone.REMOTE, Reason.ADDRESS_UNUSABLE),
        (["10.0.0.5", "::"], Zone.REMOTE, Reason.ADDRESS_UNUSABLE),
        (["10.0.0.5", "no address"], Zone.REMOTE, Reason.ADDRESS_UNUSABLE),
        (["224.0.0.1"], Zone.REMOTE, Reason.ADDRESS_UNUSABLE),
        ([], Zone.REMOTE, Reason.NAME_NOT_RESOLVED),
    ],
)
def test_a_name_is_as_far_away_as_the_farthest_of_its_addresses(
    addresses: list[str], zone: Zone, reason: Reason | None
) -> None:
    resolver = Answers(addresses)
    destination = Guard(["http://gpu.example:8080"], resolver=resolver).destination("http://gpu.example:8080/v1/x?y")
    assert (destination.origin, destination.zone) == ("http://gpu.example:8080", zone)
    assert destination.addresses == tuple(addresses)
    assert (destination.obstacle.reason if destination.obstacle else None) is reason
    assert resolver.asked == ["gpu.example"]


@pytest.mark.parametrize(
    ("url", "zone", "reason"),
    [
        ("http://10.0.0.5:8080", Zone.LAN, None),
        ("http://[fd00::5]:8080", Zone.LAN, None),
        ("http://8.8.8.8", Zone.REMOTE, None),
        ("http://0.0.0.0:8080", Zone.REMOTE, Reason.ADDRESS_UNUSABLE),
        ("http://[::]:8080", Zone.REMOTE, Reason.ADDRESS_UNUSABLE),
        ("http://127.1:8080", Zone.REMOTE, Reason.ADDRESS_AMBIGUOUS),  # naming it does not make it clear
        ("http://localhost.:8080", Zone.REMOTE, Reason.NAME_IS_LOOPBACK),
    ],
)
def test_a_configured_address_lies_where_its_number_says(url: str, zone: Zone, reason: Reason | None) -> None:
    destination = Guard([url], resolver=Answers(["127.0.0.1"])).destination(url)
    assert destination.zone is zone
    assert (destination.obstacle.reason if destination.obstacle else None) is reason


def test_a_name_without_addresses_is_a_destination_that_does_not_answer() -> None:
    def nothing(host: str) -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    guard = Guard(["http://gone.example"], resolver=nothing)
    destination = guard.destination("http://gone.example")
    assert destination.obstacle is not None
    assert destination.obstacle.explanation == "the name gone.example cannot be resolved (Name or service not known)"
    with client(guard) as http, pytest.raises(httpx.ConnectError, match=r"gone\.example cannot be resolved"):
        http.get("http://gone.example")


def test_the_system_s_resolver_is_asked_for_a_configured_name() -> None:
    destination = Guard(["http://localhost.:9"]).destination("http://localhost.:9")
    assert destination.obstacle is not None
    assert destination.obstacle.reason in {Reason.NAME_IS_LOOPBACK, Reason.NAME_NOT_RESOLVED}


def test_content_goes_to_the_addresses_that_were_cleared_though_the_name_has_others_by_now(
    listen: Callable[[str], Listener], private_address: str
) -> None:
    local, trap = listen(private_address), listen("127.0.0.1")
    origin = f"http://gpu.example:{local.port}"
    resolver = Answers([private_address], ["127.0.0.1"])
    guard = Guard([origin], resolver=resolver)
    destination = guard.destination(origin)
    assert (destination.zone, destination.obstacle) == (Zone.LAN, None)
    for _ in range(2):  # a connection each
        with client(guard.pinned(destination)) as http:
            assert http.post(origin, content=b"text").text == "ok"
    assert [body for *_, body in local.heard] == [b"text", b"text"]
    assert local.heard[0][2]["Host"] == f"gpu.example:{local.port}"
    assert resolver.asked == ["gpu.example"]
    assert trap.heard == []


def test_a_name_that_was_rebound_to_this_machine_gets_no_second_connection(
    listen: Callable[[str], Listener], private_address: str
) -> None:
    local = listen(private_address)
    origin = f"http://gpu.example:{local.port}"
    guard = Guard([origin], resolver=Answers([private_address], ["127.0.0.1"]))
    with client(guard) as http:
        assert http.get(origin).text == "ok"
    with client(guard) as http, pytest.raises(EgressRefused) as refused:
        http.get(origin)
    assert refused.value.code == Reason.NAME_IS_LOOPBACK
    assert len(local.heard) == 1


def test_a_cleared_destination_is_the_only_one_that_its_client_reaches(listen: Callable[[str], Listener]) -> None:
    cleared, other = listen("127.0.0.1"), listen("127.0.0.1")
    guard = Guard()
    with client(guard.pinned(guard.destination(cleared.url))) as http:
        assert http.get(cleared.url).text == "ok"
        with pytest.raises(EgressRefused):
            http.get(other.url)
    refused = guard.destination("http://evil.example")
    with client(guard.pinned(refused)) as http, pytest.raises(EgressRefused):
        http.get("http://evil.example")
    assert other.heard == []


def test_a_connection_that_ends_elsewhere_is_closed_before_a_byte_is_sent(listen: Callable[[str], Listener]) -> None:
    trap = listen("127.0.0.1")
    network = Elsewhere("127.0.0.1", trap.port)
    guard = Guard(["http://gpu.example"], resolver=Answers(["10.0.0.5"]))
    with client(guard, network=network) as http, pytest.raises(EgressRefused, match="ended at another") as refused:
        http.post("http://gpu.example/", content=b"text")
    assert refused.value.code == Reason.PEER_CHANGED
    assert network.asked == ["10.0.0.5"]
    assert trap.heard == []


def test_the_second_address_is_tried_when_the_first_does_not_answer(
    listen: Callable[[str], Listener], private_address: str
) -> None:
    local = listen(private_address)
    # fd00::/8 without a route, and a private address where nothing listens: whichever fails, the last one answers.
    resolver = Answers(["fdff:ffff:ffff::1", private_address])
    with client(Guard([f"http://gpu.example:{local.port}"], resolver=resolver), timeout=2.0) as http:
        assert http.get(f"http://gpu.example:{local.port}").text == "ok"


def test_redirects_are_not_followed(serve: Callable[[], Server]) -> None:
    server, away = serve(), serve()
    server.answers = {
        "/here": (307, {"Location": "/there"}, b""),
        "/away": (302, {"Location": f"{away.url}/"}, b""),
    }
    with client(Guard()) as http:
        assert http.get(f"{server.url}/here").status_code == 307
        assert http.get(f"{server.url}/away").status_code == 302
    assert server.asked == ["/here", "/away"]
    assert away.asked == []


def test_a_download_is_led_only_to_an_allowed_origin(serve: Callable[[], Server]) -> None:
    server, away = serve(), serve()
    server.answers = {
        "/here": (302, {"Location": "/there"}, b""),
        "/there": (200, {}, b"found"),
        "/away": (302, {"Location": "https://elsewhere.example/"}, b""),
        "/back": (302, {"Location": f"{away.url}/"}, b""),
        "/user": (302, {"Location": server.url.replace("//", "//me@")}, b""),
        "/file": (302, {"Location": "file:///etc/passwd"}, b""),
    }
    with client(Guard([server.url], loopback=False), follow_redirects=True) as http:
        assert http.get(f"{server.url}/here").text == "found"
        with pytest.raises(EgressRefused, match=r"https://elsewhere\.example:443"):
            http.get(f"{server.url}/away")
        with pytest.raises(EgressRefused, match="lead back"):
            http.get(f"{server.url}/back")
        with pytest.raises(EgressRefused, match="credentials"):
            http.get(f"{server.url}/user")
        with pytest.raises((EgressRefused, httpx.UnsupportedProtocol)):
            http.get(f"{server.url}/file")
    assert away.asked == []


@contextmanager
def silent_listener() -> Iterator[tuple[int, Callable[[], int]]]:
    """A port, and how many connections were made to it."""
    with closing(socket.socket()) as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        sock.settimeout(0.2)

        def accepted() -> int:
            count = 0
            while True:
                try:
                    sock.accept()[0].close()
                except TimeoutError:
                    return count
                count += 1

        yield sock.getsockname()[1], accepted


def test_no_proxy_of_the_environment_ever_sees_a_connection(
    listen: Callable[[str], Listener], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = listen("127.0.0.1")
    with silent_listener() as (port, accepted):
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "FTP_PROXY"):
            for spelling in (name, name.lower()):
                monkeypatch.setenv(spelling, f"http://127.0.0.1:{port}")
        for name in ("NO_PROXY", "no_proxy", "REQUEST_METHOD"):
            monkeypatch.delenv(name, raising=False)
        with client(Guard()) as http:
            assert http.get(server.url).text == "ok"
        guard = Guard(["https://api.example"], resolver=Answers([]))
        with client(guard) as http, pytest.raises(httpx.ConnectError):
            http.get("https://api.example/")
        assert accepted() == 0
        # The listener would have been found by a client that believes the environment.
        with httpx.Client(timeout=1.0) as believing, pytest.raises(httpx.TransportError):
            believing.get(server.url)
        assert accepted() == 1


def test_an_exception_from_the_proxy_changes_nothing_either(
    listen: Callable[[str], Listener], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "evil.example,*")
    with client(Guard(resolver=no_lookup)) as http, pytest.raises(EgressRefused):
        http.get("http://evil.example/")


def test_no_password_is_taken_from_netrc(
    listen: Callable[[str], Listener], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password secret\n", encoding="utf-8")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", os.fspath(netrc))
    monkeypatch.setenv("HOME", os.fspath(tmp_path))
    (tmp_path / ".netrc").symlink_to(netrc)
    server = listen("127.0.0.1")
    with client(Guard()) as http:
        http.get(server.url)
    assert "Authorization" not in server.heard[0][2]


def test_a_certificate_authority_of_the_environment_is_not_trusted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # A file that is no certificate would be an error at once, were it read.
    broken = tmp_path / "ca.pem"
    broken.write_text("not a certificate", encoding="utf-8")
    monkeypatch.setenv("SSL_CERT_FILE", os.fspath(broken))
    client(Guard()).close()
