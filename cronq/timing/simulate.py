"""What would become of a schedule's fire times, with outages and clock jumps: no I/O, no waiting.

The same decisions as in production (`catch_up`, `jitter`), on a clock that the caller makes up. Fires are
decided as they come due while a leader is up; when one comes back, or its clock jumps forwards, what passed
is caught up; when it jumps back, nothing is decided twice, because the cursor never goes back.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from cronq.schedule import Reason, Schedule
from cronq.timing.base import Timing, fires_between, omissions, require_aware
from cronq.timing.bounds import after_end
from cronq.timing.catch_up import catch_up
from cronq.timing.data import timing_from, with_hash_id
from cronq.timing.errors import InvalidTiming
from cronq.timing.jitter import jitter

LISTED = 10_000
Span = tuple[datetime, datetime]
Step = tuple[datetime, timedelta]


@dataclass(frozen=True, slots=True)
class Disposition:
    """What became of one fire time: a job that is due at `due_at`, or nothing for a reason.

    `decided_at` is the true instant of the decision; `into` is the fire time that it was coalesced into or
    moved to; `detail` is the calendar or zone that left it out.
    """

    fire_time: datetime
    decided_at: datetime
    due_at: datetime | None = None
    reason: Reason | None = None
    into: datetime | None = None
    detail: str | None = None

    @property
    def runs(self) -> bool:
        """Whether it became a job."""
        return self.reason is None


def simulate(
    schedule: Schedule,
    start: datetime,
    end: datetime,
    *,
    outages: Iterable[Span] = (),
    clock_steps: Iterable[Step] = (),
) -> list[Disposition]:
    """Return the disposition of every fire time in (start, end], oldest first.

    outages: (from, to) pairs in which no leader is up. clock_steps: (instant, by) pairs: at that true instant
    the leader's clock jumps by that much, for good. All instants are aware. Raises InvalidTiming for a fixed
    delay, whose fire times depend on how long its jobs take.
    """
    timing = timing_from(with_hash_id(schedule.timing, schedule.id))
    if after_end(timing, start) is not None:
        raise InvalidTiming(
            "a fixed delay has no fire times of its own", field="timing", suggestion="simulate an interval"
        )
    start, end = require_aware(start, "start"), require_aware(end, "end")
    found: dict[datetime, Disposition] = {}
    cursor, shown = start, timedelta(0)
    for begin, finish, ahead in _up_times(start, end, list(outages), sorted(clock_steps)):
        resumed = begin + ahead
        if begin > start or ahead != shown:
            cursor = _catch_up(schedule, timing, (cursor, resumed), begin, found)
        for fire in fires_between(timing, cursor, finish + ahead):
            found[fire] = Disposition(fire, fire - ahead, _due(schedule, timing, fire))
            cursor = fire
        cursor, shown = max(cursor, finish + ahead), ahead
    for each in omissions(timing, start, min(end, max(cursor, start))):
        found.setdefault(
            each.fire_time,
            Disposition(each.fire_time, each.fire_time, None, each.reason, each.into, each.detail),
        )
    return [found[fire] for fire in sorted(found) if start < fire <= end]


def _catch_up(
    schedule: Schedule,
    timing: Timing,
    missed: Span,
    at: datetime,
    found: dict[datetime, Disposition],
) -> datetime:
    """Decide at the true instant `at` about the fire times in `missed`; return the cursor after it."""
    cursor, now = missed
    if now <= cursor:
        return cursor
    result = catch_up(timing, cursor, now, schedule.catch_up, schedule.catch_up_window, LISTED)
    for fold in result.folds:
        for fire in [fold.first, *fires_between(timing, fold.first, fold.last)]:
            found[fire] = Disposition(fire, at, None, fold.reason, fold.into)
    for each in result.decisions:
        due = max(_due(schedule, timing, each.fire_time), at) if each.runs else None
        found[each.fire_time] = Disposition(each.fire_time, at, due, each.reason, each.into)
    return now


def _due(schedule: Schedule, timing: Timing, fire: datetime) -> datetime:
    if not schedule.jitter:
        return fire
    return fire + jitter(schedule.id, fire, schedule.jitter, timing.next(fire))


def _up_times(
    start: datetime, end: datetime, outages: list[Span], steps: list[Step]
) -> Iterator[tuple[datetime, datetime, timedelta]]:
    """Yield (from, to, how far the clock is ahead) for each stretch in which a leader is up."""
    edges = {start, end}
    for instant in [*(edge for outage in outages for edge in outage), *(instant for instant, _ in steps)]:
        if start < require_aware(instant, "outages") < end:
            edges.add(instant)
    ordered = sorted(edges)
    for begin, finish in pairwise(ordered):
        if any(down <= begin < up for down, up in outages):
            continue
        ahead = sum((by for instant, by in steps if instant <= begin), timedelta(0))
        yield begin, finish, ahead
