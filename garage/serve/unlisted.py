"""What a walk would do about one path, and which part of the path decides."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from garage.config import Config
from garage.extract.registry import SUFFIXES
from garage.store.sources import Source
from garage.uris import fits, uri_of
from garage.walk.selection import Selection


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of a file: the extractor that would read it, or `reason`, the one that a walk counts it under.

    `decided_at` is the address of the folder, or of the file itself, that the reason is about.
    """

    extractor: str = ""
    reason: str = ""
    decided_at: str = ""


def fate(config: Config, source: Source, relative: bytes) -> Fate:
    """Judges the path `relative` to a source's root, folder by folder, as `garage.walk.walker` does."""
    selection = Selection(
        suffixes=SUFFIXES,
        code_extractors=("code",),
        include_code=bool(source.settings.get("include_code", False)),
        include_hidden=False,
        exclude=(*config.walk.exclude, *source.settings.get("exclude", ())),
    )
    *folders, last = relative.split(b"/")
    above, inherited = "", None
    for depth, name in enumerate(map(os.fsdecode, folders), 1):
        here = b"/".join(folders[:depth])
        path = Path(source.root, os.fsdecode(here))
        if path.is_symlink():
            return Fate(reason="link", decided_at=uri_of(here))
        above = f"{above}{name}/"
        ruling = selection.ruling(above, inherited)
        if reason := selection.folder(name, os.fsencode(path), ruling):
            return Fate(reason=reason, decided_at=f"{uri_of(here)}/")
        inherited = ruling.pattern
    reason = _shape(Path(source.root, os.fsdecode(relative)))
    if reason not in ("link", "folder"):
        choice = selection.file(os.fsdecode(last), above, inherited)
        reason = choice.skipped or reason
        if not reason and not fits(uri_of(relative)):
            reason = "address too long"
        if not reason:
            return Fate(extractor=choice.extractor)
    return Fate(reason=reason, decided_at=uri_of(relative))


def _shape(path: Path) -> str:
    """Why what lies at a path is no file to read, whatever it is called; '' for a file, or for nothing."""
    try:
        mode = path.lstat().st_mode
    except OSError:
        return ""
    if stat.S_ISREG(mode):
        return ""
    return "link" if stat.S_ISLNK(mode) else "folder" if stat.S_ISDIR(mode) else "special"
