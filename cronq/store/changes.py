"""What changed since a moment? Every job whose row was committed since is found, however late it was.

A row's `updated_at` is taken before its transaction commits, so a reader that goes on from the newest one it
saw would miss a slower transaction. Readers therefore look back `OVERLAP_S` and drop what they had already.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import Row, RowMapping, and_, false, func, or_, select, text, union_all

from cronq.job import State
from cronq.store.database import SESSION, Database
from cronq.store.tables import AT_REST, RUNNING, attempt, job

OVERLAP_S: Final = 2 * int(SESSION["statement_timeout"]) / 1000
"""Longer than any transaction of ours can take."""


class Change(NamedTuple):
    """How a job stood; two changes within one tick of the clock differ in what follows the time."""

    id: str
    at: datetime
    state: str
    attempts: int


def changed_ids(
    database: Database, since: datetime, *, after_id: str = "", limit: int = 1000
) -> list[Change]:
    """Return the jobs that changed after (`since`, `after_id`), oldest first."""
    later = or_(
        job.c.updated_at > since,
        and_(job.c.updated_at == since, job.c.id > after_id),
    )
    halves = [
        select(job.c.id, job.c.updated_at, job.c.state, job.c.attempts)
        # The first condition is implied by the second, and lets the index be used.
        .where(job.c.updated_at >= since, later, text(half))
        .order_by(job.c.updated_at, job.c.id)
        .limit(limit)
        .subquery()
        for half in (AT_REST, RUNNING)
    ]
    both = union_all(*(select(half) for half in halves)).subquery()
    query = select(both).order_by(both.c.updated_at, both.c.id).limit(limit)
    with database.autocommit() as connection:
        return [Change(*row) for row in connection.execute(query)]


def changes_of(database: Database, ids: Sequence[str]) -> list[Change]:
    """Return how the jobs `ids` stand."""
    query = select(job.c.id, job.c.updated_at, job.c.state, job.c.attempts).where(job.c.id.in_(ids))
    with database.autocommit() as connection:
        return [Change(*row) for row in connection.execute(query)]


def change_of(row: RowMapping) -> Change:
    """Return how a job's row stands."""
    return Change(row["id"], row["updated_at"], row["state"], row["attempts"])


def read_jobs(database: Database, ids: Sequence[str]) -> list[RowMapping]:
    """Return the rows of the jobs `ids`, oldest change first."""
    if not ids:
        return []
    query = select(job).where(job.c.id.in_(ids)).order_by(job.c.updated_at, job.c.id)
    with database.autocommit() as connection:
        return list(connection.execute(query).mappings())


def ended_between(database: Database, after: datetime, until: datetime) -> list[Row[Any]]:
    """Return the jobs that ended in (after, until], with what is measured of them."""
    query = select(
        job.c.task,
        job.c.schedule_id,
        job.c.state,
        job.c.trigger,
        job.c.reason,
        job.c.due_at,
        job.c.published_at,
        job.c.started_at,
        job.c.finished_at,
        job.c.attempts,
    ).where(job.c.updated_at > after, job.c.finished_at > after, job.c.finished_at <= until, text(AT_REST))
    with database.autocommit() as connection:
        return list(connection.execute(query))


def attempts_between(database: Database, after: datetime, until: datetime) -> list[Row[Any]]:
    """Return (outcome, kind, retried) of the attempts that ended in (after, until].

    retried: whether another attempt followed, or will.
    """
    retried = or_(
        job.c.state == State.RETRYING, func.coalesce(job.c.started_at > attempt.c.ended_at, false())
    )
    halves = (
        select(attempt.c.outcome, attempt.c.kind, retried.label("retried"))
        .join(job, job.c.id == attempt.c.job_id)
        # A job never changes before its attempt ends: this finds the few jobs by the index.
        .where(job.c.updated_at > after, attempt.c.ended_at > after, attempt.c.ended_at <= until, text(half))
        for half in (AT_REST, RUNNING)
    )
    with database.autocommit() as connection:
        return list(connection.execute(union_all(*halves)))
