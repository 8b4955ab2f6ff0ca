"""Talking to Dagster's web server on this machine, through the one guarded HTTP client."""

from __future__ import annotations

from typing import Any

import psutil

from garage.inference import egress

HOST = "127.0.0.1"
_TRIED_PORTS = 200
_LOAD_ERRORS = """
query {
  workspaceOrError {
    ... on PythonError { message }
    ... on Workspace { locationEntries { name locationOrLoadError { ... on PythonError { message } } } }
  }
}
"""
_RELOAD = "mutation { reloadWorkspace { __typename } }"


def url_of(port: int) -> str:
    """The address of a web server on this machine."""
    return f"http://{HOST}:{port}"


def free_port(wanted: int) -> int:
    """The first port from `wanted` on that nothing listens to."""
    try:
        connections = psutil.net_connections("inet")
        taken = {c.laddr[1] for c in connections if c.laddr and c.status == psutil.CONN_LISTEN}
    except psutil.AccessDenied:  # some systems tell root only
        taken = set()
    candidates = range(wanted, min(wanted + _TRIED_PORTS, 65_536))
    return next((port for port in candidates if port not in taken and not answers(url_of(port))), wanted)


def answers(url: str) -> bool:
    """Whether a web server answers at `url`."""
    try:
        with egress.client(egress.Guard(), timeout=5.0) as client:
            return bool(client.get(f"{url}/server_info").status_code)
    except Exception:  # noqa: BLE001 - whatever goes wrong, nothing answers there
        return False


def load_errors(url: str) -> list[str]:
    """Why Dagster could not load Garage's definitions, a text each; empty when it could."""
    workspace = _ask(url, _LOAD_ERRORS)["workspaceOrError"]
    found = [workspace] + [entry["locationOrLoadError"] or {} for entry in workspace.get("locationEntries", ())]
    return [entry["message"].strip() for entry in found if "message" in entry]


def reload(url: str) -> None:
    """Makes Dagster read Garage's definitions anew. The daemon does so by itself, once a minute."""
    _ask(url, _RELOAD)


def _ask(url: str, query: str) -> dict[str, Any]:
    with egress.client(egress.Guard(), timeout=120.0) as client:
        answer = client.post(f"{url}/graphql", json={"query": query})
        answer.raise_for_status()
        data: dict[str, Any] = answer.json()["data"]
        return data
