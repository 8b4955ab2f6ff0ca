"""How much of what machines write is rejected: at least 95 % of every kind, from seeded random sources."""

import random
from functools import cache

import pytest

from garage.quality import judge
from tests.quality import noise, reports, unseen, untouched
from tests.quality.noise import Noise

SAMPLES = 20  # of sources that were not looked at while the gate was adjusted
KNOWN = (*noise.GENERATORS, *reports.GENERATORS)


@cache
def rejected(generator: Noise, samples: int) -> int:
    verdicts = []
    for number in range(samples):
        kind, text = generator(random.Random(f"{generator.__name__} test {number}"))
        verdicts.append(judge(text, kind=kind).rejected)
    return sum(verdicts)


@pytest.mark.parametrize("generator", KNOWN, ids=lambda generator: generator.__name__)
def test_noise_is_rejected(generator: Noise) -> None:
    assert rejected(generator, SAMPLES) >= 0.95 * SAMPLES


@pytest.mark.parametrize(("generators", "least"), [(unseen.GENERATORS, 0.95), (untouched.GENERATORS, 0.75)])
def test_most_of_the_noise_of_other_kinds_is_rejected(generators: tuple[Noise, ...], least: float) -> None:
    found = {generator.__name__: rejected(generator, SAMPLES) for generator in generators}
    assert sum(found.values()) >= least * SAMPLES * len(found), found


def test_over_all_kinds_at_least_95_percent_is_rejected() -> None:
    generators = (*KNOWN, *unseen.GENERATORS, *untouched.GENERATORS)
    found = [rejected(generator, SAMPLES) for generator in generators]
    assert sum(found) >= 0.95 * SAMPLES * len(generators)
