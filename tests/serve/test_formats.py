"""Every kind of file that is read stands on its page with all of its names."""

from pathlib import Path

from garage.extract.registry import EXTRACTORS, SUFFIXES
from garage.serve import formats

PAGE = Path(__file__).resolve().parents[2] / "docs" / "formats.md"


def test_the_page_of_formats_has_not_drifted() -> None:
    assert PAGE.read_text(encoding="utf-8") == formats.page_text(), "run `python -m garage.serve.reference`"


def test_the_page_names_every_ending_and_says_something_of_every_extractor() -> None:
    page = formats.page_text()
    assert all(f"`{ending}`" in page for ending in SUFFIXES)
    assert set(formats._SAYS) == set(EXTRACTORS)
