"""What became of each fire time? Every one that a schedule had, or will have, gets an answer.

What is recorded comes from the job table. A fire time without a row is explained by the version of the
schedule that was in force: to come, paused, folded into a later one, left out by DST or a calendar.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Final

from sqlalchemy import ColumnElement, RowMapping, Select, UnaryExpression, select, text

from cronq.job import State, Trigger
from cronq.schedule import Reason
from cronq.store.batches import Batch, batches_by_id
from cronq.store.database import Database
from cronq.store.fire_words import BEFORE, HELD, NO_RECORD, REASONS, STATES, batch_words
from cronq.store.schedules import StoredSchedule
from cronq.store.tables import BATCH_HEAD, job, schedule_version
from cronq.timing import Delay, Timing, fires_between, omissions, timing_to_show

MICROSECOND: Final = timedelta(microseconds=1)

JOB, SKIPPED, TO_COME, UNDECIDED, NONE = "job", "skipped", "to_come", "undecided", "none"


@dataclass(frozen=True, slots=True)
class Fire:
    """One fire time and what became of it."""

    fire_time: datetime
    disposition: str  #: job, skipped, to_come, undecided (nobody has planned it yet), none (no record)
    reason: str | None = None  #: of skipped
    detail: str = ""  #: the same as a sentence
    into: datetime | None = None  #: of skipped by coalescing: the fire time that ran instead
    job: RowMapping | None = None
    batch: Batch | None = None  #: of a fan-out, as soon as it has items: `job` found them
    backfill: RowMapping | None = None  #: the newest job that made up for it

    @property
    def state(self) -> str:
        """How its batch or its job stands; without one the disposition."""
        if self.batch is not None:
            return self.batch.state
        return self.disposition if self.job is None else str(self.job["state"])


def fires(
    database: Database, stored: StoredSchedule, start: datetime, end: datetime, *, limit: int = 100
) -> tuple[list[Fire], datetime | None]:
    """Return the fire times in [start, end), oldest first, and where the next page starts (None: no more)."""
    versions = _versions(database, stored)
    expected = list(islice(_expected(versions, start, end), limit + 1))
    more = expected[limit] if len(expected) > limit else None
    in_range = job.c.fire_time >= start, job.c.fire_time < (more or end)
    rows = _rows(database, stored, *in_range, order=job.c.fire_time.asc(), count=limit + 1)
    recorded = sorted({row["fire_time"] for row in rows})
    if len(recorded) > limit:
        more = recorded[limit]
    stop = more or end
    found = _merge(
        stored,
        [row for row in rows if row["fire_time"] < stop],
        [fire_time for fire_time in expected if fire_time < stop],
        database.clock(),
    )
    for left_out in islice(_left_out(versions, start, stop), limit):
        found.setdefault(left_out.fire_time, left_out)
    return _with_batches(database, [found[fire_time] for fire_time in sorted(found)]), more


def latest_fires(database: Database, stored: StoredSchedule, count: int) -> list[Fire]:
    """Return the last `count` fire times that have passed, newest first."""
    now = database.clock()
    versions = _versions(database, stored)
    born = versions[0][0] if versions else now
    timing = stored.timing
    expected: list[datetime] = []
    fire_time = None if isinstance(timing, Delay) else timing.previous(now)
    while fire_time is not None and fire_time >= born and len(expected) < count:
        expected.append(fire_time)
        fire_time = timing.previous(fire_time)
    rows = _rows(database, stored, job.c.fire_time <= now, order=job.c.fire_time.desc(), count=count)
    found = _merge(stored, rows, expected, now)
    return _with_batches(database, [found[fire_time] for fire_time in sorted(found, reverse=True)][:count])


def next_fires(stored: StoredSchedule, now: datetime, count: int) -> list[datetime]:
    """Return the next `count` fire times, paused or not."""
    timing = stored.timing
    if stored.retired_at is not None:
        return []
    if isinstance(timing, Delay):
        return [] if stored.next_fire_at is None else [stored.next_fire_at]
    return list(fires_between(timing, now, _far(now), limit=count))


def why(database: Database, stored: StoredSchedule, at: datetime) -> list[Fire]:
    """Return what became of the fire times in the minute that starts at `at`; empty if it has none there.

    Of an `at` that names a second: in that second.
    """
    at = at.replace(microsecond=0)
    end = at + timedelta(seconds=1 if at.second else 60)
    found = fires(database, stored, at, end)[0]
    timing = stored.timing
    if found or isinstance(timing, Delay):
        return found
    return [
        Fire(each, NONE, detail=BEFORE) for each in fires_between(timing, at - MICROSECOND, end - MICROSECOND)
    ]


def around(stored: StoredSchedule, at: datetime) -> tuple[datetime | None, datetime | None]:
    """Return the fire times before and after `at`."""
    timing = stored.timing
    return timing.previous(at), timing.next(at)


def _merge(
    stored: StoredSchedule, rows: list[RowMapping], expected: list[datetime], now: datetime
) -> dict[datetime, Fire]:
    found: dict[datetime, Fire] = {}
    for row in rows:
        if row["trigger"] != Trigger.BACKFILL:
            found.setdefault(row["fire_time"], _recorded(row))
    recorded = sorted(found)
    for fire_time in expected:
        if fire_time not in found:
            found[fire_time] = _unrecorded(stored, fire_time, now, _fold_after(recorded, found, fire_time))
    for row in rows:
        if row["trigger"] == Trigger.BACKFILL:
            known = found.get(row["fire_time"], Fire(row["fire_time"], NONE, detail=BEFORE))
            found[row["fire_time"]] = replace(known, backfill=row)
    return found


def _recorded(row: RowMapping) -> Fire:
    if row["state"] == State.SKIPPED:
        return _skipped(row["fire_time"], row["reason"], row["coalesced_into"], row)
    if row["state"] == State.SCHEDULED and row["held_at"] is not None:
        return Fire(row["fire_time"], JOB, detail=HELD, job=row)
    return Fire(row["fire_time"], JOB, detail=STATES[State(row["state"])], job=row)


def _skipped(
    at: datetime, reason: str | None, into: datetime | None = None, row: RowMapping | None = None
) -> Fire:
    detail = "" if reason is None else REASONS[Reason(reason)]
    return Fire(at, SKIPPED, reason=reason, detail=detail, into=into, job=row)


def _unrecorded(  # noqa: PLR0911 - one answer each
    stored: StoredSchedule, at: datetime, now: datetime, fold: Fire | None
) -> Fire:
    if stored.paused_at is not None and at >= stored.paused_at:
        return _skipped(at, Reason.PAUSED)
    if stored.retired_at is not None and at >= stored.retired_at:
        return Fire(at, NONE, detail="the schedule is retired: nothing declares it any more")
    if stored.fault is not None:
        return Fire(at, NONE, detail=f"the schedule is set aside: {stored.fault}")
    if at > now:
        return Fire(at, TO_COME, detail="it lies ahead")
    if stored.next_fire_at is not None and at >= stored.next_fire_at:
        return Fire(at, UNDECIDED, detail="no beat has planned it yet; the next leader decides about it")
    if fold is not None:
        return _skipped(at, fold.reason, fold.into)
    return Fire(at, NONE, detail=NO_RECORD)


FOLDED: Final = (Reason.MISSED_WINDOW, Reason.COALESCED, Reason.LIMIT_REACHED, Reason.PAUSED)
"""Reasons of which one record may stand for a whole stretch of fire times."""


def _fold_after(following: list[datetime], found: dict[datetime, Fire], at: datetime) -> Fire | None:
    """Return the record of a stretch of skipped fire times that `at` belongs to: the next one recorded."""
    later = next((moment for moment in following if moment > at), None)
    if later is None or found[later].reason not in FOLDED:
        return None
    return found[later]


def _with_batches(database: Database, found: list[Fire]) -> list[Fire]:
    """Let those whose job finds a fan-out's items say how all the items stand."""
    heads = {each.job["id"] for each in found if each.job is not None and each.job["batch_id"] is not None}
    batches = batches_by_id(database, heads) if heads else {}
    return [_of_batch(each, batches.get(each.job["id"]) if each.job is not None else None) for each in found]


