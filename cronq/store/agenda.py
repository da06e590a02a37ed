"""What is due, and when? The leader's side of the job table: plan, mark as published, skip, look after."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import Column, Connection, Row, Update, bindparam, select, text, update

from cronq.job import State, Trigger
from cronq.schedule import Overlap, Reason
from cronq.store.database import Database
from cronq.store.schedules import StoredSchedule, stored
from cronq.store.tables import FOREIGN, WAITING, job, schedule
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
    needs: str | None = None
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


# Statements that a leader sends many times a minute are built once: building one costs more than running it.
_LOCK_DUE: Final = (
    select(schedule)
    .where(
        schedule.c.shard == bindparam("shard"),
        schedule.c.next_fire_at <= bindparam("until"),
        schedule.c.paused_at.is_(None),
        schedule.c.retired_at.is_(None),
    )
    .order_by(schedule.c.next_fire_at)
    .limit(bindparam("limit"))
    .with_for_update(skip_locked=True)
)


def lock_due_schedules(
    connection: Connection, *, shard: int, until: datetime, limit: int
) -> list[StoredSchedule]:
    """Return schedules with a fire time up to `until`, earliest first, locked until the transaction ends.

    The cost depends on how many are due, not on how many there are. One that somebody edits just now is left
    out: the leader does not wait for it.
    """
    values = {"shard": shard, "until": until, "limit": limit}
    return [stored(row) for row in connection.execute(_LOCK_DUE, values)]


@lru_cache(maxsize=8)
def _insert_jobs(database: Database) -> Any:  # noqa: ANN401 - either dialect's Insert
    return database.insert(job).on_conflict_do_nothing().execution_options(preserve_rowcount=True)


def insert_jobs(database: Database, connection: Connection, jobs: Sequence[DueJob], now: datetime) -> int:
    """Insert planned jobs and skipped fire times; one that exists already stays as it is. Return how many."""
    if not jobs:
        return 0
    return connection.execute(_insert_jobs(database), [_values(planned, now) for planned in jobs]).rowcount


@lru_cache(maxsize=8)
def _insert_job(database: Database) -> Any:  # noqa: ANN401 - either dialect's Insert
    return database.insert(job).on_conflict_do_nothing().returning(job.c.id)


def insert_job(database: Database, connection: Connection, demanded: DueJob, now: datetime) -> bool:
    """Insert one job; tell whether it is new."""
    added = connection.execute(_insert_job(database), _values(demanded, now))
    return added.one_or_none() is not None


def _values(planned: DueJob, now: datetime) -> dict[str, Any]:
    return {name: getattr(planned, name) for name in _WRITE} | {
        "exclusive": planned.exclusive,
        "planned_at": now,
        "updated_at": now,
        "finished_at": now if planned.state is State.SKIPPED else None,
    }


_ADVANCE: Final = (
    update(schedule)
    .where(schedule.c.id == bindparam("_id"))
    .values(next_fire_at=bindparam("_next"), updated_at=bindparam("_now"))
)


def advance(connection: Connection, cursors: Sequence[tuple[str, datetime | None]], now: datetime) -> None:
    """Move each schedule's cursor on: (id, next fire time)."""
    if cursors:
        connection.execute(_ADVANCE, [{"_id": i, "_next": after, "_now": now} for i, after in cursors])


_WAITING: Final = (
    select(*_READ)
    .where(text(WAITING), job.c.due_at <= bindparam("until"))
    .order_by(job.c.due_at)
    .limit(bindparam("limit"))
)


def waiting_jobs(database: Database, *, until: datetime, limit: int) -> list[DueJob]:
    """Return jobs that wait for a due time up to `until`, earliest first."""
    with database.autocommit() as connection:
        found = connection.execute(_WAITING, {"until": until, "limit": limit})
        return [due_job(row) for row in found]


_PLANNED: Final = _WAITING.where(text(f"NOT ({FOREIGN})"))


def planned_jobs(database: Database, *, until: datetime, limit: int) -> list[DueJob]:
    """Return those of them that a leader planned; the others are `foreign_jobs`."""
    with database.autocommit() as connection:
        found = connection.execute(_PLANNED, {"until": until, "limit": limit})
        return [due_job(row) for row in found]


_PLANNED_OF: Final = _PLANNED.where(job.c.schedule_id.in_(bindparam("ids", expanding=True))).limit(None)


def planned_of(database: Database, schedules: Sequence[str], *, until: datetime) -> list[DueJob]:
    """Return those of them that belong to `schedules`."""
    found: list[DueJob] = []
    with database.autocommit() as connection:
        for part in chunks(schedules):
            rows = connection.execute(_PLANNED_OF, {"until": until, "ids": part})
            found += [due_job(row) for row in rows]
    return found


