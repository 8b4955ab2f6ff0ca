"""What a person can get wrong about chunking."""

from garage.errors import GarageError


class ChunkSettingsInvalid(GarageError, ValueError):
    """A chunk size, overlap or limit that no splitting can honour (`setting`, `value`).

    Also a ValueError, so that a configuration model reports it at the key where it stands.
    """
