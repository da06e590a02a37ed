from datetime import UTC, datetime, timedelta

import pytest

from cronq.timing import Cron, InvalidTiming, fires_between

START = datetime(2026, 1, 1, tzinfo=UTC) - timedelta(seconds=1)


def days(expression: str, end: datetime = datetime(2026, 3, 1, tzinfo=UTC), **options: str) -> list[str]:
    timing = Cron(expression, **options)  # type: ignore[arg-type]
    return [f"{each:%m-%d}" for each in fires_between(timing, START, end - timedelta(seconds=1))]


def times(expression: str, *, hours: int = 24) -> list[str]:
    return [
        f"{each:%H:%M:%S}" for each in fires_between(Cron(expression), START, START + timedelta(hours=hours))
    ]


@pytest.mark.parametrize(
    ("expression", "same"),
    [
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("@monthly", "0 0 1 * *"),
        ("@weekly", "0 0 * * SUN"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@Hourly", "0 * * * *"),
        ("@minutely", "* * * * *"),
        ("0 0 1 jan *", "0 0 1 1 *"),
        ("0 0 * * 7", "0 0 * * 0"),
        ("0 0 * * 5-7", "0 0 * * 0,5,6"),
        ("0 0 * * 0-7", "0 0 * * *"),
        ("0 0 * * FRI-MON", "0 0 * * 5,6,0,1"),
        ("0 22-2 * * *", "0 22,23,0,1,2 * * *"),
        ("0 22-3/2 * * *", "0 22,0,2 * * *"),
        ("0 0 1 NOV-FEB *", "0 0 1 11,12,1,2 *"),
        ("5/20 * * * *", "5,25,45 * * * *"),
        ("10-30/10 * * * *", "10,20,30 * * * *"),
        ("0 0 1 * ?", "0 0 1 * *"),
        ("0 0 ? * MON", "0 0 * * MON"),
        ("0 0 1-1 * *", "0 0 1 * *"),
        ("5-5 * * * *", "5 * * * *"),
        ("0 0 * JAN-JAN MON-MON", "0 0 * 1 1"),
        ("0 30 2 * * *", "30 2 * * *"),
        ("0 30 2 * * * *", "30 2 * * *"),
        (" \t30  2 * * *  ", "30 2 * * *"),
        ("@every 1h", "0 * * * *"),
    ],
)
def test_two_spellings_fire_alike(expression: str, same: str) -> None:
    end = START + timedelta(days=800)
    assert list(fires_between(Cron(expression), START, end, 400)) == list(
        fires_between(Cron(same), START, end, 400)
    )


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("0 0 L * *", ["01-31", "02-28"]),
        ("0 0 L-3 * *", ["01-28", "02-25"]),
        ("0 0 LW * *", ["01-30", "02-27"]),
        ("0 0 15W * *", ["01-15", "02-16"]),
        ("0 0 1W * *", ["01-01", "02-02"]),
        ("0 0 31W * *", ["01-30"]),
        ("0 0 * * 5L", ["01-30", "02-27"]),
        ("0 0 * * FRIL", ["01-30", "02-27"]),
        ("0 0 * * FRI#2", ["01-09", "02-13"]),
        ("0 0 * * 5#3,1#1", ["01-05", "01-16", "02-02", "02-20"]),
        (
            "0 0 13 * FRI",
            ["01-02", "01-09", "01-13", "01-16", "01-23", "01-30", "02-06", "02-13", "02-20", "02-27"],
        ),
        ("0 0 */15 * MON", ["02-16"]),  # begins with a star: both must match, as Vixie has it
        ("0 0 1,L * *", ["01-01", "01-31", "02-01", "02-28"]),
    ],
)
def test_days_that_depend_on_the_month(expression: str, wanted: list[str]) -> None:
    assert days(expression) == wanted


def test_day_of_month_and_day_of_week_can_both_be_asked_for() -> None:
    assert days("0 0 13 * FRI", day="and") == ["02-13"]


def test_seconds_come_first_and_a_year_last() -> None:
    assert times("*/20 0 0 * * *", hours=1) == ["00:00:00", "00:00:20", "00:00:40"]
    timing = Cron("15 30 2 1 1 ? 2027-2028")
    assert [str(each)[:19] for each in fires_between(timing, START, datetime(2100, 1, 1, tzinfo=UTC))] == [
        "2027-01-01 02:30:15",
        "2028-01-01 02:30:15",
    ]
    assert timing.next(datetime(2028, 1, 2, tzinfo=UTC)) is None
    assert timing.previous(datetime(2027, 1, 1, tzinfo=UTC)) is None


def test_several_expressions_are_one_union() -> None:
    timing = Cron(("0 9 * * *", "0 9,17 * * *"))
    assert [f"{each:%H}" for each in fires_between(timing, START, START + timedelta(days=1))] == ["09", "17"]
    assert timing.previous(START) == datetime(2025, 12, 31, 17, tzinfo=UTC)


def test_leap_days_are_found_across_a_century_without_one() -> None:
    timing = Cron("0 0 29 2 *")
    assert timing.next(datetime(2096, 3, 1, tzinfo=UTC)) == datetime(2104, 2, 29, tzinfo=UTC)
    assert timing.previous(datetime(2104, 2, 29, tzinfo=UTC)) == datetime(2096, 2, 29, tzinfo=UTC)
    monday = Cron("0 0 29 2 MON", day="and")
    assert monday.next(datetime(2072, 3, 1, tzinfo=UTC)) == datetime(2112, 2, 29, tzinfo=UTC)


