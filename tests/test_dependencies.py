"""What the project needs, what the lock file says, and under which licences it comes."""

from __future__ import annotations

import re
import subprocess
import tomllib
import zipfile
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LOCK = [
    line for line in (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines() if line and line[0] != "#"
]
# Copyleft that reaches what links to it. The lesser GPL does not, and its name holds the other's.
COPYLEFT = re.compile(r"\bA?GPL|Affero|GNU General Public", re.IGNORECASE)


def locked() -> dict[str, str]:
    """Version of every package in the lock file."""
    requirements = [Requirement(line) for line in LOCK]
    return {canonicalize_name(r.name): str(r.specifier).removeprefix("==") for r in requirements}


def runtime_distributions() -> dict[str, Distribution]:
    """Every distribution that an installed Garage brings along, found by following what each one requires."""
    found: dict[str, Distribution] = {}
    waiting = [(Requirement(text), "") for text in PROJECT["dependencies"]]
    while waiting:
        requirement, extra = waiting.pop()
        name = canonicalize_name(requirement.name)
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        if name in found and not requirement.extras:
            continue
        found[name] = distribution(name)
        for text in found[name].requires or ():
            waiting += [(Requirement(text), wanted) for wanted in ("", *requirement.extras)]
    return found


def licence_words(package: Distribution) -> str:
    """Everything a distribution says about its licence in its metadata; the head of its licence file when nothing."""
    declared = [
        *(package.metadata.get_all("License-Expression") or ()),
        *(text.partition("\n")[0] for text in package.metadata.get_all("License") or ()),
        *(text for text in package.metadata.get_all("Classifier") or () if text.startswith("License ::")),
    ]
    if not any(text.strip() for text in declared):
        files = [path for path in package.files or () if re.search(r"licen[cs]e|copying", path.name, re.IGNORECASE)]
        declared = [Path(str(path.locate())).read_text(encoding="utf-8", errors="replace")[:300] for path in files]
    return " | ".join(text for text in declared if text.strip())


def forbids_linking(words: str) -> bool:
    """Whether a licence would reach Garage itself, an offered alternative aside."""
    without_lesser = re.sub(r"LGPL\S*|GNU (Library or )?Lesser General Public License( v\d)?", "", words)
    return bool(COPYLEFT.search(without_lesser)) and " OR " not in words


def test_no_package_that_garage_brings_along_is_under_the_gpl() -> None:
    packages = runtime_distributions()
    assert len(packages) > 60
    assert {name: licence_words(package) for name, package in packages.items() if not licence_words(package)} == {}
    assert [name for name, package in packages.items() if forbids_linking(licence_words(package))] == []


@pytest.mark.parametrize(
    ("words", "forbidden"),
    [
        ("MIT", False),
        ("LGPL-3.0-only", False),
        ("LGPL with exceptions", False),
        ("License :: OSI Approved :: GNU Library or Lesser General Public License (LGPL)", False),
        ("GPL-3.0-or-later", True),
        ("AGPL-3.0-only", True),
        ("License :: OSI Approved :: GNU Affero General Public License v3", True),
        ("License :: OSI Approved :: GNU General Public License v2 (GPLv2)", True),
        ("GPL-2.0-or-later OR MIT", False),
    ],
)
def test_the_lesser_gpl_is_told_from_the_others(words: str, *, forbidden: bool) -> None:
    assert forbids_linking(words) is forbidden


def test_the_lock_satisfies_every_requirement_of_the_project() -> None:
    versions = locked()
    wanted = [Requirement(text) for text in PROJECT["dependencies"] + PROJECT["optional-dependencies"]["dev"]]
    assert [str(r) for r in wanted if versions.get(canonicalize_name(r.name), "") not in r.specifier] == []


def test_the_lock_holds_everything_that_its_packages_need() -> None:
    versions = locked()
    missing = []
    for name in versions:
        try:
            requires = distribution(name).requires or ()
        except PackageNotFoundError:
            continue
        needed = [r for text in requires if not (r := Requirement(text)).marker or r.marker.evaluate({"extra": ""})]
        missing += [f"{name}: {r}" for r in needed if versions.get(canonicalize_name(r.name), "") not in r.specifier]
    assert missing == []


def test_the_lock_holds_exact_versions_and_no_address() -> None:
    assert [line for line in LOCK if not re.fullmatch(r"[\w.-]+==[\w.!+]+(; .*)?", line) or "://" in line] == []


def test_the_compiled_package_is_the_locked_one() -> None:
    source = (ROOT / "setup" / "llama-cpp.txt").read_text(encoding="utf-8")
    pinned = re.findall(r"^llama-cpp-python==(\S+) --hash=sha256:[0-9a-f]{64}$", source, re.MULTILINE)
    assert pinned == [locked()["llama-cpp-python"]]


def test_the_wheel_holds_every_file_of_the_packages(tmp_path: Path) -> None:
    folders = ("garage/", "garage_assets/", "resources/", "sensors/")
    listed = subprocess.run(["git", "ls-files", "-z", *folders], cwd=ROOT, check=True, capture_output=True, text=True)
    tracked = {name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()}
    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    assert tracked - set(zipfile.ZipFile(wheel).namelist()) == set()
    assert any(name.endswith(".sql") for name in tracked)
