from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cronq.timing import (
    At,
    Bounded,
    Cron,
    Delay,
    Every,
    InvalidTiming,
    Timing,
    Union,
    after_end,
    calendar_from,
    fires_between,
    timing_from,
    with_hash_id,
)
from cronq.timing.exclusions import Excluding
from cronq.timing.rrule import RRule

START = datetime(2026, 6, 1, tzinfo=UTC)
DAY = timedelta(days=1)
DAILY = Cron("0 9 * * *")


def test_start_and_end_are_inclusive() -> None:
    timing = Bounded(DAILY, START + timedelta(hours=9), START + 2 * DAY + timedelta(hours=9))
    fires = list(fires_between(timing, START - 30 * DAY, START + 30 * DAY))
    assert [each.day for each in fires] == [1, 2, 3]
    assert timing.previous(START + 30 * DAY) == fires[-1]
    assert timing.previous(fires[0]) is None
    assert timing.next(fires[-1]) is None


@given(st.integers(1, 40), st.sampled_from([DAILY, Every(timedelta(minutes=7)), Cron("0 0 13 * *")]))
def test_a_limit_counts_fire_times_from_the_start(limit: int, timing: Timing) -> None:
    bounded = Bounded(timing, START, limit=limit)
    found = list(fires_between(bounded, START - 300 * DAY, START + 1500 * DAY))
    assert found == list(fires_between(timing, START - timedelta(microseconds=1), START + 1500 * DAY, limit))
    assert bounded.previous(START + 2000 * DAY) == found[-1]


def test_a_limit_larger_than_what_there_is_ends_with_it() -> None:
    assert list(fires_between(Bounded(At(START), START, limit=5), START - DAY, START + DAY)) == [START]


def test_bounds_that_make_no_sense_are_refused() -> None:
    for wrong in ({"limit": 0, "start": START}, {"limit": 5}, {"start": START, "end": START - DAY}):
        with pytest.raises(InvalidTiming):
            Bounded(DAILY, **wrong)
    with pytest.raises(InvalidTiming):
        Union(())


def test_a_bounded_delay_ends() -> None:
    timing = Bounded(Delay(timedelta(hours=1)), end=START)
    assert after_end(timing, START - timedelta(hours=2)) == START - timedelta(hours=1)
    assert after_end(timing, START) is None


def test_a_union_names_each_instant_once() -> None:
    timing = Union((DAILY, Cron("0 9,10 * * *"), At(START)))
    found = list(fires_between(timing, START - timedelta(hours=1), START + DAY))
    assert [each.hour for each in found] == [0, 9, 10]
    assert timing.previous(START + timedelta(hours=10)) == START + timedelta(hours=9)
    assert Union((At(START),)).next(START) is None


AT = {"kind": "at", "instant": "2026-01-01T00:00:00Z"}
CALENDAR = calendar_from({"name": "c", "days": ["2026-06-03"]})


@pytest.mark.parametrize(
    "timing",
    [
        Cron(("0 9 * * *", "@every 90s"), "Europe/Paris", day="and"),
        Cron("H H * * *", hash_id="x"),
        RRule("FREQ=DAILY;BYHOUR=9", "Europe/Paris"),
        Union((DAILY, Every(DAY))),
        Bounded(DAILY, START, START + 9 * DAY, 3),
        Excluding(DAILY, CALENDAR, "previous"),
        Bounded(Excluding(Union((DAILY, At(START))), CALENDAR), START),
    ],
)
def test_stored_data_gives_back_an_equal_timing(timing: Timing) -> None:
    again = timing_from(timing.to_data())
    assert again == timing
    assert hash(again) == hash(timing)
    assert again is timing_from(timing.to_data())
    assert again.next(START) == timing.next(START)


def test_the_schedules_id_reaches_every_h_and_nothing_else() -> None:
    data = Bounded(Union((Cron("H 9 * * *"), DAILY)), START).to_data()
    filled = with_hash_id(data, "me")
    assert filled["of"]["of"][0]["hash_id"] == "me"
    assert "hash_id" not in filled["of"]["of"][1]
    assert timing_from(filled).next(START) is not None
    assert "hash_id" not in data["of"]["of"][0]


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"kind": "lunar"},
        {"kind": ["cron"]},
        {"kind": "cron"},
        {"kind": "cron", "expression": 5},
        {"kind": "cron", "expression": [1]},
        {"kind": "cron", "expression": "* * * * *", "dst": "maybe"},
        {"kind": "cron", "expression": "* * * * *", "tz": None},
        {"kind": "cron", "expression": "* * * * *", "day": "xor"},
        {"kind": "every", "seconds": "90"},
        {"kind": "every", "seconds": 1e30},
        {"kind": "at", "instant": "soon"},
        {"kind": "at", "instant": "2026-01-01T00:00:00"},
        {"kind": "union", "of": 5},
        {"kind": "bounded", "of": AT, "limit": "x", "start": "2026-01-01T00:00:00Z"},
        {"kind": "excluding", "of": {"kind": "at", "instant": "2026-01-01T00:00:00Z"}, "calendar": {}},
        {"kind": "rrule", "text": None},
        {"kind": "cron", "expression": {1, 2}},
    ],
)  # fmt: skip
def test_data_that_describes_no_timing_is_refused(data: dict[str, object]) -> None:
    with pytest.raises(InvalidTiming):
        timing_from(data)
