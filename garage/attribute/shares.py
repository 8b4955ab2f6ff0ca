"""From the pieces of a log to rows: people with their numbers, and each file's people with how much they wrote."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping

from garage.store.git import Shares
from garage.uris import fits, uri_of

NAME_LIMIT = 200
"""Characters of a name or of a mail address; the rest of a longer one is cut off."""

_controls = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]+")


class People:
    """The people of one repository by number.

    A number follows from name and mail address, so that it is the same whenever a history is read, and a file's row
    changes only when its people do. `by_number` begins with those already recorded.
    """

    def __init__(self, recorded: Mapping[int, tuple[str, str]] | None = None) -> None:
        self.by_number = dict(recorded or {})
        self._numbers = {person: number for number, person in self.by_number.items()}

    def number(self, name: bytes, email: bytes) -> int:
        """The number of a person, who is added where there is none yet."""
        person = _text(name), _text(email)
        number = self._numbers.get(person)
        if number is None:
            number = int.from_bytes(hashlib.sha256("\n".join(person).encode()).digest()[:4], "big") >> 1
            while number in self.by_number:  # two with one number: the later moves on
                number = (number + 1) % 2**31
            self._numbers[person] = number
            self.by_number[number] = person
        return number


def _text(name: bytes) -> str:
    """A name as a database and a terminal take it; what is not UTF-8 shows as a replacement character."""
    return _controls.sub(" ", name.decode("utf-8", "replace"))[:NAME_LIMIT].strip()


def files(written: Mapping[bytes, Counter[bytes]], cut: Iterable[bytes], people: People) -> dict[str, Shares]:
    """Return who wrote how many commits of each file, by its address; no file of a source has one that does not fit.

    Args:
        written: paths by the lines of the log that name author and committer, as `garage.attribute.history` reads them.
        cut: paths whose older history is not there; nobody has a share where that is all of it.
        people: where the people are numbered.
    """
    shares: dict[bytes, Shares | dict[int, int]] = {}
    for who, counts in written.items():
        author, committer = _pair(who, people)
        ready: dict[int, Shares] = {}  # most files have one person; they have one row together
        for path, commits in counts.items():
            given = ready.get(commits)
            if given is None:
                given = ready[commits] = ((author, commits),) + (((committer, 0),) if committer != author else ())
            before = shares.get(path)
            shares[path] = given if before is None else _with(before, given)
    for path in cut:
        shares.setdefault(path, ())
    return {uri: _in_order(given) for path, given in shares.items() if fits(uri := uri_of(path))}


def added(before: Mapping[str, Shares], new: Mapping[str, Shares]) -> dict[str, Shares]:
    """Return `new` with what was known of the same files before."""
    return {path: _in_order(_with(before[path], given)) if path in before else given for path, given in new.items()}


def _pair(who: bytes, people: People) -> tuple[int, int]:
    author_name, author_email, committer_name, committer_email = who.split(b"\n")
    return people.number(author_name, author_email), people.number(committer_name, committer_email)


def _with(before: Shares | dict[int, int], given: Shares) -> dict[int, int]:
    """Both in one mapping: `before` itself once it is one, so that a file of a thousand people is copied once."""
    together = before if isinstance(before, dict) else dict(before)
    for person, commits in given:
        together[person] = together.get(person, 0) + commits
    return together


def _in_order(given: Shares | dict[int, int]) -> Shares:
    if isinstance(given, dict):
        return tuple(sorted(given.items(), key=lambda share: (-share[1], share[0])))
    return given
