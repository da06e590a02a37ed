"""Which schedules have something going on? What the overlap policies ask before a job goes out."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import CompoundSelect, Select, select, text, union

from cronq.store.database import Database
from cronq.store.definitions import readable_part
from cronq.store.tables import ACTIVE_HEAD, FOR_ROOM, batch, job, schedule

_GOING_ON: Final = (
    select(job.c.schedule_id).where(text(ACTIVE_HEAD), job.c.schedule_id.is_not(None)),
    select(job.c.schedule_id).where(text(FOR_ROOM), job.c.schedule_id.is_not(None)),
    select(batch.c.schedule_id).where(batch.c.ended_at.is_(None)),
)
GOING_ON: Final = union(*_GOING_ON)
"""The schedules that have a job or a batch going on, or waiting for room."""
# || '': by the ids, not by an index on the state that PostgreSQL thinks few rows have.
_UNTOUCHED: Final = select(job.c.schedule_id).where(
    text("state || '' = 'SCHEDULED'"), job.c.schedule_id.is_not(None)
)


@lru_cache(maxsize=8)
def _busy_of(database: Database) -> CompoundSelect[Any]:
    among = database.among
    return union(*(query.where(among(query.selected_columns[0], "ids")) for query in _GOING_ON))


def busy_schedules(database: Database, ids: Sequence[str] | None = None) -> set[str]:
    """Return the schedules (all, or of `ids`) that have a job or a batch going on, or waiting for room."""
    with database.autocommit() as connection:
        if ids is None:
            return set(connection.execute(GOING_ON).scalars())
        return set(connection.execute(_busy_of(database), {"ids": list(ids)}).scalars())


@lru_cache(maxsize=8)
def _untouched(database: Database) -> Select[Any]:
    return _UNTOUCHED.where(database.among(job.c.id, "ids"))


def untouched_schedules(database: Database, ids: Sequence[str]) -> set[str]:
    """Return the schedules of those of the jobs `ids` that nobody has claimed or marked as published."""
    with database.autocommit() as connection:
        return set(connection.execute(_untouched(database), {"ids": list(ids)}).scalars())


@lru_cache(maxsize=8)
def _definitions(database: Database) -> Select[Any]:
    return select(schedule.c.id, schedule.c.definition).where(database.among(schedule.c.id, "ids"))


def buffers_of(database: Database, ids: Sequence[str]) -> dict[str, int]:
    """Return how many jobs of each of the schedules `ids` may wait for their turn."""
    if not ids:
        return {}
    with database.autocommit() as connection:
        found = connection.execute(_definitions(database), {"ids": list(ids)})
        return {row.id: readable_part(row.definition, name="", task="").buffer for row in found}
