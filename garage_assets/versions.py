"""Hash-based code versions: the very strings that are stored on rows and decide what is redone.

A comment, a docstring or the layout of a module changes none of them; its code, a library that does its work or a
parameter does. Dagster's copy shows what is out of date; the rows' copy is what is acted on.
"""

import hashlib
from importlib.resources import files

from garage.attribute import stage as attributing
from garage.chunk.languages import LANGUAGES
from garage.chunk.stage import settings, version
from garage.extract.reading import versions
from garage.fingerprint import code_digest
from garage.inference import embedder
from garage.inference.catalogue import ModelEntry
from garage.inference.errors import ModelUnavailable
from garage.inference.fetch import weights_sha256
from garage_assets.configured import CONFIG


def _short(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def walk_version() -> str:
    """The walk and its rules, the exclusions among them."""
    rules = files("garage.walk").joinpath("exclusions.yaml").read_text(encoding="utf-8")
    return _short(code_digest("garage.walk.walker", libraries=("pathspec",)), rules)


def documents_version() -> str:
    """The fingerprints of all extractors, and that of the gate."""
    found = versions(CONFIG.extraction, gate=CONFIG.quality.reject_machine_generated)
    return _short(*(found[name] for name in sorted(found)))


def attribution_version() -> str:
    """The code that decides, its rules, and those of the configuration, the owner among them."""
    return _short(attributing.code_version(), CONFIG.identity.model_dump_json(), CONFIG.attribution.model_dump_json())


def chunks_version() -> str:
    """The signatures of all chunkers, and their code."""
    sizes = settings(CONFIG.chunking)
    kinds = ("prose", "markdown", "tabular", "conversation", *(f"code:{language}" for language in sorted(LANGUAGES)))
    return _short(*(version(kind, sizes) for kind in kinds))


def vectors_version(entry: ModelEntry) -> str:
    """The model's vector space: weights, templates, context, truncation, width."""
    try:
        weights = weights_sha256(entry, CONFIG.models_dir)
    except ModelUnavailable:
        weights = "missing"  # the asset stays visible and says so when it is asked for
    return embedder.fingerprint(entry, weights)[:16]
