"""Runs a cronq without one of its guarantees, and sees whether the checker notices."""

from collections.abc import Callable, Iterable

from tests.faults.bench.mutants import MUTANTS
from tests.faults.bench.run import Setup, run, stories

TICKS = 6
DONE_WITHIN_S = 15.0


def is_caught(name: str, seed: int, say: Callable[[str], None]) -> bool:
    """Run the mutant `name`; tell whether the checker found what it had to find."""
    mutant = MUTANTS[name]
    setup = Setup(
        mutant.broker, mutant.database, seed, TICKS,
        mutant=name, horizon_s=mutant.horizon_s, statements=mutant.statements, done_within_s=DONE_WITHIN_S,
    )  # fmt: skip
    result = run(setup, mutant.faults, say)
    for story in stories(result, most=1):
        say(f"  {story}")
    found = {kind for kind, several in result.verdict.violations.items() if several}
    return bool(found & mutant.caught_as)


def run_all(names: Iterable[str], seed: int, say: Callable[[str], None]) -> dict[str, bool]:
    """Run the mutants `names`; return which were noticed."""
    caught = {}
    for name in names:
        say(f"mutant: {name}")
        caught[name] = is_caught(name, seed, say)
        say(f"  {'noticed' if caught[name] else 'NOT NOTICED'}")
    return caught
