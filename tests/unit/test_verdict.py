"""What becomes of a job whose body failed: the task's policies, Celery's own retries, and the limits."""

from random import seed
from typing import Any

import pytest

from cronq.errors import Cancelled, LeaseLost, Permanent
from cronq.job import Outcome, State
from cronq.retry import Fixed, Kind, Linear, Policy
from cronq.store.attempts import Claim
from cronq.worker.verdict import HardTimeLimit, RetryAsked, Verdict, judge

POLICIES = (Policy(on=Kind.NETWORK, attempts=5, wait=Fixed(7)), Policy(on=KeyError, attempts=2))


def verdict(
    error: BaseException, attempt: int = 1, *, of_job: int | None = None, earlier: int = 0, **how: Any
) -> Verdict:
    claim = Claim(attempt=attempt, max_attempts=of_job, crashes=0, cancel_requested=False, earlier=earlier)
    return judge(error, claim, **{"default_attempts": 4, "policies": POLICIES, **how})


def last_attempt(error: BaseException, **how: Any) -> int:
    return next(n for n in range(1, 99) if verdict(error, n, **how).state is not State.RETRYING)


def test_each_sort_of_failure_has_its_own_number_of_attempts_and_its_own_wait() -> None:
    assert last_attempt(ConnectionError()) == 5
    assert last_attempt(KeyError()) == 2
    assert verdict(ConnectionError()).retry_in_s == 7


def test_what_no_policy_names_is_not_tried_again_whatever_the_schedule_allows() -> None:
    assert last_attempt(ValueError()) == 1
    assert last_attempt(ValueError(), of_job=9) == 1


def test_the_job_limits_attempts_before_the_policy() -> None:
    assert last_attempt(ConnectionError(), of_job=3) == 3


def test_a_job_that_an_operator_sent_back_has_all_its_attempts_and_short_waits_again() -> None:
    growing = (Policy(attempts=3, wait=Linear(10)),)
    assert verdict(OSError(), 4, earlier=3, policies=growing).retry_in_s == 10
    assert verdict(OSError(), 6, earlier=3, policies=growing).state is State.FAILED


def test_a_job_that_an_operator_sent_back_has_short_waits_again_without_a_policy_too() -> None:
    seed(7)
    first = verdict(OSError(), 1, of_job=20).retry_in_s
    seed(7)
    assert verdict(OSError(), 13, of_job=20, earlier=12).retry_in_s == first


def test_the_age_is_asked_for_only_where_a_policy_limits_it() -> None:
    aged = (Policy(attempts=9, max_age="1h", wait=Fixed(60)),)
    assert verdict(OSError(), policies=aged, age_s=lambda: 3000.0).state is State.RETRYING
    assert verdict(OSError(), policies=aged, age_s=lambda: 3600.0).state is State.FAILED
    verdict(ConnectionError(), age_s=lambda: pytest.fail("it was asked"))


def test_a_rate_limited_attempt_comes_back_when_it_was_told_to() -> None:
    class TooMany(Exception):
        retry_after = 90

    policies = (Policy(on=Kind.RATE_LIMITED, wait=Fixed(1)),)
    found = verdict(TooMany(), policies=policies)
    assert (found.kind, found.retry_in_s) == ("rate_limited", 90)
    assert verdict(RetryAsked(TooMany(), 5.0, None)).retry_in_s == 90


def test_a_wait_of_the_users_own_that_fails_costs_no_outcome() -> None:
    def wait(_attempt: int) -> float:
        raise ZeroDivisionError

    found = verdict(OSError(), policies=(Policy(wait=wait),))
    assert found.state is State.RETRYING


@pytest.mark.parametrize("cause", [Cancelled("stop"), LeaseLost("gone")])
def test_what_is_no_failure_is_not_tried_again_though_autoretry_catches_everything(cause: Exception) -> None:
    assert verdict(RetryAsked(cause, 1.0, None)).state is State.CANCELLED


def test_a_permanent_error_is_not_tried_again_though_autoretry_catches_everything() -> None:
    found = verdict(RetryAsked(Permanent("no such customer"), 1.0, 9))
    assert (found.state, found.kind) == (State.FAILED, "permanent")


def test_a_retry_that_the_body_asked_for_carries_the_sort_of_its_cause() -> None:
    assert verdict(RetryAsked(ConnectionError(), 1.0, None)).kind == "network"
    assert verdict(RetryAsked(ValueError(), 1.0, None)).kind == "retry"
    assert verdict(RetryAsked(None, 1.0, None)).kind == "retry"


def test_only_the_tasks_own_time_limit_times_the_job_out() -> None:
    class SoftLimit(Exception):
        pass

    assert verdict(TimeoutError()).outcome is Outcome.FAILED
    for error in (HardTimeLimit(), SoftLimit(), RetryAsked(SoftLimit(), 1.0, 1)):
        found = verdict(error, time_out=(SoftLimit,))
        assert (found.outcome, found.state, found.kind) == (Outcome.TIMED_OUT, State.TIMED_OUT, "timeout")
