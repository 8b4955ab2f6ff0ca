"""Files whose content is known in advance by its hash."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from garage.inference.errors import ModelCorrupt

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is (0: not known)."""

BLOCK = 1 << 20


class OriginFailed(Exception):
    """An origin did not have the files; another one may. The message says why."""


def blocks(file: IO[bytes]) -> Iterator[bytes]:
    """The rest of an open file, a MiB at a time."""
    while block := file.read(BLOCK):
        yield block


def sha256_of(path: Path) -> str:
    """The file's sha256 as 64 hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_checked(content: Iterable[bytes], target: Path, *, what: str, expected: str) -> None:
    """Write `content` to `target`.

    Raises `ModelCorrupt`, naming `what`, and leaves no file when the content's sha256 is not the expected one.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    with target.open("wb") as file:
        for block in content:
            digest.update(block)
            file.write(block)
    if digest.hexdigest() != expected:
        target.unlink()
        raise ModelCorrupt(what, expected, digest.hexdigest())


@dataclass(frozen=True, slots=True)
class FileRecord:
    """What is remembered beside a hashed file, so that it need not be hashed again while it looks the same."""

    path: str
    size: int
    mtime_ns: int
    sha256: str
    origin: str

    @classmethod
    def of(cls, path: Path, sha256: str, origin: str) -> FileRecord:
        """The record of a file as it is now; `origin` says in words where it came from."""
        stat = path.stat()
        return cls(str(path), stat.st_size, stat.st_mtime_ns, sha256, origin)

    @classmethod
    def read(cls, sidecar: Path) -> FileRecord | None:
        """The record in `sidecar`; None when there is none that can be understood."""
        try:
            return cls(**json.loads(sidecar.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None

    def write(self, sidecar: Path) -> None:
        """Replace `sidecar` by this record, in one step."""
        partial = sidecar.with_name(f".{sidecar.name}.{os.getpid()}.partial")
        try:
            partial.write_text(json.dumps(asdict(self), indent=2) + "\n", encoding="utf-8")
            partial.replace(sidecar)
        finally:
            partial.unlink(missing_ok=True)


def recorded_sha256(path: Path, sidecar: Path, *, verify: bool = False) -> str | None:
    """The file's sha256, from its record while path, size and time agree with it; None when there is no file.

    Otherwise, or to `verify`, the file is hashed and recorded. Raises `OSError` for a file that cannot be read.
    """
    try:
        stat = path.stat()
    except FileNotFoundError:
        return None
    record = FileRecord.read(sidecar)
    if record is not None and not verify:
        seen = (record.path, record.size, record.mtime_ns)
        if seen == (str(path), stat.st_size, stat.st_mtime_ns):
            return record.sha256
    digest = sha256_of(path)
    origin = record.origin if record is not None and record.sha256 == digest else "found in place"
    # A models directory shared read-only works too; its files are then hashed each time.
    with suppress(OSError):
        sidecar.parent.mkdir(parents=True, exist_ok=True)
        FileRecord.of(path, digest, origin).write(sidecar)
    return digest
