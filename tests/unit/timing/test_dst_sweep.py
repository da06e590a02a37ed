"""A sample of the full sweep: one fixed seed, the same everywhere, and a random one that finds new ground."""

import random

import pytest

from cronq.schedule import Dst
from tests.unit.timing import sweep, truth


def test_a_fixed_sample_of_all_zones_fires_exactly_as_brute_force_says() -> None:
    zones = random.Random(20260101).sample(sweep.distinct_zones(), 30)
    outcome = sweep.sweep(zones, 2000, 2037, seed=20260101, sample=0.25)
    assert not outcome.mismatches
    assert outcome.comparisons > 2000


def test_a_random_sample_of_all_zones_fires_exactly_as_brute_force_says() -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")  # noqa: T201 - to run it again
    zones = random.Random(seed).sample(sweep.distinct_zones(), 20)
    outcome = sweep.sweep(zones, 2000, 2037, seed=seed, sample=0.25)
    assert not outcome.mismatches, f"seed {seed}"


def test_the_sweep_notices_a_wrong_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "POLICIES", (Dst.VIXIE,))
    right = truth.fires
    monkeypatch.setattr(truth, "fires", lambda case, _policy, around: right(case, "both", around))
    assert sweep.sweep(["Europe/Paris"], 2020, 2022, seed=1).mismatches
