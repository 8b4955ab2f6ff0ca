"""What can go wrong around a walk that a person can put right."""

from __future__ import annotations

from pathlib import Path

from garage.errors import GarageError


class SourceUnavailable(GarageError):
    """The root of a source cannot be read at all; says nothing about whether its files still exist."""

    source: str
    root: Path
    reason: str

    def __init__(self, *, source: str, root: Path, shown: str, reason: str) -> None:
        named = f"Source '{source}' is unavailable" if source else "The source is unavailable"
        super().__init__(
            f"{named}: {shown} {reason}.",
            hint="Nothing was deleted. If it lies on a drive or a network share, connect it and run again; "
            "if the folder has moved, give the source its new root.",
            source=source,
            root=root,
            reason=reason,
        )


class SourceInactive(GarageError):
    """The source is switched off, or no longer one: nothing of it is read."""

    source: str

    def __init__(self, *, source: str) -> None:
        super().__init__(
            f"Source '{source}' is not in use: it was removed, or `enabled: false` is set in the configuration.",
            hint="Nothing was read or deleted. `garage source add` makes a folder a source again.",
            source=source,
        )


class DeletionRefused(GarageError):
    """A walk found more missing than a person is likely to have removed; nothing was deleted."""

    source: str
    vanished: int
    known: int
    share: float
    cause: str

    def __init__(self, *, source: str, vanished: int, known: int, cause: str) -> None:
        share = vanished / known
        super().__init__(
            f"Refused to delete {vanished:,} of {known:,} files ({share:.1%}) of source '{source}': {cause}.",
            hint="Nothing was deleted. Check that the folder is the right one and its drive is connected. If the files "
            f"are really meant to go, run `garage update --source {source} --force` "
            "(in Dagster: allow_deletes: true in the run options).",
            source=source,
            vanished=vanished,
            known=known,
            share=share,
            cause=cause,
        )


class BadPattern(GarageError):
    """An exclude pattern that git would not understand either."""

    pattern: str

    def __init__(self, *, pattern: str) -> None:
        super().__init__(
            f"The exclude pattern {pattern!r} means nothing.",
            hint="Patterns are written as in a .gitignore file, relative to the root of the source.",
            pattern=pattern,
        )
