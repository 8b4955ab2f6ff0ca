"""What a run holds: the database, the configuration, the models and the run's options."""

from resources.database import GarageDatabase
from resources.models import EmbeddingModels
from resources.options import RunOptions
from resources.settings import GarageSettings

__all__ = ["EmbeddingModels", "GarageDatabase", "GarageSettings", "RunOptions"]
