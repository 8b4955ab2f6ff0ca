"""Which folders and files of a source are wanted, told from their names and paths alone."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from garage.walk.errors import BadPattern
from garage.walk.exclusions import Globs, exclusions


class Choice(NamedTuple):
    """What becomes of a file: the extractor that reads it, or else the reason why it is skipped."""

    extractor: str = ""
    skipped: str | None = None


class Ruling(NamedTuple):
    """What the exclude patterns of a source say of one entry.

    `wanted` is False when they leave it out, True when a pattern with "!" names this very entry, None when they are
    silent. `pattern` is the number of the pattern that decided, which everything inside a folder inherits.
    """

    wanted: bool | None = None
    pattern: int | None = None


_SILENT = Ruling()
_NO_EXTRACTOR = Choice(skipped="extension")
_CODE = Choice(skipped="code")
_PATTERN = Choice(skipped="pattern")
_HIDDEN = Choice(skipped="hidden")


class Selection:
    """The rules of one walk: suffixes, code, hidden entries, the built-in exclusions, the source's own patterns."""

    def __init__(
        self,
        *,
        suffixes: Mapping[str, str],
        code_extractors: Collection[str],
        include_code: bool,
        include_hidden: bool,
        exclude: Sequence[str],
    ) -> None:
        """Compile the rules; `garage.walk.walker.walk` describes the arguments.

        Raises:
            BadPattern: one of `exclude` is not a gitignore pattern.
        """
        self._exclusions = exclusions()
        self._include_hidden = include_hidden
        self._patterns = GitIgnoreSpec(_parsed(exclude), backend="simple")
        self._touches = _any_of(self._patterns)
        self._kinds: dict[str, tuple[Choice, Globs | None]] = {}
        for ending, extractor in suffixes.items():
            lower = ending.lower()
            is_code = extractor in code_extractors and not include_code
            self._kinds[lower] = (_CODE, None) if is_code else (Choice(extractor), self._exclusions.file_globs(lower))

    def ruling(self, relative: str, inherited: int | None) -> Ruling:
        """Return what the patterns say of the path `relative` to the root; a folder's ends in '/'.

        `inherited` is the pattern that decided about the folder around it. git lets "!vendor/" speak for everything
        below vendor/; here it brings back that folder only, or the node_modules inside would come along.
        """
        if self._touches is None or not self._touches(path := _matchable(relative)):
            return _SILENT
        found = self._patterns.check_file(path)
        if found.include:
            return Ruling(False, found.index)
        return Ruling(True if found.include is False and found.index != inherited else None, found.index)

    def folder(self, name: str, path: bytes, ruling: Ruling) -> str | None:
        """Return why the folder `name` with the absolute path `path` is not entered; None when it is."""
        if ruling.wanted is not None:
            return None if ruling.wanted else "pattern"
        if reason := self._exclusions.folder_reason(name, path):
            return reason
        return "hidden" if name[0] == "." and not self._include_hidden else None

    def file(self, name: str, folder: str, inherited: int | None) -> Choice:
        """Return what becomes of the file `name` in `folder`, relative like in `ruling` and empty for the root."""
        lower = name.lower()
        kind = self._kinds.get(lower) or self._kinds.get(lower[lower.rfind(".") :])
        if kind is None:
            return _NO_EXTRACTOR
        choice, globs = kind
        wanted = self.ruling(folder + name, inherited).wanted if self._touches else None
        if wanted is False:
            return _PATTERN
        if wanted is None and name[0] == "." and not self._include_hidden:
            return _HIDDEN
        if globs and wanted is None and globs.match(lower):
            return Choice(skipped=globs.reason(lower))
        return choice


def _parsed(exclude: Sequence[str]) -> list[GitIgnoreSpecPattern]:
    patterns: list[GitIgnoreSpecPattern] = []
    for line in exclude:
        try:
            patterns += GitIgnoreSpec.from_lines([_matchable(line)]).patterns
        except ValueError as error:
            raise BadPattern(pattern=line) from error
    return patterns


def _any_of(patterns: GitIgnoreSpec) -> Callable[[str], object] | None:
    """Return one regular expression that matches what any of `patterns` matches; None when there are none.

    Most paths meet no pattern, and finding that out pattern by pattern costs five times as much.
    """
    expressions = [pattern.regex.pattern for pattern in patterns.patterns if pattern.regex is not None]
    unnamed = (re.sub(r"\(\?P<\w+>", "(?:", expression) for expression in expressions)
    # pathspec searches where this matches: "**/" becomes an expression that is not tied to the start.
    tied = (expression if expression.startswith("^") else f".*(?:{expression})" for expression in unnamed)
    return re.compile("|".join(f"(?:{expression})" for expression in tied)).match if expressions else None


def _matchable(text: str) -> str:
    """Return `text` as patterns see it: on one line, and composed as people type it (macOS stores names decomposed)."""
    return text if text.isascii() and "\n" not in text else unicodedata.normalize("NFC", text).replace("\n", "\ufffd")
