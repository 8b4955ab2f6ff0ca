"""Documents as the signals see them."""

from collections.abc import Callable
from typing import Any

import pytest

from garage.attribute.owner import configured, owner
from garage.attribute.rules import path_rules
from garage.attribute.signals import Rules
from garage.store.attribution import DocumentFacts

Facts = Callable[..., DocumentFacts]
MakeRules = Callable[..., Rules]


@pytest.fixture
def facts() -> Facts:
    def make(uri: str = "a.txt", **said: Any) -> DocumentFacts:
        known: dict[str, Any] = {"kind": "prose", "extractor": "text", "version": "1", **said}
        return DocumentFacts(document_id=1, uri=uri, **known)

    return make


@pytest.fixture
def rules() -> MakeRules:
    """Ada is the owner, unless another name and other identities are given."""

    def make(*identities: str, name: str = "Ada Lovelace", default_class: str = "document", **other: str) -> Rules:
        return Rules(
            owner=owner(configured(name, identities)),
            paths=path_rules(),
            default_class=default_class,
            default_trust=other.get("default_trust", "authored"),
            folder=other.get("folder", ""),
        )

    return make
