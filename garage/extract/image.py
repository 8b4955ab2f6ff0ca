"""Pictures: the text in them, and what their file tells of them."""

import io
import re
import warnings
from collections.abc import Iterator
from pathlib import PurePath
from time import monotonic
from typing import TYPE_CHECKING

from garage.config import Extraction
from garage.extract.mirror import JSON, canonical
from garage.extract.model import Extracted, ExtractError, Malformed, NoText, TooLarge, Unsupported
from garage.extract.pages import ocr
from garage.extract.pages.image_facts import facts_of

if TYPE_CHECKING:
    from PIL.Image import Image

NAME = "image"
LIBRARIES = ("pillow", "pillow-heif", "lxml")
SETTINGS = ("ocr_languages", "ocr_min_chars", "ocr_max_pages", "index_images")
TOOLS = ("tesseract",)
SUFFIXES = dict.fromkeys(
    (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".gif", ".webp", ".heic", ".heif", ".avif"), "prose"
)

_FORMATS = ("PNG", "JPEG", "TIFF", "BMP", "DIB", "GIF", "WEBP", "HEIF", "AVIF")
_BEGINNINGS = (b"\x89PNG", b"\xff\xd8\xff", b"II*\0", b"MM\0*", b"BM", b"GIF8", b"RIFF")
_LEAST_PIXELS = 200 * 200  # an icon has fewer
_MOST_PIXELS = 40_000_000
_READ_PIXELS = 12_000_000  # larger ones are made smaller before they are read: it takes a second a million
_TIME = 0.85  # the share of a file's time after which no further page is taken on
_LIGHT = 170  # of 255: letters lighter than this stand on a dark ground
_WORDS = re.compile(r"[\W_]+|(?<=[a-z])(?=[A-Z])")


def extract(raw: bytes, *, name: str, settings: Extraction) -> Extracted:
    """Return the text in a picture; with `index_images` one that shows none is found by its name and facts instead.

    What the file tells (when and where it was taken, captions, keywords) follows the text, a line each. Of a TIFF all
    pages are read, of an animation the first picture. `meta` has `width`, `height`, `format`, the facts, and
    `ocr_confidence` from 0 to 100 where there is text.

    Raises:
        NoText: it is no larger than an icon, or shows no text and `index_images` is off.
        TooLarge: it has more than 40 million pixels.
        Unsupported: it is no picture, or Tesseract or every language it shall read is not installed.
        Malformed: it is damaged.
    """
    image = _opened(raw)
    with image:
        width, height = image.size
        meta: dict[str, JSON] = {"width": width, "height": height, "format": image.format}
        _fits(width, height, meta)
        facts = facts_of(image)
        meta |= facts.meta()
        frames = int(getattr(image, "n_frames", 1))
        pages = frames if image.format == "TIFF" else 1
        noted = (
            [f"only the first of {frames} pictures was looked at"] if frames > pages and image.format != "MPO" else []
        )
        if pages > 1:
            meta["pages"] = pages
        said = _Read(image, pages, settings)
    noted += said.warnings
    text = said.text
    if text:
        meta["ocr_confidence"] = said.confidence
    elif not settings.index_images:
        raise NoText("it shows no text", meta=meta)
    else:
        text = " ".join(_WORDS.sub(" ", PurePath(name).stem).split()) or name
    content = canonical("\n\n".join(filter(None, (text, "\n".join(facts.lines())))))
    return Extracted(content, "prose", facts.title, meta, warnings=tuple(noted))


