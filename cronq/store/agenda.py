"""What is due, and when? The leader's side of the job table: plan, mark as published, skip, look after."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import (
    Column,
    Connection,
    Row,
    bindparam,
    select,
    text,
    update,
)

from cronq.job import ACTIVE, State, Trigger
from cronq.schedule import Overlap, Reason
from cronq.store.database import Database
from cronq.store.schedules import StoredSchedule, stored
from cronq.store.tables import FOR_ROOM, FOREIGN, HEAD, WAITING, batch, job, schedule
from cronq.store.values import chunks


@dataclass(slots=True, kw_only=True)
class DueJob:
    """A job that waits for its due time: everything that is needed to publish it."""

    id: str
    task: str
    args: list[Any]
    kwargs: dict[str, Any]
    due_at: datetime
    trigger: Trigger
    state: State = State.SCHEDULED
    schedule_id: str | None = None
    schedule_name: str | None = None
    schedule_version: int | None = None
    fire_time: datetime | None = None
    item: str = ""
    queue: str | None = None
    priority: int | None = None
    tenant: str | None = None
    overlap: Overlap = Overlap.ALLOW
    max_attempts: int | None = None
    attempts: int = 0
    reason: Reason | None = None
    coalesced_into: datetime | None = None
    batch_id: str | None = None
    held_at: datetime | None = None
    awaited: bool = False
    cancel_requested_at: datetime | None = None
    callback_url: str | None = None
    message: Any = field(default=None, compare=False)  #: rendered by the publisher ahead of the due time

    @property
    def exclusive(self) -> bool:
        """Whether it may not run beside another job of its schedule."""
        return self.overlap is not Overlap.ALLOW and self.schedule_id is not None

    @property
    def expands(self) -> bool:
        """Whether it finds the items of a fan-out, rather than doing the work itself."""
        return self.batch_id is not None and self.batch_id == self.id


_READ = [job.c[name] for name in DueJob.__slots__ if name in job.c]
_WRITE = [name for name in DueJob.__slots__ if name in job.c]


def due_job(row: Row[Any]) -> DueJob:
    """Return the value of one row."""
    values = row._asdict()
    values["state"] = State(row.state)
    values["trigger"] = Trigger(row.trigger)
    values["overlap"] = Overlap(row.overlap)
    values["reason"] = None if row.reason is None else Reason(row.reason)
    return DueJob(**values)


def read_columns() -> list[Column[Any]]:
    """Return the columns that `due_job` reads."""
    return _READ


def lock_due_schedules(
    connection: Connection, *, shard: int, until: datetime, limit: int
) -> list[StoredSchedule]:
    """Return schedules with a fire time up to `until`, earliest first, locked until the transaction ends.

    The cost depends on how many are due, not on how many there are.
    """
    query = (
        select(schedule)
        .where(
            schedule.c.shard == shard,
            schedule.c.next_fire_at <= until,
            schedule.c.paused_at.is_(None),
            schedule.c.retired_at.is_(None),
        )
        .order_by(schedule.c.next_fire_at)
        .limit(limit)
        .with_for_update()
    )
    return [stored(row) for row in connection.execute(query)]


def insert_jobs(database: Database, connection: Connection, jobs: Sequence[DueJob], now: datetime) -> int:
    """Insert planned jobs and skipped fire times; one that exists already stays as it is. Return how many."""
    if not jobs:
        return 0
    statement = database.insert(job).on_conflict_do_nothing().execution_options(preserve_rowcount=True)
    return connection.execute(statement, [_values(planned, now) for planned in jobs]).rowcount


def insert_job(database: Database, connection: Connection, demanded: DueJob, now: datetime) -> bool:
    """Insert one job; tell whether it is new."""
    insert = database.insert(job).on_conflict_do_nothing().values(_values(demanded, now))
    return connection.execute(insert.returning(job.c.id)).one_or_none() is not None


def _values(planned: DueJob, now: datetime) -> dict[str, Any]:
    return {name: getattr(planned, name) for name in _WRITE} | {
        "exclusive": planned.exclusive,
        "planned_at": now,
        "updated_at": now,
        "finished_at": now if planned.state is State.SKIPPED else None,
    }


def advance(connection: Connection, cursors: Sequence[tuple[str, datetime | None]], now: datetime) -> None:
    """Move each schedule's cursor on: (id, next fire time)."""
    if cursors:
        connection.execute(
            update(schedule)
            .where(schedule.c.id == bindparam("_id"))
            .values(next_fire_at=bindparam("_next"), updated_at=now),
            [{"_id": i, "_next": after} for i, after in cursors],
        )


def waiting_jobs(database: Database, *, until: datetime, limit: int) -> list[DueJob]:
    """Return jobs that wait for a due time up to `until`, earliest first."""
    query = select(*_READ).where(text(WAITING), job.c.due_at <= until).order_by(job.c.due_at).limit(limit)
    with database.autocommit() as connection:
        return [due_job(row) for row in connection.execute(query)]


