"""Path rules: what the folders on a document's way say of it."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files

import yaml

_FOLDERS = 10_000
TRUSTS = ("authored", "received", "reference")


@dataclass(frozen=True, slots=True)
class PathRule:
    """A glob as it is written, and the trust of what it matches."""

    glob: str
    trust: str
    vendored: bool = False


class PathRules:
    """Rules in their order; the first that matches a path decides."""

    def __init__(self, rules: Iterable[PathRule]) -> None:
        self.rules = tuple(rules)
        self._compiled = [(rule, _compiled(rule)) for rule in self.rules]
        self._names_files = any(not rule.glob.endswith("/") for rule in self.rules)
        self._first = lru_cache(_FOLDERS)(self._search)

    def match(self, path: str) -> PathRule | None:
        """The rule that decides about a path, whose parts '/' separates."""
        # Where no rule names files, all of a folder are judged at once.
        return self._first(path if self._names_files else path[: path.rfind("/") + 1])

    def _search(self, path: str) -> PathRule | None:
        path = unicodedata.normalize("NFC", path)
        return next((rule for rule, pattern in self._compiled if pattern.search(path)), None)


def path_rules(own: Iterable[PathRule] = ()) -> PathRules:
    """The built-in rules, with those of the configuration before all but the vendored ones."""
    vendored, built_in = _built_in()
    return PathRules((*vendored, *own, *built_in))


@cache
def _built_in() -> tuple[tuple[PathRule, ...], tuple[PathRule, ...]]:
    data = yaml.safe_load(files(__package__).joinpath("path_rules.yaml").read_text(encoding="utf-8"))
    vendored = tuple(PathRule(glob, "reference", vendored=True) for glob in data["vendored"])
    return vendored, tuple(PathRule(glob, trust) for rule in data["rules"] for glob, trust in rule.items())


def _compiled(rule: PathRule) -> re.Pattern[str]:
    glob = unicodedata.normalize("NFC", rule.glob)
    body = "".join(_token(token) for token in re.split(r"(\*\*/?|\*|\?)", glob.strip("/")))
    begin = "^" if glob.startswith("/") else "(?:^|/)"
    end = "/" if glob.endswith("/") else "$"
    return re.compile(begin + body + end, 0 if rule.vendored else re.IGNORECASE)


def _token(token: str) -> str:
    return {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]"}.get(token, re.escape(token))
