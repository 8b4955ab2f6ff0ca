"""What the guard says of a URL by its spelling alone."""

from __future__ import annotations

import pickle

import httpx
import pytest

from garage.inference.egress import Guard, is_loopback, origin_of
from garage.inference.errors import EgressRefused
from garage.inference.policy import Reason


def no_lookup(host: str) -> list[str]:
    raise AssertionError(f"{host} was looked up")


HUB = Guard(["https://hub.example", "http://lan.example:8080", "https://xn--bcher-kva.example"], resolver=no_lookup)


@pytest.mark.parametrize(
    "url",
    [
        "https://hub.example/a/b",
        "https://hub.example:443/a",
        "https://HUB.example/a",
        "HTTPS://hub.example/a",
        "http://lan.example:8080/",
        "https://bücher.example/",  # the same name in its own script
        "http://localhost:11434/v1",
        "http://LocalHost:11434/v1",
        "http://127.0.0.1/",
        "http://127。0。0。1/",  # httpx sends and connects to 127.0.0.1
        "https://127.8.9.1:9/",
        "http://[::1]:8080/",
        "http://[0:0:0:0:0:0:0:1]:8080/",
    ],
)
def test_named_origins_and_loopback_are_allowed(url: str) -> None:
    HUB.check(httpx.URL(url))


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://hub.example/", Reason.ORIGIN_NOT_CONFIGURED),  # another scheme
        ("https://hub.example:8443/", Reason.ORIGIN_NOT_CONFIGURED),  # another port
        ("https://hub.example:80/", Reason.ORIGIN_NOT_CONFIGURED),
        ("https://cdn.hub.example/", Reason.ORIGIN_NOT_CONFIGURED),
        ("https://hub.example.evil.org/", Reason.ORIGIN_NOT_CONFIGURED),
        ("https://hub.example./", Reason.ORIGIN_NOT_CONFIGURED),
        ("https://bucher.example/", Reason.ORIGIN_NOT_CONFIGURED),
        ("http://lan.example/", Reason.ORIGIN_NOT_CONFIGURED),
        ("http://localhost.example/", Reason.ORIGIN_NOT_CONFIGURED),
        ("http://localhost./", Reason.ORIGIN_NOT_CONFIGURED),
        ("http://my.localhost/", Reason.ORIGIN_NOT_CONFIGURED),
        ("http://localhost.localdomain/", Reason.ORIGIN_NOT_CONFIGURED),
        ("http://ip6-localhost/", Reason.ORIGIN_NOT_CONFIGURED),
        ("http://127.0.0.1.nip.io/", Reason.ORIGIN_NOT_CONFIGURED),
        ("http://192.168.0.1/", Reason.ORIGIN_NOT_CONFIGURED),
        ("http://169.254.169.254/", Reason.ORIGIN_NOT_CONFIGURED),
        ("http://[fd00::1]/", Reason.ORIGIN_NOT_CONFIGURED),
        ("http://0.0.0.0/", Reason.ORIGIN_NOT_CONFIGURED),
        ("http://[::]/", Reason.ORIGIN_NOT_CONFIGURED),
        ("http://[::127.0.0.1]/", Reason.ORIGIN_NOT_CONFIGURED),
        ("http://[64:ff9b::7f00:1]/", Reason.ORIGIN_NOT_CONFIGURED),
        ("http://127.1/", Reason.ADDRESS_AMBIGUOUS),
        ("http://0x7f.1/", Reason.ADDRESS_AMBIGUOUS),
        ("http://2130706433/", Reason.ADDRESS_AMBIGUOUS),
        ("http://127.0.0.1./", Reason.ADDRESS_AMBIGUOUS),
        ("http://[::ffff:127.0.0.1]/", Reason.ADDRESS_AMBIGUOUS),
        ("http://[::ffff:7f00:1]:8080/", Reason.ADDRESS_AMBIGUOUS),
        ("http://[::1%25eth0]/", Reason.ADDRESS_AMBIGUOUS),
        ("http://[fe80::1%25eth0]/", Reason.ADDRESS_AMBIGUOUS),
        ("ftp://hub.example/", Reason.SCHEME_UNSUPPORTED),
        ("file:///etc/passwd", Reason.SCHEME_UNSUPPORTED),
        ("http+unix://%2frun%2fx.sock/", Reason.SCHEME_UNSUPPORTED),
        ("ws://127.0.0.1/", Reason.SCHEME_UNSUPPORTED),
        ("javascript:alert(1)", Reason.SCHEME_UNSUPPORTED),
        ("//127.0.0.1/", Reason.SCHEME_UNSUPPORTED),
        ("127.0.0.1:80", Reason.SCHEME_UNSUPPORTED),
        ("https://me@hub.example/", Reason.CREDENTIALS_IN_URL),
        ("http://me:secret@127.0.0.1/", Reason.CREDENTIALS_IN_URL),
        ("http://127.0.0.1@hub.example/", Reason.CREDENTIALS_IN_URL),
        ("http://127.0.0.1\\@evil.example/", Reason.CREDENTIALS_IN_URL),
        ("http://127.0.0.1%2f@evil.example/", Reason.CREDENTIALS_IN_URL),
        ("http://evil.example#@127.0.0.1/", Reason.ORIGIN_NOT_CONFIGURED),
        ("http://evil.example?@127.0.0.1/", Reason.ORIGIN_NOT_CONFIGURED),
        ("http:127.0.0.1", Reason.URL_INVALID),
        ("http:///path", Reason.URL_INVALID),
        ("http://./", Reason.URL_INVALID),
        ("http://a..b/", Reason.URL_INVALID),
        ("http://loc%61lhost/", Reason.URL_INVALID),
        ("http://127.0.0.1 /", Reason.URL_INVALID),
        ("http://127.0.0.1:0/", Reason.URL_INVALID),
        ("http://127.0.0.1:99999/", Reason.URL_INVALID),
        ("http://127.0.0.1\t/", Reason.URL_INVALID),
        ("http://127.0.0.01/", Reason.URL_INVALID),
        ("http://ｌｏｃａｌｈｏｓｔ/", Reason.URL_INVALID),
        ("http://[::1]evil/", Reason.URL_INVALID),
        ("http://[::1/", Reason.URL_INVALID),
        ("", Reason.SCHEME_UNSUPPORTED),
        ("x" * 70_000, Reason.URL_INVALID),
        (f"http://{'x' * 5_000}.example", Reason.URL_INVALID),
    ],
)
def test_everything_else_is_refused_without_a_lookup(url: str, reason: Reason) -> None:
    destination = HUB.destination(url)
    assert destination.obstacle is not None
    assert destination.obstacle.reason is reason
    assert len(destination.origin) <= 300
    assert "secret" not in repr(destination)
    with pytest.raises((EgressRefused, httpx.InvalidURL)) as refused:
        HUB.check(httpx.URL(url))
    if isinstance(refused.value, EgressRefused):
        assert refused.value.code is reason
        assert refused.value.reason in str(refused.value)
        assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "host", ["[::1%25eth0]", "[::ffff:127.0.0.1]", "127.1", "localhost.", "a.localhost", "0.0.0.0"]
)
def test_only_the_plain_spellings_are_taken_for_loopback(host: str) -> None:
    assert not is_loopback(httpx.URL(f"http://{host}/"))


def test_an_origin_is_written_with_its_port_and_in_ascii() -> None:
    assert origin_of(httpx.URL("https://BÜCHER.example/a?b#c")) == "https://xn--bcher-kva.example:443"
    assert origin_of(httpx.URL("http://[FD00::1]/")) == "http://[fd00::1]:80"


def test_loopback_can_be_closed_to_what_comes_from_outside() -> None:
    closed = Guard(["https://hub.example", "http://localhost:9"], loopback=False)
    with pytest.raises(EgressRefused, match="lead back") as refused:
        closed.check(httpx.URL("http://127.0.0.1:5432/"))
    assert refused.value.code == Reason.LOOPBACK_CLOSED
    closed.check(httpx.URL("http://localhost:9/"))  # unless it was named


def test_an_error_of_the_guard_survives_a_process_border() -> None:
    with pytest.raises(EgressRefused) as refused:
        HUB.check(httpx.URL("http://evil.example"))
    copy = pickle.loads(pickle.dumps(refused.value))
    assert (copy.origin, copy.code) == ("http://evil.example:80", "origin_not_configured")
