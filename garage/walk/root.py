"""The root of a source: is it there, can it be read, which device is it on, is it empty."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from garage.uris import uri_of
from garage.walk.errors import SourceUnavailable


@dataclass(frozen=True, slots=True)
class RootState:
    """A root that can be read. `device` and `inode` are what stat says of the folder itself, links resolved."""

    path: Path
    device: int
    inode: int
    empty: bool


def open_root(root: Path, *, source: str = "") -> RootState:
    """Look at the folder `root` and say what it is now; `source` names it in the error.

    A root that is itself a link is followed: a person chose it.

    Raises:
        SourceUnavailable: `root` is missing, is not a folder, or cannot be listed or entered.
    """
    path = Path(os.path.abspath(root))
    try:
        # The trailing dot asks for the right to enter the folder, not only to list it.
        with os.scandir(os.path.join(path, ".")) as entries:
            empty = next(entries, None) is None
        status = os.stat(path)
    except OSError as error:
        raise unavailable(path, error, source=source) from error
    return RootState(path=path, device=status.st_dev, inode=status.st_ino, empty=empty)


def unavailable(path: Path, error: OSError, *, source: str = "") -> SourceUnavailable:
    """Return the error that says why the root at `path` could not be read."""
    match error:
        case FileNotFoundError():
            reason = "does not exist"
        case NotADirectoryError():
            reason = "is not a folder"
        case _:
            reason = f"cannot be read ({error.strerror})"
    return SourceUnavailable(source=source, root=path, shown=uri_of(os.fsencode(path)), reason=reason)
