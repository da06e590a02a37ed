"""A schedule that nobody touches on the form stays what it is, and one typed from it is the same."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, urlencode

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from cronq.api.asked import ScheduleIn
from cronq.api.declared import declared
from cronq.api.schedule_texts import read, texts_of
from cronq.app import Cronq
from cronq.schedule import CatchUp, Dst, Overlap, Schedule
from cronq.store.definitions import to_data

from .steps import declare

NAME = "any/name"
NOW = datetime(2026, 11, 21, tzinfo=UTC)
ZONES = st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kolkata", "America/New_York"])
EXPRESSIONS = ["0 6 * * *", "H H * * MON-FRI", "*/10 30 2 * * *", "@hourly", "@every 90s", "0  0 L * *"]
RULES = ["FREQ=DAILY;BYHOUR=9", "DTSTART:20260101T090000\r\nRRULE:FREQ=WEEKLY", "RRULE:FREQ=MONTHLY\n"]
TEXTS = st.text(st.characters(), max_size=12)
PLAIN_KEYS = st.sampled_from(["region", "list", "***", "é\n"])
KEYS = PLAIN_KEYS | st.sampled_from(["password", "api_key", "token"])
SECRETS = st.sampled_from(["***", "redis://u:pa55@h", "see https://a:b@c and https://d:e@f", "x://y:***@z"])
SPANS = st.sampled_from(["90s", "1h30m", "1w2d", 0.000001, 0.1 + 0.2, 59.9999994, 86400, 12345678])
OPEN = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def json_values(texts: st.SearchStrategy[str], keys: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    numbers = st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False)
    leaves = st.none() | st.booleans() | numbers | texts
    return st.recursive(
        leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4)
    )


TIMINGS = st.one_of(
    st.fixed_dictionaries(
        {
            "cron": st.sampled_from(EXPRESSIONS)
            | st.lists(st.sampled_from(EXPRESSIONS), min_size=1, max_size=3)
        },
        optional={"tz": ZONES, "dst": st.sampled_from(Dst)},
    ),
    st.fixed_dictionaries({"every": SPANS}),
    st.fixed_dictionaries({"delay": SPANS}),
    st.fixed_dictionaries(
        {"at": st.datetimes(datetime(1971, 1, 1), datetime(2199, 1, 1), timezones=st.just(UTC))}  # noqa: DTZ001
    ),
    st.fixed_dictionaries({"rrule": st.sampled_from(RULES)}, optional={"tz": ZONES}),
)
POLICIES = st.fixed_dictionaries(
    {"task": st.sampled_from(["demo.work", "ünï 'code\" <&>"])},
    optional={
        "priority": st.integers(0, 9),
        "overlap": st.sampled_from(Overlap),
        "buffer": st.integers(1, 100_000),
        "catch_up": st.sampled_from(CatchUp),
        "catch_up_window": SPANS,
        "jitter": SPANS | st.just(0),
        "spread": SPANS | st.just(0),
        "max_attempts": st.integers(1, 1000),
        "pause_after": st.integers(1, 1000),
        "tenant": st.sampled_from(["acme", "  spaced  out ", "<b>"]),
        "callback_url": st.sampled_from(["https://h/p?u=redis://a:b@c", "http://h:81/"]),
    },
)
PLACES = st.sampled_from([{}, {"queue": "fast & furious"}, {"needs": "cpu@eu-west.a,eu-west+30"}])
FAN_OUT = {"fan_out": ["a", 1, {"item": "b", "kwargs": {"password": "p"}}], "on_complete": "demo.sum"}
AFTER = {"after": {"any": ["hourly"], "on_failure": True}}
UNSHOWN = st.sampled_from([{}, FAN_OUT, AFTER, {"after": "hourly"}])


@st.composite
def bodies(draw: st.DrawFn, values: st.SearchStrategy[Any], keys: st.SearchStrategy[str]) -> dict[str, Any]:
    """Whatever the API takes."""
    arguments = {"args": st.lists(values, max_size=3), "kwargs": st.dictionaries(keys, values, max_size=3)}
    parts = (TIMINGS, POLICIES, PLACES, UNSHOWN, st.fixed_dictionaries({}, optional=arguments))
    body = {name: value for part in parts for name, value in draw(part).items()}
    assume(not ("after" in body and "delay" in body))
    return body


def sent(texts: Mapping[str, str]) -> dict[str, str]:
    """Return what arrives of a form that a browser sends: lines end in its own way, what is empty is gone."""
    shown = {name: text.encode(errors="backslashreplace").decode() for name, text in texts.items()}
    return dict(
        parse_qsl(urlencode({name: re.sub("\r\n|\r|\n", "\r\n", text) for name, text in shown.items()}))
    )


def exactly(schedule: Schedule) -> str:
    return json.dumps(to_data(schedule), sort_keys=True)


@OPEN
@given(body=bodies(json_values(TEXTS | SECRETS, KEYS), KEYS))
def test_what_nobody_touches_stays_as_it_is(parts: Cronq, body: dict[str, Any]) -> None:
    declare(parts, "hourly")
    before = declared(parts, NAME, ScheduleIn.model_validate(body))
    asked, wrong = read(sent(texts_of(before)), before, NOW)
    assert wrong == {}
    assert exactly(declared(parts, NAME, ScheduleIn.model_validate(asked))) == exactly(before)


@OPEN
@given(body=bodies(json_values(TEXTS, PLAIN_KEYS), PLAIN_KEYS))
def test_what_stands_in_the_fields_says_the_same_to_who_starts_anew(
    parts: Cronq, body: dict[str, Any]
) -> None:
    assume("\r" not in body.get("rrule", "") and "callback_url" not in body)
    declare(parts, "hourly")
    for name in ("fan_out", "on_complete", "after"):
        body.pop(name, None)
    before = declared(parts, NAME, ScheduleIn.model_validate(body))
    asked, wrong = read(sent(texts_of(before)), None, NOW)
    assert wrong == {}
    assert exactly(declared(parts, NAME, ScheduleIn.model_validate(asked))) == exactly(before)


@pytest.mark.parametrize("window", [0, "0.5s"])
def test_a_window_of_nothing_stays_until_somebody_writes_another(parts: Cronq, window: float | str) -> None:
    body = {"task": "t", "every": 60, "catch_up_window": window}
    before = declared(parts, NAME, ScheduleIn.model_validate(body))
    texts = texts_of(before)
    asked, _wrong = read(sent(texts), before, NOW)
    assert declared(parts, NAME, ScheduleIn.model_validate(asked)) == before
    asked, _wrong = read(sent(texts | {"catch_up_window": "2h"}), before, NOW)
    assert asked["catch_up_window"] == "2h"
