import io
import random
import shutil
import struct
import time
import zlib
from contextlib import suppress
from pathlib import Path

import pytest
from PIL import Image, ImageDraw, ImageFont, PngImagePlugin, TiffImagePlugin

from garage.config import Extraction
from garage.extract import image
from garage.extract.mirror import canonical
from garage.extract.model import Extracted, ExtractError, Malformed, NoText, TooLarge, Unsupported

SETTINGS = Extraction()
SENTENCE = "The quick brown fox jumps over the lazy dog"
XMP = b"""<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
<rdf:Description xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:subject><rdf:Bag><rdf:li>garden</rdf:li>
<rdf:li>cat</rdf:li></rdf:Bag></dc:subject></rdf:Description></rdf:RDF></x:xmpmeta>"""

pytestmark = pytest.mark.skipif(shutil.which("tesseract") is None, reason="Tesseract is not installed")


def read(raw: bytes, name: str = "a.png", settings: Extraction = SETTINGS) -> Extracted:
    return image.extract(raw, name=name, settings=settings)


def written(
    text: str, *, ink: int | tuple[int, ...] = 0, mode: str = "L", ground: int | tuple[int, ...] = 255
) -> Image.Image:
    """A line of text as a picture."""
    drawn = Image.new(mode, (1000, 240), ground)
    font = ImageFont.load_default(36)
    ImageDraw.Draw(drawn).text((40, 90), text, font=font, fill=ink)
    return drawn


def saved(drawn: Image.Image, kind: str = "PNG", **how: object) -> bytes:
    out = io.BytesIO()
    drawn.save(out, kind, **how)
    return out.getvalue()


def blank() -> Image.Image:
    return Image.linear_gradient("L").resize((400, 300))


@pytest.mark.parametrize(
    ("kind", "ending", "called"),
    [
        ("PNG", ".png", "PNG"),
        ("JPEG", ".jpg", "JPEG"),
        ("TIFF", ".tif", "TIFF"),
        ("BMP", ".bmp", "BMP"),
        ("GIF", ".gif", "GIF"),
        ("WEBP", ".webp", "WEBP"),
        ("HEIF", ".heic", "HEIF"),
        ("AVIF", ".avif", "AVIF"),
    ],
)
def test_text_in_a_picture_of_any_kind_is_read(kind: str, ending: str, called: str) -> None:
    import pillow_heif

    pillow_heif.register_heif_opener()
    found = read(saved(written(SENTENCE).convert("RGB"), kind), f"a{ending}")
    assert found.content == SENTENCE + "\n"
    assert found.content == canonical(found.content)
    assert (found.kind, found.title, found.warnings) == ("prose", None, ())
    sure = found.meta.pop("ocr_confidence")
    assert isinstance(sure, float)
    assert 80 < sure <= 100
    assert found.meta == {"width": 1000, "height": 240, "format": called}
    assert image.SUFFIXES[ending] == "prose"


@pytest.mark.parametrize(
    "drawn",
    [
        written(SENTENCE, mode="RGBA", ground=(0, 0, 0, 0), ink=(0, 0, 0, 255)),
        written(SENTENCE, mode="RGBA", ground=(0, 0, 0, 0), ink=(250, 250, 250, 255)),
        written(SENTENCE, mode="LA", ground=(255, 0), ink=(0, 255)),
        written(SENTENCE, mode="1", ground=1),
        written(SENTENCE).convert("P"),
        written(SENTENCE).convert("I").point(lambda value: value * 100).convert("I;16"),
    ],
    ids=["dark on nothing", "light on nothing", "grey on nothing", "black and white", "palette", "16 bits"],
)
def test_text_is_read_whatever_it_stands_on(drawn: Image.Image) -> None:
    assert read(saved(drawn)).content == SENTENCE + "\n"


def test_a_photograph_that_says_how_it_was_held_is_turned() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    raw = saved(written(SENTENCE).rotate(90, expand=True), "JPEG", exif=exif)
    assert read(raw).content == SENTENCE + "\n"


