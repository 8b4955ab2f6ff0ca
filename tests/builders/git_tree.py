"""Real repositories, made by git itself."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

ADA = ("Ada Lovelace", "ada@example.org")
BEN = ("Ben Okri", "ben@example.org")
_FIRST = 1_700_000_000  # seconds; every commit is a minute after the one before


class Tree:
    """A working tree with a repository; commits are told by what they write."""

    def __init__(self, folder: Path, *, make: bool = True, options: tuple[str, ...] = ()) -> None:
        self.folder = folder
        self._commits = 0
        if make:
            folder.mkdir(parents=True, exist_ok=True)
            self.git("init", "-q", "-b", "main", *options)

    def git(self, *arguments: str, **environment: str) -> str:
        """Runs git here and returns what it says; nothing of this machine's configuration counts."""
        own = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "HOME": str(self.folder)}
        for role in ("AUTHOR", "COMMITTER"):
            own |= {f"GIT_{role}_NAME": ADA[0], f"GIT_{role}_EMAIL": ADA[1]}
            own[f"GIT_{role}_DATE"] = f"{_FIRST + 60 * self._commits} +0000"
        ran = subprocess.run(
            ["git", "-c", "protocol.file.allow=always", *arguments],
            cwd=self.folder, env={**os.environ, **own, **environment}, capture_output=True, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr.decode("utf-8", "replace")
        return ran.stdout.decode("utf-8", "surrogateescape").strip()

    def commit(
        self,
        files: Mapping[str, str | None],
        author: tuple[str, str] = ADA,
        committer: tuple[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> str:
        """Writes files (None: removes one) and commits them; returns the commit's name."""
        for name, text in files.items():
            path = self.folder / name
            if text is None:
                path.unlink()
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
        self._commits += 1
        people = {"AUTHOR": author, "COMMITTER": committer or author}
        who = {f"GIT_{role}_NAME": name for role, (name, _) in people.items()}
        who |= {f"GIT_{role}_EMAIL": email for role, (_, email) in people.items()}
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", f"commit {self._commits}", **{**who, **(environment or {})})
        return self.git("rev-parse", "HEAD")
