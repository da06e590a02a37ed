"""A schedule's declaration as data: how it is written down, and read again, whoever wrote it."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, fields
from datetime import timedelta
from types import UnionType
from typing import Any, Final, get_args, get_origin

from cronq.schedule import After, CatchUp, Join, Overlap, Schedule

DURATIONS: Final = ("catch_up_window", "jitter", "spread")
NO_TIMING: Final = {"kind": "unreadable"}
"""Stands for the timing of a definition that cannot be read: no timing is of this kind."""


def to_data(declared: Schedule) -> dict[str, Any]:
    """Return `declared` as JSON-able data; durations in seconds."""
    data = asdict(declared)
    data["args"] = list(declared.args)
    for name in DURATIONS:
        data[name] = data[name].total_seconds()
    return data


def from_data(data: Mapping[str, Any]) -> Schedule:
    """Return the schedule that `to_data` wrote, also if an older or a newer version of cronq did.

    Raises any exception if the data is none that this version can read; its timing is not looked into.
    """
    return Schedule(**{name: _read(name, data[name]) for name in _KINDS.keys() & data.keys()})


def readable_part(data: object, *, name: str, task: str) -> Schedule:
    """Return what can be read of a definition that `from_data` refuses, to show it: never to act on."""
    found: dict[str, Any] = {}
    if isinstance(data, dict):
        for part in _KINDS.keys() & data.keys():
            with suppress(Exception):
                found[part] = _read(part, data[part])
    return Schedule(**{**found, "name": name, "task": task, "timing": NO_TIMING})


def _read(name: str, data: Any) -> Any:  # noqa: ANN401 - any JSON value
    value = _READ.get(name, _same)(data)
    if not isinstance(value, _KINDS[name]):
        raise TypeError(f"its {name} is {data!r}")
    return value


def _after(data: dict[str, Any] | None) -> After | None:
    if data is None:
        return None
    return After(tuple(data["schedules"]), Join(data["join"]), on_failure=data["on_failure"])


def _same(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    return value


def _kinds(declared: Any) -> tuple[type, ...]:  # noqa: ANN401 - any annotation
    each = get_args(declared) if isinstance(declared, UnionType) else (declared,)
    return tuple(get_origin(kind) or kind for kind in each)


_KINDS: Final = {each.name: _kinds(each.type) for each in fields(Schedule)}
_READ: Final[dict[str, Callable[[Any], Any]]] = {
    "args": tuple,
    "overlap": Overlap,
    "catch_up": CatchUp,
    "after": _after,
    **dict.fromkeys(DURATIONS, lambda seconds: timedelta(seconds=seconds)),
}
