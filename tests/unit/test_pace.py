"""How much one step takes on follows from how long the steps before it took."""

from cronq.beat.pace import Pace


def test_a_step_takes_on_what_fits_into_its_time() -> None:
    pace = Pace(0.001, most=100)
    assert pace.count(0.02) == 20
    assert pace.count(5) == 100
    assert pace.count(0) == 1


def test_steps_become_smaller_when_each_thing_takes_longer_and_larger_again() -> None:
    pace = Pace(0.001, most=1000)
    for _ in range(30):
        pace.took(10, 0.1)
    assert pace.count(0.1) in (10, 11)
    for _ in range(60):
        pace.took(100, 0.01)
    assert pace.count(0.1) > 900


def test_a_step_that_did_nothing_teaches_nothing() -> None:
    pace = Pace(0.001, most=1000)
    pace.took(0, 9.0)
    assert pace.count(0.1) == 100
