"""What may be done to many jobs at once? Stop all that fit, or send all that fit back."""

from typing import Any, Final

from sqlalchemy import ColumnElement, Select, func, select, update

from cronq.job import ACTIVE, State
from cronq.store.database import Database
from cronq.store.jobs import SENT_BACK_FROM, JobFilter, cancel_waiting, matching, sent_back, stop_running
from cronq.store.tables import job

MOST: Final = 10_000
"""Jobs that one call changes; there may be more."""
BATCH: Final = 500
"""Jobs that one transaction changes: it stays far below the time that a statement may take."""

_STOPPABLE: Final = job.c.state.in_([State.SCHEDULED, *ACTIVE]) & job.c.cancel_requested_at.is_(None)
_SENDABLE: Final = job.c.state.in_(SENT_BACK_FROM)


def count_stoppable(database: Database, wanted: JobFilter) -> int:
    """Return how many jobs that fit could be stopped."""
    return _count(database, wanted, _STOPPABLE)


def count_sendable(database: Database, wanted: JobFilter) -> int:
    """Return how many jobs that fit failed or timed out, and could be sent back."""
    return _count(database, wanted, _SENDABLE)


def stop_jobs(database: Database, wanted: JobFilter) -> int:
    """Stop at most `MOST` jobs that fit, as `request_cancel` does; return how many there were."""
    now, done = database.now(), 0
    while done < MOST:
        with database.begin() as connection:
            ids = connection.execute(_batch(wanted, _STOPPABLE)).scalars().all()
            cancel_waiting(connection, now, job.c.id.in_(ids))
            stop_running(connection, now, job.c.id.in_(ids))
        done += len(ids)
        if len(ids) < BATCH:
            break
    return done


def send_jobs_back(database: Database, wanted: JobFilter) -> int:
    """Send at most `MOST` jobs that fit back, as `retry_dead` does; return how many there were."""
    done = 0
    while done < MOST:
        with database.begin() as connection:
            ids = connection.execute(_batch(wanted, _SENDABLE)).scalars().all()
            connection.execute(update(job).where(job.c.id.in_(ids)).values(sent_back(database)))
        done += len(ids)
        if len(ids) < BATCH:
            break
    return done


def _batch(wanted: JobFilter, which: ColumnElement[bool]) -> Select[Any]:
    # Locked, so that a job which moves on meanwhile is not counted as changed.
    return matching(select(job.c.id), wanted).where(which).limit(BATCH).with_for_update()


def _count(database: Database, wanted: JobFilter, which: ColumnElement[bool]) -> int:
    query = matching(select(func.count()).select_from(job), wanted).where(which)
    with database.autocommit() as connection:
        return int(connection.execute(query).scalar_one())
