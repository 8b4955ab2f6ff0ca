"""Web pages saved as files, as Markdown."""

import re

from garage.config import Extraction
from garage.extract.mirror import canonical, clean_line, clean_metadata, looks_binary
from garage.extract.model import Extracted, Unsupported
from garage.extract.web import markup

NAME = "html"
LIBRARIES = markup.LIBRARIES
SETTINGS: tuple[str, ...] = ()
TOOLS: tuple[str, ...] = ()
SUFFIXES = dict.fromkeys((".html", ".htm", ".xhtml", ".xht", ".shtml", ".mht", ".mhtml"), "markdown")

_ARCHIVE = re.compile(
    rb"\s*(?:From|MIME-Version|Content-Type|Snapshot-Content-Location|Subject|Date|X-[\w-]+): ", re.IGNORECASE
)


def extract(raw: bytes, *, name: str, settings: Extraction) -> Extracted:
    """Return what a person reads on the page; of an archived page (.mht) the page itself, without what it embeds.

    The title is the page's own, else its first heading.

    Raises:
        Unsupported: it is a binary file with the name of a page.
    """
    del settings
    charset = None
    if name.lower().endswith((".mht", ".mhtml")) and _ARCHIVE.match(raw[:400]):
        raw, charset = _archived(raw)
    if looks_binary(raw):
        raise Unsupported("it is a binary file with the name of a web page")
    page = markup.to_markdown(raw, charset=charset)
    meta = clean_metadata(page.meta)
    return Extracted(
        content=canonical(page.text),
        kind="markdown",
        title=clean_line(page.title) or page.heading,
        meta=meta if isinstance(meta, dict) else {},
        warnings=page.warnings,
    )


def _archived(raw: bytes) -> tuple[bytes, str | None]:
    """The page of an archive, which is its first part that is HTML, and its character set.

    Raises:
        Unsupported: it holds no page.
    """
    from garage.extract.mime.mailheaders import parameters, raw_header
    from garage.extract.mime.mailparse import parse
    from garage.extract.mime.mimebody import body_bytes, content_type

    archive, _ = parse(raw)
    for part in archive.walk():
        if content_type(part) in {"text/html", "application/xhtml+xml"}:
            return body_bytes(part), parameters(raw_header(part, "Content-Type") or "").get("charset")
    raise Unsupported("the archive holds no page")
