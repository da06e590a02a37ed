"""The stores' clock: wall clocks of beats do not matter, and one store that jumps is outvoted."""

from dataclasses import dataclass, field

import pytest

from cronq.clock import TOLERANCE_S, Sighting, StoreClock

START = 1_800_000_000.0
HOUR = 3600.0


@dataclass
class Machine:
    """One machine's monotonic and wall clock, and a StoreClock that reads them."""

    monotonic: float = 50.0
    wall: float = START
    clock: StoreClock = field(init=False)

    def __post_init__(self) -> None:
        self.clock = StoreClock(monotonic=lambda: self.monotonic, wall=lambda: self.wall)

    def passes(self, seconds: float) -> None:
        self.monotonic += seconds
        self.wall += seconds


@pytest.fixture
def machine() -> Machine:
    machine = Machine()
    assert machine.clock.observe(Sighting(sql=START, redis=START)) is None
    return machine


def test_before_the_first_sighting_the_wall_clock_is_told() -> None:
    machine = Machine(wall=START + 7)
    assert machine.clock.timestamp() == START + 7
    assert machine.clock.observe(Sighting(None, None)) is None
    assert machine.clock.timestamp() == START + 7


def test_a_wrong_wall_clock_changes_nothing_and_is_told() -> None:
    machine = Machine(wall=START - HOUR)
    machine.clock.observe(Sighting(sql=START, redis=START))
    assert machine.clock.timestamp() == START
    assert machine.clock.wall_offset() == -HOUR


def test_a_wall_clock_that_jumps_changes_nothing(machine: Machine) -> None:
    machine.passes(1)
    machine.wall += HOUR
    assert machine.clock.timestamp() == START + 1
    assert machine.clock.wall_offset() == HOUR


def test_between_sightings_the_monotonic_clock_carries_the_time(machine: Machine) -> None:
    machine.passes(2.5)
    assert machine.clock.timestamp() == START + 2.5
    assert machine.clock.now().timestamp() == START + 2.5


def test_sql_is_believed_before_redis_while_both_are_steady(machine: Machine) -> None:
    machine.passes(1)
    assert machine.clock.observe(Sighting(sql=START + 1.1, redis=START + 0.9)) is None
    assert machine.clock.timestamp() == pytest.approx(START + 1.1)


@pytest.mark.parametrize("jump", [HOUR, -HOUR, TOLERANCE_S * 1.1, -TOLERANCE_S * 1.1])
@pytest.mark.parametrize("liar", ["sql", "redis"])
def test_one_store_that_jumps_is_outvoted(machine: Machine, liar: str, jump: float) -> None:
    machine.passes(1)
    told = {"sql": START + 1, "redis": START + 1}
    told[liar] += jump
    trouble = machine.clock.observe(Sighting(**told))
    assert trouble is not None
    assert f"{jump:+.3f}" in trouble
    assert machine.clock.timestamp() == START + 1


@pytest.mark.parametrize("jump", [HOUR, 2 * HOUR])
def test_a_jumped_store_stays_outvoted_for_as_long_as_the_other_is_steady(
    machine: Machine, jump: float
) -> None:
    for _ in range(10):
        machine.passes(1)
        assert machine.clock.observe(Sighting(sql=machine.wall + jump, redis=machine.wall)) is not None
    assert machine.clock.timestamp() == START + 10


def test_two_stores_that_jump_apart_lose_to_the_monotonic_clock(machine: Machine) -> None:
    machine.passes(1)
    assert machine.clock.observe(Sighting(sql=START + HOUR, redis=START - HOUR)) is not None
    assert machine.clock.timestamp() == START + 1


def test_two_stores_that_agree_on_a_jump_are_followed(machine: Machine) -> None:
    machine.passes(1)
    assert machine.clock.observe(Sighting(sql=START + HOUR, redis=START + HOUR + 0.1)) is not None
    assert machine.clock.timestamp() == START + HOUR


@pytest.mark.parametrize("store", ["sql", "redis"])
def test_the_only_store_that_answers_never_takes_the_time_back(machine: Machine, store: str) -> None:
    machine.passes(1)
    answers = {"sql": None, "redis": None, store: START - HOUR}
    assert machine.clock.observe(Sighting(**answers)) is not None
    assert machine.clock.timestamp() == START + 1


def test_sql_alone_is_followed_forward(machine: Machine) -> None:
    machine.passes(1)
    assert machine.clock.observe(Sighting(sql=START + HOUR, redis=None)) is not None
    assert machine.clock.timestamp() == START + HOUR


def test_redis_alone_is_not_followed_when_it_jumps(machine: Machine) -> None:
    machine.passes(1)
    assert machine.clock.observe(Sighting(sql=None, redis=START + HOUR)) is not None
    assert machine.clock.timestamp() == START + 1


@pytest.mark.parametrize("liar", ["sql", "redis"])
def test_a_store_that_was_outvoted_is_not_followed_once_it_is_the_only_one_that_answers(
    machine: Machine, liar: str
) -> None:
    machine.passes(1)
    told = {"sql": START + 1, "redis": START + 1}
    told[liar] += HOUR
    machine.clock.observe(Sighting(**told))
    machine.passes(1)
    assert machine.clock.observe(Sighting(**{"sql": None, "redis": None, liar: START + 2 + HOUR})) is not None
    assert machine.clock.timestamp() == START + 2


def test_a_store_that_came_back_to_the_path_counts_again(machine: Machine) -> None:
    machine.passes(1)
    machine.clock.observe(Sighting(sql=START + HOUR, redis=START + 1))
    machine.clock.observe(Sighting(sql=START + 1, redis=START + 1))
    assert machine.clock.observe(Sighting(sql=START + HOUR, redis=None)) is not None
    assert machine.clock.timestamp() == START + HOUR


@pytest.mark.parametrize("store", ["sql", "redis"])
def test_a_store_that_is_away_leaves_the_other_in_charge(machine: Machine, store: str) -> None:
    machine.passes(1)
    answers = {"sql": None, "redis": None, store: START + 1.2}
    assert machine.clock.observe(Sighting(**answers)) is None
    assert machine.clock.timestamp() == pytest.approx(START + 1.2)


def test_without_any_store_the_time_goes_on(machine: Machine) -> None:
    for _ in range(60):
        machine.passes(60)
        assert machine.clock.observe(Sighting(None, None)) is None
    assert machine.clock.timestamp() == START + HOUR
