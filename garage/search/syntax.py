"""What a person typed, as the engines take it: words to rank by, and what all hits must or may not contain."""

import re
from dataclasses import dataclass

from garage.passage import asked_as_code, asked_as_prose
from garage.store.search import Terms

_TYPED = re.compile(
    r"""(?P<minus>(?:(?<=\s)|^)-)?"(?P<phrase>[^"]*)"  # "an exact phrase", -"not this one"
      | (?:(?<=\s)|^)-(?P<word>\w[^\s"]*)             # -without
      | (?:(?<=\s)|^)OR(?=\s|$)                       # the words are alternatives anyway
    """,
    re.VERBOSE,
)
_WORD = re.compile(r"\w+")
_PROSE_FROM = 20  # words from which a query is taken for prose that somebody wrote or pasted, quotation marks and all


@dataclass(frozen=True, slots=True)
class Asked:
    """A query without its operators (`words`), and the same for keyword search."""

    words: str
    terms: Terms

    @property
    def is_deliberate(self) -> bool:
        """Whether it says what hits must or may not contain."""
        return bool(self.terms.required or self.terms.excluded)


def parse(query: str) -> Asked:
    """Quotes, a leading minus and OR are operators, unless this is prose, or nothing would be left to look for."""
    if len(query.split()) >= _PROSE_FROM:
        return plain(query)
    required: list[str] = []
    excluded: list[str] = []

    def operator(match: re.Match[str]) -> str:
        excluding = match["word"] is not None or match["minus"] is not None
        phrase = match["word"] or match["phrase"] or ""
        pattern = _pattern(phrase)
        if pattern:
            (excluded if excluding else required).append(pattern)
        return " " if excluding else f" {phrase} "

    words = " ".join(_TYPED.sub(operator, query).split())
    if not _WORD.search(words):
        return plain(query)
    return Asked(words, Terms(asked_as_prose(words), asked_as_code(words), tuple(required), tuple(excluded)))


def plain(query: str) -> Asked:
    """A query of words alone, whatever it looks like."""
    return Asked(query, Terms(asked_as_prose(query), asked_as_code(query)))


def _pattern(phrase: str) -> str:
    """A phrase as a regular expression of Postgres: whole words, any white space between them; empty for no words."""
    words = asked_as_prose(phrase).split()
    if not any(map(_WORD.search, words)):
        return ""
    joined = r"\\s+".join(re.sub(r"([^\w\s])", r"\\\1", word) for word in words).replace(r"\\s", r"\s")
    start = r"\m" if _WORD.match(words[0]) else ""
    end = r"\M" if _WORD.match(words[-1][-1]) else ""
    return f"{start}{joined}{end}"
