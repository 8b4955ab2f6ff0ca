import os
from pathlib import Path

import pytest

from garage.config import Extraction
from garage.extract.pages import tools


def program(folder: Path, *, version: str, packages: dict[str, int]) -> Path:
    """A stand-in for Tesseract that tells its version and where its packages lie."""
    data = folder / "tessdata"
    data.mkdir(parents=True, exist_ok=True)
    for name, size in packages.items():
        (data / f"{name}.traineddata").write_bytes(bytes(size))
    path = folder / "tesseract"
    told = f'echo "tesseract {version}"'
    listed = f"echo 'List of available languages in \"{data}/\" (1):'"
    path.write_text(f'#!/bin/sh\nif [ "$1" = --version ]; then {told}; else {listed}; fi\n')
    path.chmod(0o755)
    return path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that is all of the path, `sh` aside."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def test_a_program_that_is_not_installed_is_missing_until_it_appears(folder: Path) -> None:
    settings = Extraction()
    assert tools.tesseract(settings) is None
    assert tools.version("tesseract", settings) == "missing"
    program(folder, version="5.3.0", packages={"eng": 7, "osd": 3})
    assert tools.version("tesseract", settings) == "5.3.0 eng:7 osd:3"


def test_an_upgrade_is_told(folder: Path) -> None:
    program(folder, version="5.3.0", packages={"eng": 7})
    before = tools.version("tesseract", Extraction())
    os.utime(program(folder, version="5.4.1", packages={}), ns=(1, 1))
    assert (before, tools.version("tesseract", Extraction())) == ("5.3.0 eng:7", "5.4.1 eng:7")


def test_a_language_that_appears_is_told_without_asking_the_program_again(folder: Path) -> None:
    settings = Extraction(ocr_languages=("deu", "eng"))
    path = program(folder, version="5.3.0", packages={"eng": 7})
    found = tools.tesseract(settings)
    assert found is not None
    assert (found.languages, found.absent, found.turns) == (("eng",), ("deu",), False)
    (folder / "tessdata" / "deu.traineddata").write_bytes(b"12345")
    assert tools.version("tesseract", settings) == "5.3.0 deu:5 eng:7"
    again = tools.tesseract(settings)
    assert again is not None
    assert (again.program, again.languages) == (str(path), ("deu", "eng"))


def test_languages_that_nobody_asked_for_change_nothing(folder: Path) -> None:
    program(folder, version="5.3.0", packages={"eng": 7})
    before = tools.version("tesseract", Extraction())
    (folder / "tessdata" / "fra.traineddata").write_bytes(b"1")
    assert tools.version("tesseract", Extraction()) == before


@pytest.mark.parametrize("script", ["#!/bin/sh\nexit 1\n", "#!/no/such/interpreter\n"])
def test_a_program_that_does_not_start_is_missing(folder: Path, script: str) -> None:
    path = folder / "tesseract"
    path.write_text(script)
    path.chmod(0o755)
    assert tools.version("tesseract", Extraction()) == "missing"


def test_a_program_that_nothing_is_known_of_is_an_error() -> None:
    with pytest.raises(KeyError, match="ghostscript"):
        tools.version("ghostscript", Extraction())
