"""PDF: the text of each page, its tables as rows, and what is written on pages that are only pictures.

Three libraries read a file one after another, each only the pages that the one before leaves open: pypdf every page,
pdfplumber those with little text or with rules that may be a table's, pypdfium2 and Tesseract those that are scanned.
Whatever a page has been read by, it keeps its place.
"""

import io
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NoReturn

from garage.config import Extraction
from garage.extract.mirror import JSON, canonical
from garage.extract.model import Encrypted, Extracted, Malformed, NoText, Unsupported
from garage.extract.pages import pdf_extras
from garage.extract.pages.pdf_scans import Scans, read_scans
from garage.extract.pages.pdf_tables import closer
from garage.extract.pages.pdf_text import PageText, quiet, read_pages

if TYPE_CHECKING:
    from pypdf import PdfReader

NAME = "pdf"
# pypdf reads some fonts differently where fontTools happens to be installed.
LIBRARIES = ("pypdf", "fonttools", "pdfplumber", "pdfminer.six", "pypdfium2", "pillow")
SETTINGS = ("pdf_min_chars_per_page", "ocr_languages", "ocr_min_chars", "ocr_max_pages")
TOOLS = ("tesseract",)
SUFFIXES = {".pdf": "prose"}

_BETWEEN_PAGES = "\n\n"
_FAILURES = 20
# Shares of a file's time after which no further page is taken on: what is left lets the one in work come to its end.
_FOR_TEXT, _FOR_TABLES, _FOR_SCANS = 0.5, 0.65, 0.85

_Goes = Callable[[], bool]


def extract(raw: bytes, *, name: str, settings: Extraction) -> Extracted:
    """Return the pages' texts with a blank line between them.

    `meta.pages` counts them; `meta.page_starts` holds the offset in code points where each begins (an empty page where
    the next one does); `meta.pages_without_text` lists such pages, counted from 1, `meta.ocr_pages` those that were
    read as pictures, with `meta.ocr_confidence` from 0 to 100, and `meta.unread_pages` those that would have to be;
    `meta.likely_scanned` says that there are any. A page that cannot be read is left out and named in the warnings.

    Raises:
        Encrypted: it opens with a password only; the empty one was tried.
        NoText: no page has any.
        Unsupported: all it has are scanned pages, and the program or language to read them with is not installed.
        Malformed: no page can be read.
    """
    del name
    clock = _Clock(settings.seconds)
    with quiet() as warnings:
        found = _File(raw, settings)
        found.read_text(goes_on=lambda: clock.within(_FOR_TEXT))
        found.read_tables(goes_on=lambda: clock.within(_FOR_TABLES))
        found.read_scans(left=lambda: clock.left(_FOR_SCANS))
        return found.result(warnings)


