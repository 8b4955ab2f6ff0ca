"""What comes out of reading a file: its text, or why there is none."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import ClassVar

from garage.errors import GarageError
from garage.extract.mirror import JSON
from garage.passage import Part


@dataclass(frozen=True, slots=True)
class Extracted:
    """A file as text, or one of the documents that a file holds.

    `content` is a canonical mirror. `kind` is 'prose', 'markdown', 'tabular', 'conversation' or 'code:<language>' and
    decides how it is cut. `title` is None where the file gives none. `meta` can be stored as JSON as it is; keys that
    several kinds of file share mean the same (`author`, `created`, `modified`, `encoding`). `body_start` is the offset
    in code points of what follows the front matter; where there are `parts`, they are cut instead, in their order.
    `record` addresses a document in a file of many, and stays when others come and go. `communication` files it as one
    whatever its source says. `warnings` says what was left out or mended.
    """

    content: str
    kind: str
    title: str | None = None
    meta: dict[str, JSON] = field(default_factory=dict)
    body_start: int = 0
    parts: tuple[Part, ...] = ()
    record: str = ""
    communication: bool = False
    warnings: tuple[str, ...] = ()


class ExtractError(GarageError):
    """A file whose text cannot be had; `outcome` is the code that is recorded, `meta` what is known all the same."""

    outcome: ClassVar[str] = "error"
    meta: dict[str, JSON]

    def __init__(self, message: str, *, hint: str = "", meta: Mapping[str, JSON] | None = None) -> None:
        super().__init__(message, hint=hint, meta=dict(meta or {}))


class NoText(ExtractError):
    """The file can be read and holds nothing that a person could read as text."""

    outcome = "no_text"


class Encrypted(ExtractError):
    """The file opens with a password only."""

    outcome = "encrypted"


class Unsupported(ExtractError):
    """The file is not of the kind that its name says, or of one that is not read."""

    outcome = "unsupported"


class Rejected(ExtractError):
    """The file holds text that no person wrote: a log, a dump, a bundle; the message names the signals."""

    outcome = "rejected"


class TooLarge(ExtractError):
    """The file, or what it unpacks to, is larger than the limit."""

    outcome = "too_large"


class Malformed(ExtractError):
    """The file is damaged, or trips the library that reads it."""

    outcome = "error"


def kind_of(name: str, kinds: Mapping[str, str], default: str) -> str:
    """The kind that an extractor's table gives a file name: the whole name goes before its suffix; case is ignored."""
    lower = name.lower()
    return kinds.get(lower) or kinds.get(PurePath(lower).suffix) or default
