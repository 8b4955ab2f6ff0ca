"""Every extractor, which files belong to it, and the two steps of reading one: bytes, then text.

A further kind of file is one module with `NAME`, `LIBRARIES`, `SETTINGS`, `TOOLS`, `SUFFIXES` and `extract`, named in
`_MODULES`.
"""

import errno
import hashlib
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from garage.config import Extraction
from garage.extract import (
    calendars,
    code,
    contacts,
    docx,
    epub,
    html,
    image,
    json_lines,
    mail,
    markdown,
    mbox,
    odf,
    outlook,
    pdf,
    pptx,
    rtf,
    spreadsheet,
    subtitles,
    text,
    xlsx,
)
from garage.extract.mirror import clean_line, has_text
from garage.extract.model import Extracted, ExtractError, Malformed, NoText, TooLarge, Unsupported
from garage.extract.pages import tools
from garage.fingerprint import code_digest

_READ = 1024 * 1024
_REASON = 300


class Extractor(Protocol):
    """The shape of an extractor's module."""

    @property
    def NAME(self) -> str:  # noqa: N802 - a module's constant
        """The name that is stored with every document."""

    @property
    def LIBRARIES(self) -> tuple[str, ...]:  # noqa: N802 - a module's constant
        """The distributions whose versions decide what comes out."""

    @property
    def SETTINGS(self) -> tuple[str, ...]:  # noqa: N802 - a module's constant
        """The fields of the configuration's section `extraction` that decide what comes out."""

    @property
    def TOOLS(self) -> tuple[str, ...]:  # noqa: N802 - a module's constant
        """The programs whose versions decide what comes out."""

    @property
    def SUFFIXES(self) -> Mapping[str, str]:  # noqa: N802 - a module's constant
        """Kind of document by lower-case suffix (".md") or whole file name ("makefile")."""

    def extract(self, raw: bytes, *, name: str, settings: Extraction) -> Extracted | list[Extracted]:
        """The document or documents in a file's bytes; raises `ExtractError`, or whatever the library raises."""


_MODULES: tuple[Extractor, ...] = (
    *(text, markdown, code, html, epub),
    *(pdf, image),
    *(docx, pptx, xlsx, spreadsheet, odf, rtf),
    *(mail, mbox, outlook),
    *(calendars, contacts, subtitles, json_lines),
)

EXTRACTORS: Mapping[str, Extractor] = {module.NAME: module for module in _MODULES}
SUFFIXES: Mapping[str, str] = {ending: module.NAME for module in _MODULES for ending in module.SUFFIXES}
"""Extractor by lower-case suffix or whole file name; the whole name goes before the suffix."""


@dataclass(frozen=True, slots=True)
class Raw:
    """The bytes of a file, read once, and their SHA-256."""

    sha256: bytes
    data: bytes


def read(path: bytes | str | os.PathLike[str], *, max_bytes: int) -> Raw:
    """Read a regular file of at most `max_bytes`.

    What lies at `path` may have changed since it was listed: links are not followed, and a pipe or device in the file's
    place neither blocks nor is read.

    Raises:
        Unsupported: it is not a regular file (any more).
        TooLarge: it is larger than `max_bytes`.
        OSError: it cannot be opened or read.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise Unsupported("it is not a regular file") from error
        raise
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        os.close(handle)
        raise Unsupported("it is not a regular file")
    with open(handle, "rb", buffering=0) as stream:  # noqa: PTH123 - a descriptor, not a path
        if status.st_size > max_bytes:
            raise _too_large(status.st_size, max_bytes)
        data = stream.read(status.st_size + 1)
        while len(data) <= max_bytes and (more := stream.read(min(_READ, max_bytes + 1 - len(data)))):
            data += more
    if len(data) > max_bytes:
        raise _too_large(len(data), max_bytes)
    return Raw(hashlib.sha256(data).digest(), data)


def _too_large(size: int, limit: int) -> TooLarge:
    return TooLarge(f"it has {size} bytes; the limit is {limit}")


def extract(data: bytes, *, extractor: str, name: str, settings: Extraction) -> list[Extracted]:
    """Return the documents, at least one and each with text, of a file called `name` whose bytes are `data`.

    Raises:
        ExtractError: there is no text to be had, and why; everything that a library raises becomes `Malformed`.
        MemoryError: it needs more memory than it may have.
        KeyError: there is no such extractor.
    """
    module = EXTRACTORS[extractor]
    if not data:
        raise NoText("the file is empty")
    try:
        found = module.extract(data, name=name, settings=settings)
    except (ExtractError, MemoryError):
        raise
    except Exception as error:
        reason = clean_line(str(error)) or "no further word"
        raise Malformed(f"it cannot be read: {type(error).__name__}: {reason}"[:_REASON]) from error
    if isinstance(found, Extracted):
        if not has_text(found.content):
            raise NoText("it holds no text", meta=found.meta)
        return [found]
    documents = [document for document in found if has_text(document.content)]
    if not documents:
        raise NoText("nothing in it holds text")
    return documents


def extractor_of(name: str) -> str | None:
    """The extractor that a file name belongs to; None when no extractor reads such files."""
    lower = name.lower()
    return SUFFIXES.get(lower) or SUFFIXES.get(lower[lower.rfind(".") :])


def fingerprint(extractor: str, settings: Extraction) -> str:
    """What would make the same bytes come out differently: code, versions of libraries and programs, settings.

    Raises:
        KeyError: there is no such extractor.
    """
    module = EXTRACTORS[extractor]
    decided = {name: getattr(settings, name) for name in module.SETTINGS}
    decided |= {name: tools.version(name, settings) for name in module.TOOLS}
    return code_digest(f"{__package__}.{module.NAME}", libraries=module.LIBRARIES, parameters=decided)
