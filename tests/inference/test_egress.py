from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import httpx
import pytest

from garage.inference.egress import Guard, client
from garage.inference.errors import EgressRefused

if TYPE_CHECKING:
    from tests.inference.conftest import Server

HUB = Guard(["https://hub.example", "http://lan.example:8080"])


@pytest.mark.parametrize(
    "url",
    [
        "https://hub.example/a/b",
        "https://hub.example:443/a",
        "https://HUB.example/a",
        "http://lan.example:8080/",
        "http://localhost:11434/v1",
        "http://127.0.0.1/",
        "https://127.8.9.1:9/",
        "http://[::1]:8080/",
    ],
)
def test_named_origins_and_loopback_are_allowed(url: str) -> None:
    HUB.check(httpx.URL(url))


@pytest.mark.parametrize(
    "url",
    [
        "http://hub.example/",  # another scheme
        "https://hub.example:8443/",  # another port
        "https://cdn.hub.example/",
        "https://hub.example.evil.org/",
        "https://hub.example./",
        "http://lan.example/",
        "http://localhost.example/",
        "http://localhost./",
        "http://my.localhost/",
        "http://127.0.0.1.nip.io/",
        "http://127.1/",
        "http://2130706433/",
        "http://0.0.0.0/",
        "http://[::]/",
        "http://192.168.0.1/",
        "http://169.254.169.254/",
        "ftp://hub.example/",
        "file:///etc/passwd",
    ],
)
def test_everything_else_is_refused(url: str) -> None:
    with pytest.raises(EgressRefused) as refused:
        HUB.check(httpx.URL(url))
    assert refused.value.reason in str(refused.value)


@pytest.mark.parametrize("url", ["https://me@hub.example/", "http://me:secret@127.0.0.1/"])
def test_credentials_in_an_address_are_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(EgressRefused, match="credentials") as refused:
        HUB.check(httpx.URL(url))
    assert "secret" not in str(refused.value)


def test_loopback_can_be_closed_to_what_comes_from_outside() -> None:
    with pytest.raises(EgressRefused, match="lead back"):
        Guard(["https://hub.example"], loopback=False).check(httpx.URL("http://127.0.0.1:5432/"))


def test_a_redirect_is_followed_only_to_an_allowed_origin(serve: Callable[[], Server]) -> None:
    server = serve()
    server.answers = {
        "/here": (302, {"Location": "/there"}, b""),
        "/there": (200, {}, b"found"),
        "/away": (302, {"Location": "https://elsewhere.example/"}, b""),
    }
    with client(Guard()) as http:
        assert http.get(f"{server.url}/here").text == "found"
        with pytest.raises(EgressRefused, match=r"https://elsewhere\.example:443"):
            http.get(f"{server.url}/away")


def test_proxies_of_the_environment_are_ignored(serve: Callable[[], Server], monkeypatch: pytest.MonkeyPatch) -> None:
    server, proxy = serve(), serve()
    server.answers["/"] = (200, {}, b"direct")
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, proxy.url)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with client(Guard()) as http:
        assert http.get(server.url).text == "direct"
    assert not proxy.asked
