"""Talking to a web server on this machine."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from garage.serve.webserver import answers, free_port, load_errors, reload, url_of


@pytest.fixture
def listening() -> Iterator[int]:
    """A port that something listens to without ever answering."""
    with closing(socket.socket()) as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        yield sock.getsockname()[1]


class Graphql(BaseHTTPRequestHandler):
    """Answers every question with what the test put there, and remembers the questions."""

    said: dict[str, Any]
    asked: list[str]

    def do_GET(self) -> None:
        self._answer({})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.asked.append(json.loads(body)["query"])
        self._answer({"data": self.said})

    def _answer(self, data: object) -> None:
        body = json.dumps(data).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def graphql() -> Iterator[tuple[str, type[Graphql]]]:
    handler = type("Handler", (Graphql,), {"said": {}, "asked": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield url_of(server.server_address[1]), handler
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_free_port_is_the_one_that_was_wanted() -> None:
    with closing(socket.socket()) as sock:
        sock.bind(("127.0.0.1", 0))
        wanted = sock.getsockname()[1]
    assert free_port(wanted) == wanted


def test_a_port_in_use_is_left_to_whoever_has_it(listening: int) -> None:
    assert free_port(listening) > listening


def test_nothing_answers_where_nothing_listens(listening: int) -> None:
    assert not answers(url_of(free_port(listening)))


def test_a_server_answers(graphql: tuple[str, type[Graphql]]) -> None:
    assert answers(graphql[0])


@pytest.mark.parametrize(
    ("workspace", "errors"),
    [
        ({"locationEntries": [{"name": "garage", "locationOrLoadError": {}}]}, []),
        ({"locationEntries": [{"name": "garage", "locationOrLoadError": None}]}, []),
        ({"locationEntries": [{"name": "garage", "locationOrLoadError": {"message": "no module\n"}}]}, ["no module"]),
        ({"message": "no workspace"}, ["no workspace"]),
    ],
)
def test_definitions_that_did_not_load_say_why(
    graphql: tuple[str, type[Graphql]], workspace: dict[str, Any], errors: list[str]
) -> None:
    url, handler = graphql
    handler.said = {"workspaceOrError": workspace}
    assert load_errors(url) == errors


def test_a_reload_is_asked_for(graphql: tuple[str, type[Graphql]]) -> None:
    url, handler = graphql
    handler.said = {"reloadWorkspace": {}}
    reload(url)
    assert ["reloadWorkspace" in question for question in handler.asked] == [True]
