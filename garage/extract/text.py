"""Plain text and the light markups that read as text."""

from garage.config import Extraction
from garage.extract.mirror import canonical, decode, looks_binary
from garage.extract.model import Extracted, Unsupported, kind_of

NAME = "text"
LIBRARIES = ("charset-normalizer",)
SETTINGS: tuple[str, ...] = ()
TOOLS: tuple[str, ...] = ()
SUFFIXES = dict.fromkeys(
    (
        *(".txt", ".text", ".rst", ".org", ".adoc", ".asciidoc", ".textile", ".tex", ".ltx"),
        *("readme", "license", "licence", "copying", "notice", "authors", "contributors", "maintainers", "changelog"),
        *("changes", "news", "history", "install", "todo", "thanks", "security", "contributing"),
    ),
    "prose",
)


def extract(raw: bytes, *, name: str, settings: Extraction) -> Extracted:
    """Return the text as it stands.

    Raises:
        Unsupported: it is no text at all.
    """
    del settings
    return verbatim(raw, kind_of(name, SUFFIXES, "prose"))


def verbatim(raw: bytes, kind: str) -> Extracted:
    """Return the decoded bytes as a document of a kind; `meta.encoding` says what they were unless plain UTF-8.

    Raises:
        Unsupported: the bytes are no text at all.
    """
    if looks_binary(raw):
        raise Unsupported("it is a binary file with the name of a text file")
    text, encoding = decode(raw)
    warnings = ("some bytes do not fit the encoding and were replaced",) if "\ufffd" in text else ()
    meta = {} if encoding == "utf-8" else {"encoding": encoding}
    return Extracted(content=canonical(text), kind=kind, meta={**meta}, warnings=warnings)
