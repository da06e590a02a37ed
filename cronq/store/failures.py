"""Which schedules fail again and again? What the watcher of failures asks."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from sqlalchemy import RowMapping, bindparam, select

from cronq.job import State, Trigger
from cronq.store.database import Database
from cronq.store.schedules import StoredSchedule, stored
from cronq.store.tables import job, schedule

FAILED = (State.FAILED, State.TIMED_OUT)
COUNTED = (*FAILED, State.COMPLETED)
"""Ends that say whether a schedule works; a skipped or cancelled job says nothing."""


_FAILED_LATELY: Final = select(schedule).where(
    schedule.c.id.in_(
        select(job.c.schedule_id).where(job.c.dead_at >= bindparam("since"), job.c.schedule_id.is_not(None))
    ),
    schedule.c.paused_at.is_(None),
    schedule.c.retired_at.is_(None),
)


def watched_schedules(database: Database, since: datetime) -> list[StoredSchedule]:
    """Return those of the schedules to be paused after failures that had a dead letter from `since` on."""
    with database.autocommit() as connection:
        found = [stored(row) for row in connection.execute(_FAILED_LATELY, {"since": since})]
    return [each for each in found if each.definition.pause_after is not None]


def last_failures(database: Database, found: StoredSchedule, count: int) -> Sequence[RowMapping]:
    """Return the last `count` jobs of the schedule's fire times if each of them failed, the newest first.

    Those that ended before the schedule was resumed do not count. Fewer than `count`, or one that did not
    fail: empty.
    """
    query = (
        select(job.c.id, job.c.state, job.c.fire_time, job.c.error)
        .where(
            job.c.schedule_id == found.id,
            job.c.fire_time.is_not(None),
            job.c.item == "",
            job.c.trigger.in_([Trigger.SCHEDULE, Trigger.CATCH_UP]),
            job.c.state.in_(COUNTED),
        )
        .order_by(job.c.fire_time.desc())
        .limit(count)
    )
    if found.resumed_at is not None:
        query = query.where(job.c.finished_at > found.resumed_at)
    with database.autocommit() as connection:
        last = connection.execute(query).mappings().all()
    return last if len(last) == count and all(row["state"] in FAILED for row in last) else []
