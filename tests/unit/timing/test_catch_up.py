from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cronq.schedule import CatchUp, Reason
from cronq.timing import CaughtUp, Cron, Every, catch_up, fires_between

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
HOURLY = Cron("0 * * * *")


def decide(policy: CatchUp, *, window: timedelta, limit: int = 100, hours: float = 6) -> CaughtUp:
    return catch_up(HOURLY, NOW - hours * HOUR, NOW, policy, window, limit)


def test_skip_runs_nothing() -> None:
    result = catch_up(HOURLY, NOW - 6 * HOUR, NOW + timedelta(minutes=1), CatchUp.SKIP, 24 * HOUR, 100)
    assert result.runs == ()
    assert {each.reason for each in result.decisions} == {Reason.MISSED_WINDOW}
    assert len(result.decisions) == 6


def test_latest_runs_the_newest_and_names_it_for_the_others() -> None:
    result = decide(CatchUp.LATEST, window=24 * HOUR)
    assert result.runs == (NOW,)
    others = result.decisions[:-1]
    assert {(each.reason, each.into) for each in others} == {(Reason.COALESCED, NOW)}


def test_all_runs_every_one_oldest_first() -> None:
    assert decide(CatchUp.ALL, window=24 * HOUR).runs == tuple(NOW - n * HOUR for n in (5, 4, 3, 2, 1, 0))


@pytest.mark.parametrize("policy", [CatchUp.LATEST, CatchUp.ALL])
def test_what_is_older_than_the_window_is_missed(policy: CatchUp) -> None:
    result = decide(policy, window=2 * HOUR)
    missed = [each.fire_time for each in result.decisions if each.reason is Reason.MISSED_WINDOW]
    assert missed == [NOW - n * HOUR for n in (5, 4, 3)]


def test_the_newest_is_missed_too_when_it_is_too_old() -> None:
    result = catch_up(HOURLY, NOW, NOW + timedelta(minutes=90), CatchUp.LATEST, timedelta(minutes=10), 10)
    assert result.runs == ()
    assert result.decisions[0].reason is Reason.MISSED_WINDOW


def test_a_fire_time_within_grace_is_not_late() -> None:
    now = NOW + timedelta(seconds=5)
    result = catch_up(HOURLY, NOW - HOUR, now, CatchUp.SKIP, HOUR, 10, grace=timedelta(seconds=10))
    assert result.runs == (NOW,)


def test_the_cursor_is_excluded_and_now_is_included() -> None:
    assert [each.fire_time for each in decide(CatchUp.ALL, window=24 * HOUR, hours=1).decisions] == [NOW]
    assert decide(CatchUp.ALL, window=24 * HOUR, hours=0).decisions == ()
    assert decide(CatchUp.ALL, window=24 * HOUR, hours=-3).decisions == ()


def test_a_million_missed_fires_cost_as_much_as_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    real = Every.previous

    def counted(self: Every, before: datetime) -> datetime | None:
        nonlocal calls
        calls += 1
        return real(self, before)

    monkeypatch.setattr(Every, "previous", counted)
    second = timedelta(seconds=1)
    result = catch_up(Every(second), NOW - 1_000_000 * second, NOW, CatchUp.ALL, 24 * HOUR, 50)
    assert len(result.runs) == 50
    assert calls < 60
    missed, beyond = result.folds
    assert (missed.first, missed.last) == (NOW - 999_999 * second, NOW - 24 * HOUR - second)
    assert (missed.reason, beyond.reason) == (Reason.MISSED_WINDOW, Reason.LIMIT_REACHED)
    assert (beyond.first, beyond.last) == (NOW - 24 * HOUR, NOW - 50 * second)


@given(
    st.sampled_from(list(CatchUp)),
    st.integers(0, 200),
    st.integers(0, 200),
    st.integers(1, 50),
    st.sampled_from([1, 7, 60]),
)
def test_every_fire_time_has_exactly_one_decision(
    policy: CatchUp, missed_minutes: int, window_minutes: int, limit: int, step: int
) -> None:
    timing = Every(timedelta(minutes=step))
    cursor = NOW - timedelta(minutes=missed_minutes)
    result = catch_up(timing, cursor, NOW, policy, timedelta(minutes=window_minutes), limit)
    decided = [each.fire_time for each in result.decisions]
    for fold in result.folds:
        decided += [fold.first, *fires_between(timing, fold.first, fold.last)]
    assert sorted(decided) == list(fires_between(timing, cursor, NOW))
    assert len(result.decisions) <= limit
    oldest = NOW - timedelta(minutes=window_minutes)
    assert all(each.fire_time >= oldest for each in result.decisions if each.runs)
