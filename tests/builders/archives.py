"""Zip archives written part by part, and files that are none although their name says so."""

import io
import zipfile
from collections.abc import Mapping

from garage.extract.model import Encrypted, Malformed, Unsupported

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
# What stands where an archive should, and the error that says so.
NO_ARCHIVES = [
    (OLE + b"\0" * 600 + "EncryptedPackage".encode("utf-16-le"), Encrypted),
    (OLE + b"\0" * 600, Unsupported),
    (b"PK\x03\x04 but no archive", Malformed),
    (b"plain text", Malformed),
]


def zipped(files: Mapping[str, str | bytes]) -> bytes:
    """An archive of these files by name."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as written:
        for name, text in files.items():
            written.writestr(name, text)
    return out.getvalue()
