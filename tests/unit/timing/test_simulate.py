from datetime import UTC, datetime, timedelta

import pytest

from cronq.schedule import CatchUp, Dst, Reason, Schedule
from cronq.timing import Cron, Delay, Excluding, InvalidTiming, calendar_from
from cronq.timing.simulate import simulate

START = datetime(2026, 6, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


def hourly(
    catch_up: CatchUp = CatchUp.LATEST, window: timedelta = 24 * HOUR, expression: str = "0 * * * *"
) -> Schedule:
    timing = Cron(expression).to_data()
    return Schedule(name="s", task="t", timing=timing, catch_up=catch_up, catch_up_window=window)


def test_without_trouble_every_fire_time_becomes_a_job_at_its_time() -> None:
    found = simulate(hourly(), START, START + 6 * HOUR)
    assert [(each.fire_time, each.due_at) for each in found] == [
        (START + n * HOUR, START + n * HOUR) for n in range(1, 7)
    ]


@pytest.mark.parametrize(
    ("policy", "runs", "reasons"),
    [
        (CatchUp.SKIP, [1, 5, 6], {Reason.MISSED_WINDOW}),
        (CatchUp.LATEST, [1, 4, 5, 6], {Reason.COALESCED}),
        (CatchUp.ALL, [1, 2, 3, 4, 5, 6], set()),
    ],
)
def test_an_outage_is_caught_up_by_the_schedules_policy(
    policy: CatchUp, runs: list[int], reasons: set[Reason]
) -> None:
    outage = (START + 1.5 * HOUR, START + 4.5 * HOUR)
    found = simulate(hourly(policy), START, START + 6 * HOUR, outages=[outage])
    assert [(each.fire_time - START) // HOUR for each in found if each.runs] == runs
    assert {each.reason for each in found if not each.runs} == reasons
    assert len(found) == 6
    late = [each for each in found if outage[0] < each.fire_time < outage[1]]
    assert {each.decided_at for each in late} == {outage[1]}
    assert all(each.due_at == outage[1] for each in late if each.runs)


def test_an_outage_longer_than_the_window_loses_what_is_older_and_says_so() -> None:
    outage = (START + 0.5 * HOUR, START + 9.5 * HOUR)
    found = simulate(hourly(CatchUp.ALL, 2 * HOUR), START, START + 10 * HOUR, outages=[outage])
    assert [(each.fire_time - START) // HOUR for each in found if each.runs] == [8, 9, 10]
    assert len(found) == 10


def test_a_clock_that_jumps_back_repeats_nothing() -> None:
    found = simulate(hourly(), START, START + 6 * HOUR, clock_steps=[(START + 3.5 * HOUR, -2 * HOUR)])
    assert [(each.fire_time - START) // HOUR for each in found] == [1, 2, 3, 4]
    assert found[-1].decided_at == START + 6 * HOUR


def test_a_clock_that_jumps_forward_catches_up_what_it_jumped_over() -> None:
    found = simulate(hourly(), START, START + 6 * HOUR, clock_steps=[(START + 1.5 * HOUR, 3 * HOUR)])
    assert [((each.fire_time - START) // HOUR, each.reason) for each in found] == [
        (1, None), (2, Reason.COALESCED), (3, Reason.COALESCED), (4, None), (5, None), (6, None),
    ]  # fmt: skip


def test_a_clock_that_jumps_forward_and_back_neither_repeats_nor_stays_silent() -> None:
    steps = [(START + 1.5 * HOUR, 2 * HOUR), (START + 2.5 * HOUR, -2 * HOUR)]
    found = simulate(hourly(CatchUp.ALL), START, START + 8 * HOUR, clock_steps=steps)
    assert [(each.fire_time - START) // HOUR for each in found] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert all(each.runs for each in found)


def test_a_long_outage_of_a_fast_schedule_still_answers_for_every_fire_time() -> None:
    outage = (START + timedelta(minutes=1), START + 9 * HOUR)
    schedule = hourly(CatchUp.LATEST, 2 * HOUR, "* * * * * *")
    found = simulate(schedule, START, START + 10 * HOUR, outages=[outage])
    assert len(found) == 36_000
    assert sum(each.runs for each in found) == 60 + 1 + 3600


def test_what_dst_and_calendars_leave_out_is_listed() -> None:
    calendar = calendar_from({"name": "freeze", "days": ["2026-03-28"]})
    timing = Excluding(Cron("30 2 * * *", "Europe/Paris", Dst.SKIP), calendar)
    schedule = Schedule(name="s", task="t", timing=timing.to_data())
    found = simulate(schedule, datetime(2026, 3, 27, tzinfo=UTC), datetime(2026, 3, 31, tzinfo=UTC))
    assert [(f"{each.fire_time:%d %H:%M}", each.reason) for each in found] == [
        ("27 01:30", None),
        ("28 01:30", Reason.EXCLUDED),
        ("29 01:00", Reason.DST_GAP),
        ("30 00:30", None),
    ]


def test_jitter_moves_the_job_and_not_the_fire_time() -> None:
    schedule = Schedule(name="s", task="t", timing=Cron("0 * * * *").to_data(), jitter=timedelta(minutes=5))
    for each in simulate(schedule, START, START + 6 * HOUR):
        assert each.due_at is not None
        assert timedelta(0) <= each.due_at - each.fire_time < timedelta(minutes=5)


def test_a_fixed_delay_cannot_be_simulated() -> None:
    with pytest.raises(InvalidTiming, match="no fire times of its own"):
        simulate(Schedule(name="s", task="t", timing=Delay(HOUR).to_data()), START, START + HOUR)
