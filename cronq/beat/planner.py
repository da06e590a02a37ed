"""Which jobs follow from a schedule that is due? Pure: a stored schedule and two instants in, rows out."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

from cronq.job import State, Trigger
from cronq.schedule import CatchUp, Overlap, Reason
from cronq.store.agenda import DueJob
from cronq.store.scheduled import job_of
from cronq.store.schedules import StoredSchedule
from cronq.timing import CaughtUp, Decision, Delay, Timing, catch_up, group_offset, jitter, timing_from
from cronq.timing.base import MICROSECOND, omissions

FAN_OUT_AHEAD: Final = timedelta(seconds=15)
"""How long before its fire time the items of a fan-out begin to be found, and its overlap is decided."""
LATE_AFTER: Final = timedelta(seconds=10)
"""How late a fire time may be planned before the catch-up policy decides: a hand-over is no outage."""


@dataclass(slots=True)
class Plan:
    """What one schedule contributes to one planning transaction."""

    jobs: list[DueJob] = field(default_factory=list)
    next_fire_at: datetime | None = None


def plan(
    stored: StoredSchedule,
    *,
    now: datetime,
    until: datetime,
    limit: int,
    spread: "CatchUpSpread",
    most: int | None = None,
) -> Plan:
    """Decide about every fire time of `stored` from its cursor up to `until`.

    until: a little ahead of `now`. limit: how many missed fire times are decided one by one. most: how many
    of the others are, if not all; the cursor then stands before `until`.
    """
    timing = timing_from(stored.definition.timing)
    result = Plan()
    fire = stored.next_fire_at
    if fire is not None and fire < now - LATE_AFTER:
        fire = _catch_up(result, stored, timing, fire, now=now, limit=limit, spread=spread)
    while fire is not None and fire <= until and (most is None or len(result.jobs) < most):
        following = timing.next(fire)
        result.jobs.append(_job(stored, fire, due_at=_due(stored, fire, following)))
        fire = following
    result.next_fire_at = fire
    _note_omissions(result, stored, timing, limit)
    return result


def _due(stored: StoredSchedule, fire: datetime, following: datetime | None) -> datetime:
    """Return when the job of one fire time is due; the one that finds a fan-out's items a little ahead."""
    if stored.definition.fan_out is None:
        return fire + _delay(stored, fire, following)
    gap = FAN_OUT_AHEAD if following is None else (following - fire) / 10
    return fire - min(FAN_OUT_AHEAD, gap)


def _delay(stored: StoredSchedule, fire: datetime, following: datetime | None) -> timedelta:
    """Return spread and jitter of one fire time, together below the gap to the next one."""
    declared = stored.definition
    spread = declared.spread if following is None else min(declared.spread, following - fire)
    offset = group_offset(stored.id, spread)
    left = None if following is None else following - offset
    return offset + jitter(stored.id, fire, declared.jitter, left)


class CatchUpSpread:
    """Gives caught-up jobs due times at most `per_second` apart, so that they do not come all at once."""

    def __init__(self, per_second: float) -> None:
        self._gap = timedelta(seconds=1 / per_second)
        self._last: datetime | None = None

    def next_due(self, now: datetime) -> datetime:
        """Return the next free due time from `now` on."""
        self._last = now if self._last is None else max(now, self._last + self._gap)
        return self._last


def _note_omissions(result: Plan, stored: StoredSchedule, timing: Timing, limit: int) -> None:
    """Give every fire time that the timing itself leaves out (a calendar, a DST change) its disposition."""
    if stored.next_fire_at is None or result.next_fire_at is None:
        return
    for omission in islice(omissions(timing, stored.next_fire_at, result.next_fire_at), limit):
        left_out = Decision(omission.fire_time, runs=False, reason=omission.reason, into=omission.into)
        result.jobs.append(_skipped(stored, left_out, Trigger.SCHEDULE))


def _catch_up(
    result: Plan,
    stored: StoredSchedule,
    timing: Timing,
    first: datetime,
    *,
    now: datetime,
    limit: int,
    spread: CatchUpSpread,
) -> datetime | None:
    declared = stored.definition
    if isinstance(timing, Delay):
        # One fire time at a time, and it has no successor until it has run: it is late, never missed.
        result.jobs.append(_job(stored, first, due_at=now, trigger=Trigger.CATCH_UP))
        return None
    caught = catch_up(
        timing,
        first - MICROSECOND,
        now,
        declared.catch_up,
        declared.catch_up_window,
        limit,
        grace=LATE_AFTER,
    )
    for decision in _dispositions(caught):
        if decision.runs:
            late = decision.fire_time < now - LATE_AFTER
            trigger = Trigger.CATCH_UP if late else Trigger.SCHEDULE
            due_at = spread.next_due(now) if late else decision.fire_time
            result.jobs.append(_job(stored, decision.fire_time, due_at=due_at, trigger=trigger))
        else:
            result.jobs.append(_skipped(stored, decision, Trigger.CATCH_UP))
    return timing.next(now)


def _dispositions(caught: CaughtUp) -> list[Decision]:
    # A fold stands for a whole stretch of old fire times; its row is kept at the stretch's last one.
    folds = [Decision(fold.last, runs=False, reason=fold.reason, into=fold.into) for fold in caught.folds]
    return [*folds, *caught.decisions]


def _skipped(stored: StoredSchedule, decision: Decision, trigger: Trigger) -> DueJob:
    job = _job(stored, decision.fire_time, due_at=decision.fire_time, trigger=trigger)
    job.state, job.reason, job.coalesced_into = State.SKIPPED, decision.reason, decision.into
    job.held_at = None
    assert isinstance(decision.reason, Reason)
    return job


def _job(
    stored: StoredSchedule, fire_time: datetime, *, due_at: datetime, trigger: Trigger = Trigger.SCHEDULE
) -> DueJob:
    declared, planned = stored.definition, job_of(stored, fire_time, due_at=due_at, trigger=trigger)
    if trigger is Trigger.CATCH_UP and declared.catch_up is CatchUp.ALL and declared.overlap is Overlap.SKIP:
        # "All of them run" would mean nothing if the first one made the others skip.
        planned.overlap = Overlap.QUEUE
    if declared.timing.get("kind") == "delay":
        # It never overlaps itself; and the leader has to hear of its end.
        planned.overlap = Overlap.QUEUE_ONE
    planned.awaited = declared.followed or planned.overlap not in (Overlap.ALLOW, Overlap.SKIP)
    if declared.after is not None:
        planned.held_at = fire_time
    return planned