@pytest.mark.parametrize(
    ("expression", "field", "position", "suggestion"),
    [
        ("61 * * * *", "minute", 1, "0 to 59"),
        ("0 24 * * *", "hour", 3, "0 to 23"),
        ("* * * * MOM", "day of week", 9, "MON"),
        ("0 0 1 FEBR *", "month", 7, "FEB"),
        ("*/90 * * * *", "minute", 3, "@every 90m"),
        ("*/0 * * * *", "minute", 3, "1 or more"),
        ("1,,2 * * * *", "minute", 3, "0 to 59"),
        ("1- * * * *", "minute", 3, "0 to 59"),
        ("* * * *", "expression", 8, "weekday"),
        ("* * * * * * * *", "expression", 15, "weekday"),
        ("", "expression", 1, "weekday"),
        ("@reboot", "expression", 1, "deployment"),
        ("@fortnightly", "expression", 1, "@every"),
        ("@every", "period", 7, "90s"),
        ("@every 5x", "period", 8, "90s"),
        ("@every 500ms", "period", 8, "Every"),
        ("* * 31 2 *", "day of month", 5, "L"),
        ("0 * * 31 4,6,9,11 *", "day of month", 7, "L"),
        ("0 0 0 30 2 ? 2027", "day of month", 7, "L"),
        ("0 0 0 29 2 ? 2027", "day of month", 7, "L"),
        ("0 0 * * L", "day of week", 9, "5L"),
        ("0 0 * * L5", "day of week", 9, "5L"),
        ("0 0 * * 5#6", "day of week", 11, "#5"),
        ("0 0 W * *", "day of month", 5, "15W"),
        ("0 0 L-40 * *", "day of month", 5, "L-30"),
        ("~ * * * *", "minute", 1, "H"),
        ("? * * * *", "minute", 1, "*"),
        ("H(30-10) * * * *", "minute", 1, "smaller"),
        ("H(0-29 * * * *", "minute", 1, "H(0-29)"),
        ("0 0 0 1 1 * H", "year", 13, "years"),
        ("0 0 0 1 1 * 2030-2027", "year", 13, "2027-2030"),
        ("CRON_TZ=UTC 0 0 1 1 * * *", "expression", 1, "time zone"),
        ("TZ=UTC 0 0 1 1 *", "second", 1, "time zone"),
        ("0 0 1 1 é", "expression", 9, "digits"),
        ("0 0 1 1 *" + " " * 2000, "expression", 1025, "several"),
    ],
)
def test_a_refusal_names_the_field_the_position_and_a_suggestion(
    expression: str, field: str, position: int, suggestion: str
) -> None:
    with pytest.raises(InvalidTiming) as caught:
        Cron(expression)
    assert (caught.value.field, caught.value.position) == (field, position), str(caught.value)
    assert suggestion in caught.value.suggestion
    assert "\n" not in str(caught.value)


def test_an_impossible_combination_of_day_rules_is_refused() -> None:
    with pytest.raises(InvalidTiming, match="never comes"):
        Cron("0 0 31 * MON#1", day="and")
    with pytest.raises(InvalidTiming, match="never comes"):
        Cron("0 0 L-30 2 *")


def test_a_naive_instant_is_refused() -> None:
    with pytest.raises(InvalidTiming, match="no offset"):
        Cron("* * * * *").next(datetime(2026, 1, 1))  # noqa: DTZ001
    with pytest.raises(InvalidTiming, match="no offset"):
        Cron("* * * * *").previous(datetime(2026, 1, 1))  # noqa: DTZ001


def test_the_ends_of_the_calendar_are_reached_without_an_error() -> None:
    timing = Cron("30 2 * * *", "Europe/Paris")
    assert timing.next(datetime.max.replace(tzinfo=UTC)) is None
    assert timing.previous(datetime.min.replace(tzinfo=UTC)) is None
    assert timing.next(datetime.min.replace(tzinfo=UTC)) is not None
    assert timing.previous(datetime.max.replace(tzinfo=UTC)) is not None


def test_h_needs_the_schedules_id_only_when_it_is_asked_for_times() -> None:
    timing = Cron("H 2 * * *")
    with pytest.raises(InvalidTiming, match="schedule's id"):
        timing.next(START)
    assert Cron("H 2 * * *", hash_id="a").next(START) == Cron("H 2 * * *", hash_id="a").next(START)


def test_h_h_uses_every_minute_of_the_day_evenly() -> None:
    counts: dict[int, int] = {}
    for number in range(14_400):
        fire = Cron("H H * * *", hash_id=str(number)).next(START)
        assert fire is not None
        minute = fire.hour * 60 + fire.minute
        counts[minute] = counts.get(minute, 0) + 1
    assert len(counts) > 1430  # of 1,440: ten draws per minute leave almost none empty
    assert max(counts.values()) < 30


@pytest.mark.parametrize(
    ("expression", "low", "high", "count"),
    [("H(10-19) 0 * * *", 10, 19, 1), ("H/15 0 * * *", 0, 59, 4), ("H(30-59)/10 0 * * *", 30, 59, 3)],
)
def test_h_stays_in_its_range_and_keeps_its_step(expression: str, low: int, high: int, count: int) -> None:
    for number in range(50):
        fires = list(fires_between(Cron(expression, hash_id=str(number)), START, START + timedelta(hours=24)))
        assert len(fires) == count
        assert all(low <= fire.minute <= high for fire in fires)


def test_a_hashed_day_of_the_month_exists_in_every_month() -> None:
    for number in range(100):
        timing = Cron("0 0 H * *", hash_id=str(number))
        assert len(list(fires_between(timing, START, START + timedelta(days=365)))) == 12