def test_a_picture_without_text_is_found_by_its_name_and_by_what_its_file_tells() -> None:
    exif = Image.Exif()
    exif[0x010F], exif[0x0110], exif[0x010E] = "Canon", "Canon EOS 40D", "Ducks on the lake\0"
    exif[0x013B] = "Ann"
    exif.get_ifd(0x8769)[0x9003] = "2009:08:11 09:09:45"
    exif.get_ifd(0x8825).update({1: "N", 2: (48.0, 12.0, 30.0), 3: "W", 4: (16.0, 22.0, 12.0)})
    found = read(saved(blank(), "JPEG", exif=exif, comment=b"For Bob", xmp=XMP), "IMG_2009-08_autumnLake.jpg")
    assert found.content == (
        "IMG 2009 08 autumn Lake\n\nDucks on the lake\nFor Bob\nKeywords: garden, cat\nAuthor: Ann\n"
        "Taken: 2009-08-11 09:09:45\nCamera: Canon EOS 40D\nPlace: 48.20833, -16.37000\n"
    )
    assert found.meta == {
        "width": 400,
        "height": 300,
        "format": "JPEG",
        "description": "Ducks on the lake\nFor Bob",
        "keywords": ["garden", "cat"],
        "author": "Ann",
        "taken": "2009-08-11T09:09:45",
        "camera": "Canon EOS 40D",
        "place": [48.208333, -16.37],
    }


def test_the_texts_of_a_png_are_read() -> None:
    texts = PngImagePlugin.PngInfo()
    texts.add_text("Title", "Harbour")
    texts.add_itxt("Description", "Boats at night, Zürich")
    found = read(saved(blank(), pnginfo=texts), "x.png")
    assert found.title == "Harbour"
    assert found.content == "x\n\nHarbour\nBoats at night, Zürich\n"


def test_a_comment_in_utf16_and_what_windows_writes_are_read() -> None:
    exif = Image.Exif()
    exif[0x9C9B], exif[0x9C9E] = "Sommer".encode("utf-16-le") + b"\0\0", "a; b".encode("utf-16-le")
    exif.get_ifd(0x8769)[0x9286] = b"UNICODE\0" + "Am Meer".encode("utf-16-le")
    found = read(saved(blank(), "JPEG", exif=exif), "x.jpg")
    assert found.title == "Sommer"
    assert found.content == "x\n\nSommer\nAm Meer\nKeywords: a, b\n"


@pytest.mark.parametrize("said", ["OLYMPUS DIGITAL CAMERA", "SONY DSC", "   ", "\0\0"])
def test_what_cameras_write_of_their_own_accord_is_no_description(said: str) -> None:
    exif = Image.Exif()
    exif[0x010E] = said
    assert read(saved(blank(), "JPEG", exif=exif), "x.jpg").content == "x\n"


def test_facts_that_are_damaged_cost_nothing() -> None:
    exif = Image.Exif()
    exif[0x0132] = "0000:00:00 00:00:00"
    exif.get_ifd(0x8769)[0x9003] = "yesterday"
    exif.get_ifd(0x8825).update({1: "N", 2: (TiffImagePlugin.IFDRational(1, 0), 0.0, 0.0), 3: "W", 4: (1.0, 2.0, 3.0)})
    found = read(saved(blank(), "JPEG", exif=exif, xmp=b"<not xml"), "x.jpg")
    assert found.content == "x\n"
    assert set(found.meta) == {"width", "height", "format"}


def test_pictures_without_text_are_no_text_when_they_are_not_wanted() -> None:
    with pytest.raises(NoText, match="it shows no text"):
        read(saved(blank()), settings=Extraction(index_images=False))


def test_noise_is_no_text() -> None:
    grain = Image.frombytes("L", (640, 480), random.Random(5).randbytes(640 * 480))
    assert read(saved(grain), "sky.png").content == "sky\n"


@pytest.mark.parametrize(("size", "outcome"), [((199, 200), "no_text"), ((64, 64), "no_text"), ((2000, 20), None)])
def test_a_picture_of_fewer_than_40000_pixels_is_an_icon(size: tuple[int, int], outcome: str | None) -> None:
    raw = saved(Image.new("L", size, 255))
    if outcome is None:
        assert read(raw).content == "a\n"
    else:
        with pytest.raises(NoText, match="an icon") as caught:
            read(raw)
        assert caught.value.meta == {"width": size[0], "height": size[1], "format": "PNG"}


