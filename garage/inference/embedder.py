"""What an embedding model is to the rest of Garage, and how text is put to it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from garage.inference.catalogue import PLACEHOLDER, ModelEntry

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from garage.inference.fetch import Progress

TRUNCATION = "first tokens, closing special tokens kept"
"""What happens to a text longer than the context. Part of the fingerprint: another policy gives other vectors."""


class Embedder(Protocol):
    """Texts to vectors. Safe to share between threads."""

    @property
    def slug(self) -> str:
        """The model's name in the catalogue."""
        ...

    @property
    def dims(self) -> int:
        """Width of the vectors returned (the entry's `stored_dims`)."""
        ...

    @property
    def fingerprint(self) -> str:
        """Identifies the vector space; see `fingerprint`."""
        ...

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of texts already put through `format_document`: (len(texts), dims), L2-normalised, in order.

        A text's vector does not depend on the others. No texts give (0, dims); the empty text has a vector too.
        """
        ...

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Vector of a person's words, (dims,), L2-normalised. The query template is applied here."""
        ...

    def close(self) -> None:
        """Free the model. Closing twice is harmless; embedding afterwards raises `RuntimeError`."""
        ...


def format_document(entry: ModelEntry, *, title: str = "", heading: str = "", text: str) -> str:
    """The exact input for a passage, after the entry's document template.

    An empty part takes the line break after it along, so a template with one part a line never leaves a blank one.
    Values are inserted as they are: a "{text}" inside a passage stays what it is.
    """
    return _fill(entry.document_template, {"title": title or entry.untitled, "heading": heading, "text": text})


def format_query(entry: ModelEntry, text: str) -> str:
    """The exact input for a query, after the entry's query template."""
    return _fill(entry.query_template, {"text": text})


def _fill(template: str, values: dict[str, str]) -> str:
    filled, at = [], 0
    for match in PLACEHOLDER.finditer(template):
        filled.append(template[at : match.start()])
        value = values[match.group(1)]
        filled.append(value)
        at = match.end()
        if not value and template.startswith("\n", at):
            at += 1
    filled.append(template[at:])
    return "".join(filled)


def fingerprint(entry: ModelEntry, weights_sha256: str) -> str:
    """Identifies the vector space that documents are stored in: 64 hexadecimal digits.

    It covers all that changes a stored vector: weights, document template, context, truncation, pooling and width. The
    query template is left out, since stored vectors do not depend on it and changing it need not rebuild them.
    """
    facts = {
        "weights": weights_sha256,
        "document_template": entry.document_template,
        "untitled": entry.untitled,
        "context": entry.context,
        "truncation": TRUNCATION,
        "pooling": entry.pooling,
        "dims": entry.stored_dims,
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def open_embedder(
    entry: ModelEntry, directory: Path, *, threads: int = 0, progress: Progress | None = None
) -> Embedder:
    """The model, ready to use: obtained first where `directory` does not have it yet.

    `threads` is the number of texts embedded at the same time, 0 for one a core. Raises what `fetch` and
    `LlamaEmbedder` raise.
    """
    from garage.inference.fetch import fetch, weights_sha256
    from garage.inference.llama import LlamaEmbedder

    path = fetch(entry, directory, progress)
    return LlamaEmbedder(entry, path, weights_sha256=weights_sha256(entry, directory), threads=threads)
