"""Which planned fire times did an outage overtake? They are taken back, and planned anew."""

from datetime import datetime
from typing import Final

from sqlalchemy import ColumnElement, Connection, bindparam, delete, func, or_, select, text, update

from cronq.job import Trigger
from cronq.schedule import CatchUp, Overlap
from cronq.store.busy import GOING_ON
from cronq.store.tables import FOREIGN, WAITING, job, schedule
from cronq.store.values import chunks

# What waits for an earlier job of its schedule is late for that reason, and not taken back.
_NOT_HELD: Final[ColumnElement[bool]] = or_(
    job.c.overlap.in_([Overlap.SKIP, Overlap.ALLOW]), job.c.schedule_id.not_in(GOING_ON)
)
_OVERDUE: Final = (
    text(WAITING),
    text(f"NOT ({FOREIGN})"),
    job.c.trigger == Trigger.SCHEDULE,
    job.c.due_at < bindparam("before"),
    job.c.fire_time < bindparam("before"),
    _NOT_HELD,
)
_LATE: Final = (
    select(job.c.schedule_id, func.min(job.c.fire_time), func.count())
    .where(*_OVERDUE)
    .group_by(job.c.schedule_id)
)
_SCHEDULES: Final = select(
    schedule.c.id, schedule.c.next_fire_at, schedule.c.definition["catch_up"].as_string()
).where(
    schedule.c.id.in_(bindparam("ids", expanding=True)),
    schedule.c.paused_at.is_(None),
    schedule.c.retired_at.is_(None),
    schedule.c.fault.is_(None),
)
_DELETE: Final = delete(job).where(*_OVERDUE, job.c.schedule_id.in_(bindparam("ids", expanding=True)))
_REWIND: Final = (
    update(schedule)
    .where(schedule.c.id == bindparam("_id"))
    .values(next_fire_at=bindparam("_first"), updated_at=bindparam("_now"))
)


def take_back_overdue(connection: Connection, *, before: datetime, now: datetime) -> list[str]:
    """Delete jobs that were due `before` then and were not sent; planning starts again at the first of them.

    Only of schedules about which the catch-up policy has something to decide; return these.
    """
    late = {row[0]: (row[1], row[2]) for row in connection.execute(_LATE, {"before": before})}
    taken: list[str] = []
    for part in chunks(list(late)):
        ids = [
            schedule_id
            for schedule_id, following, catch_up in connection.execute(_SCHEDULES, {"ids": part})
            # One late fire time simply runs, as the policies would have it, unless there are later ones.
            if late[schedule_id][1] > 1 or (following and following < before) or catch_up == CatchUp.SKIP
        ]
        if ids:
            connection.execute(_DELETE, {"before": before, "ids": ids})
            connection.execute(_REWIND, [{"_id": i, "_first": late[i][0], "_now": now} for i in ids])
            taken += ids
    return taken
