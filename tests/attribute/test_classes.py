"""The class of a document: shape and source, and names where these are not enough."""

import pytest

from garage.attribute.classes import class_of


@pytest.mark.parametrize(
    ("kind", "extractor", "uri", "default", "found", "evidence"),
    [
        ("markdown", "markdown", "a/notes.md", "document", "document", "source-default"),
        ("code:python", "code", "src/security.py", "document", "code", "shape:code:python"),
        ("code:python", "code", "README.py", "document", "code", "shape:code:python"),
        ("markdown", "markdown", "SECURITY.md", "code", "document", "name:SECURITY.md"),
        ("prose", "text", "src/LICENSE", "code", "document", "name:LICENSE"),
        ("prose", "text", "src/LICENSE-MIT.txt", "code", "code", "source-default"),
        ("markdown", "markdown", "CODE-OF-CONDUCT.md", "code", "document", "name:CODE-OF-CONDUCT.md"),
        ("markdown", "markdown", "docs/guide.md", "code", "code", "source-default"),
        ("prose", "pdf", "docs/chip.pdf", "code", "document", "shape:pdf"),
        ("prose", "mail", "a.eml", "document", "communication", "shape:mail"),
        ("prose", "mbox", "Inbox.mbox", "code", "communication", "shape:mail"),
        ("conversation", "messages", "chat.db", "document", "communication", "shape:conversation"),
        ("code:python", "code", "sent/patch.py", "communication", "communication", "source-default"),
        ("prose", "pdf", "letter.pdf", "communication", "communication", "source-default"),
    ],
)
def test_shape_goes_before_name_and_name_before_source(
    kind: str, extractor: str, uri: str, default: str, found: str, evidence: str
) -> None:
    assert class_of(kind=kind, extractor=extractor, uri=uri, default=default) == (found, evidence)