@pytest.mark.parametrize(("width", "height"), [(8000, 5001), (20_000, 6_000), (65_000, 65_000)])
def test_a_picture_of_more_than_40_million_pixels_is_not_unpacked(width: int, height: int) -> None:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    raw = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")
    with pytest.raises(TooLarge, match="million"):
        read(raw)


def test_all_pages_of_a_fax_are_read_within_the_limit() -> None:
    pages = [written(f"{SENTENCE} {word}") for word in ("one", "two", "three")]
    raw = saved(pages[0], "TIFF", save_all=True, append_images=pages[1:])
    found = read(raw, "fax.tif")
    assert found.content == "".join(f"{SENTENCE} {word}\n\n" for word in ("one", "two", "three")).rstrip() + "\n"
    assert found.meta["pages"] == 3
    fewer = read(raw, "fax.tif", Extraction(ocr_max_pages=2))
    assert fewer.content == f"{SENTENCE} one\n\n{SENTENCE} two\n"
    assert fewer.warnings == ("1 of 3 pages were not read",)


def test_of_an_animation_the_first_picture_is_read() -> None:
    pages = [written(SENTENCE), written("Another thing entirely")]
    found = read(saved(pages[0], "GIF", save_all=True, append_images=pages[1:], duration=100), "a.gif")
    assert found.content == SENTENCE + "\n"
    assert found.warnings == ("only the first of 2 pictures was looked at",)


def test_pictures_are_not_read_when_no_page_may_be() -> None:
    found = read(saved(written(SENTENCE)), "a.png", Extraction(ocr_max_pages=0))
    assert found.content == "a\n"


def test_want_of_time_is_said() -> None:
    found = read(saved(written(SENTENCE)), "a.png", Extraction(seconds=0.001))
    assert found.content == "a\n"
    assert found.warnings == ("1 of 1 pages were not read for want of time",)


def test_without_tesseract_a_picture_waits_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unsupported, match="apt install tesseract-ocr"):
        read(saved(written(SENTENCE)))


def test_a_file_that_only_claims_to_be_a_picture_is_unsupported() -> None:
    with pytest.raises(Unsupported, match="not a picture"):
        read(b"<html>Not found</html>")


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "TIFF", "GIF", "WEBP", "HEIF"])
def test_damaged_pictures_end_in_an_outcome(kind: str) -> None:
    import pillow_heif

    pillow_heif.register_heif_opener()
    raw = saved(written(SENTENCE).convert("RGB"), kind)
    chance = random.Random(kind)
    slowest = 0.0
    for _ in range(12):
        damaged = bytearray(raw[: chance.randrange(8, len(raw))] if chance.random() < 0.4 else raw)
        for _ in range(chance.randrange(1, 20)):
            damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
        start = time.monotonic()
        with suppress(ExtractError, OSError, ValueError, SyntaxError, struct.error):
            assert read(bytes(damaged)).content
        slowest = max(slowest, time.monotonic() - start)
    assert slowest < 20


@pytest.mark.parametrize("raw", [b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0", b"\0\0\0\x18ftypheic\0\0\0\0mif1heic"])
def test_a_picture_of_which_only_the_beginning_is_left_is_damaged(raw: bytes) -> None:
    with pytest.raises(Malformed, match="damaged"):
        read(raw)


def test_real_pictures(shared: Path) -> None:
    folder = shared / "corpus"
    assert read((folder / "image/testOCR.png").read_bytes()).content == "This file contains some words.\n"
    assert read((folder / "image/testOCR_spacing.png").read_bytes()).content == "The quick brown fox\n"
    duck = read((folder / "other/testHEIF.heic").read_bytes(), "testHEIF.heic")
    assert "Camera: Canon EOS 40D" in duck.content
    for name in ("testJPEG_GEO.jpg", "testOCR.jpg", "testPNG.png", "testTIFF.tif"):
        with pytest.raises(NoText, match="an icon"):
            read((folder / "image" / name).read_bytes(), name)
