"""The class of a document, by its shape and its source: document, code or communication."""

COMMUNICATIONS = frozenset({"mail", "mbox", "outlook", "messages"})
"""Extractors that read what people wrote to each other."""

_WRITTEN = frozenset({"pdf", "docx", "pptx", "xlsx", "spreadsheet", "odf", "rtf", "epub", "calendars", "contacts"})
"""Extractors of what is no program, whatever lies around it."""

_ABOUT_CODE = frozenset(
    (
        *("readme", "license", "licence", "copying", "notice", "authors", "contributors", "maintainers", "changelog"),
        *("changes", "news", "history", "install", "thanks", "security", "contributing", "code_of_conduct", "support"),
        *("governance", "roadmap", "faq", "citation"),
    )
)


def class_of(*, kind: str, extractor: str, uri: str, default: str) -> tuple[str, str]:
    """The class, and the evidence for it.

    A communication is one whatever else is known, and so is all that a source of communications holds. Code is told by
    its suffix, which goes before a name: `security.py` is code, and `README.md` a document in a source of code too.
    """
    if extractor in COMMUNICATIONS or kind == "conversation":
        return "communication", f"shape:{'conversation' if kind == 'conversation' else 'mail'}"
    if default == "communication":
        return "communication", "source-default"
    if kind.startswith("code:"):
        return "code", f"shape:{kind}"
    name = uri.rpartition("/")[2]
    if name.partition(".")[0].lower().replace("-", "_") in _ABOUT_CODE:
        return "document", f"name:{name}"
    if extractor in _WRITTEN:
        return "document", f"shape:{extractor}"
    return default, "source-default"
