"""How a user says when a task is due: `cron`, `every`, `delay`, `at`, `rrule`.

Each returns a `When`. It decorates a task, or stands as `"schedule"` in Celery's `beat_schedule`, where it
also works under Celery's own beat.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, TypeVar

from celery.schedules import BaseSchedule, schedstate

from cronq.needs import needs_from
from cronq.schedule import After, CatchUp, Dst, Join, Overlap, Schedule, schedule_id
from cronq.timing import (
    At,
    Bounded,
    Cron,
    Delay,
    Every,
    Excluding,
    RRule,
    Timing,
    duration,
    with_hash_id,
)

T = TypeVar("T")
Duration = str | int | float | timedelta
"""A length of time: `"90s"`, `"5m"`, `"1h30m"`, a number of seconds, or a timedelta."""


class When(BaseSchedule):  # type: ignore[misc]
    """A timing with its policies; call it with a task to schedule that task."""

    def __init__(self, timing: Timing, *, name: str | None = None, **policy: Any) -> None:  # noqa: ANN401
        super().__init__()
        self.timing = timing
        self.name = name
        self.policy = policy

    def __call__(self, task: T) -> T:
        """Schedule `task` (a Celery task, `shared_task` included) and return it unchanged.

        What is no task is refused when the schedules are collected: `shared_task` is not looked into before.
        """
        declared.append((self, task))
        return task

    def schedule(self, *, name: str, task: str, **given: Any) -> Schedule:  # noqa: ANN401
        """Return the value for a schedule called `name` of the task that is registered as `task`."""
        timing = with_hash_id(self.timing.to_data(), schedule_id(name))
        return Schedule(name=name, task=task, timing=timing, **{**self.policy, **given})

    def is_due(self, last_run_at: datetime) -> schedstate:
        """Answer Celery's own beat, which keeps the time itself."""
        now = datetime.now(UTC)
        due = self.timing.next(last_run_at)
        following = self.timing.next(now)
        wait = 3600.0 if following is None else (following - now).total_seconds()
        return schedstate(is_due=due is not None and due <= now, next=wait)

    def remaining_estimate(self, last_run_at: datetime) -> timedelta:
        """Answer Celery's own beat."""
        due = self.timing.next(last_run_at)
        return timedelta.max if due is None else due - datetime.now(UTC)

    def __repr__(self) -> str:
        return f"<{self.timing!r}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, When) and (self.timing, self.policy) == (other.timing, other.policy)

    def __hash__(self) -> int:
        return hash(self.timing)


declared: list[tuple[When, Any]] = []
"""What decorators declared in this process: (when, task)."""


def cron(
    *expressions: str,
    tz: str = "UTC",
    dst: Dst | str = Dst.VIXIE,
    day: Literal["or", "and"] = "or",
    name: str | None = None,
    **policy: Any,  # noqa: ANN401
) -> When:
    """Say when by one or more cron expressions, read in the time zone `tz`.

    policy, here and below: the task's `args`, `kwargs`, `queue` or `needs`, `priority`, `tenant`; what to
    do when (`overlap`, `buffer`, `catch_up`, `catch_up_window`, `max_attempts`, `pause_after`, `jitter`,
    `spread`); whom to tell of a job's end (`callback_url`); one job per item (`fan_out`), and the task to
    run when all have ended (`on_complete`); which schedules go first (`after`); and what to leave out
    (`start`, `end`, `limit`, `exclude` a `Calendar`, and `if_excluded`: skip, or the next or previous
    business day).
    """
    expression = expressions[0] if len(expressions) == 1 else expressions
    return _when(Cron(expression, tz, Dst(dst), day), name, policy)


def every(period: Duration, *, name: str | None = None, **policy: Any) -> When:  # noqa: ANN401
    """Say: at a fixed rate, counted from 1970-01-01, so that it never drifts and survives restarts."""
    return _when(Every(_duration(period)), name, policy)


def delay(period: Duration, *, name: str | None = None, **policy: Any) -> When:  # noqa: ANN401
    """Say: `period` after the end of the last job."""
    return _when(Delay(_duration(period)), name, policy)


def at(instant: datetime | str, *, name: str | None = None, **policy: Any) -> When:  # noqa: ANN401
    """Say: once, at `instant` (with an offset)."""
    return _when(At(_instant(instant)), name, policy)


def rrule(text: str, *, tz: str = "UTC", name: str | None = None, **policy: Any) -> When:  # noqa: ANN401
    """Say it as an RFC 5545 recurrence rule."""
    return _when(RRule(text, tz), name, policy)


