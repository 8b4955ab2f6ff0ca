"""What a picture's file tells of it: when and where it was taken, with what, and the words that people gave it."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from garage.extract.mirror import JSON, clean_line, clean_metadata, clean_text, decode

if TYPE_CHECKING:
    from PIL.Image import Exif, Image

_EXIF, _GPS = 0x8769, 0x8825  # tables of their own within EXIF
_DATE = re.compile(r"(\d{4}):(\d\d):(\d\d)[ T](\d\d:\d\d:\d\d)")
_BY_CAMERA = re.compile(  # what cameras write where a person could have written something
    r"(olympus|minolta|samsung|kodak|dcim|sony|konica|nikon)?\s*(digital camera|dsc|camera|default|exif_.*)?|ascii",
    re.IGNORECASE,
)
_XMP_WORDS = {"title": "title", "description": "description", "subject": "keywords"}
_RDF = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"
_DUBLIN_CORE = "{http://purl.org/dc/elements/1.1/}"
_WORDS = 50


@dataclass(slots=True)
class Facts:
    """What is known of a picture beside what it shows; empty where its file says nothing."""

    title: str | None = None
    descriptions: list[str] = field(default_factory=list)
    keywords: list[str] = field(default_factory=list)
    author: str | None = None
    taken: str | None = None
    camera: str | None = None
    place: tuple[float, float] | None = None

    def lines(self) -> list[str]:
        """The facts as a person would look for them, a line each."""
        place = f"{self.place[0]:.5f}, {self.place[1]:.5f}" if self.place else None
        labelled = (
            ("Keywords", ", ".join(self.keywords)),
            ("Author", self.author),
            ("Taken", self.taken and self.taken.replace("T", " ")),
            ("Camera", self.camera),
            ("Place", place),
        )
        titles = [self.title] if self.title else []
        return [*titles, *self.descriptions, *(f"{label}: {said}" for label, said in labelled if said)]

    def meta(self) -> dict[str, JSON]:
        """The facts as metadata; `place` is latitude and longitude in degrees."""
        found: dict[str, object] = {
            "description": "\n".join(self.descriptions),
            "keywords": self.keywords,
            "author": self.author,
            "taken": self.taken,
            "camera": self.camera,
            "place": self.place and list(self.place),
        }
        return {key: clean_metadata(value) for key, value in found.items() if value}


def facts_of(image: "Image") -> Facts:
    """Read what the file of an opened picture says; what is damaged says nothing."""
    found = Facts()
    for look in (_of_exif, _of_iptc, _of_xmp, _of_text):
        try:
            look(image, found)
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001, S112 - a damaged note must not cost the picture
            continue
    found.descriptions = list(dict.fromkeys(text for text in found.descriptions if text != found.title))[:_WORDS]
    found.keywords = list(dict.fromkeys(found.keywords))[:_WORDS]
    return found


def _of_exif(image: "Image", found: Facts) -> None:
    exif = image.getexif()
    inner = exif.get_ifd(_EXIF)
    date = _DATE.match(str(inner.get(0x9003) or inner.get(0x9004) or exif.get(0x0132) or ""))
    if date and date[1] != "0000":
        found.taken = f"{date[1]}-{date[2]}-{date[3]}T{date[4]}"
    make, model = clean_line(exif.get(0x010F)) or "", clean_line(exif.get(0x0110)) or ""
    found.camera = model if model.lower().startswith(make.lower()) else f"{make} {model}"
    found.camera = clean_line(found.camera)
    found.author = clean_line(_wide(exif.get(0x9C9D))) or clean_line(exif.get(0x013B))
    found.title = clean_line(_wide(exif.get(0x9C9B)))
    said = (exif.get(0x010E), _wide(exif.get(0x9C9F)), _wide(exif.get(0x9C9C)), _comment(inner.get(0x9286)))
    found.descriptions += _said(said)
    found.keywords += _said((_wide(exif.get(0x9C9E)) or "").split(";"))
    found.place = _place(exif)


def _place(exif: "Exif") -> tuple[float, float] | None:
    gps = exif.get_ifd(_GPS)
    latitude, longitude = _degrees(gps.get(2), gps.get(1)), _degrees(gps.get(4), gps.get(3))
    if latitude is None or longitude is None or abs(latitude) > 90 or abs(longitude) > 180:
        return None
    return None if latitude == longitude == 0 else (latitude, longitude)


def _degrees(parts: Any, side: object) -> float | None:  # noqa: ANN401 - whatever the file says there
    try:
        degrees, minutes, seconds = (float(part) for part in parts)
    except (TypeError, ValueError, ZeroDivisionError):
        return None
    total = degrees + minutes / 60 + seconds / 3600
    if total != total:  # noqa: PLR0124 - tells NaN
        return None
    return round(-total if str(side)[:1] in ("S", "W") else total, 6)


def _wide(held: object) -> str | None:
    """What Windows writes: UTF-16 in bytes."""
    return held.decode("utf-16-le", "ignore").rstrip("\0") if isinstance(held, bytes) else None


def _comment(held: object) -> str | None:
    """EXIF's comment: the name of its character set in eight bytes, then the text."""
    if not isinstance(held, bytes):
        return held if isinstance(held, str) else None
    charset, text = held[:8], held[8:]
    if charset.startswith(b"UNICODE"):
        zeros = text[::2].count(0), text[1::2].count(0)
        return text.decode("utf-16-be" if zeros[0] > zeros[1] else "utf-16-le", "ignore")
    return decode(text)[0] if charset.startswith((b"ASCII", b"\0")) else None


