"""Stage 3: is this text something that a person wrote?"""

from garage.quality.gate import judge
from garage.quality.verdict import Signal, Verdict

__all__ = ["Signal", "Verdict", "judge"]
