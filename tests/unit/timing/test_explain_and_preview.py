from datetime import UTC, datetime, timedelta

import pytest

from cronq.schedule import Dst
from cronq.timing import At, Cron, Delay, Every, Excluding, RRule, calendar_from
from cronq.timing.bounds import Bounded, Union
from cronq.timing.explain import explain
from cronq.timing.load import Member, daily_load
from cronq.timing.preview import upcoming

START = datetime(2026, 10, 24, tzinfo=UTC)


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("* * * * *", "Every minute every day"),
        ("*/15 * * * *", "Every 15 minutes every day"),
        ("30 2 * * *", "At 02:30 every day"),
        ("0 9-17 * * 1-5", "At minute 0 from 09:00 to 17:59 on Monday to Friday"),
        ("0 0 13 * FRI", "At 00:00 on the 13th or on every Friday (either is enough)"),
        ("0 0 */2 * MON", "At 00:00 on every 2nd day of the month from the 1st, but only on every Monday"),
        ("0 0 1-1 * *", "At 00:00 on the 1st"),
        ("0 0 LW * *", "At 00:00 on the last Monday-to-Friday day of the month"),
        ("0 0 15W * *", "At 00:00 on the Monday-to-Friday day nearest the 15th"),
        ("0 0 L-3 1,7 *", "At 00:00 on the day 3 before the month's last, in January and July"),
        ("0 0 * * SAT#2", "At 00:00 on the 2nd Saturday of the month"),
        ("0 0 * * 5L", "At 00:00 on the last Friday of the month"),
        ("*/7 * * * *", "Every 7 minutes (and a shorter pause at the end of the hour) every day"),
        ("5 * * * *", "At minute 5 of every hour every day"),
        ("15 30 2 1 1 ? 2027", "At 02:30:15 on the 1st, in January, in 2027"),
        ("H H * * *", "At a minute and hour drawn from the schedule's id every day"),
        ("@every 90s", "Every 1m30s, counted from 1970-01-01T00:00:00Z"),
    ],
)
def test_an_expression_is_said_in_english(expression: str, said: str) -> None:
    assert explain(Cron(expression)) == f"{said}, on the clocks of UTC."


def test_the_rule_for_clock_changes_is_said_where_clocks_change() -> None:
    assert "one that is repeated runs once" in explain(Cron("30 2 * * *", "Europe/Paris"))
    assert "runs twice" in explain(Cron("30 2 * * *", "Europe/Paris", Dst.BOTH))
    assert "both copies" in explain(Cron("*/5 * * * *", "Europe/Paris"))
    assert "change" not in explain(Cron("30 2 * * *", "Europe/Paris", Dst.UTC))


def test_every_kind_of_timing_can_be_said() -> None:
    closed = calendar_from({"name": "holidays"})
    for timing, word in (
        (Every(timedelta(seconds=90)), "never drifts"),
        (Delay(timedelta(minutes=5)), "after the end"),
        (At(START), "Once"),
        (RRule("FREQ=DAILY"), "FREQ=DAILY"),
        (Union((At(START), Every(timedelta(1)))), "And:"),
        (Bounded(Every(timedelta(1)), START, START, 3), "At most 3 times"),
        (Excluding(Cron("0 9 * * *"), closed, "next"), "next business day"),
    ):
        assert word in explain(timing)


def notes(timing: Cron | Excluding, start: datetime, count: int) -> list[str | None]:
    return [each.note for each in upcoming(timing, start, count)]


def test_a_clock_change_is_noted_at_the_first_fire_time_after_it() -> None:
    found = list(upcoming(Cron("30 2 * * *", "Europe/Paris"), START, 4))
    assert found[1].to_data() == {
        "fire_time": "2026-10-25T00:30:00Z",
        "local": "2026-10-25T02:30:00+02:00",
        "note": None,
    }
    assert found[2].note == "clocks went back 1h; not at 2026-10-25T02:30:00+01:00 (dst_repeat: Europe/Paris)"
    assert found[3].note is None


def test_a_gap_is_noted_where_it_moved_a_fire_time() -> None:
    spring = datetime(2026, 3, 28, 12, tzinfo=UTC)
    assert notes(Cron("30 2 * * *", "Europe/Paris"), spring, 2) == [
        "clocks went forward 1h; first instant after the gap from 02:00",
        None,
    ]


def test_exclusions_are_noted_where_they_left_out_and_where_they_moved_to() -> None:
    closed = calendar_from({"name": "c", "days": ["2026-10-27"]})
    daily = Excluding(Cron("0 9 * * *"), closed)
    assert notes(daily, datetime(2026, 10, 26, tzinfo=UTC), 2) == [
        None,
        "not at 2026-10-27T09:00:00+00:00 (excluded: c)",
    ]
    moved = Excluding(Cron("0 9 27 * *"), closed, "next")
    (first,) = upcoming(moved, START, 1)
    assert first.fire_time == datetime(2026, 10, 28, 9, tzinfo=UTC)
    assert first.note == "moved from 2026-10-27T09:00:00+00:00 (excluded: c)"


def test_jitter_is_noted() -> None:
    (first,) = upcoming(Cron("0 9 * * *"), START, 1, spread=timedelta(seconds=30), schedule_id="x")
    assert first.note is not None
    assert first.note.startswith("jitter +")


def test_a_herd_is_found_and_its_members_are_told_how_to_leave_it() -> None:
    members = [Member(f"nightly-{n}", Cron("0 2 * * *")) for n in range(40)]
    members += [Member("often", Cron("*/10 * * * *")), Member("quiet", Cron("17 4 * * *"))]
    load = daily_load(members, START)
    assert load.per_minute[120] == 41
    assert (load.herds[0].minute, load.herds[0].fires) == (120, 41)
    assert "nightly-0: write 'H 2 * * *' instead of '0 2 * * *'" in load.advice
    assert not any("quiet" in each for each in load.advice)
    hashed = [Member(f"n{n}", Cron("H 2 * * *", hash_id=str(n))) for n in range(40)]
    assert max(daily_load(hashed, START).per_minute) < 6


def test_schedules_that_fire_alike_are_counted_and_named_each() -> None:
    members = [Member(f"s{n}", Cron("0 * * * *", "UTC")) for n in range(6)]
    load = daily_load([*members, Member("t", Cron("0 6 * * *", "UTC"))], START)
    busiest = load.herds[0]
    assert (busiest.fires, set(busiest.names)) == (7, {*(each.name for each in members), "t"})
    assert sum(load.per_minute) == 6 * 24 + 1
