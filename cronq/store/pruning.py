"""Which jobs does nobody need any longer? Deletes them, with their attempts."""

from datetime import timedelta
from functools import cache
from typing import Final

from sqlalchemy import ColumnElement, Select, and_, bindparam, delete, or_, select, text

from cronq.job import ACTIVE, State
from cronq.store.database import Database
from cronq.store.tables import AT_REST, AWAITING, UNFINISHED_ITEM, backfill, batch, job

GOING_ON: Final = (State.SCHEDULED, *ACTIVE)
WEBHOOK_TAKES: Final = timedelta(days=2)
"""How long a receiver may be away and still be told how a job ended."""
# Not parameters: SQLite plans a statement anew whenever one may be what a partial index is about.
_COMPLETED: Final = text("state = 'COMPLETED'")
_BACKFILL: Final = text("trigger = 'backfill'")


def prune_jobs(database: Database, *, older_than_s: float, limit: int) -> int:
    """Delete up to `limit` jobs that ended more than `older_than_s` seconds ago; return how many there were.

    Dead letters stay, and so does what something else goes by: the last completed job of each schedule, the
    items of a batch that is not over, what a waiting job or a running backfill looks for.
    """
    with database.begin() as connection:
        before = database.clock_in(connection) - timedelta(seconds=older_than_s)
        when = {"before": before, "long_before": before - WEBHOOK_TAKES, "limit": limit}
        ids = list(connection.execute(_candidates(), when).scalars())
        if ids:
            connection.execute(delete(batch).where(batch.c.id.in_(ids)))
            connection.execute(delete(job).where(job.c.id.in_(ids), _OVER), {"before": before})
    return len(ids)


_OVER: Final = and_(
    text(AT_REST),
    job.c.state.not_in(GOING_ON),  # not `in_(ENDS)`: SQLite would take an index by state for it
    job.c.updated_at < bindparam("before"),
    job.c.dead_at.is_(None),
    job.c.copied_at.is_(None),
)


@cache
def _candidates() -> Select[str]:
    told = or_(job.c.callback_url.is_(None), job.c.updated_at < bindparam("long_before"))
    return (
        select(job.c.id)
        .where(_OVER, told, ~_of_a_batch_in_use(), ~_last_completed(), ~_looked_for())
        .order_by(job.c.updated_at)
        .limit(bindparam("limit"))
    )


def _of_a_batch_in_use() -> ColumnElement[bool]:
    """Match what a batch needs that is not over, or not for long; and what found items that are left."""
    item = job.alias()
    in_use = batch.c.ended_at.is_(None) | (batch.c.ended_at >= bindparam("before"))
    left = (
        select(item.c.id)
        .where(item.c.batch_id == job.c.id, item.c.id != job.c.id, text(UNFINISHED_ITEM))
        .exists()
    )
    return and_(
        job.c.batch_id.is_not(None),
        or_(
            select(batch.c.id).where(batch.c.id == job.c.batch_id, in_use).exists(),
            and_(job.c.batch_id == job.c.id, left),
        ),
    )


def _last_completed() -> ColumnElement[bool]:
    """Match the last one of its schedule: failures in a row are counted from there."""
    later = job.alias()
    return and_(
        _COMPLETED,
        job.c.fire_time.is_not(None),
        job.c.item == "",
        ~select(later.c.id)
        .where(
            later.c.schedule_id == job.c.schedule_id,
            later.c.fire_time > job.c.fire_time,
            later.c.item == "",
            _COMPLETED,
        )
        .exists(),
    )


def _looked_for() -> ColumnElement[bool]:
    waiting = job.alias()
    awaited = select(waiting.c.id).where(waiting.c.fire_time == job.c.fire_time, text(AWAITING))
    filling = select(backfill.c.id).where(backfill.c.id == job.c.item, backfill.c.finished_at.is_(None))
    return or_(
        and_(job.c.fire_time.is_not(None), awaited.exists()),
        and_(_BACKFILL, filling.exists()),
    )