def _when(timing: Timing, name: str | None, policy: dict[str, Any]) -> When:
    bounds = {key: policy.pop(key, None) for key in ("start", "end", "limit")}
    calendar, then = policy.pop("exclude", None), policy.pop("if_excluded", "skip")
    if calendar is not None:
        timing = Excluding(timing, calendar, then)
    if any(bound is not None for bound in bounds.values()):
        start, end = (None if bounds[key] is None else _instant(bounds[key]) for key in ("start", "end"))
        timing = Bounded(timing, start, end, bounds["limit"])
    return When(timing, name=name, **policy_of(policy))


def _instant(given: datetime | str) -> datetime:
    return datetime.fromisoformat(given) if isinstance(given, str) else given


def _duration(value: Duration) -> timedelta:
    if isinstance(value, str):
        return duration(value)
    return value if isinstance(value, timedelta) else timedelta(seconds=value)


def fan_out_of(given: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return where the items of a fan-out come from, as data that a worker reads.

    given: a list of items; a function (or "module:name") that yields them; {"function": …, "kwargs": {…}};
    or {"query": "SELECT …", "database": the name of the environment variable with its address}. An item is
    a text or a number, or {"item": …, "kwargs": {…}, "tenant": …}.
    """
    if callable(given):
        given = f"{given.__module__}:{given.__qualname__}"
    if isinstance(given, str):
        given = {"function": given}
    if isinstance(given, Mapping):
        source = dict(given)
        if set(source) == {"query", "database"} or {"function"} <= set(source) <= {"function", "kwargs"}:
            function = source.get("function", "m:f")
            if callable(function):
                function = source["function"] = f"{function.__module__}:{function.__qualname__}"
            module, colon, name = function.rpartition(":" if ":" in function else ".")
            if colon and name.isidentifier():
                return source if "query" in source else source | {"function": f"{module}:{name}"}
    elif isinstance(given, Sequence) and given:
        return {"items": list(given)}
    raise TypeError(
        f"fan_out={given!r:.200} says not where the items come from: give a list with items, a function of a "
        'module, "module:function", or {"query": …, "database": …}'
    )


def needs_text(given: Any) -> str:  # noqa: ANN401
    """Return what kind of machine a job needs, and where, as text.

    given: `"cpu"`, `"cpu@eu-west.a,eu-west+30"`, or
    `{"machine": "cpu", "places": ["eu-west.a", "eu-west"], "spill_after": "30s"}`.
    """
    if isinstance(given, Mapping) and "spill_after" in given:
        given = {**given, "spill_after": _duration(given["spill_after"]).total_seconds()}
    return str(needs_from(given))


def after_of(given: Any) -> After:  # noqa: ANN401
    """Return what a schedule comes after.

    given: a name; several names (all of them); or {"all" or "any": names, "on_failure": True}, where a failed
    job counts as well as a completed one.
    """
    wanted = given if isinstance(given, Mapping) else {"all": given}
    joins = [join for join in Join if join in wanted]
    if len(joins) == 1 and set(wanted) <= {*joins, "on_failure"}:
        named = wanted[joins[0]]
        names = (named,) if isinstance(named, str) else tuple(named)
        if names and all(isinstance(name, str) for name in names):
            return After(names, joins[0], on_failure=bool(wanted.get("on_failure", False)))
    raise TypeError(f'after={given!r:.200}: give the name of a schedule, several, or {{"any": […]}}')


_CONVERT: Mapping[str, Callable[[Any], Any]] = {
    "args": tuple,
    "kwargs": dict,
    "queue": str,
    "needs": needs_text,
    "priority": int,
    "overlap": Overlap,
    "buffer": int,
    "catch_up": CatchUp,
    "catch_up_window": _duration,
    "jitter": _duration,
    "spread": _duration,
    "max_attempts": int,
    "pause_after": int,
    "tenant": str,
    "callback_url": str,
    "fan_out": fan_out_of,
    "on_complete": lambda task: task if isinstance(task, str) else str(task.name),
    "after": after_of,
}


def policy_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a policy as a `Schedule` holds it; raise TypeError for what is none."""
    unknown = sorted(set(given) - set(_CONVERT))
    if unknown:
        known = ", ".join([*_CONVERT, "start", "end", "limit", "exclude", "if_excluded"])
        raise TypeError(f"a schedule has no {unknown[0]!r}; it has {known}")
    if given.get("queue") is not None and given.get("needs") is not None:
        raise TypeError("give queue or needs, not both: needs say which queues")
    return {name: _CONVERT[name](value) for name, value in given.items()}


def names_of(pairs: Sequence[tuple[When, str]]) -> list[str]:
    """Return a name for each (when, task name): its own, or the task's.

    Several of one task are numbered; a name that another task has already stays, to be refused.
    """
    taken: dict[str, str] = {}
    names = []
    for when, task in pairs:
        base = when.name or task
        name, number = base, 1
        while taken.get(name) == task:
            number += 1
            name = f"{base}#{number}"
        taken.setdefault(name, task)
        names.append(name)
    return names
