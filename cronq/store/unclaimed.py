"""Which messages may be lost? Jobs that were published and that nobody claimed."""

from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import ColumnElement, Select, bindparam, func, literal_column, select, text

from cronq.store.agenda import DueJob, due_job, read_columns
from cronq.store.database import Database
from cronq.store.tables import PUBLISHED, job


def unclaimed_jobs(database: Database, *, after_s: float, limit: int) -> list[DueJob]:
    """Return jobs whose message went out long ago and that nobody claimed, oldest first.

    Long ago: `after_s`, twice that after the second publish, and so on up to 64 times.
    """
    with database.autocommit() as connection:
        return [due_job(row) for row in connection.execute(_unclaimed(database, after_s), {"limit": limit})]


@lru_cache(maxsize=8)
def _unclaimed(database: Database, after_s: float) -> Select[Any]:
    doublings = "CASE WHEN publishes > 7 THEN 6 WHEN publishes < 2 THEN 0 ELSE publishes - 1 END"
    long_ago: ColumnElement[datetime] = literal_column(database.now_sql(f"-{after_s} * (1 << ({doublings}))"))
    return (
        select(*read_columns())
        .where(text(PUBLISHED), job.c.published_at <= long_ago)
        .order_by(job.c.published_at)
        .limit(bindparam("limit"))
    )


_ON_BROKER: Final = (
    select(job.c.task, job.c.queue, func.count()).where(text(PUBLISHED)).group_by(job.c.task, job.c.queue)
)


def count_on_broker(database: Database) -> dict[tuple[str, str | None], int]:
    """Return how many messages should be on the broker by (task, queue); queue None: routed by the task."""
    with database.autocommit() as connection:
        return {(row[0], row[1]): row[2] for row in connection.execute(_ON_BROKER)}
