import random
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from garage.config import Extraction
from garage.extract.model import Unsupported
from garage.extract.pages import ocr
from garage.isolation import Failure, Isolated

SETTINGS = Extraction()
LINES = (
    "The greenhouse heating starts at six",
    "in the morning and ends at nine.",
    "Invoice 2024-117: total due 1,204.50",
)

needs_tesseract = pytest.mark.skipif(shutil.which("tesseract") is None, reason="Tesseract is not installed")


def page(*lines: str, size: int = 28, ground: int = 255, ink: int = 0, width: int = 900) -> Image.Image:
    """Lines of text as a grey picture."""
    image = Image.new("L", (width, 60 + len(lines) * size * 2), ground)
    draw = ImageDraw.Draw(image)
    font = ImageFont.load_default(size)
    for number, line in enumerate(lines):
        draw.text((30, 30 + number * size * 2), line, font=font, fill=ink)
    return image


def leaves(seed: int) -> Image.Image:
    """Thousands of small shapes in all shades of grey, as in a photograph of a hedge."""
    chance = random.Random(seed)
    image = Image.new("L", (1000, 800), 90)
    draw = ImageDraw.Draw(image)
    for _ in range(4000):
        x, y, size = chance.random() * 1000, chance.random() * 800, chance.uniform(4, 30)
        corners = [(x, y), (x + size, y + size * chance.random()), (x + size * chance.random(), y + size)]
        draw.polygon(corners, fill=chance.randrange(30, 230))
    return image.filter(ImageFilter.GaussianBlur(1))


def scribble(seed: int) -> Image.Image:
    chance = random.Random(seed)
    image = Image.new("L", (900, 700), 235)
    draw = ImageDraw.Draw(image)
    for _ in range(300):
        x, y = chance.random() * 900, chance.random() * 700
        end = x + chance.uniform(-60, 60), y + chance.uniform(-60, 60)
        draw.line((x, y, *end), fill=chance.randrange(150), width=chance.randrange(1, 5))
    return image


def noise(seed: int) -> Image.Image:
    grain = Image.frombytes("L", (640, 480), random.Random(seed).randbytes(640 * 480))
    return grain.filter(ImageFilter.GaussianBlur(seed)).point(lambda value: max(0, min(255, (value - 128) * 8 + 128)))


@needs_tesseract
@pytest.mark.parametrize(
    "image",
    [
        page(*LINES),
        page(*LINES, ground=20, ink=230),
        page(*LINES, size=13),
        page(*LINES).rotate(2, fillcolor=255),
        page(*LINES).rotate(90, expand=True),
        page(*LINES).rotate(180),
        page(*LINES).filter(ImageFilter.GaussianBlur(1.5)),
    ],
    ids=["plain", "light on dark", "small", "skewed", "on its side", "upside down", "blurred"],
)
def test_a_picture_of_text_is_read_line_by_line(image: Image.Image) -> None:
    found = ocr.reader(SETTINGS).read(image, seconds=60)
    assert [line for line in found.text.split("\n") if line] == list(LINES)
    assert found.confidence > 80
    assert found.letters == sum(char.isalnum() for char in "".join(LINES))


@needs_tesseract
@pytest.mark.parametrize(
    "image",
    [*map(leaves, range(3)), *map(scribble, range(2)), *map(noise, (1, 2, 4)), Image.new("L", (400, 400), 255)],
)
def test_what_is_no_text_does_not_pass_for_it(image: Image.Image) -> None:
    found = ocr.reader(SETTINGS).read(image, seconds=60)
    assert found.letters < SETTINGS.ocr_min_chars


@needs_tesseract
def test_words_in_a_picture_that_is_mostly_noise_are_kept() -> None:
    image = scribble(3)
    image.paste(page(*LINES, width=820), (40, 500))
    assert "greenhouse heating starts" in ocr.reader(SETTINGS).read(image, seconds=60).text


@needs_tesseract
@pytest.mark.parametrize("seconds", [-1.0, 0.05])
def test_a_picture_is_given_up_when_time_is_out(seconds: float) -> None:
    start = time.monotonic()
    with pytest.raises(ocr.OutOfTime):
        ocr.reader(SETTINGS).read(page(*LINES).resize((3600, 2400)), seconds=seconds)
    assert time.monotonic() - start < 10


@needs_tesseract
def test_a_picture_of_one_pixel_has_no_text() -> None:
    assert ocr.reader(SETTINGS).read(Image.new("1", (1, 1)), seconds=60).text == ""


def test_without_the_program_it_is_said_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unsupported, match=r"apt install tesseract-ocr; macOS: brew install tesseract"):
        ocr.reader(SETTINGS)


@needs_tesseract
def test_without_any_of_its_languages_it_is_said_what_to_install() -> None:
    with pytest.raises(Unsupported, match=r"chi_sim.*apt install tesseract-ocr-chi-sim"):
        ocr.reader(Extraction(ocr_languages=("chi_sim",)))


@needs_tesseract
def test_a_missing_language_is_a_warning_and_the_others_are_read() -> None:
    reader = ocr.reader(Extraction(ocr_languages=("eng", "xxx")))
    assert reader.languages == ("eng",)
    assert len(reader.warnings) == 1
    assert "tesseract-ocr-xxx" in reader.warnings[0]


def read_for_ever(text: str) -> str:
    """In a worker: a page that takes far longer to read than the worker may take."""
    image = page(*[text] * 200).resize((6000, 12000))
    return ocr.reader(SETTINGS).read(image, seconds=600).text


def running(folder: Path) -> list[int]:
    """Processes of Tesseract whose temporary files go below `folder`; those that nobody has buried yet are dead."""
    found = []
    for process in psutil.process_iter(["name"]):
        with suppress(psutil.Error):
            if process.name() == "tesseract" and process.environ().get("TMPDIR", "").startswith(str(folder)):
                found.append(process.pid)
    return found


@needs_tesseract
def test_a_worker_that_is_stopped_leaves_neither_a_process_nor_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    seen: list[int] = []
    done = threading.Event()

    def look() -> bool:
        seen.extend(running(tmp_path))
        return bool(seen) or done.is_set()

    watch = threading.Thread(target=until, args=(look,))
    with Isolated(workers=1, seconds=6, memory_bytes=2**30) as isolated:
        watch.start()
        [(_, result)] = isolated.map(read_for_ever, ["Quite a few words on a line"], ahead=1)
        done.set()
        watch.join()
        assert seen
        assert isinstance(result, Failure)
        assert result.kind == "timeout"
        assert until(lambda: not running(tmp_path))
    assert list(tmp_path.iterdir()) == []


def until(holds: Callable[[], bool]) -> bool:
    """Wait until something holds, but not for ever; whether it does."""
    end = time.monotonic() + 60
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True
