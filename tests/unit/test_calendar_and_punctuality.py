"""What a schedule's page says of its past, decided from rows."""

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from cronq.job import State
from cronq.timing import InvalidTiming
from cronq.timing.moments import moment_on
from cronq.web.calendar import empty_calendar, fill
from cronq.web.punctuality import drift, legs
from cronq.web.schedules import differences

NOW = datetime(2026, 11, 21, 12, 30, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")


def row(
    fire: datetime, state: State = State.COMPLETED, late: float = 0.01, took: float = 2.0
) -> dict[str, Any]:
    started = fire + timedelta(seconds=late)
    return {
        "fire_time": fire,
        "due_at": fire,
        "published_at": fire,
        "started_at": started,
        "finished_at": started + timedelta(seconds=took),
        "state": state,
        "attempts": 1,
        "batch_id": None,
    }


def test_a_day_begins_at_midnight_on_the_schedules_clocks() -> None:
    late_on_friday = datetime(2026, 11, 20, 22, 59, tzinfo=UTC)
    early_on_saturday = datetime(2026, 11, 20, 23, 0, tzinfo=UTC)
    days = fill(empty_calendar(24, BERLIN, NOW), [row(late_on_friday), row(early_on_saturday)])
    this_week = [cell for slot in days.rows[-1][1] for cell in slot]
    assert [cell.counts.total() for cell in this_week] == [0, 0, 0, 0, 1, 1, 0]
    assert this_week[4].said == "Fri 20 Nov: 1 completed"


def test_a_cell_shows_the_worst_and_how_much_of_it_there_is() -> None:
    monday = datetime(2026, 11, 16, 12, tzinfo=UTC)
    fires = [row(monday + timedelta(hours=n), State.FAILED if n == 0 else State.COMPLETED) for n in range(4)]
    cell = fill(empty_calendar(24, BERLIN, NOW), fires).rows[-1][1][0][0]
    assert (cell.kind, cell.tone, cell.sign[1:]) == ("failed", "some", " 1")
    assert cell.said == "Mon 16 Nov: 3 completed, 1 failed"


@pytest.mark.parametrize(
    ("daily", "unit", "length"), [(24, "day", 35), (1440, "hour", 86), (86400, "minute", 60)]
)
def test_what_fires_more_often_is_shown_in_smaller_parts(daily: float, unit: str, length: int) -> None:
    cells = empty_calendar(daily, BERLIN, NOW)
    assert (cells.unit, len(list(cells.cells))) == (unit, length)
    assert cells.start <= NOW


def test_the_hour_that_comes_twice_is_two_cells() -> None:
    after_the_change = datetime(2026, 10, 25, 12, tzinfo=UTC)
    first, second = datetime(2026, 10, 25, 0, 30, tzinfo=UTC), datetime(2026, 10, 25, 1, 30, tzinfo=UTC)
    hours = fill(empty_calendar(1440, BERLIN, after_the_change), [row(first), row(second)])
    twice = hours.rows[-1][1][2]
    assert {cell.label for cell in twice} == {"Sun 25 Oct 02:00"}
    assert [cell.counts.total() for cell in twice] == [1, 1]


@pytest.mark.parametrize("zone", [BERLIN, ZoneInfo("Asia/Kolkata"), ZoneInfo("UTC")], ids=str)
def test_an_hour_stands_in_the_column_of_its_name_and_none_is_ahead(zone: ZoneInfo) -> None:
    hours = fill(empty_calendar(1440, zone, NOW), [row(NOW - timedelta(minutes=1))])
    *_, (label, today) = hours.rows
    here = (NOW - timedelta(minutes=1)).astimezone(zone)
    assert (label, hours.heads[4]) == ("Sat 21 Nov", "4")
    assert all(cell.start.hour == column for column, slot in enumerate(today) for cell in slot)
    assert [cell.start.hour for slot in today for cell in slot if cell.counts] == [here.hour]
    assert today[NOW.astimezone(zone).hour + 1 :] == [[]] * (23 - NOW.astimezone(zone).hour)


def test_an_hour_that_the_clocks_leave_out_has_no_cell() -> None:
    after_the_change = datetime(2026, 3, 29, 12, tzinfo=UTC)
    *_, (_label, today) = empty_calendar(1440, BERLIN, after_the_change).rows
    assert [len(slot) for slot in today[:5]] == [1, 1, 0, 1, 1]


def test_of_few_jobs_95_of_100_are_all() -> None:
    (told,) = [leg for leg in legs([row(NOW, took=took) for took in (0.2, 1.7, 4.5)]) if leg.name == "took"]
    assert told.most == pytest.approx(4.5)


def test_the_way_is_told_in_parts_and_a_retried_job_is_not_called_late() -> None:
    rows = [row(NOW, late=0.01 * n) for n in range(1, 10)] + [row(NOW, late=600.0) | {"attempts": 2}]
    told = {leg.name: leg for leg in legs(rows)}
    assert told["claimed by a worker after that"].half == pytest.approx(0.05)
    assert told["claimed by a worker after that"].longest == pytest.approx(0.09)
    assert told["took"].half == pytest.approx(2.0)


def test_a_schedule_that_starts_later_and_later_drifts() -> None:
    newest_first = [row(NOW - timedelta(minutes=n), late=0.1 * (20 - n)) for n in range(20)]
    assert drift(newest_first) == timedelta(seconds=1)
    assert drift(newest_first[:5]) is None


def test_versions_differ_in_what_is_named() -> None:
    before = {"task": "a", "timing": {"kind": "cron", "expression": "0 5 * * *"}, "tenant": None}
    after = {"task": "a", "timing": {"kind": "cron", "expression": "0 6 * * *"}, "queue": "slow"}
    assert differences(before, after) == [
        ("timing.expression", "0 5 * * *", "0 6 * * *"),
        ("queue", None, "slow"),
    ]


def test_a_moment_is_read_on_the_clocks_of_the_zone() -> None:
    assert moment_on(BERLIN, "02:30", NOW) == datetime(2026, 11, 21, 1, 30, tzinfo=UTC)
    assert moment_on(BERLIN, "2026-07-01T02:30", NOW) == datetime(2026, 7, 1, 0, 30, tzinfo=UTC)
    assert moment_on(BERLIN, "2026-07-01T02:30Z", NOW) == datetime(2026, 7, 1, 2, 30, tzinfo=UTC)
    with pytest.raises(InvalidTiming, match="write 2026-11-21T02:30"):
        moment_on(BERLIN, "noon", NOW)
