"""The walk: stat every wanted file of a source once, prune on the way down, open nothing but folders.

A deletion is only ever concluded from a walk that saw everything, so the walk keeps account of what it could not see.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from garage.uris import fits, uri_of
from garage.walk.errors import SourceUnavailable
from garage.walk.placeholders import HAS_FLAGS, Kind, kind_of
from garage.walk.root import RootState, open_root, unavailable
from garage.walk.selection import Selection

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_EXAMPLES = 20
# Nanoseconds are stored in 64 bits, 1677 to 2262; file systems know times beyond, and clocks go wrong.
_FIRST, _LAST = -(2**63), 2**63 - 1


class FileRecord(NamedTuple):
    """A wanted file as its folder and its stat describe it: `size` in bytes, `mtime_ns` since the epoch, in 64 bits.

    `kind` says whether its bytes are on this machine; see `garage.walk.placeholders`.
    A tuple, since one is made for every file of a walk: a frozen dataclass takes more than twice as long to make.
    """

    uri: str
    size: int
    mtime_ns: int
    inode: int
    extractor: str
    kind: Kind = "file"


@dataclass(slots=True)
class WalkStats:
    """The account of a walk, filled as it goes.

    Attributes:
        dirs: folders read, the root among them.
        files_seen: entries that are not folders, whatever became of them.
        listed: records yielded.
        bytes: their size together.
        placeholders: those of them whose bytes are with a cloud provider.
        skipped: entries left out, by reason. A folder left out counts once, whatever it holds.
        unreadable: folders that could not be listed or entered.
        unreadable_files: files whose stat failed although they are there.
        unreadable_examples: the addresses of the first of both.
        vanished: entries that were gone when the walk came to them, which is nobody's fault.
        devices: ids of the devices that hold the folders read; more than one when something is mounted below the root.
        mounts: file system's id by address of the folder, ending in '/', at which another device begins below the root.
            Unlike the device's number, the id is mostly the same after a restart and another one for another drive.
        seconds: from the first step to the end of the walk, what its consumer did in between included.
        incomplete_reason: why this walk proves nothing about files it did not yield: "unfinished" until it has ended,
            then "limit", "cancelled", "unreadable", "source changed", or None when it saw everything.
    """

    dirs: int = 0
    files_seen: int = 0
    listed: int = 0
    bytes: int = 0
    placeholders: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    unreadable: int = 0
    unreadable_files: int = 0
    unreadable_examples: list[str] = field(default_factory=list)
    vanished: int = 0
    devices: set[int] = field(default_factory=set)
    mounts: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    incomplete_reason: str | None = "unfinished"

    @property
    def complete(self) -> bool:
        """Whether the walk ran to exhaustion with everything on its way readable."""
        return self.incomplete_reason is None

    def skip(self, reason: str) -> None:
        """Count an entry left out for `reason`."""
        self.skipped[reason] = self.skipped.get(reason, 0) + 1


@dataclass(slots=True)
class _Folder:
    """A folder on the way down. `uri` and `relative` are empty for the root, else end in '/'."""

    above: _Folder | None
    path: bytes
    uri: str = ""
    relative: str = ""
    pattern: int | None = None
    device: int = 0
    inode: int = 0

    def lineage(self) -> Iterator[_Folder]:
        """Yield the folder and those above it, upwards."""
        folder: _Folder | None = self
        while folder is not None:
            yield folder
            folder = folder.above

    def is_at(self, device: int, inode: int) -> bool:
        """Whether this very folder is the one that a stat found."""
        return inode == self.inode and device == self.device


def walk(
    root: Path,
    *,
    source: str = "",
    suffixes: Mapping[str, str],
    code_extractors: Collection[str] = ("code",),
    include_code: bool = False,
    exclude: Sequence[str] = (),
    include_hidden: bool = False,
    limit: int | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Walk:
    """Walk the files below `root`, in no particular order.

    Args:
        root: the folder of the source. A link here is followed; below it none is.
        source: the slug that errors name.
        suffixes: extractor by suffix (".md") or by whole name ("makefile"), whatever the case.
        code_extractors: the extractors of source code and structured configuration.
        include_code: list the files of those extractors too.
        exclude: gitignore patterns relative to the root. One that begins with "!" brings back a single entry that the
            built-in exclusions or the rule about hidden entries leave out. Ignore files in the tree are not honoured.
        include_hidden: also enter folders and list files whose name begins with a dot.
        limit: stop before a record more than this.
        cancelled: asked before every folder and every record; true stops the walk.

    Raises:
        SourceUnavailable: the root cannot be read, now or when the walk begins.
        BadPattern: one of `exclude` is not a gitignore pattern.
    """
    selection = Selection(
        suffixes=suffixes,
        code_extractors=code_extractors,
        include_code=include_code,
        include_hidden=include_hidden,
        exclude=exclude,
    )
    descent = _Descent(
        open_root(root, source=source),
        selection,
        source=source,
        limit=limit,
        cancelled=cancelled,
    )
    return Walk(descent.root, descent.stats, descent.run())


class Walk(Iterator[FileRecord]):
    """A walk under way: iterate it once for its records; `stats` is its account, `root` what it started from."""

    def __init__(self, root: RootState, stats: WalkStats, records: Iterator[FileRecord]) -> None:
        self.root = root
        self.stats = stats
        self._records = records

    def __iter__(self) -> Iterator[FileRecord]:  # noqa: PYI034 - the generator itself, a call a record cheaper
        return self._records

    def __next__(self) -> FileRecord:
        return next(self._records)


class _Descent:
    """The work of a walk. Apart from `Walk`, so that a walk given up is closed with its last reference."""

    def __init__(
        self,
        root: RootState,
        selection: Selection,
        *,
        source: str,
        limit: int | None,
        cancelled: Callable[[], bool],
    ) -> None:
        self.root = root
        self.stats = WalkStats()
        self._selection = selection
        self._source = source
        self._limit = limit
        self._cancelled = cancelled
        self._pending: list[_Folder] = []
        self._problem: str | None = None

    def run(self) -> Iterator[FileRecord]:
        """Yield every record, keeping the account."""
        started = time.perf_counter()
        state, stopped = self.root, None
        self._pending.append(_Folder(None, os.fsencode(state.path), device=state.device, inode=state.inode))
        try:
            while self._pending and stopped is None:
                stopped = yield from self._read(self._pending.pop())
            self.stats.incomplete_reason = stopped or self._problem
        finally:
            self.stats.seconds = time.perf_counter() - started

    def _read(self, folder: _Folder) -> Generator[FileRecord, None, str | None]:
        """Yield the records of one folder and put the folders in it on the pile; return why the walk must stop."""
        if self._cancelled():
            return "cancelled"
        stats = self.stats
        try:
            descriptor = self._enter(folder)
        except OSError as error:
            self._lost(folder, error)
            return None
        try:
            if folder.above and any(above.is_at(folder.device, folder.inode) for above in folder.above.lineage()):
                stats.skip("loop")
                return None
            stats.dirs += 1
            stats.devices.add(folder.device)
            if folder.above and folder.device != folder.above.device:
                stats.mounts[folder.uri] = os.statvfs(descriptor).f_fsid
            with os.scandir(descriptor) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        self._queue(folder, entry.name)
                        continue
                    stats.files_seen += 1
                    record = self._record(folder, entry)
                    if record is None:
                        continue
                    if self._cancelled():
                        return "cancelled"
                    if stats.listed == self._limit:
                        return "limit"
                    stats.listed += 1
                    stats.bytes += record.size
                    yield record
        except OSError as error:
            self._lost(folder, error)
        finally:
            os.close(descriptor)
        return None

    def _enter(self, folder: _Folder) -> int:
        """Open a folder for listing, never through a link below the root, and note which one it is."""
        descriptor = os.open(folder.path, _FOLDER if folder.above is None else _FOLDER | os.O_NOFOLLOW)
        try:
            # Asking for "." inside needs the right to enter: a folder that can only be listed fails here, once.
            status = os.stat(".", dir_fd=descriptor)
            if folder.above is None and not folder.is_at(status.st_dev, status.st_ino):
                raise SourceUnavailable(
                    source=self._source,
                    root=self.root.path,
                    shown=uri_of(folder.path),
                    reason="was replaced while it was being looked at",
                )
        except BaseException:
            os.close(descriptor)
            raise
        folder.device, folder.inode = status.st_dev, status.st_ino
        return descriptor

    def _queue(self, above: _Folder, name: str) -> None:
        relative = f"{above.relative}{name}/"
        path = above.path + b"/" + os.fsencode(name)
        ruling = self._selection.ruling(relative, above.pattern)
        if reason := self._selection.folder(name, path, ruling):
            self.stats.skip(reason)
        else:
            self._pending.append(_Folder(above, path, f"{above.uri}{_address(name)}/", relative, ruling.pattern))

    def _record(self, folder: _Folder, entry: os.DirEntry[str]) -> FileRecord | None:
        """Return the record of an entry that is not a folder; None when it is skipped, gone or unreadable."""
        name, stats = entry.name, self.stats
        is_file = entry.is_file(follow_symlinks=False)
        if is_file:
            extractor, skipped = self._selection.file(name, folder.relative, folder.pattern)
        else:
            extractor, skipped = "", "link" if entry.is_symlink() else None
        if skipped:
            stats.skip(skipped)
            return None
        try:
            status = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            self._vanished(folder)
            return None
        except OSError:
            stats.unreadable_files += 1
            self._unreadable(folder.uri + _address(name))
            return None
        if not is_file:
            stats.skip("special")
            return None
        uri, mtime_ns = folder.uri + _address(name), status.st_mtime_ns
        if not fits(uri):
            stats.skip("address too long")
            return None
        if not _FIRST <= mtime_ns <= _LAST:
            mtime_ns = min(max(mtime_ns, _FIRST), _LAST)
        kind: Kind = "file"
        if HAS_FLAGS or not status.st_blocks or not status.st_size:
            kind = kind_of(status, folder.path + b"/" + os.fsencode(name))
            stats.placeholders += kind != "file"
        return FileRecord(uri, status.st_size, mtime_ns, status.st_ino, extractor, kind)

    def _lost(self, folder: _Folder, error: OSError) -> None:
        """Take account of a folder that could not be read.

        Raises:
            SourceUnavailable: it is the root.
        """
        if folder.above is None:
            raise unavailable(self.root.path, error, source=self._source) from error
        # A file or a link in its place makes it as gone as nothing in its place does.
        if isinstance(error, FileNotFoundError | NotADirectoryError):
            self._vanished(folder.above)
        else:
            self.stats.unreadable += 1
            self._unreadable(folder.uri.removesuffix("/"))

    def _unreadable(self, uri: str) -> None:
        self._problem = self._problem or "unreadable"
        if len(self.stats.unreadable_examples) < _EXAMPLES:
            self.stats.unreadable_examples.append(uri)

    def _vanished(self, folder: _Folder) -> None:
        """Take account of an entry of `folder` that was listed and then not found.

        Somebody removed it, or the file system that holds it went away. It was removed when the nearest folder above
        that still exists is the one that was read; otherwise something else lies there now, and nothing is proved.
        """
        self.stats.vanished += 1
        for above in folder.lineage():
            try:
                status = os.stat(above.path)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError:
                break
            if above.is_at(status.st_dev, status.st_ino):
                return
            break
        self._problem = "source changed"


def _address(name: str) -> str:
    """Return the address of one name; the first line spares most names the way through `uri_of`."""
    plain = name.isascii() and name.isprintable() and "%" not in name
    return name if plain else uri_of(os.fsencode(name))
