"""What a PDF says beside its pages' text: filled-in forms, notes, attachments, the outline, metadata."""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from garage.extract.mirror import JSON, clean_line, clean_metadata, clean_text

if TYPE_CHECKING:
    from pypdf import DocumentInformation, PageObject, PdfReader

T = TypeVar("T")

_PLACEHOLDERS = ("untitled", "anonymous", "unspecified")  # what ReportLab writes when it is told nothing
_METADATA = {
    "author": "author",
    "created": "creation_date",
    "modified": "modification_date",
    "subject": "subject",
    "keywords": "keywords",
    "creator": "creator",
    "producer": "producer",
}
_LIST = 100  # attachments, headings of the outline
_ANNOTATIONS = 2000
_DEPTH = 8
_SECRET, _PUSHED = 1 << 13, 1 << 16  # a password, a button that only does something


def notes(page: "PageObject") -> list[str]:
    """The page's filled-in fields ("First name: Ann") and comments ("Note by Ann: ..."), each once, as they come."""
    found: dict[str, None] = {}
    listed = _object(page.get("/Annots"))
    for reference in listed[:_ANNOTATIONS] if isinstance(listed, list) else ():
        line = _tried(lambda reference=reference: _note(_object(reference)), None)  # type: ignore[misc]  # bound now
        if line:
            found[line] = None
    return list(found)


def _note(annotation: object) -> str | None:
    if not isinstance(annotation, Mapping):
        return None
    kind = annotation.get("/Subtype")
    if kind == "/Widget":
        return _field(annotation)
    if kind in ("/Popup", "/Link"):
        return None
    said = annotation.get("/Contents")
    text = clean_text(said) if isinstance(said, str) else ""
    author = clean_line(annotation.get("/T"))
    return f"Note by {author}: {text}" if text and author else f"Note: {text}" if text else None


def _field(widget: Mapping[str, Any]) -> str | None:
    """A form's field as its label and value; what is not filled in, secret or a button says nothing."""
    names: list[str] = []
    kind = held = label = None
    flags = 0
    node: object = widget
    for _ in range(_DEPTH):
        if not isinstance(node, Mapping):
            break
        names.insert(0, clean_line(node.get("/T")) or "")
        kind, held = kind or node.get("/FT"), held if held is not None else node.get("/V")
        label = label or clean_line(node.get("/TU"))
        flags = flags or int(node.get("/Ff", 0))
        node = _object(node.get("/Parent"))
    value = _object(held) if kind in ("/Tx", "/Ch", "/Btn") else None
    if kind == "/Btn":
        state = widget.get("/AS", value)
        value = None if flags & _PUSHED or state == "/Off" else str(state or "").removeprefix("/")
    elif flags & _SECRET:
        value = None
    values = value if isinstance(value, list) else [value]
    text = ", ".join(clean_text(str(item)) for item in values if isinstance(item, str) and item.strip())
    name = label or ".".join(filter(None, names))
    return f"{name}: {text}" if text and name else text or None


def attachments(reader: "PdfReader") -> list[str]:
    """The names of the files that it carries."""
    return _tried(lambda: [name for item in list(reader.attachments)[:_LIST] if (name := clean_line(item))], [])


def outline(reader: "PdfReader") -> list[str]:
    """The headings on the first level of its outline."""
    return _tried(lambda: list(_headings(reader)), [])


def _headings(reader: "PdfReader") -> Iterator[str]:
    for item in reader.outline[:_LIST]:
        if not isinstance(item, list) and (heading := clean_line(getattr(item, "title", None))):
            yield heading


def title(reader: "PdfReader") -> str | None:
    """What the file says its title is."""
    said = _tried(lambda: clean_line(_said(reader.metadata, "title")), None)
    return None if said in _PLACEHOLDERS else said


def metadata(reader: "PdfReader") -> dict[str, JSON]:
    """What the file says of itself; what says nothing is left out."""
    info = _tried(lambda: reader.metadata, None)
    found = {key: clean_metadata(_said(info, name)) for key, name in _METADATA.items()}
    return {key: value for key, value in found.items() if value and value not in _PLACEHOLDERS}


def _said(info: "DocumentInformation | None", name: str) -> object:
    return _tried(lambda: getattr(info, name, None), None)


def _object(held: Any) -> object:  # noqa: ANN401 - whatever the file says there
    return held.get_object() if hasattr(held, "get_object") else held


def _tried(look: Callable[[], T], otherwise: T) -> T:
    """What `look` returns: whatever is wrong beside the text must not cost the text."""
    try:
        return look()
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - see above
        return otherwise
