"""Which jobs are there? Reads them, takes on-demand ones, and records what operators ask of them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Select,
    Update,
    bindparam,
    func,
    select,
    text,
    tuple_,
    update,
)
from sqlalchemy.orm import Session

from cronq.errors import JobRefused, UnknownJob
from cronq.job import ENDS, State
from cronq.schedule import schedule_id
from cronq.store.agenda import DueJob, insert_job
from cronq.store.database import Database
from cronq.store.leases import GRACE_S
from cronq.store.tables import HEAD, RUNNING, attempt, batch, job
from cronq.store.values import MOST_LEVELS, contains, is_too_deep


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    """Which jobs to list; None: any."""

    state: State | None = None
    schedule: str | None = None
    task: str | None = None
    tenant: str | None = None
    queue: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    text: str | None = None  #: part of the id, the task, the schedule's name, the tenant or the error
    before: tuple[datetime, str] | None = None  #: the cursor: (planned_at, id) of the last one seen


def check_payload(args: object, kwargs: object, limit: int) -> None:
    """Raise `JobRefused` unless the arguments are JSON, not nested too deep, and at most `limit` bytes."""
    try:
        written = json.dumps([args, kwargs], allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise JobRefused(
            f"the arguments are not JSON ({error}); pass plain values, or a reference", field="kwargs"
        ) from error
    if is_too_deep([args, kwargs], written):
        raise JobRefused(
            f"the arguments have lists and objects nested more than {MOST_LEVELS} deep; "
            "flatten them, or pass them as one text",
            field="kwargs",
        )
    if (size := len(written)) > limit:
        raise JobRefused(
            f"the arguments are {size} bytes as JSON, over the limit of {limit} (CRONQ_MAX_PAYLOAD_BYTES); "
            "store them elsewhere and pass a reference",
            field="kwargs",
        )


def add_job(
    database: Database,
    demanded: DueJob,
    *,
    due: datetime | float,
    session: Session | Connection | None = None,
) -> tuple[DueJob, bool]:
    """Store an on-demand job, due at an instant or in so many seconds; of two with one id the first stays.

    Return it, and whether it is new. With `session` the row joins that transaction and is published once the
    leader finds it committed.
    """
    if session is not None:
        connection = session.connection() if isinstance(session, Session) else session
        return _add(database, connection, demanded, due)
    with database.begin() as connection:
        return _add(database, connection, demanded, due)


def _add(
    database: Database, connection: Connection, demanded: DueJob, due: datetime | float
) -> tuple[DueJob, bool]:
    if isinstance(due, datetime):
        now, demanded.due_at = database.clock_in(connection), due
    else:
        now, demanded.due_at = connection.execute(select(database.now(), database.now(due))).one()
    return demanded, insert_job(database, connection, demanded, now)


def get_job(database: Database, job_id: str) -> RowMapping:
    """Return one job's row; raise `UnknownJob`."""
    with database.autocommit() as connection:
        row = connection.execute(select(job).where(job.c.id == job_id)).mappings().one_or_none()
    if row is None:
        raise UnknownJob(job_id)
    return row


def attempts_of(database: Database, job_id: str) -> list[RowMapping]:
    """Return the finished attempts of a job, oldest first."""
    query = select(attempt).where(attempt.c.job_id == job_id).order_by(attempt.c.ended_at)
    with database.autocommit() as connection:
        return list(connection.execute(query).mappings())


def list_jobs(database: Database, wanted: JobFilter, *, limit: int) -> list[RowMapping]:
    """Return jobs, the newest planned first."""
    query = matching(select(job), wanted).order_by(job.c.planned_at.desc(), job.c.id.desc()).limit(limit)
    with database.autocommit() as connection:
        return list(connection.execute(query).mappings())


def count_by_state(database: Database, wanted: JobFilter) -> Mapping[str, int]:
    """Return how many jobs stand in each state."""
    query = matching(select(job.c.state, func.count()), wanted).group_by(job.c.state)
    with database.autocommit() as connection:
        return {row[0]: row[1] for row in connection.execute(query)}


def cancel_waiting(
    connection: Connection, now: datetime | ColumnElement[datetime], *which: ColumnElement[bool]
) -> int:
    """End the jobs `which` that have not started, or wait for another attempt; return how many there were."""
    waiting = [State.SCHEDULED, State.PENDING, State.RETRYING]
    cancelled = connection.execute(
        update(job)
        .where(*which, job.c.state.in_(waiting))
        .values(state=State.CANCELLED, cancel_requested_at=now, finished_at=now, updated_at=now)
    )
    return cancelled.rowcount


