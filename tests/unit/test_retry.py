"""Again, and when?"""

import pytest

from cronq.retry import Backoff, Kind, classify, decide


@pytest.mark.parametrize(
    ("attempt", "uniform", "expected"),
    [(1, 1.0, 1), (2, 1.0, 2), (3, 1.0, 4), (4, 0.5, 4), (10, 1.0, 512), (11, 1.0, 600), (5, 0.0, 0)],
)
def test_the_ceiling_doubles_up_to_the_longest(attempt: int, uniform: float, expected: float) -> None:
    assert Backoff(base_s=1, longest_s=600).wait_s(attempt, uniform) == expected


def test_the_millionth_attempt_waits_no_longer_than_the_longest() -> None:
    assert Backoff().wait_s(1_000_000, 1.0) == 600


def test_the_wait_is_spread_over_the_whole_range() -> None:
    waits = [Backoff(base_s=8).wait_s(1) for _ in range(400)]
    assert all(0 <= wait <= 8 for wait in waits)
    assert min(waits) < 2
    assert max(waits) > 6


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind is not Kind.PERMANENT])
def test_there_are_as_many_attempts_as_allowed(kind: Kind) -> None:
    again = [
        decide(kind, attempt=n, max_attempts=3, backoff=Backoff()).retry_in_s is not None
        for n in (1, 2, 3, 4)
    ]
    assert again == [True, True, False, False]


def test_a_permanent_error_is_not_tried_again() -> None:
    decision = decide(Kind.PERMANENT, attempt=1, max_attempts=9, backoff=Backoff(), asked_wait_s=1)
    assert decision.retry_in_s is None
    assert "permanent" in decision.why


@pytest.mark.parametrize(("asked", "wait"), [(7.5, 7.5), (0.0, 0.0), (-3.0, 0.0)])
def test_the_wait_that_the_task_asks_for_goes_before_the_back_off(asked: float, wait: float) -> None:
    decision = decide(Kind.RETRY, attempt=1, max_attempts=2, backoff=Backoff(base_s=100), asked_wait_s=asked)
    assert decision.retry_in_s == wait


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ConnectionResetError(), Kind.NETWORK),
        (BrokenPipeError(), Kind.NETWORK),
        (TimeoutError(), Kind.TIMEOUT),
        (ValueError(), Kind.ERROR),
        (OSError(), Kind.ERROR),
    ],
)
def test_failures_are_sorted(error: Exception, kind: Kind) -> None:
    assert classify(error) is kind
