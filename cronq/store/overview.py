"""How does everything stand now? Each answer costs what it shows, not what is stored.

Instants are asked for first and passed as values: with them PostgreSQL knows how little it will find.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import ColumnElement, RowMapping, func, select, text

from cronq.job import ACTIVE, State
from cronq.store.database import Database
from cronq.store.schedules import StoredSchedule, stored
from cronq.store.tables import AT_REST, WAITING, job, schedule
from cronq.store.values import contains
from cronq.timing import timing_from, with_hash_id
from cronq.timing.load import Member

OVERDUE_AFTER_S: Final = 15.0
"""Seconds past its due time after which something counts as overdue: longer than any change of leader."""


@dataclass(frozen=True, slots=True)
class Queue:
    """What waits in one queue, as SQL knows it."""

    queue: str | None  #: None: wherever Celery routes the task
    task: str
    pending: int
    oldest: datetime | None


def count_unfinished(database: Database) -> dict[str, int]:
    """Return how many jobs stand in each state that is not an end."""
    query = (
        select(job.c.state, func.count())
        .where(job.c.state.in_([State.SCHEDULED, *ACTIVE]))
        .group_by(job.c.state)
    )
    with database.autocommit() as connection:
        return {row[0]: row[1] for row in connection.execute(query)}


def count_ended(database: Database, within: timedelta) -> dict[str, int]:
    """Return how many jobs ended in each way within the last `within`."""
    since = database.clock() - within
    query = (
        select(job.c.state, func.count())
        .where(job.c.updated_at >= since, job.c.finished_at >= since, text(AT_REST))
        .group_by(job.c.state)
    )
    with database.autocommit() as connection:
        return {row[0]: row[1] for row in connection.execute(query)}


def running_jobs(database: Database, limit: int) -> list[RowMapping]:
    """Return the running jobs, the longest running first."""
    query = select(job).where(job.c.state == State.RUNNING).order_by(job.c.started_at).limit(limit)
    with database.autocommit() as connection:
        return list(connection.execute(query).mappings())


def running_by_worker(database: Database) -> Counter[str]:
    """Return how many jobs each worker runs, by its name without the process id."""
    query = (
        select(job.c.worker, func.count())
        .where(job.c.state == State.RUNNING, job.c.worker.is_not(None))
        .group_by(job.c.worker)
    )
    found: Counter[str] = Counter()
    with database.autocommit() as connection:
        for worker, count in connection.execute(query):
            found[worker.partition("/")[0]] += count
    return found


def dead_letters(
    database: Database,
    *,
    limit: int,
    since: timedelta | None = None,
    before: tuple[datetime, str] | None = None,
) -> list[RowMapping]:
    """Return dead letters, the newest first. before: the cursor, (dead_at, id) of the last one seen."""
    query = select(job).where(job.c.dead_at.is_not(None))
    if since is not None:
        query = query.where(job.c.dead_at >= database.clock() - since)
    if before is not None:
        at, job_id = before
        query = query.where((job.c.dead_at < at) | ((job.c.dead_at == at) & (job.c.id < job_id)))
    query = query.order_by(job.c.dead_at.desc(), job.c.id.desc()).limit(limit)
    with database.autocommit() as connection:
        return list(connection.execute(query).mappings())


def count_dead(database: Database) -> int:
    """Return how many dead letters there are."""
    query = select(func.count()).select_from(job).where(job.c.dead_at.is_not(None))
    with database.autocommit() as connection:
        count: int = connection.execute(query).scalar_one()
    return count


def planned_jobs(database: Database, limit: int) -> list[RowMapping]:
    """Return the jobs that wait for a due time ahead, the soonest first."""
    return _waiting(database, job.c.due_at > database.clock(), limit)


def overdue_jobs(database: Database, limit: int) -> list[RowMapping]:
    """Return jobs that are past their due time and still wait for being published, the latest first."""
    late = database.clock() - timedelta(seconds=OVERDUE_AFTER_S)
    return _waiting(database, job.c.due_at < late, limit)


def _waiting(database: Database, due: ColumnElement[bool], limit: int) -> list[RowMapping]:
    query = select(job).where(text(WAITING), due).order_by(job.c.due_at).limit(limit)
    with database.autocommit() as connection:
        return list(connection.execute(query).mappings())


def overdue_schedules(database: Database, limit: int) -> list[StoredSchedule]:
    """Return schedules whose next fire time has passed without anybody planning it, the latest first."""
    late = database.clock() - timedelta(seconds=OVERDUE_AFTER_S)
    query = (
        select(schedule)
        .where(
            schedule.c.next_fire_at < late,
            schedule.c.paused_at.is_(None),
            schedule.c.retired_at.is_(None),
        )
        .order_by(schedule.c.next_fire_at)
        .limit(limit)
    )
    with database.autocommit() as connection:
        return [stored(row) for row in connection.execute(query)]


def queues(database: Database) -> list[Queue]:
    """Return what waits for a worker, by queue and task, the fullest first."""
    query = (
        select(job.c.queue, job.c.task, func.count(), func.min(job.c.published_at))
        .where(job.c.state == State.PENDING)
        .group_by(job.c.queue, job.c.task)
        .order_by(func.count().desc())
    )
    with database.autocommit() as connection:
        return [Queue(*row) for row in connection.execute(query)]


def count_schedules(database: Database) -> Mapping[str, int]:
    """Return how many schedules are active, paused and faulty."""
    query = select(
        func.count(),
        func.count(schedule.c.paused_at),
        func.count(schedule.c.fault),
    ).where(schedule.c.retired_at.is_(None))
    with database.autocommit() as connection:
        total, paused, faulty = connection.execute(query).one()
    return {"total": total, "paused": paused, "faulty": faulty}


def find_schedules(
    database: Database, *, text: str = "", only: str | None = None, after: str = "", limit: int = 50
) -> list[StoredSchedule]:
    """Return schedules by name from `after` on: those whose name or task has `text` in it.

    only: `paused`, `faulty` or `retired`; without it all but the retired ones.
    """
    query = select(schedule).order_by(schedule.c.name).limit(limit)
    if after:
        query = query.where(schedule.c.name > after)
    if text:
        query = query.where(contains(text, schedule.c.name, schedule.c.task))
    if only == "retired":
        query = query.where(schedule.c.retired_at.is_not(None))
    else:
        query = query.where(schedule.c.retired_at.is_(None))
    if only == "paused":
        query = query.where(schedule.c.paused_at.is_not(None))
    if only == "faulty":
        query = query.where(schedule.c.fault.is_not(None))
    with database.autocommit() as connection:
        return [stored(row) for row in connection.execute(query)]


def upcoming_schedules(database: Database, limit: int) -> list[StoredSchedule]:
    """Return the schedules whose next unplanned fire time is the soonest."""
    query = (
        select(schedule)
        .where(
            schedule.c.next_fire_at.is_not(None),
            schedule.c.paused_at.is_(None),
            schedule.c.retired_at.is_(None),
        )
        .order_by(schedule.c.next_fire_at)
        .limit(limit)
    )
    with database.autocommit() as connection:
        return [stored(row) for row in connection.execute(query)]


def state_of_schedules(database: Database) -> tuple[object, ...]:
    """Return what changes whenever a schedule is written, paused, resumed, retired or set aside."""
    columns = schedule.c
    query = select(
        func.count(),
        func.sum(columns.version),
        func.count(columns.paused_at),
        func.max(columns.paused_at),
        func.count(columns.fault),
        func.count(columns.retired_at),
    )
    with database.autocommit() as connection:
        return tuple(connection.execute(query).one())


def firing_members(database: Database) -> list[Member]:
    """Return the schedules that fire, for counting a day's load: not the paused, set aside or retired."""
    query = select(schedule).where(
        schedule.c.paused_at.is_(None), schedule.c.fault.is_(None), schedule.c.retired_at.is_(None)
    )
    with database.autocommit() as connection:
        found = [stored(row) for row in connection.execute(query.order_by(schedule.c.name))]
    return [
        Member(
            each.name,
            timing_from(with_hash_id(each.definition.timing, each.id)),
            each.definition.jitter,
            each.id,
        )
        for each in found
        if not each.unreadable
    ]
