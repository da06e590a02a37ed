"""A schedule that somebody sends, as cronq holds it; refused with a sentence if it could never run."""

from typing import Any, Final

from cronq.api.asked import ScheduleIn
from cronq.api.problems import Problem
from cronq.app import Cronq
from cronq.beat.dependencies import never_runs
from cronq.declaration import When, at, cron, delay, every, rrule
from cronq.errors import UnknownSchedule
from cronq.schedule import Schedule
from cronq.store.database import Database
from cronq.store.jobs import check_payload
from cronq.store.schedules import check_schedule, get_schedule
from cronq.webhooks.address import check_callback
from cronq.worker.expansion import BadItem, find_items

NO_POLICY: Final = frozenset({"task", "cron", "every", "delay", "at", "rrule", "tz", "dst", "args", "kwargs"})
"""What of a `ScheduleIn` says what runs and when; the rest goes to `cronq.declaration` as it is."""


def declared(parts: Cronq, name: str, wanted: ScheduleIn) -> Schedule:
    """Return `wanted` as the schedule `name`; raise a problem, or `JobRefused`, that says what is wrong."""
    items = wanted.model_dump(exclude_none=True).get("fan_out", [])
    check_payload([*wanted.args, items], wanted.kwargs, parts.settings.max_payload_bytes)
    try:
        schedule = _when(wanted).schedule(name=name, task=wanted.task)
        told = [item.callback_url for item in find_items({"items": items}, parts.settings.max_payload_bytes)]
    except (TypeError, OverflowError, BadItem) as error:
        raise Problem(422, "invalid-schedule", str(error)) from error
    for url in {wanted.callback_url, *told} - {None}:
        check_callback(str(url), parts.settings)
    check_schedule(schedule)
    if (why := never_runs(schedule, _before(parts.database, schedule))) is not None:
        raise Problem(422, "invalid-schedule", why)
    return schedule


def _before(database: Database, schedule: Schedule) -> dict[str, Schedule]:
    """Return the stored schedules that have to go before `schedule`, and those before them, by name."""
    found: dict[str, Schedule] = {}
    names = set() if schedule.after is None else set(schedule.after.schedules)
    while names:
        name = names.pop()
        if name in found or name == schedule.name:
            continue
        try:
            stored = get_schedule(database, name)
        except UnknownSchedule:
            continue
        if stored.retired_at is None:
            found[name] = stored.definition
            names |= set(() if stored.definition.after is None else stored.definition.after.schedules)
    return found


def _when(wanted: ScheduleIn) -> When:
    policy = wanted.model_dump(exclude=set(NO_POLICY), exclude_none=True)
    policy |= {"args": wanted.args, "kwargs": wanted.kwargs}
    tz: dict[str, Any] = {} if wanted.tz is None else {"tz": wanted.tz}
    if wanted.cron is not None:
        expressions = [wanted.cron] if isinstance(wanted.cron, str) else wanted.cron
        dst: dict[str, Any] = {} if wanted.dst is None else {"dst": wanted.dst}
        return cron(*expressions, **tz, **dst, **policy)
    if wanted.every is not None:
        return every(wanted.every, **policy)
    if wanted.delay is not None:
        return delay(wanted.delay, **policy)
    if wanted.at is not None:
        return at(wanted.at, **policy)
    assert wanted.rrule is not None
    return rrule(wanted.rrule, **tz, **policy)
