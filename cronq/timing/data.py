"""Stored data becomes a timing again; equal data gives the same object, so its caches are shared."""

import json
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import lru_cache
from typing import Any

from cronq.schedule import Dst
from cronq.timing.base import EPOCH, Timing, instant_from
from cronq.timing.bounds import Bounded, Union
from cronq.timing.calendars import calendar_from
from cronq.timing.cron import Cron
from cronq.timing.errors import InvalidTiming
from cronq.timing.exclusions import Excluding
from cronq.timing.periods import At, Delay, Every, Unreadable
from cronq.timing.rrule import RRule


def timing_from(data: Mapping[str, Any]) -> Timing:
    """Return the timing that `data` describes, the same one for equal data; raises InvalidTiming."""
    try:
        key = json.dumps(data, sort_keys=True, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise InvalidTiming(
            f"the data is not JSON ({error})", field="timing", suggestion="store what to_data() returns"
        ) from None
    return _timing(key)


def timing_to_show(data: Mapping[str, Any]) -> Timing:
    """Return the timing that `data` describes; `Unreadable` if it describes none."""
    try:
        return timing_from(data)
    except InvalidTiming as error:
        return Unreadable(str(error))


@lru_cache(maxsize=8192)
def _timing(key: str) -> Timing:
    return build(json.loads(key))


def build(data: Any) -> Timing:  # noqa: ANN401 - decoded JSON is anything until it is checked
    """Build the timing that decoded JSON describes."""
    kind = data.get("kind") if isinstance(data, dict) else None
    builder = BUILDERS.get(kind) if isinstance(kind, str) else None
    if builder is None:
        raise InvalidTiming(
            "there is no such kind of timing", field="kind", text=str(kind),
            suggestion=f"write one of {', '.join(BUILDERS)}",
        )  # fmt: skip
    try:
        return builder(data)
    except InvalidTiming:
        raise
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError, RecursionError) as error:
        raise InvalidTiming(
            f"the data of this {kind} is incomplete or wrong ({error!r})", field=str(kind),
            suggestion="store what to_data() returns",
        ) from None  # fmt: skip


def _cron(data: dict[str, Any]) -> Timing:
    expression = data["expression"]
    return Cron(
        expression if isinstance(expression, str) else tuple(expression),
        data.get("tz", "UTC"),
        data.get("dst", Dst.VIXIE),
        data.get("day", "or"),
        data.get("hash_id"),
    )


def _every(data: dict[str, Any]) -> Timing:
    anchor = instant_from(data["anchor"], "anchor") if "anchor" in data else EPOCH
    return Every(timedelta(seconds=data["seconds"]), anchor)


def _delay(data: dict[str, Any]) -> Timing:
    start = instant_from(data["start"], "start") if "start" in data else None
    return Delay(timedelta(seconds=data["seconds"]), start)


def _at(data: dict[str, Any]) -> Timing:
    return At(instant_from(data["instant"], "instant"))


def _rrule(data: dict[str, Any]) -> Timing:
    return RRule(data["text"], data.get("tz", "UTC"), data.get("dst", Dst.VIXIE))


def _union(data: dict[str, Any]) -> Timing:
    return Union(tuple(build(each) for each in data["of"]))


def _bounded(data: dict[str, Any]) -> Timing:
    ends = [instant_from(data[name], name) if name in data else None for name in ("start", "end")]
    return Bounded(build(data["of"]), ends[0], ends[1], data.get("limit"))


def _excluding(data: dict[str, Any]) -> Timing:
    calendar = data["calendar"]
    if isinstance(calendar, str):
        raise InvalidTiming(
            "the calendar's data is missing", field="calendar", text=calendar,
            suggestion="put it in place with with_calendars()",
        )  # fmt: skip
    return Excluding(build(data["of"]), calendar_from(calendar), data.get("then", "skip"))


BUILDERS: dict[str, Callable[[dict[str, Any]], Timing]] = {
    "cron": _cron,
    "every": _every,
    "delay": _delay,
    "at": _at,
    "rrule": _rrule,
    "union": _union,
    "bounded": _bounded,
    "excluding": _excluding,
}


def with_hash_id(data: Mapping[str, Any], hash_id: str) -> dict[str, Any]:
    """Return `data` with the schedule's id put where an `H` needs it; data without `H` is left as it is."""

    def fill(each: dict[str, Any]) -> dict[str, Any]:
        if each.get("kind") == "cron" and each.get("hash_id") is None:
            timing = timing_from(each)
            if isinstance(timing, Cron) and timing.hashed:
                return {**each, "hash_id": hash_id}
        return each

    return _mapped(data, fill)


def with_calendars(data: Mapping[str, Any], calendars: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return `data` with the data of named calendars put where only their names stand."""

    def fill(each: dict[str, Any]) -> dict[str, Any]:
        name = each.get("calendar")
        if not isinstance(name, str):
            return each
        if name not in calendars:
            known = ", ".join(sorted(calendars)) or "none yet"
            raise InvalidTiming("there is no such calendar", field="calendar", text=name,
                                suggestion=f"store it first; there are: {known}")  # fmt: skip
        return {**each, "calendar": dict(calendars[name])}

    return _mapped(data, fill)


def _mapped(data: Mapping[str, Any], fill: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    """Return `data` with `fill` applied to it and to every timing inside it."""
    each, inner = dict(data), data.get("of")
    if isinstance(inner, Mapping):
        each["of"] = _mapped(inner, fill)
    elif isinstance(inner, list | tuple):
        each["of"] = [_mapped(one, fill) for one in inner]
    return fill(each)
