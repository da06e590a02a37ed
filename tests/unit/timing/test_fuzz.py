"""The parser takes whatever it is given: it refuses it in order, or can run it."""

import re
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cronq.schedule import Dst
from cronq.timing import Cron, InvalidTiming, RRule, fires_between, timing_from
from cronq.timing.explain import explain

T = TypeVar("T")
START = datetime(2026, 6, 1, tzinfo=UTC)
PIECES = [
    *re.findall(
        r"\S+", "* ? - / , # L W H ( ) @ 0 1 5 7 15 31 59 60 99999 MON fri JAN */5 1-5 22-2 LW L-3 15W"
    ),
    *re.findall(r"\S+", "5L 2#2 H/15 H(0-9) @every 90s 1h ² é 2030"),
    *(" ", "  ", "\t", "\x00"),
]
RULE_PIECES = [
    *re.findall(
        r"\S+", "FREQ= DAILY MONTHLY YEARLY SECONDLY HOURLY WEEKLY ; INTERVAL= COUNT= UNTIL= BYDAY= MO"
    ),
    *re.findall(
        r"\S+", "-1FR BYMONTH= 2 30 BYMONTHDAY= BYHOUR= 9 , BYSETPOS= BYYEARDAY= 366 20270101 T Z RRULE:"
    ),
    *("x", "EXDATE:20260101T000000", "DTSTART:20260101T000000\n"),
]
MESS = st.lists(st.sampled_from(PIECES), max_size=60).map("".join)
FIELDS = st.lists(
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=5).map("".join), min_size=5, max_size=7
)
TEXTS = st.one_of(MESS, FIELDS.map(" ".join), st.text(max_size=200))


def attempt(declare: Callable[[], T]) -> tuple[T | None, InvalidTiming | None]:
    """What was declared, or how it was refused; any other error is a failure."""
    try:
        return declare(), None
    except InvalidTiming as refusal:
        return None, refusal


@given(TEXTS, st.sampled_from(["or", "and"]))
@example(",".join(["1-59/2"] * 140) + " * * * *", "or")
@example("0 0 " + ",".join(["31W,L-30,LW"] * 70) + " 2,4 1#5,2L", "and")
@example("0 0 0 29 2 MON#5 1970-2199/7", "and")
@example("9" * 1024, "or")
@settings(max_examples=600, deadline=None)
def test_any_text_is_refused_in_order_or_can_be_run(text: str, day: str) -> None:
    timing, refusal = attempt(lambda: Cron(text, "Europe/Paris", day=day, hash_id="x"))  # type: ignore[arg-type]
    if timing is None:
        assert refusal is not None
        assert refusal.field
        assert refusal.suggestion
        assert refusal.position is not None
        assert 1 <= refusal.position <= len(text) + 1
        return
    fire = timing.next(START) or timing.previous(START)
    assert fire is not None
    assert explain(timing)
    assert timing_from(timing.to_data()) == timing


@pytest.mark.parametrize(
    "text",
    [
        ",".join(["1-59/2"] * 140) + " * * * *",
        "0 0 " + ",".join(["31W,L-30,LW"] * 80) + " 2,4 1#5,2L",
        "0 0 0 29 2 MON#5 1970-2199",
        "0 0 0 31 2,4,6 * 1970-2199/3",
        "0 0 30,31 2 *",
        "H" * 1000,
        "(" * 1000,
        "@every " + "1s" * 500,
        "* " * 512,
        "0 0 * * " + "MOM," * 250,
        "-" * 1024,
    ],
)
def test_the_worst_input_of_a_kilobyte_takes_at_most_ten_milliseconds(text: str) -> None:
    def once() -> float:
        began = time.perf_counter()
        attempt(lambda: Cron(text, day="and", hash_id="x"))
        return time.perf_counter() - began

    assert min(once() for _ in range(5)) < 0.010


@given(st.lists(st.sampled_from(RULE_PIECES), max_size=14).map("".join))
@settings(max_examples=400, deadline=None)
def test_any_recurrence_text_is_refused_in_order_or_can_be_run(text: str) -> None:
    timing, refusal = attempt(lambda: RRule(text))
    if timing is None:
        assert refusal is not None
        assert refusal.suggestion
        return
    assert timing.next(datetime(1969, 1, 1, tzinfo=UTC)) is not None
    assert timing_from(timing.to_data()) == timing


GOOD = st.builds(
    lambda minute, hour, day, month, week: f"{minute} {hour} {day} {month} {week}",
    st.sampled_from(["*", "0", "*/7", "5,35", "30", "10-20", "59"]),
    st.sampled_from(["*", "0", "2", "1,2,3", "*/3", "22-2", "23"]),
    st.sampled_from(["*", "1", "13", "L", "15W", "*/2", "29-31", "LW"]),
    st.sampled_from(["*", "1", "3,10", "2", "NOV-FEB"]),
    st.sampled_from(["*", "MON", "5L", "SUN#1", "1-5", "FRI-MON"]),
)
ZONES = st.sampled_from(
    [
        "UTC",
        "Europe/Paris",
        "America/New_York",
        "Australia/Lord_Howe",
        "Africa/Casablanca",
        "Pacific/Apia",
        "Asia/Gaza",
    ]
)
INSTANTS = st.integers(946_684_800_000_000, 2_145_916_800_000_000).map(
    lambda micros: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
)


@given(GOOD, ZONES, st.sampled_from(list(Dst)), INSTANTS)
@settings(max_examples=400, deadline=None)
def test_next_and_previous_undo_each_other(expression: str, tz: str, dst: Dst, instant: datetime) -> None:
    try:
        timing = Cron(expression, tz, dst)
    except InvalidTiming:
        return
    first = timing.next(instant)
    assert first is not None
    assert first > instant
    assert timing.next(first - timedelta(microseconds=1)) == first
    before = timing.previous(first)
    assert before is not None
    assert before <= instant
    assert timing.next(before) == first
    second = timing.next(first)
    assert second is not None
    assert timing.previous(second) == first


@given(GOOD, ZONES, INSTANTS)
@settings(max_examples=100, deadline=None)
def test_a_union_of_expressions_fires_whenever_any_of_them_does(
    expression: str, tz: str, instant: datetime
) -> None:
    try:
        both = Cron((expression, "17 */5 * * *"), tz)
    except InvalidTiming:
        return
    end = instant + timedelta(days=2)
    single = set(fires_between(Cron(expression, tz), instant, end, 4000)) | set(
        fires_between(Cron("17 */5 * * *", tz), instant, end)
    )
    assert list(fires_between(both, instant, end, 4000)) == sorted(single)[:4000]
