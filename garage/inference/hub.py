"""Upstream files from a model hub, over HTTPS and through the egress guard."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx

from garage.inference import egress
from garage.inference.catalogue import HubOrigin
from garage.inference.checked_files import BLOCK, OriginFailed, Progress, write_checked
from garage.inference.errors import EgressRefused

# Where huggingface.co sends a client for the content of a large file.
_STORAGE_ORIGINS = (
    "https://cdn-lfs.huggingface.co",
    "https://cdn-lfs.hf.co",
    "https://cdn-lfs-us-1.hf.co",
    "https://cas-bridge.xethub.hf.co",
    "https://us.aws.cdn.hf.co",
)


def collect(origin: HubOrigin, files: Mapping[str, str], target: Path, *, base_url: str, progress: Progress) -> None:
    """Put `files` (path: sha256) of the repository into `target`.

    Raises `OriginFailed` when the hub cannot be reached, refuses, or redirects to a host that is not its own, and
    `ModelCorrupt` for other content.
    """
    base = httpx.URL(base_url)
    guard = egress.Guard([base_url, *_STORAGE_ORIGINS], loopback=False)
    try:
        with egress.client(guard, follow_redirects=True) as client:
            for path, expected in files.items():
                url = f"{base_url.rstrip('/')}/{origin.repo}/resolve/{origin.revision}/{path}"
                with client.stream("GET", url, headers={"Accept-Encoding": "identity"}) as response:
                    _require_success(response, origin)
                    content = _content(response, f"downloading {path} of {origin.repo}", progress)
                    write_checked(content, target / path, what=f"{path} of {origin.repo}", expected=expected)
    except httpx.HTTPError as error:
        raise OriginFailed(f"{egress.origin_of(base)} did not answer: {error or type(error).__name__}") from None
    except EgressRefused as error:
        raise OriginFailed(error.message) from None


def _require_success(response: httpx.Response, origin: HubOrigin) -> None:
    if response.status_code in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
        raise OriginFailed(f"{origin.repo} wants a login ({response.status_code})")
    if response.status_code != httpx.codes.OK:
        raise OriginFailed(f"{response.request.url.copy_with(query=None)} answered {response.status_code}")


def _content(response: httpx.Response, step: str, progress: Progress) -> Iterator[bytes]:
    length = response.headers.get("content-length", "")
    total = int(length) if length.isdecimal() else 0
    done = 0
    progress(step, 0, total)
    for block in response.iter_bytes(BLOCK):
        yield block
        done += len(block)
        progress(step, done, total)