_FOREIGN: Final = (
    select(*_READ)
    .where(text(FOREIGN), job.c.due_at <= bindparam("until"))
    .order_by(job.c.due_at, job.c.id)
    .limit(bindparam("limit"))
)


def foreign_jobs(
    database: Database, *, until: datetime, limit: int, after: DueJob | None = None
) -> list[DueJob]:
    """Return those of them that others stored: retries, items, on-demand jobs, dead letters sent back.

    after: the last one seen, to go on from.
    """
    query = _FOREIGN
    if after is not None:
        later = (job.c.due_at > after.due_at) | ((job.c.due_at == after.due_at) & (job.c.id > after.id))
        # The first condition is implied by the second, and lets the index be used.
        query = query.where(job.c.due_at >= after.due_at, later)
    with database.autocommit() as connection:
        return [due_job(row) for row in connection.execute(query, {"until": until, "limit": limit})]


_READ_WAITING: Final = select(*_READ).where(job.c.id.in_(bindparam("ids", expanding=True)), text(WAITING))


def read_waiting(database: Database, ids: Sequence[str]) -> list[DueJob]:
    """Return those of the jobs `ids` that wait for a due time."""
    with database.autocommit() as connection:
        return [due_job(row) for row in connection.execute(_READ_WAITING, {"ids": ids})]


def read_due(connection: Connection, job_id: str) -> DueJob | None:
    """Return one job whatever its state, or None."""
    row = connection.execute(select(*_READ).where(job.c.id == job_id)).one_or_none()
    return None if row is None else due_job(row)


def read_jobs(database: Database, ids: Sequence[str]) -> list[DueJob]:
    """Return the jobs `ids`, wherever they stand."""
    with database.autocommit() as connection:
        return [due_job(row) for row in connection.execute(select(*_READ).where(job.c.id.in_(ids)))]


@lru_cache(maxsize=8)
def _mark_published(database: Database) -> tuple[Update, Update]:
    now = database.now()
    values = {"published_at": now, "publishes": job.c.publishes + 1, "updated_at": now, "waits_for": None}
    first = (
        update(job)
        .where(
            database.among(job.c.id, "_ids"),
            # || '': by its ids, not by an index on the state that PostgreSQL thinks few rows have.
            text("state || '' IN ('SCHEDULED', 'PENDING')"),
            job.c.held_at.is_(None),
        )
        .values(state=State.PENDING, **values)
    )
    again = (
        update(job)
        .where(
            job.c.id == bindparam("_id"),
            job.c.state == State.RETRYING,
            job.c.attempts == bindparam("_attempts"),
            job.c.held_at.is_(None),
        )
        .values(values)
    )
    return first, again


def mark_published(database: Database, sent: Sequence[DueJob]) -> None:
    """Record that the broker has the messages of `sent`; a job that went on meanwhile stays as it is."""
    if not sent:
        return
    mark_first, mark_again = _mark_published(database)
    first = [each.id for each in sent if each.state is not State.RETRYING]
    # A retry that was sent, ran and is due for yet another one has counted an attempt since.
    again = [{"_id": each.id, "_attempts": each.attempts} for each in sent if each.state is State.RETRYING]
    with database.begin() as connection:
        _mark_placed(connection, sent)
        if first:
            connection.execute(mark_first, {"_ids": first})
        if again:
            connection.execute(mark_again, again)


def _mark_placed(connection: Connection, sent: Sequence[DueJob]) -> None:
    """Record where jobs with needs went, also those that a fast worker has claimed already."""
    placed = [{"_id": each.id, "_queue": each.queue} for each in sent if each.needs is not None]
    if placed:
        connection.execute(
            update(job)
            .where(job.c.id == bindparam("_id"), job.c.queue != bindparam("_queue"))
            .values(queue=bindparam("_queue")),
            placed,
        )


@lru_cache(maxsize=8)
def _mark_skipped(database: Database) -> Update:
    now = database.now()
    return (
        update(job)
        .where(job.c.id.in_(bindparam("_ids", expanding=True)), job.c.state == State.SCHEDULED)
        .values(state=State.SKIPPED, reason=bindparam("_reason"), finished_at=now, updated_at=now)
    )


def mark_skipped(database: Database, ids: Sequence[str], reason: Reason) -> None:
    """Give due fire times that were not published their disposition: not run, because of `reason`."""
    with database.begin() as connection:
        for chunk in chunks(ids):
            connection.execute(_mark_skipped(database), {"_ids": chunk, "_reason": reason})
