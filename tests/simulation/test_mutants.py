"""Whatever guarantee of cronq is switched off, the simulation notices."""

import pytest

from .mutants import MUTANTS, Mutant
from .patching import on_stage
from .run import simulate

LIVES = 300


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_missing_guarantee_is_noticed(mutant: Mutant) -> None:
    with on_stage(), pytest.MonkeyPatch.context() as patch:
        mutant.apply(patch)
        noticed = any(simulate(seed, without=mutant.without).violations for seed in range(1, 1 + LIVES))
    assert noticed, "either something else holds the guarantee by now, or the mutant changes nothing any more"
