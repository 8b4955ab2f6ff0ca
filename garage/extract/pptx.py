"""PowerPoint: the text of every slide as Markdown, in the order in which a person reads it."""

from garage.config import Extraction
from garage.extract.mirror import canonical, clean_line
from garage.extract.model import Extracted, Malformed, NoText, Unsupported

NAME = "pptx"
LIBRARIES = ("lxml",)
SETTINGS = ()
TOOLS = ()
SUFFIXES = dict.fromkeys((".pptx", ".pptm", ".ppsx", ".ppsm", ".potx", ".potm"), "markdown")

_WARNINGS = 20


def extract(raw: bytes, *, name: str, settings: Extraction) -> Extracted:
    """Return `## Slide n: title` for every slide, then its text, tables, charts and diagrams from top to bottom.

    Notes and comments follow under headings of their own. Hidden slides are read and said to be hidden.

    Raises:
        NoText: it has no slides, or none with text.
        Encrypted: it opens with a password only.
        Unsupported: it is a file of another program, or of PowerPoint before 2007.
        TooLarge: it unpacks to more than a presentation ever would.
        Malformed: the archive, its main part, or all that could have held text is damaged.
    """
    from garage.extract.office.archive import Archive, attribute, local
    from garage.extract.office.slides import Writer, authors

    del name, settings
    archive = Archive(raw)
    main = archive.main("ppt/presentation.xml")
    root = archive.xml(main)
    if main not in archive or (root is not None and local(root) != "presentation"):
        raise Unsupported("it holds no presentation")
    meta = archive.core()
    targets = {relation.identifier: relation.target for relation in archive.relations(main)}
    listed = root.iterfind("{*}sldIdLst/{*}sldId") if root is not None else ()
    named = [attribute(slide, "id") or "" for slide in listed]
    slides = list(dict.fromkeys(targets.get(identifier, f"slide {identifier}") for identifier in named))  # none twice
    if archive.warnings and not any(slide in archive for slide in slides):  # all that tells of them is damaged
        slides = archive.numbered("ppt/slides/slide")
    if not slides and archive.warnings:
        raise Malformed(archive.warnings[0], meta=meta)
    if not slides:
        raise NoText("it has no slides", meta=meta)
    writer = Writer(archive, authors(archive, main))
    for number, slide in enumerate(slides, start=1):
        writer.slide(number, slide)
    if not writer.has_text and archive.warnings:
        raise Malformed(archive.warnings[0], meta=meta)
    if not writer.has_text:
        raise NoText("its slides hold no text", meta=meta)
    return Extracted(
        content=canonical("\n\n".join(writer.blocks)),
        kind="markdown",
        title=clean_line(meta.pop("title", None)) or writer.title,
        meta={**meta, "slides": len(slides)},
        warnings=tuple(archive.warnings)[:_WARNINGS],
    )
