"""Scanned pages of a PDF: which they are, and what they say; drawn as pictures of a bounded size for Tesseract."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from garage.config import Extraction
from garage.extract.model import Unsupported
from garage.extract.pages import ocr

if TYPE_CHECKING:
    from PIL.Image import Image
    from pypdfium2 import PdfDocument

DPI = 250
_PIXELS = 12_000_000  # 300 dpi of A4 are 8.7 million; posters are drawn smaller
_LEAST_PIXELS = 200 * 200
_PICTURE = 0.15  # of the page: a smaller one is a logo
_OUTLINES = 200  # shapes on a page without letters: these are drawn
_STAMPED, _STAMP = 0.8, 4  # a page that is all picture may hold so many times the letters of one without text
_CERTAIN = 80.0  # confidence with which even a few letters are a page's text, such as a chapter's number


@dataclass(slots=True)
class Scans:
    """What became of scanned pages, counted from 0: read, or left `unread` with the reason `why`.

    `refused` is set where they cannot be read on this machine as it is.
    """

    read: dict[int, ocr.Recognised] = field(default_factory=dict)
    unread: list[int] = field(default_factory=list)
    why: str = ""
    refused: Unsupported | None = None
    warnings: list[str] = field(default_factory=list)


def read_scans(raw: bytes, letters: Sequence[int], settings: Extraction, *, left: Callable[[], float]) -> Scans:
    """Read the scanned ones among pages of so many `letters` each, for as long as `left` gives seconds.

    Raises whatever the library that draws them does.
    """
    found = Scans()
    least = settings.pdf_min_chars_per_page
    if all(count >= _STAMP * least for count in letters):
        return found
    with _opened(raw) as document:
        scans = [
            index
            for index, count in enumerate(letters)
            if count < _STAMP * least
            and index < len(document)
            and _is_scan(document, index, letters=count, least=least)
        ]
        if not scans:
            return found
        try:
            reader = ocr.reader(settings)
        except Unsupported as error:
            found.unread, found.why, found.refused = scans, error.message, error
            return found
        found.warnings += reader.warnings
        for place, index in enumerate(scans):
            if len(found.read) >= settings.ocr_max_pages:
                found.unread, found.why = scans[place:], f"no more than {settings.ocr_max_pages} of a file are"
                break
            picture = _drawn(document, index) if left() > 0 else None
            try:
                if picture is not None or left() <= 0:
                    found.read[index] = _read(picture, reader, settings, left())
            except ocr.OutOfTime:
                found.unread, found.why = scans[place:], "there was no time left"
                break
    return found


def _read(
    picture: "tuple[Image, int] | None", reader: ocr.Reader, settings: Extraction, seconds: float
) -> ocr.Recognised:
    if picture is None:
        raise ocr.OutOfTime
    image, dpi = picture
    said = reader.read(image, seconds=seconds, dpi=dpi)
    enough = said.letters >= settings.ocr_min_chars or (said.letters > 0 and said.confidence >= _CERTAIN)
    return said if enough else ocr.Recognised("", 0.0)


@contextmanager
def _opened(raw: bytes) -> Iterator["PdfDocument"]:
    """The file, in a library that draws pages; raises whatever the library does."""
    import pypdfium2

    document = pypdfium2.PdfDocument(raw)
    try:
        yield document
    finally:
        document.close()


def _is_scan(document: "PdfDocument", index: int, *, letters: int, least: int) -> bool:
    """Whether a page is to be read as a picture: it has next to no text, or a stamp on what is else all picture."""
    covered, outlined = _shown(document, index)
    if letters < least:
        return covered >= _PICTURE or (outlined and not letters)
    return covered >= _STAMPED


def _shown(document: "PdfDocument", index: int) -> tuple[float, bool]:
    """How much of a page, counted from 0, pictures cover (0 to 1), and whether it is drawn instead of written."""
    from pypdfium2.raw import FPDF_PAGEOBJ_IMAGE, FPDF_PAGEOBJ_PATH

    page = document[index]
    try:
        width, height = page.get_size()
        covered, outlines = 0.0, 0
        for item in page.get_objects(filter=[FPDF_PAGEOBJ_IMAGE, FPDF_PAGEOBJ_PATH]):
            if item.type == FPDF_PAGEOBJ_PATH:
                outlines += 1
            elif item.level:
                covered = 1.0  # its place is told relative to a form's, whose place is not told
            else:
                left, bottom, right, top = item.get_bounds()
                across = min(max(left, right), width) - max(min(left, right), 0.0)
                covered += max(across, 0.0) * max(min(top, height) - max(bottom, 0.0), 0.0) / (width * height)
    finally:
        page.close()
    return min(covered, 1.0), outlines >= _OUTLINES


def _drawn(document: "PdfDocument", index: int) -> tuple["Image", int] | None:
    """A page as a grey picture, and its pixels an inch; None when it is smaller than any text."""
    page = document[index]
    try:
        width, height = page.get_size()
        scale = min(DPI / 72, (_PIXELS / (width * height)) ** 0.5)
        if width * height * scale * scale < _LEAST_PIXELS:
            return None
        bitmap = page.render(scale=scale, grayscale=True)
        try:
            return bitmap.to_pil().copy(), round(scale * 72)
        finally:
            bitmap.close()
    finally:
        page.close()
