"""What of the configuration shapes the definitions: which models there are, when things run.

Read once, when the code location is loaded; reload it after changing these. Runs read the rest anew.
"""

from garage.config import load
from garage.inference.catalogue import ModelEntry, entries, find

CONFIG = load()


def enabled_models() -> list[ModelEntry]:
    """The models that the configuration enables, in its order. Raises UnknownModel, naming the nearest."""
    known = entries(CONFIG.models)
    return [find(slug, known) for slug in CONFIG.embedding.models]
