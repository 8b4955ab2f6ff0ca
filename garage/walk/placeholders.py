"""Which files are there in name only, because a cloud provider keeps their bytes elsewhere. Told from stat alone.

Opening such a file fetches it, so nothing is opened to find out. A wrong guess costs a read that waits for
`placeholders.materialize`, never a document.
"""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from typing import Literal, Protocol

Kind = Literal["file", "stub", "dataless"]
"""'file': its bytes are here. 'stub': an empty file in the place of one, as Dropbox once left. 'dataless': a file with
its true size and no bytes."""

HAS_FLAGS = sys.platform == "darwin"
"""Whether the system says outright which files are dataless, so that blocks need not be counted."""

_DATALESS = 0x4000_0000  # SF_DATALESS of <sys/stat.h> on macOS
# Some file systems keep the bytes of a small file beside its name, in no block of its own.
_INLINE = 4096
_PROVIDER = re.compile(
    rb"/(?:Dropbox|OneDrive|Google ?Drive|iCloud ?Drive|CloudStorage|Mobile Documents|Box|Box Sync|pCloud ?Drive|MEGA"
    rb"|Nextcloud|ownCloud|Creative Cloud Files)(?:[ -][^/]*)?(?:/|$)",
    re.IGNORECASE,
)


class Status(Protocol):
    """The fields of a stat result that are looked at; macOS adds `st_flags`."""

    @property
    def st_size(self) -> int: ...
    @property
    def st_blocks(self) -> int: ...


def kind_of(status: Status, path: bytes) -> Kind:
    """Tell what the regular file at the absolute `path` is from its stat.

    An empty file is a stub only where a provider is at work: below a folder named like one, or with an attribute that
    Dropbox sets. Where the system has no flag for it, a file without blocks is dataless when it is too large to be kept
    beside its name, or lies below a provider's folder.
    """
    if status.st_size == 0:
        return "stub" if _PROVIDER.search(os.path.dirname(path)) or _is_dropbox_s(path) else "file"
    flags = getattr(status, "st_flags", None)
    if flags is not None:
        return "dataless" if flags & _DATALESS else "file"
    if status.st_blocks == 0 and (status.st_size > _INLINE or _PROVIDER.search(os.path.dirname(path))):
        return "dataless"
    return "file"


def _is_dropbox_s(path: bytes) -> bool:
    if sys.platform != "linux":
        return False  # Python reads extended attributes on Linux only; the folder's name decides elsewhere
    with suppress(OSError):
        return any(name.startswith("user.com.dropbox.") for name in os.listxattr(path, follow_symlinks=False))
    return False