def _of_batch(fire: Fire, batch: Batch | None) -> Fire:
    if batch is None or not batch.started or fire.disposition != JOB:
        return fire
    return replace(fire, batch=batch, detail=batch_words(batch))


Version = tuple[datetime, datetime | None, Timing]


def _versions(database: Database, stored: StoredSchedule) -> list[Version]:
    """Return (from, to, timing) of each version; the last one has no end."""
    query = (
        select(schedule_version.c.at, schedule_version.c.definition)
        .where(schedule_version.c.schedule_id == stored.id)
        .order_by(schedule_version.c.version)
    )
    with database.autocommit() as connection:
        rows = list(connection.execute(query))
    starts = [row.at for row in rows]
    timings = [timing_to_show(_timing_in(row.definition)) for row in rows]
    return list(zip(starts, [*starts[1:], None], timings, strict=True))


def _timing_in(definition: Any) -> Any:  # noqa: ANN401 - any JSON may stand there
    return definition.get("timing") if isinstance(definition, dict) else None


def _expected(versions: list[Version], start: datetime, end: datetime) -> Iterator[datetime]:
    for since, until, timing in versions:
        if not isinstance(timing, Delay):
            before = end if until is None else min(end, until)
            yield from fires_between(timing, max(start, since) - MICROSECOND, before - MICROSECOND)


def _left_out(versions: list[Version], start: datetime, end: datetime) -> Iterator[Fire]:
    for since, until, timing in versions:
        before = end if until is None else min(end, until)
        for omission in omissions(timing, max(start, since) - MICROSECOND, before - MICROSECOND):
            detail = REASONS[omission.reason] + (f" ({omission.detail})" if omission.detail else "")
            yield Fire(omission.fire_time, SKIPPED, omission.reason, detail, omission.into)


def _rows(
    database: Database,
    stored: StoredSchedule,
    *which: ColumnElement[bool],
    order: UnaryExpression[datetime],
    count: int,
) -> list[RowMapping]:
    """Return the rows of the first `count` fire times; backfills may have given one of them several."""
    query = jobs_of(stored).where(*which)
    times = query.with_only_columns(job.c.fire_time).distinct().order_by(order).limit(count)
    with database.autocommit() as connection:
        found = connection.execute(times).scalars().all()
        if not found:
            return []
        query = query.where(job.c.fire_time.between(min(found), max(found))).order_by(order)
        return list(connection.execute(query).mappings())


def jobs_of(stored: StoredSchedule) -> Select[Any]:
    """Select a schedule's jobs: of a fan-out those that find its items, which are one per fire time."""
    query = select(job).where(job.c.schedule_id == stored.id)
    return query if stored.definition.fan_out is None else query.where(text(BATCH_HEAD))


def _far(now: datetime) -> datetime:
    return now + timedelta(days=366 * 30)
