"""PDF: the text of each page, as far as the file holds any."""

import io
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from garage.config import Extraction
from garage.extract.mirror import JSON, canonical, clean_line, clean_metadata, has_text
from garage.extract.model import Encrypted, Extracted, Malformed, NoText

if TYPE_CHECKING:
    from pypdf import DocumentInformation, PageObject, PdfReader

NAME = "pdf"
# pypdf reads some fonts differently where fontTools happens to be installed.
LIBRARIES = ("pypdf", "fonttools")
SETTINGS: tuple[str, ...] = ()
TOOLS: tuple[str, ...] = ()
SUFFIXES = {".pdf": "prose"}

_BETWEEN_PAGES = "\n\n"
_WARNINGS = 20
_WARNING_LENGTH = 200
_PLACEHOLDERS = ("untitled", "anonymous", "unspecified")  # what ReportLab writes when it is told nothing
_METADATA = {
    "author": "author",
    "created": "creation_date",
    "modified": "modification_date",
    "subject": "subject",
    "keywords": "keywords",
    "producer": "producer",
}


def extract(raw: bytes, *, name: str, settings: Extraction) -> Extracted:
    """Return the pages' texts with a blank line between them.

    `meta.pages` counts them; `meta.page_starts` holds the offset in code points where each begins (an empty page where
    the next one does); `meta.pages_without_text` lists such pages, counted from 1. A page that cannot be read is left
    out and named in the warnings.

    Raises:
        Encrypted: it opens with a password only; the empty one was tried.
        NoText: no page has any; `meta.likely_scanned` says whether there are pictures instead.
        Malformed: no page can be read.
    """
    from pypdf import PdfReader

    del name, settings
    with _quiet() as warnings:
        reader = PdfReader(io.BytesIO(raw))
        _open(reader)
        texts: list[str] = []
        failures: list[str] = []
        scanned = False
        for number, page in enumerate(reader.pages, start=1):
            try:
                text = canonical(page.extract_text()).strip("\n")
                texts.append(text if has_text(text) else "")
                scanned = scanned or (not texts[-1] and _has_picture(page))
            except MemoryError:
                raise
            except Exception as error:  # noqa: BLE001 - whatever one page does, the others are read
                texts.append("")
                failures.append(f"page {number} was left out: {type(error).__name__}")
            _release(reader, page)
        info = reader.metadata
        meta: dict[str, JSON] = {"pages": len(texts), **_metadata(info)}
        if not any(texts):
            if failures:
                raise Malformed(f"none of its pages can be read ({failures[0]})", meta=meta)
            raise NoText("none of its pages has text", meta={**meta, "likely_scanned": scanned})
        content, starts = _joined(texts)
        meta["page_starts"] = [*starts]
        if empty := [number for number, text in enumerate(texts, start=1) if not text]:
            meta["pages_without_text"] = [*empty]
        title = clean_line(_said(info, "title"))
        if title in _PLACEHOLDERS:
            title = None
    return Extracted(content, "prose", title, meta, warnings=(*failures[:_WARNINGS], *warnings))


def _open(reader: "PdfReader") -> None:
    """Unlock the file with the empty password, which many are locked with to forbid printing or copying."""
    if not reader.is_encrypted:
        return
    try:
        opened = reader.decrypt("")
    except NotImplementedError as error:
        raise Encrypted(f"it is encrypted in a way that is not supported ({error})") from error
    if not opened:
        raise Encrypted("it opens with a password only", hint="Save a copy of it without the password.")


def _joined(texts: list[str]) -> tuple[str, list[int]]:
    """The pages as one mirror, and where each begins in it; canonical texts joined at line feeds stay canonical."""
    starts: list[int] = []
    parts: list[str] = []
    length = 0
    for text in texts:
        if text and parts:
            length += len(_BETWEEN_PAGES)
        starts.append(length)
        if text:
            parts.append(text)
            length += len(text)
    # An empty page begins where the next text does, not where the last one ended.
    following = length
    for index in range(len(texts) - 1, -1, -1):
        if texts[index]:
            following = starts[index]
        else:
            starts[index] = following
    return _BETWEEN_PAGES.join(parts) + "\n", starts


def _release(reader: "PdfReader", page: "PageObject") -> None:
    """Forget the page's content, which the reader would keep for ever; fonts stay, since the next page needs them."""
    waiting = [page.raw_get("/Contents")] if "/Contents" in page else []
    while waiting:
        held = waiting.pop()
        if isinstance(held, list):
            waiting += held
        elif reference := getattr(held, "indirect_reference", None) or held:
            key = getattr(reference, "generation", None), getattr(reference, "idnum", None)
            array = reader.resolved_objects.pop(key, None)
            waiting += array if isinstance(array, list) else []


def _has_picture(page: "PageObject") -> bool:
    """Whether the page, or a form on it, shows an image; the image itself is not decoded."""
    waiting = [page.get("/Resources")]
    for _ in range(50):
        if not waiting:
            return False
        resources = _dictionary(waiting.pop())
        for reference in _dictionary(resources.get("/XObject")).values():
            shown = reference.get_object()
            if shown.get("/Subtype") == "/Image":
                return True
            waiting.append(shown.get("/Resources"))
    return False


def _dictionary(held: Any) -> Mapping[str, Any]:  # noqa: ANN401 - whatever the file says there
    found = held.get_object() if held is not None else None
    return found if isinstance(found, Mapping) else {}


def _metadata(info: "DocumentInformation | None") -> dict[str, JSON]:
    found = {key: clean_metadata(_said(info, name)) for key, name in _METADATA.items()}
    return {key: value for key, value in found.items() if value and value not in _PLACEHOLDERS}


def _said(info: "DocumentInformation | None", name: str) -> object:
    try:
        return getattr(info, name, None)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - a date that is none must not cost the text
        return None


@contextmanager
def _quiet() -> Iterator[list[str]]:
    """Collect what pypdf would log, each sort of message once, instead of filling the screen with it."""
    collector = _Collector()
    logger = logging.getLogger("pypdf")
    propagate, level = logger.propagate, logger.level
    logger.addHandler(collector)
    logger.propagate = False
    logger.setLevel(logging.WARNING)
    try:
        yield collector.messages
    finally:
        logger.removeHandler(collector)
        logger.propagate, logger.level = propagate, level


class _Collector(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []
        self._seen: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        # fontTools improves formulas set in TeX and garbles some tables set in Arial: advice to install it is no help.
        if record.msg in self._seen or len(self._seen) >= _WARNINGS or record.msg.startswith("fontTools"):
            return
        self._seen.add(record.msg)
        self.messages.append((clean_line(record.getMessage()) or "a warning without words")[:_WARNING_LENGTH])
