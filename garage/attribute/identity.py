"""Identities: what tells people apart, in the form in which it is compared.

An identity is a kind and a value, written `kind:value`. Two spellings of one address, number or name have one value:

- `email`, `git_email`: case is ignored. A tag behind a plus sign stays, since what it means is up to the domain. The
  number that GitHub puts before an account's private address is left out, as the account is the same without.
- `phone`: digits, with a plus sign before an international number; `00` is one, `(0)` is no digit to dial.
- `name`, `git_name`: case and spaces are ignored, and `Last, First` is `First Last`.
- `handle`: case and a leading @ are ignored.
"""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

KINDS = ("email", "git_email", "git_name", "name", "phone", "handle")
ADDRESSES = ("email", "git_email")

_LENGTH = 300  # code points of a value: no real one is longer, and an index takes no more than some
_SPACES = re.compile(r"\s+")
_QUOTES = "\"'“”‘’«»"
_GITHUB = re.compile(r"\d+\+([^@]+@users\.noreply\.github\.com)")
_TRUNK_ZERO = re.compile(r"\(0\)")
_PHONE = re.compile(r"\+?[\d\s()./-]+")
_EXTENSION = re.compile(r"\s*(?:ext\.?|x|#)\s*\d+$", re.IGNORECASE)
_PHONE_DIGITS = range(5, 16)  # from an office's short numbers to the longest that exist
_ADDRESS = re.compile(r"[^\s@<>,;\"]+@[^\s@<>,;\"]+")
_LAST_FIRST = re.compile(r"([^,]+),\s*([^,]+)")
_SUFFIX = re.compile(
    r"(?:ph\.?d|m\.?d|d\.?phil|m\.?sc|b\.?sc|m\.?a|b\.?a|mba|esq|jr|sr|ii|iii|iv|inc|ltd|llc|gmbh|ag|co|corp)\.?",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, order=True)
class Identity:
    """What is looked up: `value` is in the form of `identity`."""

    kind: str
    value: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.value}"


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody as a document names them: the first identity is the one to be remembered by, others find them as well.

    `name` is what they are called there, which may be their address.
    """

    identities: tuple[Identity, ...]
    name: str


@lru_cache(100_000)
def identity(kind: str, text: str) -> Identity | None:
    """The identity that a text of a kind is; None for a text that tells nobody apart."""
    if kind in ADDRESSES:
        value = _address(text)
    elif kind == "phone":
        value = _phone(text)
    elif kind == "handle":
        value = unicodedata.normalize("NFC", text).strip().removeprefix("@").casefold()
    else:
        value = _name(text)
    return Identity(kind, unicodedata.normalize("NFC", value)[:_LENGTH]) if value else None


def parsed(written: str) -> Identity | None:
    """The identity that is written `kind:value`, as in the configuration; None when it is none."""
    kind, _, value = written.partition(":")
    return identity(kind, value) if kind in KINDS else None


def _address(text: str) -> str:
    value = unicodedata.normalize("NFC", text).strip().strip("<>").lower()
    if match := _GITHUB.fullmatch(value):
        value = match[1]
    return value if "@" in value.strip("@") else ""


def _phone(text: str) -> str:
    text = _EXTENSION.sub("", _TRUNK_ZERO.sub("", text.strip().removeprefix("tel:")))
    digits = "".join(str(unicodedata.digit(char)) for char in text if char.isdigit())
    if text.startswith("+"):
        return f"+{digits}" if digits else ""
    return f"+{digits[2:]}" if digits.startswith("00") and len(digits) > 4 else digits


def _name(text: str) -> str:
    return _SPACES.sub(" ", shown_name(text)).casefold()


def shown_name(text: str) -> str:
    """A name as it is shown: in the order in which it is spoken, without quotes and surplus spaces."""
    text = _SPACES.sub(" ", unicodedata.normalize("NFC", text)).strip(f" {_QUOTES}")[:_LENGTH]
    if (match := _LAST_FIRST.fullmatch(text)) and not _SUFFIX.fullmatch(match[2].strip()):
        return f"{match[2].strip()} {match[1].strip()}"
    return text


def is_suffix(text: str) -> bool:
    """Whether what stands behind a comma belongs to the name before it: a degree, a generation, a legal form."""
    return _SUFFIX.fullmatch(text.strip()) is not None


def by_address(address: str, name: str = "", *, git: bool = False) -> Person | None:
    """Who writes from an address; mail and git know the same people. None when it is no address."""
    first, second = (
        identity("git_email" if git else "email", address),
        identity("email" if git else "git_email", address),
    )
    if first is None or second is None:
        return None
    return Person((first, second), shown_name(name) or first.value)


def by_name(name: str, *, git: bool = False) -> Person | None:
    """Who is only named."""
    found = identity("git_name" if git else "name", name)
    return None if found is None else Person((found,), shown_name(name))


def by_contact(text: str) -> Person | None:
    """Who a conversation names: by phone number, address, or whatever else they are called there."""
    text = text.strip()[:_LENGTH]
    if _ADDRESS.fullmatch(text):
        return by_address(text)
    if _PHONE.fullmatch(text) and sum(map(str.isdigit, text)) in _PHONE_DIGITS:
        found = identity("phone", text)
    else:
        found = identity("name" if " " in text else "handle", text)
    return None if found is None else Person((found,), text)


def mailboxes(written: Iterable[str]) -> list[Person]:
    """The people of a mail's header: each `Name <address>`, an address, a name, or several of these in one string."""
    found = [person for text in written for piece in _pieces(text) if (person := _mailbox(piece))]
    return list({person.identities[0]: person for person in reversed(found)}.values())[::-1]


def _pieces(text: str) -> list[str]:
    """Split what was joined by commas; one within a name, `Last, First <address>`, is none of those."""
    pieces: list[str] = []
    for piece in re.split(r"(?<=>),\s*", text):
        head, bracket, tail = piece.partition("<")
        waiting = [part.strip() for part in head.split(",")]
        while waiting and _ADDRESS.fullmatch(waiting[0]) and (len(waiting) > 1 or not bracket):
            pieces.append(waiting.pop(0))
        if rest := ", ".join(waiting) + (f" <{tail}" if bracket else ""):
            pieces.append(rest)
    return pieces


def _mailbox(piece: str) -> Person | None:
    name, bracket, rest = piece.partition("<")
    if not bracket:
        return by_address(piece) or by_name(piece)
    return by_address(rest.rstrip(" >"), name) or by_name(name) or by_name(rest.rstrip(" >"))


def better_name(one: str, other: str) -> str:
    """The one of two names of the same person to show; which it is does not depend on their order."""
    return max(one, other, key=_goodness)


def _goodness(name: str) -> tuple[bool, bool, bool, int, str]:
    words = name.split()
    plain = not any(char in name for char in "@<>_\\/") and not any(char.isdigit() for char in name)
    mixed = name not in {name.lower(), name.upper()} or not any(char.isalpha() and char.isascii() for char in name)
    return plain, plain and len(words) > 1, mixed, min(len(words), 4), name