def foreign_jobs(
    database: Database, *, until: datetime, limit: int, after: DueJob | None = None
) -> list[DueJob]:
    """Return those of them that others stored: retries, items, on-demand jobs, dead letters sent back.

    after: the last one seen, to go on from.
    """
    query = (
        select(*_READ)
        .where(text(FOREIGN), job.c.due_at <= until)
        .order_by(job.c.due_at, job.c.id)
        .limit(limit)
    )
    if after is not None:
        later = (job.c.due_at > after.due_at) | ((job.c.due_at == after.due_at) & (job.c.id > after.id))
        # The first condition is implied by the second, and lets the index be used.
        query = query.where(job.c.due_at >= after.due_at, later)
    with database.autocommit() as connection:
        return [due_job(row) for row in connection.execute(query)]


def read_waiting(database: Database, ids: Sequence[str]) -> list[DueJob]:
    """Return those of the jobs `ids` that wait for a due time."""
    query = select(*_READ).where(job.c.id.in_(ids), text(WAITING))
    with database.autocommit() as connection:
        return [due_job(row) for row in connection.execute(query)]


def read_due(connection: Connection, job_id: str) -> DueJob | None:
    """Return one job whatever its state, or None."""
    row = connection.execute(select(*_READ).where(job.c.id == job_id)).one_or_none()
    return None if row is None else due_job(row)


def read_jobs(database: Database, ids: Sequence[str]) -> list[DueJob]:
    """Return the jobs `ids`, wherever they stand."""
    with database.autocommit() as connection:
        return [due_job(row) for row in connection.execute(select(*_READ).where(job.c.id.in_(ids)))]


def mark_published(database: Database, sent: Sequence[DueJob]) -> None:
    """Record that the broker has the messages of `sent`; a job that went on meanwhile stays as it is."""
    if not sent:
        return
    now = database.now()
    values = {"published_at": now, "publishes": job.c.publishes + 1, "updated_at": now, "waits_for": None}
    first = [each.id for each in sent if each.state is not State.RETRYING]
    # A retry that was sent, ran and is due for yet another one has counted an attempt since.
    again = [{"_id": each.id, "_attempts": each.attempts} for each in sent if each.state is State.RETRYING]
    with database.begin() as connection:
        for chunk in chunks(first):
            connection.execute(
                update(job)
                .where(
                    job.c.id.in_(chunk),
                    job.c.state.in_([State.SCHEDULED, State.PENDING]),
                    job.c.held_at.is_(None),
                )
                .values(state=State.PENDING, **values)
            )
        if again:
            connection.execute(
                update(job)
                .where(
                    job.c.id == bindparam("_id"),
                    job.c.state == State.RETRYING,
                    job.c.attempts == bindparam("_attempts"),
                    job.c.held_at.is_(None),
                )
                .values(values),
                again,
            )


def mark_skipped(database: Database, ids: Sequence[str], reason: Reason) -> None:
    """Give due fire times that were not published their disposition: not run, because of `reason`."""
    now = database.now()
    with database.begin() as connection:
        for chunk in chunks(ids):
            connection.execute(
                update(job)
                .where(job.c.id.in_(chunk), job.c.state == State.SCHEDULED)
                .values(state=State.SKIPPED, reason=reason, finished_at=now, updated_at=now)
            )


def busy_schedules(database: Database, ids: Sequence[str] | None = None) -> set[str]:
    """Return the schedules (all, or of `ids`) that have a job or a batch going on, or waiting for room."""
    jobs = select(job.c.schedule_id).where(
        job.c.state.in_(ACTIVE), text(HEAD), job.c.schedule_id.is_not(None)
    )
    waiting = select(job.c.schedule_id).where(text(FOR_ROOM), job.c.schedule_id.is_not(None))
    batches = select(batch.c.schedule_id).where(batch.c.ended_at.is_(None))
    busy: set[str] = set()
    with database.autocommit() as connection:
        for query, owner in (
            (jobs, job.c.schedule_id),
            (waiting, job.c.schedule_id),
            (batches, batch.c.schedule_id),
        ):
            for chunk in [None] if ids is None else chunks(ids):
                asked = query if chunk is None else query.where(owner.in_(chunk))
                busy.update(connection.execute(asked.distinct()).scalars())
    return busy


def untouched_schedules(database: Database, ids: Sequence[str]) -> set[str]:
    """Return the schedules of those of the jobs `ids` that nobody has claimed or marked as published."""
    query = select(job.c.schedule_id).where(job.c.state == State.SCHEDULED, job.c.schedule_id.is_not(None))
    with database.autocommit() as connection:
        return {
            schedule_id
            for chunk in chunks(ids)
            for schedule_id in connection.execute(query.where(job.c.id.in_(chunk))).scalars()
        }


def buffers_of(database: Database, ids: Sequence[str]) -> dict[str, int]:
    """Return how many jobs of each of the schedules `ids` may wait for their turn."""
    if not ids:
        return {}
    query = select(schedule.c.id, schedule.c.definition).where(schedule.c.id.in_(ids))
    with database.autocommit() as connection:
        return {row.id: int(row.definition["buffer"]) for row in connection.execute(query)}
