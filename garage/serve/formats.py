"""The page of the kinds of file that are read, made from the extractors' tables: `docs/formats.md`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from garage.extract.registry import EXTRACTORS

# What a person gets of each extractor's files; a test fails when one is missing.
_SAYS = {
    "text": "The text as it stands.",
    "markdown": "The text as it stands; front matter becomes metadata. Headings lead every passage.",
    "code": "The text as it stands. Read only with `include_code`.",
    "html": "What a person reads on the page, as Markdown: headings, lists, tables.",
    "epub": "The chapters in the order of the book.",
    "pdf": "Text page by page; tables as rows; scanned pages through Tesseract, within the limits of `extraction`; form"
    " fields and notes; attachments by name.",
    "image": "What Tesseract recognises. A picture without text is found by its name and by what its file tells, such"
    " as the date.",
    "docx": "Headings, lists, tables, text boxes, notes, comments, headers and footers.",
    "pptx": "A section a slide: text, tables, charts and diagrams, notes and comments.",
    "xlsx": "A section a sheet and a line a row, as the cells are shown; notes beside their cells.",
    "spreadsheet": "Workbooks of older and binary kinds: a section a sheet and a line a row.",
    "odf": "Text, sheets, slides and drawings of OpenDocument, with notes and tables.",
    "rtf": "Text with tables, footnotes and headers.",
    "mail": "Subject, people and date, then the body; quoted words are marked; enclosed mails once; attachments by"
    " name. Always a communication.",
    "mbox": "The same, every message a document of its own.",
    "outlook": "The same, from Outlook's own file.",
    "calendars": "A section an event: when, where, who, and how it repeats in words.",
    "contacts": "A section a person.",
    "subtitles": "What is said, in paragraphs that begin with their time.",
    "json_lines": "A section or a paragraph a record.",
}
_INTRODUCTION = """\
# What is read

<!-- Written by `python -m garage.serve.reference` from the extractors' tables; change those instead. -->

The end of a file's name, or its whole name, decides how it is read. What is in no table is left out by the walk. A
source of `kind: messages` is the `chat.db` of Apple's Messages: a conversation is a document, a message a passage.

Whatever the kind, a file that cannot be read, or that holds nothing that a person wrote, becomes an outcome with a
reason; `garage outcomes` lists them.

| Kind | Names | What becomes of it |
|---|---|---|
"""


def page_text() -> str:
    """The page, with a row for every extractor."""
    return _INTRODUCTION + "\n".join(_rows()) + "\n"


def _rows() -> Iterator[str]:
    for name, module in EXTRACTORS.items():
        yield f"| {name.replace('_', ' ')} | {_names(sorted(module.SUFFIXES))} | {_SAYS[name]} |"


def _names(endings: Sequence[str]) -> str:
    return " ".join(f"`{ending}`" for ending in endings)
