"""The author that a file names: one person, several, or a program that put its own name there."""

import re
import unicodedata
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files

import yaml

from garage.attribute.identity import Person, by_address, by_name, is_suffix, shown_name

_AUTHORS = 30  # of one document; a list beyond that is an attack or a telephone book
_NAME = 200  # code points
_SPLIT = re.compile(r"\s*[;|•·]\s*|\s+(?:and|und|et|with|&|\+)\s+|,\s*(?:and|und|et|&)\s+", re.IGNORECASE)
_BY = re.compile(r"(?:by|von|par|author|authors|written by)\s*:?\s+(?=\S)", re.IGNORECASE)
_AND_OTHERS = re.compile(r",?\s+(?:et\.? al\b\.?|and others|u\.\s?a\.)", re.IGNORECASE)
_FIRM = re.compile(
    r"\b(?:inc|ltd|llc|gmbh|ag|corp|co|company|group|sons|university|institute|ministry|department)\b\.?", re.IGNORECASE
)
_BRACKETED = re.compile(r"(.*?)\s*[<(]\s*(\S+@\S+?)\s*[>)]|(\S+@\S+)\s*\((.*)\)")
_VERSION = re.compile(r"\bv?\d+\.\d+(?:\.\d+)*\b|\(r\)|®|™")
_PATH = re.compile(r"[A-Za-z]:[\\/]|\\\\|/(?:home|users|tmp|var|root|mnt|opt)/|~/|file:|https?:", re.IGNORECASE)
_IDENTIFIER = re.compile(
    r"\{?[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}\}?|[0-9a-f]{16,}|s-1-5-[\d-]+", re.IGNORECASE
)
_MACHINE = re.compile(r"(?:desktop|laptop|win|pc|macbook|localhost)[-_.]?[a-z0-9]{4,}|.*\.local", re.IGNORECASE)
_ROBOT = re.compile(
    r"(?:no|do[-_.]?not)[-_.]?reply\b.*|(?:scan(?:ner|s)?|copier|printer|mfp|fax|postmaster|mailer-daemon|root|admin"
    r"|www-data|nobody|webmaster|info)(?:[-_.+]?\d*)?@.*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Authors:
    """Whom a field names: people, and what was left out as the name of a tool."""

    people: tuple[Person, ...] = ()
    tools: tuple[str, ...] = ()


@lru_cache(10_000)
def looks_like_tool_name(name: str) -> bool:
    """Whether a name is no person's: a program's, a machine's, that of an account which everybody has."""
    plain = " ".join(unicodedata.normalize("NFC", name).split()).strip("\"'").casefold()
    if not any(char.isalpha() for char in plain) or len(plain) < 2:
        return True
    whole, begins, contains = _tools()
    return (
        plain in whole
        or any(plain.startswith(words) and not plain[len(words) :][:1].isalpha() for words in begins)
        or any(words in plain for words in contains)
        or any(pattern.search(plain) for pattern in (_VERSION, _PATH))
        or any(pattern.fullmatch(plain) for pattern in (_IDENTIFIER, _MACHINE, _ROBOT))
    )


@cache
def _tools() -> tuple[frozenset[str], tuple[str, ...], tuple[str, ...]]:
    data = yaml.safe_load(files(__package__).joinpath("tool_names.yaml").read_text(encoding="utf-8"))
    folded = {key: [str(name).casefold() for name in data[key]] for key in ("whole", "begins", "contains")}
    return frozenset(folded["whole"]), tuple(folded["begins"]), tuple(folded["contains"])


def authors(field: object) -> Authors:
    """The people that a document's `author` names, and the tools."""
    texts = field if isinstance(field, list) else [field]
    people: dict[Person, None] = {}
    tools: dict[str, None] = {}
    for text in texts:
        if not isinstance(text, str):
            continue
        for name in [text.strip()] if looks_like_tool_name(text) else names(text):
            if name and looks_like_tool_name(name):
                tools[name[:_NAME]] = None
            elif person := _person(name):
                people[person] = None
    return Authors(tuple(people)[:_AUTHORS], tuple(tools)[:_AUTHORS])


def _person(text: str) -> Person | None:
    if match := _BRACKETED.fullmatch(text):
        address, name = match[2] or match[3], match[1] or match[4] or ""
        return by_address(address, name) or by_name(name)
    return by_address(text) if "@" in text and " " not in text else by_name(text)


def names(text: str) -> list[str]:
    """The names that a line holds, in their order and as they are spoken.

    `Lovelace, Ada` is one person and `Ada Lovelace, Charles Babbage` are two: a comma parts people where every piece
    has a name of its own, of two words or more.
    """
    # Lines part people as well. White space is collapsed first: a run of it would be looked at from each of its places.
    text = _AND_OTHERS.sub("", " ".join("; ".join(text.splitlines()).split()))
    if begin := _BY.match(text):
        text = text[begin.end() :]
    found: list[str] = []
    for piece in [text] if _FIRM.search(text) and "," not in text and ";" not in text else _SPLIT.split(text):
        found += _parted(piece)
    return [name for name in (shown_name(name)[:_NAME] for name in found[: 2 * _AUTHORS]) if name]


def _parted(text: str) -> list[str]:
    """What commas part."""
    pieces: list[str] = []
    for piece in (part.strip() for part in text.split(",")):
        if pieces and is_suffix(piece):
            pieces[-1] += f", {piece}"
        elif piece:
            pieces.append(piece)
    words = [len(piece.split()) for piece in pieces]
    if len(pieces) == 2 and min(words) == 1 and "@" not in text:
        return [", ".join(pieces)]
    if len(pieces) > 2 and len(pieces) % 2 == 0 and all(count == 1 for count in words[::2]) and "@" not in text:
        return [", ".join(pair) for pair in zip(pieces[::2], pieces[1::2], strict=True)]
    return pieces