def _opened(raw: bytes) -> "Image":
    """The picture, its header read only."""
    from PIL import Image, UnidentifiedImageError
    from pillow_heif import register_heif_opener

    register_heif_opener()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            return Image.open(io.BytesIO(raw), formats=_FORMATS)
    except (Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
        raise TooLarge(f"it has more than {_MOST_PIXELS // 1_000_000} million pixels") from error
    except UnidentifiedImageError as error:
        if raw.startswith(_BEGINNINGS) or raw[4:8] == b"ftyp":
            raise Malformed("it is damaged: there is no picture in it that can be read") from error
        raise Unsupported("it is not a picture, whatever its name says") from error


def _fits(width: int, height: int, meta: dict[str, JSON]) -> None:
    if width * height > _MOST_PIXELS:
        raise TooLarge(f"it has {width} x {height} pixels; the limit is {_MOST_PIXELS // 1_000_000} million", meta=meta)
    if width * height < _LEAST_PIXELS:
        raise NoText(f"it has {width} x {height} pixels: an icon", meta=meta)


class _Read:
    """The text on the pages of a picture, as far as the settings and the time of a file allow."""

    def __init__(self, image: "Image", pages: int, settings: Extraction) -> None:
        self.text = ""
        self.confidence = 0.0
        self.warnings: list[str] = []
        if not settings.ocr_max_pages:
            return
        reader = ocr.reader(settings)
        self.warnings += reader.warnings
        until = monotonic() + _TIME * settings.seconds
        found: list[ocr.Recognised] = []
        try:
            for page in _pages(image, min(pages, settings.ocr_max_pages), self.warnings):
                said = reader.read(_legible(page), seconds=until - monotonic())
                found.append(said)
            if pages > settings.ocr_max_pages:
                self.warnings.append(f"{pages - settings.ocr_max_pages} of {pages} pages were not read")
        except ocr.OutOfTime:
            self.warnings.append(f"{pages - len(found)} of {pages} pages were not read for want of time")
        letters = sum(one.letters for one in found)
        if letters and letters >= settings.ocr_min_chars:
            self.text = "\n\n".join(one.text for one in found if one.text)
            self.confidence = round(sum(one.confidence * one.letters for one in found) / letters, 1)


def _pages(image: "Image", count: int, warned: list[str]) -> Iterator["Image"]:
    """The pages that are large enough to hold text, each as it is to be looked at."""
    from PIL import ImageOps

    for index in range(count):
        try:
            if index:
                image.seek(index)
            _fits(*image.size, {})
            page = ImageOps.exif_transpose(image)
        except MemoryError:
            raise
        except Exception as error:
            if not index:
                raise
            what = error.message if isinstance(error, ExtractError) else type(error).__name__
            warned.append(f"page {index + 1} was left out: {what}")
            continue
        yield page


def _legible(image: "Image") -> "Image":
    """The picture in grey and of a size that can be read in time; what is transparent becomes ground."""
    if image.mode in ("I", "F") or image.mode.startswith("I;16"):
        deep = image.convert("F")
        low, high = _extremes(deep)
        return _bounded(
            deep.point(lambda value: value * (255 / (high - low or 1)) - low * 255 / (high - low or 1)).convert("L")
        )
    if image.has_transparency_data:
        return _bounded(_on_ground(image.convert("RGBA")))
    return _bounded(image.convert("L"))


def _extremes(image: "Image") -> tuple[float, float]:
    low, high = image.getextrema()
    return (float(low), float(high)) if isinstance(low, float) and isinstance(high, float) else (0.0, 255.0)


def _on_ground(image: "Image") -> "Image":
    """Grey, on white; on black where what can be seen is light, as on a sticker made for dark windows."""
    from PIL import Image, ImageStat

    grey, opaque = image.convert("L"), image.getchannel("A")
    seen = opaque.point(lambda value: 255 if value > 127 else 0)
    light = seen.getbbox() is not None and ImageStat.Stat(grey, seen).mean[0] > _LIGHT and seen.getextrema()[0] == 0
    ground = Image.new("L", image.size, 0 if light else 255)
    ground.paste(grey, mask=opaque)
    return ground


def _bounded(image: "Image") -> "Image":
    factor = (_READ_PIXELS / (image.width * image.height)) ** 0.5
    return image if factor >= 1 else image.resize((int(image.width * factor), int(image.height * factor)))
