"""What a walk leaves out of every source: the families of `exclusions.yaml`, compiled."""

from __future__ import annotations

import re
from fnmatch import translate
from functools import cache
from importlib.resources import files

import yaml

Rules = dict[str, str]
"""A name, glob or path on the left; on the right the reason under which a walk counts what it leaves out."""


class Globs:
    """Several globs tried as one regular expression, since a walk asks about every name it meets."""

    def __init__(self, rules: Rules) -> None:
        """Compile the globs of `rules`, of which there is at least one."""
        self._reasons = list(rules.values())
        self.match = re.compile("|".join(f"({translate(glob)})" for glob in rules)).match

    def reason(self, name: str) -> str | None:
        """Return the reason of the first glob that all of `name` matches; None when there is none."""
        found = self.match(name)
        return self._reasons[found.lastindex - 1] if found and found.lastindex else None


class Exclusions:
    """The rules about folders, compiled, and the rules about files, to be narrowed down to those that can apply."""

    def __init__(self, *, folders: Rules, paths: Rules, files: Rules) -> None:
        self._folders = {name: reason for name, reason in folders.items() if not _is_glob(name)}
        self._folder_globs = Globs({name: reason for name, reason in folders.items() if _is_glob(name)})
        self._paths: dict[str, list[tuple[bytes, str]]] = {}
        for path, reason in paths.items():
            self._paths.setdefault(path.rpartition("/")[2], []).append((f"/{path}".encode(), reason))
        self._files = files
        self._compiled: dict[tuple[str, ...], Globs | None] = {}

    def folder_reason(self, name: str, path: bytes) -> str | None:
        """Return why the folder `name` with the absolute path `path` is left out; None when it is not."""
        if reason := self._folders.get(name) or self._folder_globs.reason(name):
            return reason
        return next((reason for end, reason in self._paths.get(name, ()) if path.endswith(end)), None)

    def file_globs(self, ending: str) -> Globs | None:
        """Return the rules, None if there are none, that a file name ending in `ending` can meet; all in lower case.

        A walk asks once a suffix, so that a name is tried against the few globs that its suffix leaves possible.
        """
        possible = tuple(glob for glob in self._files if _can_end_in(glob, ending))
        if possible not in self._compiled:  # most suffixes share theirs
            rules = {glob: self._files[glob] for glob in possible}
            self._compiled[possible] = Globs(rules) if rules else None
        return self._compiled[possible]


def _is_glob(text: str) -> bool:
    return "*" in text or "?" in text


def _can_end_in(glob: str, ending: str) -> bool:
    literal = glob[max(glob.rfind("*"), glob.rfind("?")) + 1 :]
    return literal.endswith(ending) or ending.endswith(literal)


@cache
def exclusions() -> Exclusions:
    """Return the exclusions that come with Garage, read once."""
    families = yaml.safe_load(files("garage.walk").joinpath("exclusions.yaml").read_text(encoding="utf-8"))
    rules: dict[str, Rules] = {"folders": {}, "paths": {}, "files": {}}
    for family in families.values():
        reason = family.pop("reason")
        for kind, names in family.items():
            rules[kind].update(dict.fromkeys(names, reason))
    return Exclusions(**rules)
