"""Running git on a repository that anybody may have made: it reads, and nothing that the repository says is executed.

A repository's own configuration names programs (hooks, a pager, a monitor of the file system, a diff, a signature
checker, the transport of missing objects) and files to read. The options and the environment here leave no way to any
of them; nothing is written to the repository, and nothing is fetched.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from garage.errors import GarageError

if TYPE_CHECKING:
    from git.cmd import Git

PATIENCE = 300.0
"""Seconds without a word after which git is given up: a named pipe in place of a file would keep it forever."""

_ENVIRONMENT = {
    # A partial clone fetches what it lacks through a program that its configuration may name. Each of these forbids it,
    # the second one by itself since git 2.39.4.
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    # A commit's name tells everything below it, whatever is to be taken for what.
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": os.devnull,
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_FLUSH": "0",  # else a pipe is written to once a commit
}
# These win over the repository's own. Files that it names for git to read may be endless. The first two are of no use
# to the commands here in any git that was tried; they are to be of none in the next one either.
_SETTINGS = {
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "diff.orderFile": os.devnull,
    "i18n.logOutputEncoding": "UTF-8",
    "log.showRoot": "true",
    "log.showSignature": "false",
    "mailmap.blob": "",
    "mailmap.file": "",
}
_WORDS = 4_096  # bytes kept of what git complains of


class GitFailed(GarageError):
    """Git could not do what was asked of one repository (`reason`: in its own words, on one line)."""

    reason: str


def command(tree: Path, *arguments: str) -> list[str]:
    """The command line of a git command on the repository of a working tree.

    The repository is named rather than looked for, so that it does not matter whose it is, and so is its working tree,
    which its configuration could put anywhere.
    """
    settings = [word for name, value in _SETTINGS.items() for word in ("-c", f"{name}={value}")]
    places = [f"--git-dir={tree / '.git'}", f"--work-tree={tree}"]
    return ["git", "--no-pager", "--literal-pathspecs", *settings, *places, *arguments]


def ask(tree: Path, *arguments: str) -> tuple[int, bytes, str]:
    """Runs a short git command; its exit status, what it answered, and what it complained of ('': nothing)."""
    status, out, err = _git(tree).execute(
        command(tree, *arguments),
        with_extended_output=True,
        with_exceptions=False,
        stdout_as_string=False,
        strip_newline_in_stdout=False,
        kill_after_timeout=PATIENCE,
        env=_ENVIRONMENT,
    )
    assert isinstance(out, bytes)
    if status < 0:
        return status, out, f"git was ended, or did not answer for {PATIENCE:.0f} seconds"
    return status, out, _complaint(err if isinstance(err, bytes) else os.fsencode(err))


@contextmanager
def streamed(tree: Path, *arguments: str) -> Iterator[Iterator[bytes]]:
    """Runs a git command; yields what it writes, block by block. Leaving the block ends the command.

    Raises GitFailed at the end of the blocks when git failed or was silent for `PATIENCE` seconds.
    """
    running = _git(tree).execute(command(tree, *arguments), as_process=True, env=_ENVIRONMENT)
    process = running.proc  # `running` ends it when nobody holds it any more
    assert process is not None
    assert process.stdout is not None
    assert process.stderr is not None
    complaints = bytearray()
    drain = threading.Thread(target=_drain, args=(process.stderr, complaints), daemon=True)
    drain.start()
    watch = _Watch(process)
    watch.start()
    try:
        yield _blocks(process, watch, drain, complaints)
    finally:
        watch.ended.set()
        process.kill()
        process.wait()
        drain.join()
        watch.join()
        process.stdout.close()
        process.stderr.close()


def _blocks(
    process: subprocess.Popen[bytes], watch: _Watch, drain: threading.Thread, complaints: bytearray
) -> Iterator[bytes]:
    assert isinstance(process.stdout, io.BufferedReader)
    while True:
        watch.waiting_since = time.monotonic()
        block = process.stdout.read1(1 << 20)
        watch.waiting_since = None
        if not block:
            break
        yield block
    status = process.wait()
    drain.join()
    if watch.gave_up:
        raise _failed(f"git said nothing for {PATIENCE:.0f} seconds")
    if status:
        raise _failed(_complaint(bytes(complaints)) or f"git ended with status {status}")


class _Watch(threading.Thread):
    """Ends a process that keeps its reader waiting for too long."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        super().__init__(daemon=True)
        self._process = process
        self.waiting_since: float | None = None
        self.ended = threading.Event()
        self.gave_up = False

    def run(self) -> None:
        while not self.ended.wait(min(1.0, PATIENCE / 4)):
            since = self.waiting_since
            if since is not None and time.monotonic() - since > PATIENCE:
                self.gave_up = True
                self._process.kill()
                return


def _drain(errors: BinaryIO, complaints: bytearray) -> None:
    """Reads what a command complains of, so that it never waits for that; keeps the end of it."""
    while block := errors.read(_WORDS):
        complaints += block
        del complaints[:-_WORDS]


def _complaint(words: bytes) -> str:
    """What ended the command, or else the last thing that it complained of, on one line fit for a terminal."""
    lines = words.decode("utf-8", "replace").strip().splitlines()
    if not lines:
        return ""
    line = next((line for line in reversed(lines) if line.startswith("fatal: ")), lines[-1])
    text = re.sub("^(fatal|error|warning): ", "", line)
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)[:300]


def _failed(reason: str) -> GitFailed:
    return GitFailed(f"The history cannot be read: {reason}.", reason=reason)


def is_available() -> bool:
    """Whether there is a git on this machine."""
    try:
        import git.cmd  # noqa: F401 - fails where its own search fails
    except ImportError:
        return False
    return shutil.which("git") is not None


def _git(tree: Path) -> Git:
    """GitPython's wrapper of the git command, in a working tree: its mailmap is read from there."""
    from git.cmd import Git

    return Git(tree)
