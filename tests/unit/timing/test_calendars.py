from datetime import UTC, date, datetime, timedelta
from typing import Literal

import pytest

from cronq.schedule import Reason
from cronq.timing import (
    Calendar,
    Cron,
    Delay,
    Every,
    Excluding,
    InvalidTiming,
    after_end,
    calendar_from,
    fires_between,
    omissions,
    timing_from,
    with_calendars,
)
from cronq.timing.ics import calendar_from_ics

CHRISTMAS = calendar_from({"name": "christmas", "days": ["2026-12-24/2026-12-27"]})  # Thursday to Sunday
START = datetime(2026, 12, 22, tzinfo=UTC)
END = datetime(2026, 12, 31, tzinfo=UTC)
Then = Literal["skip", "next", "previous"]


def fires(expression: str, calendar: Calendar, then: Then, tz: str = "UTC") -> list[str]:
    timing = Excluding(Cron(expression, tz), calendar, then)
    found = list(fires_between(timing, START, END))
    backwards = []
    fire = timing.previous(END + timedelta(microseconds=1))
    while fire is not None and fire > START:
        backwards.append(fire)
        fire = timing.previous(fire)
    assert backwards[::-1] == found
    return [f"{each:%d %H:%M}" for each in found]


def test_excluded_days_are_left_out() -> None:
    assert fires("0 9 * * *", CHRISTMAS, "skip") == [
        "22 09:00",
        "23 09:00",
        "28 09:00",
        "29 09:00",
        "30 09:00",
    ]


def test_excluded_fire_times_move_to_the_next_business_day_and_meet_those_already_there() -> None:
    assert fires("0 9 * * *", CHRISTMAS, "next") == [
        "22 09:00",
        "23 09:00",
        "28 09:00",
        "29 09:00",
        "30 09:00",
    ]
    assert fires("0 9 25 * *", CHRISTMAS, "next") == ["28 09:00"]
    assert fires("30 7 25 * *", CHRISTMAS, "next") == ["28 07:30"]


def test_excluded_fire_times_move_to_the_previous_business_day() -> None:
    assert fires("0 9 25 * *", CHRISTMAS, "previous") == ["23 09:00"]
    # A moved one may come earlier in its day than the one that was there before.
    assert fires("0 9 23,24 * *", CHRISTMAS, "previous") == ["23 09:00"]
    assert fires("0 8,9 24,26 * *", CHRISTMAS, "previous") == ["23 08:00", "23 09:00"]


def test_a_weekend_is_no_business_day_even_where_it_is_open() -> None:
    friday = calendar_from({"name": "c", "days": ["2026-12-25"]})
    assert fires("0 9 25 * *", friday, "next") == ["28 09:00"]
    assert fires("0 9 26 * *", friday, "next") == ["26 09:00"]
    closed = calendar_from({"name": "c", "weekend_closed": True})
    assert fires("0 9 26 * *", closed, "next") == ["28 09:00"]
    assert fires("0 9 26 * *", closed, "previous") == ["25 09:00"]
    sunday_to_thursday = calendar_from({"name": "c", "weekend": [5, 6], "weekend_closed": True})
    assert fires("0 9 25 * *", sunday_to_thursday, "next") == ["27 09:00"]


def test_days_are_those_of_the_schedules_zone() -> None:
    tokyo = calendar_from({"name": "c", "days": ["2026-12-25"]})
    assert fires("0 8 24-26 * *", tokyo, "skip", "Asia/Tokyo") == ["23 23:00", "25 23:00"]


def test_a_freeze_window_is_exact_to_the_instant() -> None:
    freeze = calendar_from({"name": "f", "spans": ["2026-12-23T09:00:00Z/2026-12-28T09:00:00Z"]})
    assert fires("0 9 * * *", freeze, "skip") == ["22 09:00", "28 09:00", "29 09:00", "30 09:00"]


def test_what_was_excluded_is_named_with_where_it_went() -> None:
    timing = Excluding(Cron("0 9 25 * *"), CHRISTMAS, "next")
    (omission,) = omissions(timing, START, END)
    assert (omission.reason, omission.detail) == (Reason.EXCLUDED, "christmas")
    assert omission.into == datetime(2026, 12, 28, 9, tzinfo=UTC)


