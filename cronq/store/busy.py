"""Which schedules have something going on? What the overlap policies ask before a job goes out."""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import bindparam, select, text, union

from cronq.job import State
from cronq.store.database import Database
from cronq.store.tables import ACTIVE_HEAD, FOR_ROOM, batch, job, schedule
from cronq.store.values import chunks

_GOING_ON: Final = (
    select(job.c.schedule_id).where(text(ACTIVE_HEAD), job.c.schedule_id.is_not(None)),
    select(job.c.schedule_id).where(text(FOR_ROOM), job.c.schedule_id.is_not(None)),
    select(batch.c.schedule_id).where(batch.c.ended_at.is_(None)),
)
_BUSY: Final = union(*_GOING_ON)
_BUSY_OF: Final = union(
    *(query.where(query.selected_columns[0].in_(bindparam("ids", expanding=True))) for query in _GOING_ON)
)


def busy_schedules(database: Database, ids: Sequence[str] | None = None) -> set[str]:
    """Return the schedules (all, or of `ids`) that have a job or a batch going on, or waiting for room."""
    with database.autocommit() as connection:
        if ids is None:
            return set(connection.execute(_BUSY).scalars())
        return {
            busy for chunk in chunks(ids) for busy in connection.execute(_BUSY_OF, {"ids": chunk}).scalars()
        }


def untouched_schedules(database: Database, ids: Sequence[str]) -> set[str]:
    """Return the schedules of those of the jobs `ids` that nobody has claimed or marked as published."""
    query = select(job.c.schedule_id).where(job.c.state == State.SCHEDULED, job.c.schedule_id.is_not(None))
    with database.autocommit() as connection:
        return {
            schedule_id
            for chunk in chunks(ids)
            for schedule_id in connection.execute(query.where(job.c.id.in_(chunk))).scalars()
        }


_DEFINITIONS: Final = select(schedule.c.id, schedule.c.definition).where(
    schedule.c.id.in_(bindparam("ids", expanding=True))
)


def buffers_of(database: Database, ids: Sequence[str]) -> dict[str, int]:
    """Return how many jobs of each of the schedules `ids` may wait for their turn."""
    if not ids:
        return {}
    with database.autocommit() as connection:
        found = connection.execute(_DEFINITIONS, {"ids": ids})
        return {row.id: int(row.definition["buffer"]) for row in found}