class _Clock:
    """How much of the time of a file is gone."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._start = time.monotonic()

    def left(self, share: float) -> float:
        return share * self._seconds - (time.monotonic() - self._start)

    def within(self, share: float) -> bool:
        return self.left(share) > 0


class _File:
    """A file while it is read."""

    def __init__(self, raw: bytes, settings: Extraction) -> None:
        self._raw = raw
        self._settings = settings
        self._pages: list[PageText] = []
        self._count = 0
        self._title: str | None = None
        self._meta: dict[str, JSON] = {}
        self._attachments: list[str] = []
        self._warnings: list[str] = []
        self._scans = Scans()

    def read_text(self, *, goes_on: _Goes) -> None:
        """What the pages hold as text, and what the file says of itself."""
        from pypdf import PdfReader

        reader = PdfReader(io.BytesIO(self._raw))
        _open(reader)
        self._count = len(reader.pages)
        self._pages += read_pages(reader, goes_on=goes_on)
        if missing := self._count - len(self._pages):
            self._warnings.append(f"{_pages(missing)} left out at the end, for want of time")
        self._title = pdf_extras.title(reader)
        self._meta = pdf_extras.metadata(reader)
        self._attachments = pdf_extras.attachments(reader)
        if outline := pdf_extras.outline(reader):
            self._meta["outline"] = [*outline]

    def read_tables(self, *, goes_on: _Goes) -> None:
        """A closer look at pages that may have a table, or text that pypdf does not see."""
        least = self._settings.pdf_min_chars_per_page
        wanted = {
            index for index, page in enumerate(self._pages) if page.ruled or page.doubled or page.characters < least
        }
        try:
            for index, text, tables in closer(self._raw, wanted) if wanted else ():
                self._take(self._pages[index], text, tables)
                wanted.discard(index)
                if wanted and not goes_on():
                    self._warnings.append(f"{_pages(len(wanted))} not looked at for tables, for want of time")
                    return
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - the pages' text is there already
            self._warnings.append(f"tables were not looked for: {type(error).__name__}")

    def _take(self, page: PageText, text: str, tables: int) -> None:
        """Take the other library's text of a page where it is the better one."""
        other = PageText(text).characters
        better = (tables > 0 or page.doubled) and other * (3 if page.doubled else 2) > page.characters
        if better or other > 2 * page.characters:
            page.text, page.failure = text, ""

    def read_scans(self, *, left: Callable[[], float]) -> None:
        """What stands on pages that are pictures, as far as there is time and the settings allow."""
        try:
            self._scans = read_scans(self._raw, [page.characters for page in self._pages], self._settings, left=left)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - the other pages' text is there already
            self._warnings.append(f"scanned pages were not looked for: {type(error).__name__}")
            return
        for index, said in self._scans.read.items():
            page = self._pages[index]
            # A stamp on the scan is in the picture as well.
            stamp = "" if " ".join(page.text.split()) in " ".join(said.text.split()) else page.text
            page.text = "\n\n".join(filter(None, (stamp, said.text)))
        self._warnings += self._scans.warnings
        if unread := self._scans.unread:
            self._warnings.append(f"{_pages(len(unread))} scanned and not read: {self._scans.why}")

    def result(self, complaints: Iterable[str]) -> Extracted:
        """All of it, or why there is nothing."""
        failures = [
            f"page {number} was left out: {page.failure}" for number, page in enumerate(self._pages, 1) if page.failure
        ]
        meta = {"pages": self._count, **self._meta, **self._scanned()}
        if self._attachments:
            meta["attachments"] = [*self._attachments]
        texts = ["\n\n".join(filter(None, (page.text, *page.notes))) for page in self._pages]
        texts = [canonical(text).strip("\n") for text in texts]
        if not any(texts):
            self._nothing(failures, meta)
        content, starts = _joined(texts, self._attachments)
        meta["page_starts"] = [*starts]
        if empty := [number for number, text in enumerate(texts, start=1) if not text]:
            meta["pages_without_text"] = [*empty]
        warnings = (*self._warnings, *failures[:_FAILURES], *complaints)
        return Extracted(content, "prose", self._title, meta, warnings=warnings)

    def _scanned(self) -> dict[str, JSON]:
        meta: dict[str, JSON] = {}
        if read := self._scans.read:
            meta["ocr_pages"] = [index + 1 for index in read]
            letters = sum(said.letters for said in read.values())
            if letters:
                sure = sum(said.confidence * said.letters for said in read.values())
                meta["ocr_confidence"] = round(sure / letters, 1)
        if unread := self._scans.unread:
            meta["unread_pages"] = [index + 1 for index in unread]
            meta["likely_scanned"] = True
        return meta

    def _nothing(self, failures: list[str], meta: dict[str, JSON]) -> NoReturn:
        if self._scans.refused is not None:
            raise Unsupported(f"its pages are scanned: {self._scans.refused.message}", meta=meta)
        if failures:
            raise Malformed(f"none of its pages can be read ({failures[0]})", meta=meta)
        if self._scans.unread:
            raise NoText(f"its pages are scanned and were not read: {self._scans.why}", meta=meta)
        raise NoText("none of its pages has text", meta=meta)


def _pages(count: int) -> str:
    return "1 page was" if count == 1 else f"{count} pages were"


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


def _joined(texts: list[str], attachments: list[str]) -> tuple[str, list[int]]:
    """The pages as one mirror, then what is attached, and where each page begins; canonical texts stay canonical."""
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
    if attachments:
        parts.append("Attachments: " + ", ".join(attachments))
    return canonical(_BETWEEN_PAGES.join(parts)), starts
