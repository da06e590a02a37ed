"""The sample of the fault bench that CI has the time for: nothing is lost, and every counter of it grew."""

import pytest

from tests.faults.bench.mutation import is_caught
from tests.faults.bench.plans import sample
from tests.faults.bench.run import run, stories
from tests.faults.bench.summary import summary, void


@pytest.mark.timeout(420)
def test_whatever_is_broken_every_fire_time_ends_in_one_outcome(
    postgresql_server: object, rabbitmq_server: object
) -> None:
    # The bench starts servers of its own; the fixtures only say whether they can be.
    runs = [run(setup, kinds, print) for setup, kinds in sample(seed=1)]
    # How late depends on how busy this machine is: that is for the report.
    found = {kind for each in runs for kind, several in each.verdict.violations.items() if several}
    assert found <= {"late"}, [stories(each) for each in runs]
    assert void(summary(runs)) == []


@pytest.mark.timeout(420)
@pytest.mark.parametrize("name", ["no rescuer", "no claim check"])
def test_a_cronq_without_one_of_its_guarantees_is_noticed(redis_server: object, name: str) -> None:
    # `make mutants` runs them all.
    assert is_caught(name, 1, print)
