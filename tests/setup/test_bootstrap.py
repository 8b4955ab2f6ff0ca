"""Setting up: what counts as ready, what is missing, and how a failure reads."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from setup import bootstrap

RUN_ONLY = ["apt.txt"]
WITH_TESTS = ["apt.txt", "apt-test.txt"]


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small checkout that has been set up for running, but not for testing."""
    root, cache = tmp_path / "checkout", tmp_path / "cache"
    shutil.copytree(bootstrap.SETUP, root / "setup", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "requirements.lock"):
        shutil.copy(bootstrap.ROOT / name, root)
    for made in (root / ".venv/bin/python", root / ".venv/bin/garage", cache / "models/small.gguf"):
        made.parent.mkdir(parents=True, exist_ok=True)
        made.touch()
    move_to(root, cache, monkeypatch)
    bootstrap.finish(lists=RUN_ONLY)
    return root


def move_to(root: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the script believe that it lies in another checkout."""
    monkeypatch.setattr(bootstrap, "ROOT", root)
    monkeypatch.setattr(bootstrap, "SETUP", root / "setup")
    monkeypatch.setattr(bootstrap, "VENV", root / ".venv")
    monkeypatch.setattr(bootstrap, "VENV_PYTHON", root / ".venv/bin/python")
    monkeypatch.setattr(bootstrap, "STAMP", root / ".venv/garage-setup.json")
    monkeypatch.setattr(bootstrap, "LOG", root / ".setup.log")
    monkeypatch.setattr(bootstrap, "CACHE", cache)


def test_a_finished_setup_has_nothing_to_do(checkout: Path) -> None:
    assert checkout.is_dir()
    assert bootstrap.is_ready(lists=RUN_ONLY)


def test_running_is_ready_before_testing_is(checkout: Path) -> None:
    assert not bootstrap.is_ready(lists=WITH_TESTS)
    bootstrap.finish(lists=WITH_TESTS)
    assert bootstrap.is_ready(lists=RUN_ONLY), checkout


@pytest.mark.parametrize(
    "change",
    [
        lambda root: shutil.rmtree(root / ".venv"),
        lambda root: (root / ".venv/bin/garage").unlink(),
        lambda root: (root.parent / "cache/models/small.gguf").unlink(),
        lambda root: (root / "requirements.lock").write_text("rich==15.0.0\n"),
        lambda root: (root / "setup/llama-cpp.txt").write_text("another version\n"),
        lambda root: (root / ".venv/garage-setup.json").write_text("not JSON"),
    ],
    ids=["environment gone", "command gone", "model gone", "other lock", "other llama.cpp", "broken stamp"],
)
def test_what_is_gone_or_different_is_set_up_again(checkout: Path, change: Callable[[Path], object]) -> None:
    change(checkout)
    assert not bootstrap.is_ready(lists=RUN_ONLY)


def test_a_moved_checkout_is_set_up_again(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moved = checkout.rename(checkout.with_name("moved"))
    move_to(moved, moved.parent / "cache", monkeypatch)
    assert not bootstrap.is_ready(lists=RUN_ONLY)


@pytest.mark.slow
def test_an_environment_belongs_where_it_was_made(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "here"], check=True)
    assert bootstrap.belongs_here(tmp_path / "here")
    moved = (tmp_path / "here").rename(tmp_path / "there")
    assert not bootstrap.belongs_here(moved)
    assert not bootstrap.belongs_here(tmp_path / "nowhere")


def test_a_system_package_is_missing_when_its_command_is(checkout: Path) -> None:
    (checkout / "setup/apt.txt").write_text("# comment\n\nshell sh\nunicorn-dev no-such-command-here\n")
    assert bootstrap.missing_packages(lists=RUN_ONLY) == ["unicorn-dev"]


def test_without_apt_the_missing_packages_are_named_and_left(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (checkout / "setup/apt.txt").write_text("unicorn-dev no-such-command-here\n")
    monkeypatch.setenv("PATH", "")
    bootstrap.install_system_packages(lists=RUN_ONLY)
    assert "unicorn-dev" in capsys.readouterr().out


def test_without_rights_the_command_to_type_is_shown(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (checkout / "setup/apt.txt").write_text("unicorn-dev no-such-command-here\n")
    (tmp_path / "apt-get").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "apt-get").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    bootstrap.install_system_packages(lists=RUN_ONLY)
    assert "sudo apt-get install --no-install-recommends unicorn-dev" in capsys.readouterr().out


def test_a_failure_is_one_sentence_and_the_place_of_the_log(checkout: Path) -> None:
    with pytest.raises(bootstrap.SetupError) as caught:
        bootstrap.run([sys.executable, "-c", "raise SystemExit('the disk is full')"], failure="Doing it failed")
    assert str(caught.value) == f"Doing it failed. What happened stands in {checkout}/.setup.log"
    assert "the disk is full" in (checkout / ".setup.log").read_text()


def test_without_a_compiler_the_package_that_brings_one_is_named(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(bootstrap.SetupError, match=r"apt-get install g\+\+"):
        bootstrap.llama_wheel()
    assert not list(checkout.parent.glob("cache/wheels/*/*.whl"))


def test_a_compiled_wheel_in_the_cache_is_used_as_it_is(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def compile_once(home: Path, *, workshop: Path) -> None:
        assert home.name == workshop.name
        home.mkdir(parents=True)
        (home / "llama.whl").touch()

    monkeypatch.setattr(bootstrap, "compile_llama", compile_once)
    first = bootstrap.llama_wheel()
    monkeypatch.delattr(bootstrap, "compile_llama")
    assert bootstrap.llama_wheel() == first
    (checkout / "setup/llama-cpp-build.txt").write_text("cmake==1\n")
    with pytest.raises(NameError):
        bootstrap.llama_wheel()


def test_two_setups_never_compile_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    order = []

    def second() -> None:
        with bootstrap.only_one(tmp_path / "cache/.lock", waiting="waiting for the other"):
            order.append("second")

    with bootstrap.only_one(tmp_path / "cache/.lock", waiting="never said"):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join(timeout=0.3)
        order.append("first")
    thread.join(timeout=10)
    assert order == ["first", "second"]
    assert capsys.readouterr().out == "  waiting for the other\n"


def test_an_old_python_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "OLDEST_PYTHON", (99, 0))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(bootstrap.SetupError, match=r"Python 3\.11 or newer"):
        bootstrap.use_a_new_enough_python()
