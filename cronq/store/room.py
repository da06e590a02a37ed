"""Which due jobs wait for room under a limit, and what takes the room up? The leader's view of limits."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, bindparam, func, literal_column, or_, select, text, update

from cronq.job import ACTIVE, State, Trigger
from cronq.limits import Limit, Limits
from cronq.needs import PLACE
from cronq.store.agenda import DueJob, due_job, read_columns
from cronq.store.database import Database
from cronq.store.tables import FOR_ROOM, PLACED, job

BACKGROUND: Final = (Trigger.CATCH_UP, Trigger.BACKFILL)
"""Triggers of jobs that make up for the past: live work goes first."""


class Lane(NamedTuple):
    """Jobs that the same limits count for, in the order in which they are due."""

    task: str
    queue: str | None
    tenant: str | None
    priority: int | None
    background: bool
    needs: str | None = None


class Going(NamedTuple):
    """A job that is published and not at an end."""

    id: str
    lane: Lane
    claimed: bool


def lane_of(waiting: DueJob) -> Lane:
    """Return the lane that `waiting` belongs to."""
    background = waiting.trigger in BACKGROUND
    # Where a job with needs went the last time does not tell where it goes next.
    queue = waiting.queue if waiting.needs is None else None
    return Lane(waiting.task, queue, waiting.tenant, waiting.priority, background, waiting.needs)


_BACKGROUND: ColumnElement[int] = literal_column(  # a literal: PostgreSQL groups by no parameter
    "CASE WHEN trigger IN ('catch_up', 'backfill') THEN 1 ELSE 0 END"
)
_QUEUE: ColumnElement[str | None] = literal_column("CASE WHEN needs IS NULL THEN queue END")
_LANE: tuple[ColumnElement[Any], ...] = (
    job.c.task,
    _QUEUE,
    job.c.tenant,
    job.c.priority,
    _BACKGROUND,
    job.c.needs,
)


def mark_waiting(database: Database, waiting: Sequence[tuple[str, str]]) -> None:
    """Record of each (job id, key) that the due job waits for room under the key."""
    if waiting:
        with database.begin() as connection:
            connection.execute(
                update(job)
                .where(
                    job.c.id == bindparam("_id"),
                    job.c.published_at.is_(None),
                    or_(job.c.state == State.SCHEDULED, job.c.state == State.RETRYING),
                )
                .values(waits_for=bindparam("_key"), updated_at=database.now()),
                [{"_id": job_id, "_key": key} for job_id, key in waiting],
            )


_WAITING_LANES: Final = select(*_LANE, func.count()).where(text(FOR_ROOM)).group_by(*_LANE)


def waiting_lanes(database: Database) -> list[tuple[Lane, int]]:
    """Return how many jobs of each lane wait for room."""
    with database.autocommit() as connection:
        return [(_lane(row[:-1]), row[-1]) for row in connection.execute(_WAITING_LANES)]


def jobs_of_lane(database: Database, lane: Lane, *, limit: int) -> list[DueJob]:
    """Return the jobs of `lane` that wait for room, the earliest due first."""
    of_lane = [
        column.is_(None) if value is None else column == value
        for column, value in zip(_LANE, (*lane[:4], int(lane.background), lane.needs), strict=True)
    ]
    query = (
        select(*read_columns()).where(text(FOR_ROOM), *of_lane).order_by(job.c.due_at, job.c.id).limit(limit)
    )
    with database.autocommit() as connection:
        return [due_job(row) for row in connection.execute(query)]


def count_waiting(database: Database) -> dict[str, int]:
    """Return how many jobs wait for room under each key."""
    query = select(job.c.waits_for, func.count()).where(text(FOR_ROOM)).group_by(job.c.waits_for)
    with database.autocommit() as connection:
        return {row[0]: row[1] for row in connection.execute(query)}


_PLACED: Final = (
    select(job.c.needs, job.c.queue, func.count()).where(text(PLACED)).group_by(job.c.needs, job.c.queue)
)


def count_placed(database: Database) -> dict[tuple[str, str], int]:
    """Return how many messages of jobs with needs should be on the broker, by (needs, queue)."""
    with database.autocommit() as connection:
        return {(row[0], row[1]): row[2] for row in connection.execute(_PLACED)}


def take_back_placed(database: Database, needs: str, queue: str) -> int:
    """Let jobs that wait in `queue` wait for a place again, at most a thousand; return how many."""
    which = select(job.c.id).where(text(PLACED), job.c.needs == needs, job.c.queue == queue).limit(1000)
    with database.begin() as connection:
        ids = list(connection.execute(which).scalars())
        taken = connection.execute(
            update(job)
            .where(job.c.id.in_(ids), text(PLACED))
            .values(
                state=text("CASE state WHEN 'PENDING' THEN 'SCHEDULED' ELSE state END"),
                published_at=None,
                waits_for=f"{PLACE}{needs}",
                updated_at=database.now(),
            )
        )
    return taken.rowcount


def jobs_going_on(database: Database, limits: Limits) -> list[Going]:
    """Return the published, unfinished jobs that `limits` may have to count."""
    query = select(job.c.id, *_LANE, job.c.state).where(
        job.c.state.in_(ACTIVE), job.c.published_at.is_not(None), _counted(limits)
    )
    with database.autocommit() as connection:
        return [
            Going(row[0], _lane(row[1:-1]), row[-1] == State.RUNNING) for row in connection.execute(query)
        ]


def count_recent(database: Database, key: str, limit: Limit, *, within_s: float) -> int:
    """Return how many jobs under `key` were sent within the last `within_s` seconds; rather one too many."""
    since = database.now(-within_s)
    sent = func.coalesce(job.c.published_at, job.c.started_at)
    query = select(func.count()).where(job.c.updated_at > since, sent > since, concerns(key, limit))
    with database.autocommit() as connection:
        count: int = connection.execute(query).scalar_one()
    return count


def concerns(key: str, limit: Limit) -> ColumnElement[bool]:
    """Return the condition that `key` counts for a job; one without a queue may be routed to any."""
    value = key.partition(":")[2]
    if limit.kind == "dependency":
        return job.c.task.in_(limit.tasks)
    if limit.kind == "queue":
        return or_(job.c.queue == value, job.c.queue.is_(None))
    return (job.c.tenant if limit.kind == "tenant" else job.c.task) == value


def _counted(limits: Limits) -> ColumnElement[bool]:
    """Return a condition that leaves out most jobs that no limit counts for."""
    conditions: list[ColumnElement[bool]] = []
    for key, limit in limits.limits.items():
        if not limit.counts_jobs:
            continue
        if limit.value is not None:
            conditions.append(concerns(key, limit))
        elif limit.kind == "tenant":
            conditions.append(job.c.tenant.is_not(None))
        else:
            return text("1 = 1")  # type: ignore[return-value]
    return or_(*conditions) if conditions else text("1 = 0")  # type: ignore[return-value]


def _lane(values: Any) -> Lane:  # noqa: ANN401 - a part of a row
    task, queue, tenant, priority, background, needs = values
    return Lane(task, queue, tenant, priority, bool(background), needs)
