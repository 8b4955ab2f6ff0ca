"""Programs beside the libraries: whether they are there, in which version, and what they can read.

A program that appears, or a package of it, makes the same bytes come out differently, so what is told here is part of
an extractor's fingerprint: what was refused for want of it is read again then.
"""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from garage.config import Extraction

MISSING = "missing"
TESSERACT = "tesseract"
ORIENTATION = "osd"
"""Tesseract's package that tells which way up a picture is; a language to it like others."""

_SECONDS = 20.0  # a program that takes longer to tell its version is broken
_VERSION = re.compile(r"\bv?(\d+(?:\.\d+)+\S*)")
_FOLDER = re.compile(r'"([^"]+)"')


@dataclass(frozen=True, slots=True)
class Tesseract:
    """The program as it is installed, and which of the languages that are asked for it has packages for.

    `turns` says that it can tell which way up a picture is. `sizes` are of the packages found, in bytes, by name.
    """

    program: str
    version: str
    languages: tuple[str, ...]
    absent: tuple[str, ...]
    turns: bool
    sizes: dict[str, int]


def tesseract(settings: Extraction) -> Tesseract | None:
    """Tesseract with the languages of the settings; None when it is not installed or does not start.

    The program is asked once for as long as it stays the same file; its packages are looked for every time.
    """
    program = shutil.which(TESSERACT)
    if program is None:
        return None
    status = Path(program).stat()
    told = _ask(program, status.st_mtime_ns, os.environ.get("TESSDATA_PREFIX"))
    if told is None:
        return None
    version, folder = told
    sizes = {name: _size(Path(folder) / f"{name}.traineddata") for name in (*settings.ocr_languages, ORIENTATION)}
    return Tesseract(
        program=program,
        version=version,
        languages=tuple(name for name in settings.ocr_languages if sizes[name]),
        absent=tuple(name for name in settings.ocr_languages if not sizes[name]),
        turns=sizes[ORIENTATION] > 0,
        sizes={name: size for name, size in sizes.items() if size},
    )


def version(tool: str, settings: Extraction) -> str:
    """What a fingerprint holds of a program: its version and packages, or `MISSING`.

    Of Tesseract's packages only the languages of the settings and orientation count, each with its size, which tells
    the fast from the thorough ones.

    Raises:
        KeyError: nothing is known of such a program.
    """
    if tool != TESSERACT:
        raise KeyError(tool)
    found = tesseract(settings)
    if found is None:
        return MISSING
    return " ".join((found.version, *(f"{name}:{size}" for name, size in found.sizes.items())))


@cache
def _ask(program: str, mtime_ns: int, prefix: str | None) -> tuple[str, str] | None:
    """The version of the Tesseract at `program`, and the folder that it reads its packages from."""
    del mtime_ns, prefix  # they only make it ask again
    said = _said(program, "--version")
    listed = _said(program, "--list-langs")
    version, folder = _VERSION.search(said), _FOLDER.search(listed)
    if version is None or folder is None:
        return None
    return version[1], folder[1]


def _said(program: str, argument: str) -> str:
    try:
        done = subprocess.run(
            [program, argument],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (done.stdout + done.stderr).decode(errors="replace")  # older versions tell it on the one, newer on the other


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