def _of_iptc(image: "Image", found: Facts) -> None:
    from PIL.ImageFile import ImageFile
    from PIL.IptcImagePlugin import getiptcinfo

    said: Mapping[Any, Any] = (getiptcinfo(image) if isinstance(image, ImageFile) else None) or {}
    headlines = [*_texts(said.get((2, 105))), *_texts(said.get((2, 5)))]
    found.title = found.title or next(map(clean_line, headlines), None)
    found.descriptions += _texts(said.get((2, 120)))
    for key in ((2, 25), (2, 90), (2, 101)):  # keywords, city, country
        found.keywords += _texts(said.get(key))


def _texts(held: object) -> list[str]:
    several = held if isinstance(held, list) else [held]
    return _said(decode(item)[0] for item in several if isinstance(item, bytes))


def _of_xmp(image: "Image", found: Facts) -> None:
    from lxml import etree

    raw = image.info.get("xmp") or image.info.get("XML:com.adobe.xmp")
    if not isinstance(raw, bytes | str):
        return
    raw = raw.encode() if isinstance(raw, str) else raw
    parser = etree.XMLParser(resolve_entities=False, no_network=True, recover=True)
    root = etree.fromstring(raw.strip(b"\0 \r\n\t"), parser)
    for tag in _XMP_WORDS:
        said = _said(item.text for held in root.iter(_DUBLIN_CORE + tag) for item in held.iter(_RDF + "li"))
        if tag == "title":
            found.title = found.title or next(map(clean_line, said), None)
        elif tag == "description":
            found.descriptions += said
        else:
            found.keywords += said


def _of_text(image: "Image", found: Facts) -> None:
    """The texts of a PNG, the comments of JPEG and GIF."""
    for key, held in image.info.items():
        name = str(key).lower()
        text = decode(held)[0] if isinstance(held, bytes) else held
        if name == "title":
            found.title = found.title or clean_line(text)
        elif name in ("comment", "description"):
            found.descriptions += _said([text])
        elif name == "author":
            found.author = found.author or clean_line(text)


def _said(texts: Iterable[object]) -> list[str]:
    return list(_worth(texts))


def _worth(texts: Iterable[object]) -> Iterator[str]:
    """What a person may have written."""
    for held in texts:
        text = clean_text(held).strip("\0 ") if isinstance(held, str) else ""
        if clean_line(text) and not _BY_CAMERA.fullmatch(text):
            yield text