def stop_running(connection: Connection, now: ColumnElement[datetime], *which: ColumnElement[bool]) -> None:
    """Ask the jobs `which` that run to stop by themselves."""
    connection.execute(
        update(job)
        .where(*which, job.c.state == State.RUNNING)
        .values(cancel_requested_at=func.coalesce(job.c.cancel_requested_at, now), updated_at=now)
    )


def request_cancel(database: Database, job_id: str) -> State:
    """Ask a job to stop; one that has not started never will. Return its state now."""
    now = database.now()
    with database.begin() as connection:
        if not cancel_waiting(connection, now, job.c.id == job_id):
            stop_running(connection, now, job.c.id == job_id)
        state = connection.execute(select(job.c.state).where(job.c.id == job_id)).scalar_one_or_none()
    if state is None:
        raise UnknownJob(job_id)
    return State(state)


SENT_BACK_FROM: Final = (State.FAILED, State.TIMED_OUT)


def sent_back(database: Database) -> dict[str, Any]:
    """Return the columns of a job that is sent back: its history stays, its attempts start anew."""
    now = database.now()
    return {
        "state": State.SCHEDULED,
        "due_at": now,
        "published_at": None,
        "publishes": 0,
        "dead_at": None,
        "finished_at": None,
        "cancel_requested_at": None,
        "crashes": 0,
        "attempts_before": job.c.attempts,
        "updated_at": now,
    }


def retry_dead(database: Database, job_id: str) -> None:
    """Send a dead letter back: the same id, its history kept, as many attempts as at first."""
    with database.begin() as connection:
        sent = connection.execute(
            update(job).where(job.c.id == job_id, job.c.state.in_(SENT_BACK_FROM)).values(sent_back(database))
        )
        if sent.rowcount == 1:
            return
        state = connection.execute(select(job.c.state).where(job.c.id == job_id)).scalar_one_or_none()
    if state is None:
        raise UnknownJob(job_id)
    over = "it is not over yet" if State(state) not in ENDS else "only a failed or timed-out job can"
    raise JobRefused(f"job {job_id} is {state}: {over} be sent back")


def matching(query: Select[Any], wanted: JobFilter) -> Select[Any]:
    """Return `query`, which selects from the jobs, narrowed to `wanted`."""
    equal = {"state": wanted.state, "task": wanted.task, "tenant": wanted.tenant, "queue": wanted.queue}
    query = query.where(*(job.c[name] == value for name, value in equal.items() if value is not None))
    if wanted.schedule is not None:
        query = query.where(job.c.schedule_id == schedule_id(wanted.schedule))  # the name has no index
    if wanted.since is not None:
        query = query.where(job.c.planned_at >= wanted.since)
    if wanted.until is not None:
        query = query.where(job.c.planned_at < wanted.until)
    if wanted.text:
        query = query.where(
            contains(wanted.text, job.c.id, job.c.task, job.c.schedule_name, job.c.tenant, job.c.error)
        )
    if wanted.before is not None:
        query = query.where(tuple_(job.c.planned_at, job.c.id) < wanted.before)
    return query


def request_cancel_of_schedules(database: Database, ids: Sequence[str], *, at_once: bool) -> None:
    """Stop what goes on of the schedules `ids`; one that has not started never will.

    at_once: do not wait for it to stop by itself.
    """
    with database.begin() as connection:
        for statement in _cancel_of_schedules(database, at_once):
            connection.execute(statement, {"ids": list(ids)})


@lru_cache(maxsize=16)
def _cancel_of_schedules(database: Database, at_once: bool) -> tuple[Update, ...]:
    now = database.now()
    since = database.now(-GRACE_S) if at_once else now
    of_them = job.c.schedule_id.in_(bindparam("ids", expanding=True))
    return (
        update(job)
        .where(of_them, job.c.state.in_([State.PENDING, State.RETRYING]), text(HEAD))
        .values(state=State.CANCELLED, cancel_requested_at=now, finished_at=now, updated_at=now),
        update(job)
        .where(of_them, text(RUNNING), text(HEAD))
        .values(cancel_requested_at=func.coalesce(job.c.cancel_requested_at, since), updated_at=now),
        update(batch)
        .where(batch.c.schedule_id.in_(bindparam("ids", expanding=True)), batch.c.ended_at.is_(None))
        .values(cancelled_at=func.coalesce(batch.c.cancelled_at, now)),
    )
