"""When is a fixed delay due next? Counted from the end of the schedule's last job."""

from functools import lru_cache

from sqlalchemy import Update, bindparam, literal_column, select, text, update

from cronq.store.database import Database
from cronq.store.tables import job, schedule


def set_next_by_delay(database: Database, shard: int) -> int:
    """Give each fixed-delay schedule whose last job has ended its next fire time; return how many there were.

    It is counted from that end, however late this is called.
    """
    with database.begin() as connection:
        return connection.execute(_set_next(database), {"_shard": shard}).rowcount


@lru_cache(maxsize=8)
def _set_next(database: Database) -> Update:
    ended = "(SELECT max(finished_at) FROM cronq_job WHERE cronq_job.schedule_id = cronq_schedule.id)"
    if database.dialect == "sqlite":
        counted = f"strftime('%Y-%m-%d %H:%M:%f000', {ended}, delay_s || ' seconds')"
    else:
        counted = f"{ended} + make_interval(secs => delay_s)"
    after = f"coalesce({counted}, {database.now_sql()})"
    going_on = (
        select(job.c.id)
        .where(
            job.c.schedule_id == schedule.c.id,
            text("cronq_job.state IN ('SCHEDULED', 'PENDING', 'RUNNING', 'RETRYING')"),
        )
        .exists()
    )
    return (
        update(schedule)
        .where(
            schedule.c.shard == bindparam("_shard"),
            schedule.c.delay_s.is_not(None),
            schedule.c.next_fire_at.is_(None),
            schedule.c.retired_at.is_(None),
            schedule.c.fault.is_(None),
            ~going_on,
        )
        .values(next_fire_at=literal_column(after))
    )
