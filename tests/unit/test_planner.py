"""Every fire time from the cursor to the horizon gets one disposition."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cronq.beat.planner import CatchUpSpread, Plan, plan
from cronq.job import State, Trigger, scheduled_job_id
from cronq.schedule import CatchUp, Overlap, Reason, Schedule
from cronq.store.schedules import StoredSchedule
from cronq.timing import At, Delay, Every

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
RUNS = "runs"


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def stored(
    next_fire_at: datetime | None,
    timing: Any = None,
    **policy: Any,
) -> StoredSchedule:
    timing = timing or Every(MINUTE)
    definition = Schedule(name="s", task="t", args=(1,), kwargs={"k": 2}, timing=timing.to_data(), **policy)
    return StoredSchedule(
        definition=definition,
        version=3,
        source="code:x",
        shard=0,
        next_fire_at=next_fire_at,
        paused_at=None,
        pause_note=None,
        resumed_at=None,
        retired_at=None,
        fault=None,
    )


def planned(
    what: StoredSchedule, *, horizon_s: float = 60, limit: int = 1000, per_second: float = 20
) -> Plan:
    until = NOW + timedelta(seconds=horizon_s)
    return plan(what, now=NOW, until=until, limit=limit, spread=CatchUpSpread(per_second))


def dispositions(result: Plan) -> list[tuple[int, str]]:
    """(minutes from now, what became of it)."""
    return [
        (round((job.fire_time - NOW) / MINUTE), job.reason.value if job.reason else RUNS)
        for job in result.jobs
        if job.fire_time is not None
    ]


def test_fire_times_up_to_the_horizon_are_planned_and_the_cursor_stands_after_them() -> None:
    result = planned(stored(NOW + MINUTE), horizon_s=180)
    assert dispositions(result) == [(1, RUNS), (2, RUNS), (3, RUNS)]
    assert result.next_fire_at == NOW + 4 * MINUTE
    assert {job.trigger for job in result.jobs} == {Trigger.SCHEDULE}
    assert all(job.due_at == job.fire_time for job in result.jobs)


def test_nothing_is_planned_beyond_the_horizon() -> None:
    result = planned(stored(NOW + 2 * MINUTE), horizon_s=60)
    assert result.jobs == []
    assert result.next_fire_at == NOW + 2 * MINUTE


def test_a_job_carries_what_its_schedule_says() -> None:
    what = stored(NOW + MINUTE, queue="q", priority=7, tenant="acme", max_attempts=4, overlap=Overlap.ALLOW)
    (job,) = planned(what).jobs
    assert job.id == scheduled_job_id(what.id, NOW + MINUTE)
    assert (job.schedule_id, job.schedule_name, job.schedule_version) == (what.id, "s", 3)
    assert (job.task, job.args, job.kwargs) == ("t", [1], {"k": 2})
    assert (job.queue, job.priority, job.tenant, job.max_attempts) == ("q", 7, "acme", 4)
    assert (job.overlap, job.exclusive, job.state) == (Overlap.ALLOW, False, State.SCHEDULED)


def test_planning_twice_gives_the_same_jobs() -> None:
    what = stored(NOW + MINUTE, jitter=timedelta(seconds=30))
    assert planned(what).jobs == planned(what).jobs


def test_jitter_delays_each_fire_differently_and_never_reaches_the_next() -> None:
    result = planned(stored(NOW + MINUTE, jitter=timedelta(hours=1)), horizon_s=3600)
    delays = [job.due_at - job.fire_time for job in result.jobs if job.fire_time]
    assert len(delays) == 60
    assert all(timedelta(0) <= delay < MINUTE for delay in delays)
    assert len(set(delays)) > 50


def test_a_one_shot_is_planned_once_and_has_no_next() -> None:
    result = planned(stored(NOW + MINUTE, At(NOW + MINUTE)))
    assert dispositions(result) == [(1, RUNS)]
    assert result.next_fire_at is None


def test_a_one_shot_that_was_missed_for_an_hour_follows_the_policy() -> None:
    for policy, what in ((CatchUp.SKIP, "missed_window"), (CatchUp.LATEST, RUNS), (CatchUp.ALL, RUNS)):
        result = planned(stored(ago(1800), At(ago(1800)), catch_up=policy))
        assert dispositions(result) == [(-30, what)]
        assert result.next_fire_at is None


@pytest.mark.parametrize("late", [0, 5, 10])
@pytest.mark.parametrize("policy", list(CatchUp))
def test_what_is_only_as_late_as_a_change_of_leader_runs_under_every_policy(
    policy: CatchUp, late: float
) -> None:
    result = planned(stored(ago(late), Every(MINUTE, anchor=ago(late)), catch_up=policy), horizon_s=1)
    assert [job.trigger for job in result.jobs] == [Trigger.SCHEDULE]
    assert result.jobs[0].due_at == ago(late)


MISSED = "missed_window"


@pytest.mark.parametrize(
    ("policy", "window_min", "limit", "expected"),
    [
        (CatchUp.SKIP, 60, 1000, [(-3, MISSED), (-2, MISSED), (-1, MISSED), (0, MISSED)]),
        (CatchUp.LATEST, 60, 1000, [(-3, "coalesced"), (-2, "coalesced"), (-1, "coalesced"), (0, RUNS)]),
        (CatchUp.LATEST, 1.5, 1000, [(-3, MISSED), (-2, MISSED), (-1, "coalesced"), (0, RUNS)]),
        (CatchUp.ALL, 60, 1000, [(-3, RUNS), (-2, RUNS), (-1, RUNS), (0, RUNS)]),
        (CatchUp.ALL, 1.5, 1000, [(-3, MISSED), (-2, MISSED), (-1, RUNS), (0, RUNS)]),
        # What was not decided one by one is folded into one row, at the newest of them.
        (CatchUp.ALL, 60, 2, [(-2, "limit_reached"), (-1, RUNS), (0, RUNS)]),
    ],
)
def test_missed_fire_times_follow_the_policy(
    policy: CatchUp, window_min: float, limit: int, expected: list[tuple[int, str]]
) -> None:
    # Fire times: 3:20, 2:20, 1:20 and 0:20 ago; the next comes in 40 s.
    what = stored(
        ago(200), Every(MINUTE, anchor=ago(20)), catch_up=policy, catch_up_window=window_min * MINUTE
    )
    result = planned(what, horizon_s=1, limit=limit)
    assert dispositions(result) == expected
    assert result.next_fire_at == NOW + timedelta(seconds=40)


def test_the_one_just_now_runs_even_if_the_late_ones_are_skipped() -> None:
    result = planned(stored(ago(180), catch_up=CatchUp.SKIP), horizon_s=1)
    assert dispositions(result) == [(-3, MISSED), (-2, MISSED), (-1, MISSED), (0, RUNS)]
    assert result.jobs[-1].trigger is Trigger.SCHEDULE


def test_a_coalesced_fire_time_says_which_one_ran_instead() -> None:
    result = planned(stored(ago(179), Every(MINUTE, anchor=ago(59)), catch_up=CatchUp.LATEST), horizon_s=0)
    assert [job.coalesced_into for job in result.jobs] == [ago(59), ago(59), None]
    assert result.jobs[0].state is State.SKIPPED
    assert result.jobs[0].reason is Reason.COALESCED
    assert result.jobs[-1].state is State.SCHEDULED


def test_a_million_missed_fires_cost_no_more_than_the_limit() -> None:
    what = stored(
        NOW - timedelta(days=365),
        Every(timedelta(seconds=1)),
        catch_up=CatchUp.ALL,
        catch_up_window=timedelta(days=400),
    )
    result = planned(what, horizon_s=1, limit=100)
    assert len(result.jobs) <= 103
    assert sum(job.state is State.SCHEDULED for job in result.jobs) <= 102


def test_caught_up_jobs_are_spread_and_live_ones_are_not_held_up() -> None:
    what = stored(ago(600), catch_up=CatchUp.ALL)
    result = planned(what, horizon_s=60, per_second=2)
    late = [job for job in result.jobs if job.trigger is Trigger.CATCH_UP]
    assert [job.due_at - NOW for job in late] == [timedelta(seconds=0.5 * n) for n in range(10)]
    live = [job for job in result.jobs if job.trigger is Trigger.SCHEDULE]
    assert [job.due_at for job in live] == [NOW, NOW + MINUTE]


def test_two_schedules_share_one_spread() -> None:
    spread = CatchUpSpread(10)
    due = [spread.next_due(NOW) for _ in range(3)]
    assert [(moment - NOW).total_seconds() for moment in due] == pytest.approx([0, 0.1, 0.2])
    later = NOW + timedelta(hours=1)
    assert spread.next_due(later) == later


@pytest.mark.parametrize("late", [0, 5, 7200])
def test_a_fixed_delay_is_late_but_never_missed_and_waits_for_its_end(late: float) -> None:
    what = stored(ago(late), Delay(timedelta(seconds=30)), catch_up=CatchUp.SKIP)
    result = planned(what)
    assert [job.fire_time for job in result.jobs] == [ago(late)]
    assert result.jobs[0].state is State.SCHEDULED
    assert result.jobs[0].due_at <= NOW
    assert result.next_fire_at is None


@pytest.mark.parametrize("overlap", list(Overlap))
def test_a_fixed_delay_never_runs_beside_itself(overlap: Overlap) -> None:
    (job,) = planned(stored(NOW, Delay(MINUTE), overlap=overlap)).jobs
    assert job.overlap is Overlap.QUEUE_ONE
    assert job.exclusive


@pytest.mark.parametrize(
    ("overlap", "when_late"),
    [
        (Overlap.SKIP, Overlap.QUEUE),
        (Overlap.QUEUE, Overlap.QUEUE),
        (Overlap.QUEUE_ONE, Overlap.QUEUE_ONE),
        (Overlap.ALLOW, Overlap.ALLOW),
        (Overlap.CANCEL_PREVIOUS, Overlap.CANCEL_PREVIOUS),
    ],
)
def test_catching_up_on_all_does_not_skip_them_for_each_other(overlap: Overlap, when_late: Overlap) -> None:
    result = planned(stored(ago(120), catch_up=CatchUp.ALL, overlap=overlap), horizon_s=1)
    late = [job.overlap for job in result.jobs if job.trigger is Trigger.CATCH_UP]
    live = [job.overlap for job in result.jobs if job.trigger is Trigger.SCHEDULE]
    assert late == [when_late] * 2
    assert live == [overlap]


def test_a_spread_gives_each_schedule_its_own_place_and_keeps_its_period() -> None:
    result = planned(stored(NOW + MINUTE, spread=timedelta(seconds=30)), horizon_s=300)
    offsets = {job.due_at - job.fire_time for job in result.jobs if job.fire_time is not None}
    assert len(result.jobs) > 1
    (offset,) = offsets
    assert timedelta(0) <= offset < timedelta(seconds=30)


def test_a_spread_longer_than_the_period_never_reaches_the_next_fire_time() -> None:
    result = planned(
        stored(NOW + MINUTE, spread=timedelta(hours=1), jitter=timedelta(hours=1)), horizon_s=600
    )
    assert all(job.due_at - job.fire_time < MINUTE for job in result.jobs if job.fire_time is not None)
