"""Again, and when?"""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from cronq.retry import (
    Exponential,
    Fixed,
    Kind,
    Linear,
    Policy,
    decide,
    policies_of,
    policy_for,
    retry_after_of,
)

TRIED_AGAIN = [
    Kind.ERROR,
    Kind.RETRY,
    Kind.NETWORK,
    Kind.DEADLOCK,
    Kind.RESOURCE_EXHAUSTED,
    Kind.RATE_LIMITED,
    Kind.TIMEOUT,
    Kind.WORKER_LOST,
]


@pytest.mark.parametrize(("attempt", "ceiling"), [(1, 1), (2, 2), (3, 4), (10, 512), (11, 600)])
def test_the_ceiling_doubles_up_to_the_longest(attempt: int, ceiling: float) -> None:
    assert Exponential(base_s=1, longest_s=600).ceiling_s(attempt) == ceiling


def test_the_millionth_attempt_waits_no_longer_than_the_longest() -> None:
    assert Exponential().ceiling_s(1_000_000) == 600
    assert Linear(1).__call__(1_000_000) == 600


def test_the_wait_is_spread_over_the_whole_range() -> None:
    waits = [Exponential(base_s=8)(1) for _ in range(400)]
    assert all(0 <= wait <= 8 for wait in waits)
    assert min(waits) < 2
    assert max(waits) > 6


def test_a_fixed_wait_stays_and_a_linear_one_grows() -> None:
    assert [Fixed(30)(n) for n in (1, 2, 9)] == [30, 30, 30]
    assert [Linear(10, longest_s=25)(n) for n in (1, 2, 3)] == [10, 20, 25]


@pytest.mark.parametrize("kind", TRIED_AGAIN)
def test_there_are_as_many_attempts_as_allowed(kind: Kind) -> None:
    again = [decide(kind, attempt=n, max_attempts=3).retry_in_s is not None for n in (1, 2, 3, 4)]
    assert again == [True, True, False, False]


@pytest.mark.parametrize("kind", sorted(set(Kind) - set(TRIED_AGAIN)))
def test_what_another_attempt_cannot_help_is_not_tried_again(kind: Kind) -> None:
    decision = decide(kind, attempt=1, max_attempts=9, asked_wait_s=1)
    assert decision.retry_in_s is None
    assert f"cannot help ({kind})" in decision.why


@pytest.mark.parametrize(("asked", "wait"), [(7.5, 7.5), (0.0, 0.0), (-3.0, 0.0), (1e300, 366 * 86400)])
def test_the_wait_that_the_task_asks_for_goes_before_the_back_off(asked: float, wait: float) -> None:
    decision = decide(Kind.RETRY, attempt=1, max_attempts=2, wait=Fixed(100), asked_wait_s=asked)
    assert decision.retry_in_s == wait


def test_nobody_comes_back_before_the_time_the_other_side_named() -> None:
    waits = [
        decide(Kind.RATE_LIMITED, attempt=1, max_attempts=2, wait=Fixed(own), least_wait_s=30).retry_in_s
        for own in (1, 100)
    ]
    assert waits == [30, 100]


@pytest.mark.parametrize(("age", "again"), [(0, True), (50, True), (51, False)])
def test_no_attempt_begins_after_the_greatest_age(age: float, again: bool) -> None:
    decision = decide(Kind.NETWORK, attempt=1, max_attempts=9, wait=Fixed(10), age_s=age, max_age_s=60)
    assert (decision.retry_in_s is not None) == again
    assert again or "61 s after the first one, over the limit of 60 s" in decision.why


def test_the_first_policy_that_fits_decides() -> None:
    network = Policy(on=Kind.NETWORK, attempts=9)
    lookup = Policy(on=[KeyError, Kind.DEADLOCK], attempts=2)
    rest = Policy(attempts=3)

    def chosen(kind: Kind, error: Exception, *policies: Policy) -> Policy | None:
        return policy_for(policies, kind, error)

    assert chosen(Kind.NETWORK, OSError(), network, lookup, rest) is network
    assert chosen(Kind.ERROR, KeyError(), network, lookup, rest) is lookup
    assert chosen(Kind.DEADLOCK, OSError(), network, lookup, rest) is lookup
    assert chosen(Kind.ERROR, ValueError(), network, lookup, rest) is rest
    assert chosen(Kind.ERROR, ValueError(), network, lookup) is None


@pytest.mark.parametrize("given", ["90s", 90, 90.0, timedelta(seconds=90)])
def test_the_greatest_age_is_said_as_every_length_of_time(given: Any) -> None:
    assert Policy(max_age=given).max_age_s == 90


@pytest.mark.parametrize(
    "wrong",
    [{"on": "network!"}, {"on": [7]}, {"attempts": 0}, {"wait": 30}, {"max_age": "soon"}],
    ids=str,
)
def test_a_policy_that_could_not_work_is_refused_where_it_is_declared(wrong: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError)):
        Policy(**wrong)


def test_a_task_declares_one_policy_or_several() -> None:
    one = Policy(attempts=2)
    assert policies_of(None, "t") == ()
    assert policies_of(one, "t") == (one,)
    assert policies_of([one, one], "t") == (one, one)
    with pytest.raises(TypeError, match=r"task shop\.charge: cronq_retry takes a Policy"):
        policies_of({"attempts": 3}, "shop.charge")


def test_a_date_is_a_retry_after_too() -> None:
    error = Exception()
    error.retry_after = format_datetime(datetime.now(UTC) + timedelta(minutes=5))  # type: ignore[attr-defined]
    assert 290 <= (retry_after_of(error) or 0) <= 300
