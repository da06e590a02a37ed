"""A circuit breaker's way from well to spared and back."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as some

from cronq.breaker import ENOUGH_TRIALS, LONGEST_S, WELL, Breaker, Circuit, failed, tried, went_well

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def fail(breaker: Breaker, times: int = 1, now: datetime = NOW) -> Breaker:
    for _ in range(times):
        breaker = failed(breaker, after=3, break_for_s=10, now=now, error="Boom: no answer")
    return breaker


def test_it_opens_after_so_many_failures_in_a_row_and_says_why() -> None:
    assert fail(WELL, 2).room is None
    opened = fail(WELL, 3)
    assert (opened.state, opened.room, opened.until) == (Circuit.OPEN, 0, NOW + timedelta(seconds=10))
    assert opened.error == "Boom: no answer"


def test_a_success_in_between_starts_the_count_anew() -> None:
    assert fail(went_well(fail(WELL, 2)), 2).state is Circuit.CLOSED


def test_one_may_try_when_the_time_is_up_and_not_before() -> None:
    opened = fail(WELL, 3)
    assert tried(opened, NOW + timedelta(seconds=9)) == opened
    assert tried(opened, NOW + timedelta(seconds=10)).room == 1


def test_they_come_back_gradually() -> None:
    breaker, rooms = tried(fail(WELL, 3), NOW + timedelta(hours=1)), []
    while breaker.room is not None:
        rooms.append(breaker.room)
        breaker = went_well(breaker)
    assert rooms == [1] + [2] * 2 + [4] * 4 + [8] * 8
    assert breaker == WELL


def test_a_failure_while_several_try_halves_them_and_one_success_forgets_the_wait() -> None:
    breaker = tried(fail(WELL, 3), NOW + timedelta(hours=1))
    for _ in range(3):
        breaker = went_well(breaker)
    assert breaker.room == 4
    assert [fail(breaker).room, fail(breaker, 2).room, fail(breaker, 3).room] == [2, 1, 0]
    assert fail(breaker, 3).wait_s == 10


def test_a_failed_try_opens_it_for_twice_as_long_up_to_a_limit() -> None:
    breaker, waits = fail(WELL, 3), []
    for _ in range(9):
        breaker = fail(tried(breaker, NOW + timedelta(days=1)))
        waits.append(breaker.wait_s)
    assert waits[:3] == [20, 40, 80]
    assert waits[-1] == LONGEST_S


def test_what_was_sent_before_it_opened_changes_nothing() -> None:
    opened = fail(WELL, 3)
    assert went_well(opened) == opened
    again = fail(opened, now=NOW + timedelta(seconds=5))
    assert (again.until, again.wait_s) == (opened.until, opened.wait_s)


@given(some.lists(some.sampled_from(["well", "fail", "time"])))
def test_whatever_happens_it_lets_no_job_or_a_few_or_all_and_never_stays_open_for_ever(
    events: list[str],
) -> None:
    breaker, now = WELL, NOW
    for what in events:
        now += timedelta(seconds=1)
        if what == "well":
            breaker = went_well(breaker)
        elif what == "fail":
            breaker = fail(breaker, now=now)
        else:
            breaker = tried(breaker, now)
        assert breaker.room is None or 0 <= breaker.room <= ENOUGH_TRIALS
        assert (breaker.state is Circuit.OPEN) == (breaker.until is not None)
    assert tried(breaker, now + timedelta(seconds=LONGEST_S + 1)).room != 0
