from datetime import UTC, datetime, timedelta

import pytest
from dateutil.rrule import rrulestr
from hypothesis import given, settings
from hypothesis import strategies as st

from cronq.timing import InvalidTiming, RRule, fires_between

START = datetime(2026, 6, 1, 12, 3, tzinfo=UTC)


def found(text: str, tz: str = "UTC", count: int = 5, start: datetime = START) -> list[str]:
    fires = fires_between(RRule(text, tz), start, start + timedelta(days=3000), count)
    return [each.isoformat()[:16] for each in fires]


@given(
    st.sampled_from(["YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY"]),
    st.integers(1, 5),
    st.sampled_from(["", ";BYMONTH=2,7", ";BYMONTH=1"]),
    st.sampled_from(["", ";BYMONTHDAY=13", ";BYMONTHDAY=-1", ";BYDAY=MO", ";BYDAY=TU,SA"]),
    st.sampled_from(["", ";BYHOUR=9", ";BYHOUR=9,17;BYMINUTE=30"]),
    st.datetimes(datetime(2020, 1, 1), datetime(2026, 12, 1)),  # noqa: DTZ001
)
@settings(max_examples=300, deadline=None)
def test_rules_fire_as_dateutil_says_from_their_start(  # noqa: PLR0917 - hypothesis draws them all
    frequency: str, interval: int, months: str, days: str, times: str, begin: datetime
) -> None:
    begin = begin.replace(microsecond=0)
    rule = f"FREQ={frequency};INTERVAL={interval}{months}{days}{times}"
    try:
        timing = RRule(f"DTSTART:{begin:%Y%m%dT%H%M%S}\nRRULE:{rule}")
    except InvalidTiming:
        return
    until = begin + timedelta(days=2000)
    theirs = rrulestr(f"{rule};UNTIL={until:%Y%m%dT%H%M%S}", dtstart=begin)
    wanted = [each.replace(tzinfo=UTC) for _, each in zip(range(12), theirs, strict=False)]
    start = begin.replace(tzinfo=UTC) - timedelta(seconds=1)
    mine = list(fires_between(timing, start, until.replace(tzinfo=UTC), 12))
    assert mine == wanted
    if len(mine) > 1:
        assert timing.previous(mine[-1]) == mine[-2]
        assert timing.next(mine[-2]) == mine[-1]


def test_the_last_friday_of_each_month() -> None:
    assert found("FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=18", count=2) == ["2026-06-26T18:00", "2026-07-31T18:00"]


def test_a_start_a_count_added_and_removed_dates() -> None:
    text = "DTSTART:20260601T130000\nRRULE:FREQ=DAILY;COUNT=4\nEXDATE:20260602T130000\nRDATE:20260603T090000"
    assert found(text) == ["2026-06-01T13:00", "2026-06-03T09:00", "2026-06-03T13:00", "2026-06-04T13:00"]


def test_until_ends_a_rule() -> None:
    assert found("FREQ=DAILY;BYHOUR=9;UNTIL=20260603T090000") == ["2026-06-02T09:00", "2026-06-03T09:00"]


def test_a_daily_rule_keeps_local_time_and_runs_once_where_the_clocks_change() -> None:
    start = datetime(2026, 3, 28, 12, tzinfo=UTC)
    assert found("FREQ=DAILY;BYHOUR=2;BYMINUTE=30", "Europe/Paris", 2, start) == [
        "2026-03-29T01:00",
        "2026-03-30T00:30",
    ]
    start = datetime(2026, 10, 24, 12, tzinfo=UTC)
    assert found("FREQ=DAILY;BYHOUR=2;BYMINUTE=30", "Europe/Paris", 2, start) == [
        "2026-10-25T00:30",
        "2026-10-26T01:30",
    ]


def test_an_hourly_rule_runs_in_both_copies_of_a_repeated_hour() -> None:
    start = datetime(2026, 10, 24, 23, 59, tzinfo=UTC)
    fires = list(fires_between(RRule("FREQ=HOURLY", "Europe/Paris"), start, start + timedelta(hours=4)))
    assert [each.hour for each in fires] == [0, 1, 2, 3]


def test_a_dtstart_with_a_zone_sets_the_zone() -> None:
    timing = RRule("DTSTART;TZID=Europe/Paris:20260601T090000\nRRULE:FREQ=DAILY")
    assert timing.tz == "Europe/Paris"
    assert timing.next(START) == datetime(2026, 6, 2, 7, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "FREQ=SOMETIMES",
        "INTERVAL=2",
        "FREQ=DAILY;INTERVAL=0",
        "FREQ=DAILY;COUNT=5",
        "FREQ=DAILY;COUNT=999999999",
        "FREQ=DAILY;BYHOUR=25",
        "FREQ=DAILY;BYDAY=2MO",
        "FREQ=DAILY;FREQ=DAILY",
        "FREQ=WEEKLY",
        "FREQ=DAILY;UNTIL=yesterday",
        "FREQ=DAILY;UNTIL=19600101T000000",
        "FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=DAILY;BYYEARDAY=366;BYMONTH=1",
        "FREQ=MONTHLY;BYSETPOS=9;BYDAY=MO",
        "FREQ=MINUTELY;INTERVAL=60;BYMINUTE=5",
        "FREQ=HOURLY;INTERVAL=48",
        "FREQ=HOURLY;BYSETPOS=1",
        "EXRULE:FREQ=DAILY",
    ],
)
def test_a_rule_that_cannot_be_run_is_refused(text: str) -> None:
    with pytest.raises(InvalidTiming) as caught:
        RRule(text)
    assert caught.value.suggestion


def test_a_rule_that_rests_for_years_between_two_fires_goes_on_after_them() -> None:
    days, times = "BYMONTH=2,7;BYMONTHDAY=-1", "BYHOUR=9,17;BYMINUTE=30"
    text = f"DTSTART:20260909T000000\nRRULE:FREQ=HOURLY;INTERVAL=5;{days};{times}"
    assert found(text, count=4) == [
        "2027-02-28T17:30",
        "2032-02-29T09:30",
        "2032-07-31T17:30",
        "2033-02-28T09:30",
    ]
