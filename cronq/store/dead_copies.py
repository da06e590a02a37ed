"""What has to be done so that the broker's dead-letter queue says what SQL says."""

from sqlalchemy import RowMapping, select, text, update

from cronq.store.database import Database
from cronq.store.tables import UNCOPIED, dead_message, job


def outdated_jobs(database: Database, *, limit: int) -> tuple[list[str], list[str]]:
    """Return the dead jobs that the queue does not have yet, and those it has that are dead no more."""
    query = select(job.c.id, job.c.dead_at).where(text(UNCOPIED)).limit(limit)
    with database.autocommit() as connection:
        rows = connection.execute(query).all()
    return [row.id for row in rows if row.dead_at], [row.id for row in rows if not row.dead_at]


def mark_job(database: Database, job_id: str, *, copied: bool) -> None:
    """Record that the queue has a job's message, or not any more."""
    values = {"copied_at": database.now() if copied else None}
    with database.autocommit() as connection:
        connection.execute(update(job).where(job.c.id == job_id).values(values))


def open_messages(database: Database, *, limit: int) -> list[RowMapping]:
    """Return messages that the queue does not have yet, or that somebody asked something of; oldest first."""
    waits = dead_message.c.copied_at.is_(None) | dead_message.c.wish.is_not(None)
    query = select(dead_message).where(waits).order_by(dead_message.c.dead_at).limit(limit)
    with database.autocommit() as connection:
        return list(connection.execute(query).mappings())


def mark_message(database: Database, dead_id: str) -> None:
    """Record that the queue has a message."""
    with database.autocommit() as connection:
        connection.execute(
            update(dead_message).where(dead_message.c.id == dead_id).values(copied_at=database.now())
        )


def take_back_wish(database: Database, dead_id: str, error: str) -> None:
    """Put a message back on the list: it could not be sent back, because of `error`."""
    with database.autocommit() as connection:
        connection.execute(
            update(dead_message).where(dead_message.c.id == dead_id).values(wish=None, error=error)
        )
