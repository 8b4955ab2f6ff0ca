import ast
import importlib.metadata
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from garage import fingerprint
from garage.fingerprint import code_digest

BEFORE = '''"""A module."""

import os
from garage.sample import helper


def size(name):
    """How large a file is."""
    # asks the system
    return helper.double(os.stat(name).st_size)
'''

Digest = Callable[..., str]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A small package `garage` in place of the real one, whose sources a test may change."""
    folder = tmp_path / "garage" / "sample"
    folder.mkdir(parents=True)
    (folder / "main.py").write_text(BEFORE)
    (folder / "helper.py").write_text("FACTOR = 2\n\n\ndef double(n):\n    return FACTOR * n\n")
    (tmp_path / "garage" / "errors.py").write_text("class GarageError(Exception):\n    pass\n")
    monkeypatch.setattr(fingerprint, "_ROOT", tmp_path / "garage")
    _forget()
    yield folder
    _forget()


def _forget() -> None:
    fingerprint._meaning.cache_clear()
    fingerprint._digest.cache_clear()


def _now(**options: object) -> str:
    _forget()
    return code_digest("garage.sample.main", **options)  # type: ignore[arg-type]  # the tests' own shorthand


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"""A module."""', '"""Says something else."""'),
        ('"""A module."""\n', ""),
        ('    """How large a file is."""\n', ""),
        ("    # asks the system\n", ""),
        ("(name)", "(\n    name,\n)"),
        ("\n\n\ndef", "\n\n\n\n\n# more\ndef"),
    ],
)
def test_comments_docstrings_and_formatting_change_nothing(package: Path, old: str, new: str) -> None:
    before = _now()
    assert old in BEFORE
    (package / "main.py").write_text(BEFORE.replace(old, new))
    assert _now() == before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("st_size", "st_mtime"),
        ("import os\n", "import os\nimport re\n"),
        ("return helper.double(os.stat(name).st_size)", "return None"),
        ("def size", "def length"),
        ("def size(name)", "def size(name, *, strict=None)"),
    ],
)
def test_a_changed_statement_changes_the_digest(package: Path, old: str, new: str) -> None:
    before = _now()
    (package / "main.py").write_text(BEFORE.replace(old, new))
    assert _now() != before


def test_a_string_that_is_not_a_docstring_counts(package: Path) -> None:
    (package / "main.py").write_text('x = 1\n"""first"""\n')
    before = _now()
    (package / "main.py").write_text('x = 1\n"""second"""\n')
    assert _now() != before


def test_a_change_in_a_module_that_is_imported_changes_the_digest(package: Path) -> None:
    before = _now()
    (package / "helper.py").write_text("FACTOR = 3\n\n\ndef double(n):\n    return FACTOR * n\n")
    assert _now() != before


@pytest.mark.parametrize(
    "statement",
    [
        "import garage.sample.helper",
        "from garage.sample.helper import double",
        "from . import helper",
        "from .helper import double",
        "def late():\n    from garage.sample import helper",
    ],
)
def test_every_way_of_importing_is_followed(package: Path, statement: str) -> None:
    (package / "main.py").write_text(statement + "\n")
    before = _now()
    (package / "helper.py").write_text("FACTOR = 4\n")
    assert _now() != before


def test_an_import_for_the_type_checker_alone_is_not_followed(package: Path) -> None:
    text = "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from garage.sample import helper\n"
    (package / "main.py").write_text(text)
    before = _now()
    (package / "helper.py").write_text("FACTOR = 5\n")
    assert _now() == before


def test_modules_that_only_carry_results_are_not_followed(package: Path) -> None:
    (package / "main.py").write_text("from garage.errors import GarageError\n" + BEFORE)
    before = _now()
    (package.parent / "errors.py").write_text("class GarageError(ValueError):\n    pass\n")
    assert _now() == before


def test_modules_that_import_each_other_are_read_once(package: Path) -> None:
    (package / "helper.py").write_text("from garage.sample import main\n")
    assert len(_now()) == 16


def test_a_library_version_changes_the_digest(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"pypdf": "7.1.0", "PyYAML": "6.0.3"}
    monkeypatch.setattr(importlib.metadata, "version", versions.__getitem__)
    before = _now(libraries=["pypdf", "PyYAML"])
    assert _now(libraries=["PyYAML", "pypdf", "pypdf"]) == before
    versions["pypdf"] = "7.1.1"
    assert _now(libraries=["pypdf", "PyYAML"]) != before


def test_a_library_that_is_not_installed_counts_as_absent(package: Path) -> None:
    assert _now(libraries=["no-such-distribution-anywhere"]) != _now()


def test_parameters_count_and_their_order_does_not(package: Path) -> None:
    before = _now(parameters={"size": 1000, "overlap": 150})
    assert _now(parameters={"overlap": 150, "size": 1000}) == before
    assert _now(parameters={"size": 1000, "overlap": 151}) != before


def test_the_order_of_modules_does_not_matter(package: Path) -> None:
    names = ("garage.sample.main", "garage.sample.helper")
    assert code_digest(*names) == code_digest(*reversed(names))


def test_a_module_without_source_is_an_error(package: Path) -> None:
    with pytest.raises(ModuleNotFoundError, match=r"garage\.sample\.missing"):
        code_digest("garage.sample.missing")
    (package / "main.py").write_text("import garage.nowhere\n")
    with pytest.raises(ModuleNotFoundError, match=r"garage\.nowhere"):
        _now()


def test_every_module_that_imports_stop_at_exists() -> None:
    root = Path(fingerprint.__file__).parent
    for name in fingerprint.STOP:
        path = root.joinpath(*name.split(".")[1:])
        assert path.with_suffix(".py").is_file() or (path / "__init__.py").is_file(), name


def test_asking_for_a_digest_imports_nothing() -> None:
    program = (
        "import sys; from garage.fingerprint import code_digest; before = set(sys.modules);"
        "print(code_digest('garage.extract.pdf', libraries=['pypdf']));"
        "print(sorted(m for m in set(sys.modules) - before if m.startswith(('garage', 'pypdf'))))"
    )
    root = Path(fingerprint.__file__).parents[1]
    ran = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True)
    digest, imported = ran.stdout.splitlines()
    assert imported == "[]"
    assert digest == code_digest("garage.extract.pdf", libraries=["pypdf"])


def test_the_digest_is_that_of_the_statements_wherever_the_package_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = code_digest("garage.extract.mirror")
    shutil.copytree(Path(fingerprint.__file__).parent, tmp_path / "garage", ignore=shutil.ignore_patterns("*.pyc"))
    monkeypatch.setattr(fingerprint, "_ROOT", tmp_path / "garage")
    _forget()
    assert code_digest("garage.extract.mirror") == here
    _forget()


def test_what_is_written_of_a_tree_leaves_out_empty_fields_only() -> None:
    written = fingerprint._written(ast.parse("def f(a=None, *b):\n    return u'x'\n"))
    assert "Constant(value=None)" in written
    assert "decorator_list" not in written
    assert "kind" not in written
