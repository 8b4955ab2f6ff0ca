"""What a passage is to the two engines: the text a model may be given, and the terms keyword search sees."""

import hashlib
import json
import re
import unicodedata
from dataclasses import dataclass
from typing import Literal

# Chinese, Japanese and Korean write without spaces; a run of these is indexed as overlapping pairs, which needs no
# dictionary (iteration marks, Hiragana, Katakana, ideographs with extensions, compatibility ones, Hangul syllables).
_CJK = "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af\U00020000-\U0003ffff"
_CJK_RUN = re.compile(f"[{_CJK}]+")
_COMPOUND = re.compile(r"\w+(?:[^\w\s]+\w+)*")
_RUN = re.compile(r"\d+|[^\W\d_]+")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_HYPHEN = re.compile(r"['’-]")
_ABOVE = 500  # code points of a title or heading that are repeated with every passage below it
_TITLE_COUNT = 2  # a word of the title counts as two: better on every collection of `bench.quality`


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a document that is cut on its own: a message of a thread, the words of a mail, what it quotes.

    `start` and `end` are code points of the content. `sender` is as the document names them; `direction` is seen from
    the owner; words that are `quoted` are not the sender's own. `at` is a time in ISO 8601.
    """

    start: int
    end: int
    sender: str | None = None
    direction: Literal["sent", "received"] | None = None
    quoted: bool = False
    at: str | None = None


@dataclass(frozen=True, slots=True)
class Lexical:
    """The terms of a passage for keyword search: exactly one of the two is set."""

    prose: str | None
    code: str | None


def input_sha256(title: str, heading_path: str | None, text: str) -> bytes:
    """Digest of all that a model may be given of a passage; model-independent (see `vector_sha256`)."""
    return hashlib.sha256(json.dumps([title, heading_path or "", text], ensure_ascii=False).encode()).digest()


def is_code(kind: str) -> bool:
    """Whether documents of this kind are searched without stemming."""
    return kind.startswith("code:")


def lexical(kind: str, title: str, heading_path: str | None, text: str) -> Lexical:
    """Title, heading and text as keyword search sees them, with the parts of compounds."""
    above = [title[:_ABOVE]] * _TITLE_COUNT + [(heading_path or "")[:_ABOVE]]
    whole = _folded("\n".join(part for part in (*above, text) if part))
    terms = with_bigrams(with_parts(whole), singles=True)
    return Lexical(None, terms) if is_code(kind) else Lexical(terms, None)


def asked_as_prose(query: str) -> str:
    """The words of a query as prose is indexed."""
    return with_bigrams(_folded(query))


def asked_as_code(query: str) -> str:
    """The words of a query as code is indexed: a compound is also looked for by its parts."""
    return with_bigrams(with_parts(_folded(query)))


def with_parts(text: str) -> str:
    """Appends the parts of compounds: `getUserName` is also found by `user`, `numpy.ndarray` by `ndarray`.

    Words with a hyphen or an apostrophe are left to Postgres, which knows them.
    """
    parts: list[str] = []
    for compound in dict.fromkeys(_COMPOUND.findall(text)):
        found = [part for run in _RUN.findall(compound) for part in _HUMP.split(run)]
        if len(found) > 1 and not (found == _HYPHEN.split(compound) and all(map(str.isalpha, found))):
            parts.extend(part for part in found if len(part) > 1 or not part.isalpha())
    return f"{text}\n{' '.join(parts)}" if parts else text


def with_bigrams(text: str, *, singles: bool = False) -> str:
    """Writes runs of Chinese, Japanese and Korean as overlapping pairs; everything else stays as it is.

    With `singles`, as indexed, also as single characters, for somebody may look for one.
    """

    def pairs(match: re.Match[str]) -> str:
        run = match.group()
        if len(run) == 1:
            return f" {run} "
        found = [run[i : i + 2] for i in range(len(run) - 1)]
        return f" {' '.join([*found, *run] if singles else found)} "

    return _CJK_RUN.sub(pairs, text)


def _folded(text: str) -> str:
    """One spelling for what looks the same: ligatures, full-width letters, circled digits."""
    return text if text.isascii() else unicodedata.normalize("NFKC", text)
