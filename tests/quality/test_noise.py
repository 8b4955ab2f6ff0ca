"""How much of what machines write is rejected: at least 95 % of every kind, from seeded random sources."""

import random

import pytest

from garage.quality import judge
from tests.quality import noise, reports, unseen
from tests.quality.noise import Noise

SAMPLES = 20
KNOWN = (*noise.GENERATORS, *reports.GENERATORS)


def rejected(generator: Noise, samples: int) -> int:
    verdicts = []
    for number in range(samples):
        kind, text = generator(random.Random(f"{generator.__name__} test {number}"))
        verdicts.append(judge(text, kind=kind).rejected)
    return sum(verdicts)


@pytest.mark.parametrize("generator", KNOWN, ids=lambda generator: generator.__name__)
def test_noise_is_rejected(generator: Noise) -> None:
    assert rejected(generator, SAMPLES) >= 0.95 * SAMPLES


def test_most_of_the_noise_of_kinds_that_the_gate_was_not_adjusted_to_is_rejected() -> None:
    found = {generator.__name__: rejected(generator, SAMPLES) for generator in unseen.GENERATORS}
    assert sum(found.values()) >= 0.85 * SAMPLES * len(found), found
