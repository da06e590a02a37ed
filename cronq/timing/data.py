"""Stored data becomes a timing again; equal data gives the same object, so its caches are shared."""

import json
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import lru_cache
from typing import Any

from cronq.schedule import Dst
from cronq.timing.base import EPOCH, Timing, instant_from
from cronq.timing.cron import Cron
from cronq.timing.errors import InvalidTiming
from cronq.timing.periods import At, Delay, Every


def timing_from(data: Mapping[str, Any]) -> Timing:
    """Return the timing that `data` describes, the same one for equal data; raises InvalidTiming."""
    try:
        key = json.dumps(data, sort_keys=True, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise InvalidTiming(
            f"the data is not JSON ({error})", field="timing", suggestion="store what to_data() returns"
        ) from None
    return _timing(key)


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
    except (KeyError, TypeError, ValueError, OverflowError) as error:
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


BUILDERS: dict[str, Callable[[dict[str, Any]], Timing]] = {
    "cron": _cron,
    "every": _every,
    "delay": _delay,
    "at": _at,
}


def with_hash_id(data: Mapping[str, Any], hash_id: str) -> dict[str, Any]:
    """Return `data` with the schedule's id put where an `H` needs it; data without `H` is left as it is."""
    filled = dict(data)
    for key in ("of",):
        inner = data.get(key)
        if isinstance(inner, Mapping):
            filled[key] = with_hash_id(inner, hash_id)
        elif isinstance(inner, list | tuple):
            filled[key] = [with_hash_id(each, hash_id) for each in inner]
    if data.get("kind") == "cron" and data.get("hash_id") is None:
        timing = timing_from(data)
        if isinstance(timing, Cron) and timing.hashed:
            filled["hash_id"] = hash_id
    return filled
