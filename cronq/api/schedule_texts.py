"""A schedule as the texts of a form, and such texts as what the API asks for: on the way nothing is lost.

A text that nobody touched is not read again: it stands for what is stored.
"""

import json
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from cronq.api.asked import ScheduleIn
from cronq.errors import ScheduleRefused
from cronq.schedule import Dst, Schedule
from cronq.store.definitions import DURATIONS, to_data
from cronq.telemetry.masking import with_secrets, without_secrets
from cronq.timing import InvalidTiming, duration
from cronq.timing.durations import in_words
from cronq.timing.moments import moment_on
from cronq.timing.zones import zone
from cronq.views import to_json

KINDS: Final = ("cron", "every", "delay", "at", "rrule")
ARGUMENTS: Final[dict[str, tuple[type, str]]] = {
    "args": (list, '["eu", 7]'),
    "kwargs": (dict, '{"region": "eu"}'),
}
POLICY: Final = (
    "overlap",
    "buffer",
    "catch_up",
    "catch_up_window",
    "jitter",
    "spread",
    "max_attempts",
    "pause_after",
    "priority",
    "queue",
    "needs",
    "tenant",
    "callback_url",
)
ONE_LINE: Final = 60
FIELDS: Final = ("task", "kind", "tz", "when", *ARGUMENTS, *POLICY, "dst")
KEPT: Final = tuple(name for name in ScheduleIn.model_fields if name not in {*FIELDS, *KINDS})
"""What the form does not show, whatever the API comes to take."""
_TIMINGS: Final = {
    "cron": {"expression", "tz", "dst", "hash_id"},
    "every": {"seconds"},
    "delay": {"seconds"},
    "at": {"instant"},
    "rrule": {"text", "tz", "dst"},
}
"""Which data of a timing the form can hold; a calendar, for one, it cannot."""


def asked_of(definition: Schedule) -> dict[str, Any]:
    """Return what the API would be asked for to have `definition`; ScheduleRefused: no request can."""
    data, timing = to_data(definition), definition.timing
    kind, dst = timing.get("kind"), timing.get("dst", Dst.VIXIE)
    known = {"kind", *_TIMINGS.get(str(kind), ())}
    if not (kind in KINDS and timing.keys() <= known) or (kind == "rrule" and dst != Dst.VIXIE):
        raise _refused(definition, f"its timing ({kind}) is more than this form can hold")
    if definition.fan_out is not None and "items" not in definition.fan_out:
        raise _refused(definition, "its items come from a function or a query, which only code may name")
    when = next(timing[name] for name in ("expression", "seconds", "instant", "text") if name in timing)
    after = definition.after
    asked = {name: data[name] for name in ("task", *ARGUMENTS, *POLICY, *KEPT)} | {
        kind: when,
        "tz": None if timing.get("tz") == "UTC" else timing.get("tz"),
        "dst": None if dst == Dst.VIXIE else dst,
        "fan_out": definition.fan_out and definition.fan_out["items"],
        "after": after and {after.join: list(after.schedules), "on_failure": after.on_failure},
    }
    return {name: value for name, value in asked.items() if value is not None}


def texts_of(definition: Schedule) -> dict[str, str]:
    """Return what stands in the form's fields for `definition`; no secret passes."""
    asked = without_secrets(asked_of(definition))
    kind = next(each for each in KINDS if each in asked)
    when = asked[kind]
    if kind in ("every", "delay"):
        when = _words(when)
    texts = {name: str(asked.get(name, "")) for name in FIELDS}
    texts |= {"kind": kind, "when": "\n".join(when) if isinstance(when, list) else when}
    texts |= {name: _json(asked[name]) if asked[name] else "" for name in ARGUMENTS}
    return texts | {name: _words(asked[name]) if asked[name] else "" for name in DURATIONS}


def read(
    given: Mapping[str, str], before: Schedule | None, now: datetime
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return what a form asks the API for that changes `before`, and what is wrong with which field."""
    known: dict[str, Any] = {} if before is None else asked_of(before)
    shown: dict[str, str] = {} if before is None else texts_of(before)
    typed = {name: plain(given.get(name, "")) for name in FIELDS}
    same = {name for name in shown if typed[name] == plain(shown[name])}
    asked = {name: known[name] for name in (*KEPT, *same) if name in known}
    wrong: dict[str, str] = {}
    for name in FIELDS:
        if name in same or name in ("kind", "when") or not typed[name]:
            continue
        try:
            asked[name] = _READ.get(name, _as_typed)(typed[name], known.get(name))
        except InvalidTiming as error:
            wrong[name] = said(error)
        except (ValueError, RecursionError) as error:
            wrong[name] = str(error)
    if {"kind", "when"} <= same:
        asked[typed["kind"]] = known[typed["kind"]]
    else:
        wrong |= _read_timing(typed, asked, now)
    if typed["kind"] == "at":
        asked.pop("tz", None)  # it has said on whose clocks the instant is
    return asked, wrong


def said(error: InvalidTiming) -> str:
    """Return what is wrong with one part of a timing, and what to write instead."""
    at = "" if error.position is None else f" (character {error.position})"
    return f"{error.problem}{at}; {error.suggestion}"


def _read_timing(typed: Mapping[str, str], asked: dict[str, Any], now: datetime) -> dict[str, str]:
    """Put into `asked` when it is due; return what is wrong with it."""
    kind, when = typed["kind"], typed["when"]
    if kind not in KINDS:
        return {"kind": f"say one of {', '.join(KINDS)}"}
    if not when:
        return {"when": "say when"}
    asked[kind] = when
    if kind == "cron":
        asked[kind] = [line.strip() for line in when.split("\n") if line.strip()]
    if kind == "at":
        try:
            asked[kind] = moment_on(zone(asked.get("tz", "UTC")).info, when, now)
        except InvalidTiming as error:
            return {"tz" if error.field == "tz" else "when": said(error)}
    return {}


def _read_json(name: str) -> Callable[[str, Any], Any]:
    kind, example = ARGUMENTS[name]

    def read_it(text: str, known: Any) -> Any:  # noqa: ANN401 - any JSON
        try:
            found = json.loads(text, parse_constant=_no_number)
        except json.JSONDecodeError as error:
            where = f"line {error.lineno}, character {error.colno}"
            raise ValueError(f"this is no JSON ({error.msg}: {where}); write it like {example}") from None
        if not isinstance(found, kind):
            what = "a list" if kind is list else "an object"
            raise ValueError(f"this is not {what}; write it like {example}")  # noqa: TRY004 - said in the form
        return with_secrets(found, known)

    return read_it


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no number in JSON; write null, or a text")


def _read_duration(text: str, _known: object) -> str:
    duration(text)
    return text


def _as_typed(text: str, _known: object) -> str:
    return text


_READ: Final[dict[str, Callable[[str, Any], Any]]] = {
    **{name: _read_json(name) for name in ARGUMENTS},
    **dict.fromkeys(DURATIONS, _read_duration),
    "callback_url": with_secrets,
}


def plain(text: str) -> str:
    """Return a text as it is compared: browsers send lines with other ends than they were given."""
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()


def _words(seconds: float) -> str:
    return in_words(timedelta(seconds=seconds))


def _json(value: object) -> str:
    line = to_json(value)
    return line if len(line) <= ONE_LINE else to_json(value, indent=2)


def _refused(definition: Schedule, why: str) -> ScheduleRefused:
    return ScheduleRefused(
        f"schedule {definition.name!r} cannot be changed on this form: {why}; change it where it was written"
    )