def test_a_dense_schedule_jumps_over_a_long_exclusion_without_looking_at_each_fire(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = 0
    real = Every.next

    def counted(self: Every, after: datetime) -> datetime | None:
        nonlocal calls
        calls += 1
        return real(self, after)

    monkeypatch.setattr(Every, "next", counted)
    timing = Excluding(
        Every(timedelta(seconds=1)), calendar_from({"name": "c", "days": ["2026-01-01/2026-11-30"]})
    )
    assert timing.next(datetime(2026, 2, 1, tzinfo=UTC)) == datetime(2026, 12, 1, tzinfo=UTC)
    assert calls == 2


def test_a_dense_schedule_cannot_move_to_a_business_day() -> None:
    with pytest.raises(InvalidTiming, match="write skip"):
        Excluding(Cron("*/5 * * * *"), CHRISTMAS, "next")


def test_a_fixed_delay_waits_a_closed_time_out() -> None:
    timing = Excluding(Delay(timedelta(hours=1)), CHRISTMAS)
    assert after_end(timing, datetime(2026, 12, 23, 23, 30, tzinfo=UTC)) == datetime(2026, 12, 28, tzinfo=UTC)


def test_calendars_are_data_and_equal_ones_are_equal() -> None:
    data = {
        "name": "c",
        "days": ["2026-12-25", "2026-12-24/2026-12-27", "2026-12-28"],
        "spans": ["2026-01-01T00:00:00Z/2026-01-02T00:00:00Z"],
        "weekend": [5, 6],
        "weekend_closed": True,
        "tz": "Asia/Riyadh",
    }
    calendar = calendar_from(data)
    assert calendar.days == ((date(2026, 12, 24), date(2026, 12, 28)),)
    assert calendar_from(calendar.to_data()) == calendar


def test_a_named_calendar_is_put_in_place_before_it_is_used() -> None:
    data = {"kind": "excluding", "of": {"kind": "cron", "expression": "0 9 25 * *"}, "calendar": "christmas"}
    with pytest.raises(InvalidTiming, match="with_calendars"):
        timing_from(data)
    with pytest.raises(InvalidTiming, match="there are: other"):
        with_calendars(data, {"other": {"name": "other"}})
    filled = with_calendars(data, {"christmas": CHRISTMAS.to_data()})
    assert timing_from(filled) == Excluding(Cron("0 9 25 * *"), CHRISTMAS)


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"name": "c", "days": ["2026-13-01"]},
        {"name": "c", "days": "2026-12-25"},
        {"name": "c", "days": ["2026-12-27/2026-12-24"]},
        {"name": "c", "spans": ["2026-12-25"]},
        {"name": "c", "spans": ["2026-01-02T00:00:00Z/2026-01-01T00:00:00Z"]},
        {"name": "c", "spans": ["2026-01-02T00:00:00/2026-01-03T00:00:00"]},
        {"name": "c", "weekend": [1, 2, 3, 4, 5, 6, 7]},
        {"name": "c", "tz": "Mars/Base"},
    ],
)
def test_a_calendar_that_makes_no_sense_is_refused(data: dict[str, object]) -> None:
    with pytest.raises(InvalidTiming):
        calendar_from(data)


ICS = """BEGIN:VCALENDAR
BEGIN:VEVENT
DTSTART;VALUE=DATE:20261225
DTEND;VALUE=DATE:20261227
SUMMARY:Christmas
END:VEVENT
BEGIN:VEVENT
DTSTART;VALUE=DATE:20200101
RRULE:FREQ=YEARLY
SUMMARY:New
 Year
END:VEVENT
BEGIN:VEVENT
DTSTART;TZID=Europe/Paris:20260701T180000
DTEND;TZID=Europe/Paris:20260702T080000
END:VEVENT
BEGIN:VEVENT
DTSTART;VALUE=DATE:20260501
TRANSP:TRANSPARENT
END:VEVENT
END:VCALENDAR
"""


def test_an_icalendar_file_becomes_a_calendar() -> None:
    calendar = calendar_from_ics("holidays", ICS.replace("\n", "\r\n"))
    assert calendar.closed_day(date(2026, 12, 25))
    assert calendar.closed_day(date(2026, 12, 26))
    assert not calendar.closed_day(date(2026, 12, 27))
    assert calendar.closed_day(date(2043, 1, 1))
    assert not calendar.closed_day(date(2026, 5, 1))
    assert calendar.spans == ((datetime(2026, 7, 1, 16, tzinfo=UTC), datetime(2026, 7, 2, 6, tzinfo=UTC)),)


def test_a_broken_icalendar_file_is_refused() -> None:
    for text in ("BEGIN:VEVENT\nSUMMARY:x\nEND:VEVENT", "BEGIN:VEVENT\nDTSTART:soon\nEND:VEVENT"):
        with pytest.raises(InvalidTiming):
            calendar_from_ics("x", text)
