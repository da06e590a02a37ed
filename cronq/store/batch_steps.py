"""What moves a batch on: a worker adds its items, the leader carries out wishes and sees its end.

Each step is one short transaction that changes at most a thousand rows and may be made again: whoever dies
between two of them, the next one goes on. Steps of one batch take its row first, so they never cross.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, Row, Select, select, text, update

from cronq.errors import LeaseLost
from cronq.job import ACTIVE, TELLING, State, Trigger, batch_end_job_id, demanded_job_id
from cronq.schedule import Schedule
from cronq.store.agenda import DueJob, insert_job, insert_jobs, read_due
from cronq.store.batches import CHUNK, count_items, read_batch
from cronq.store.database import Database
from cronq.store.definitions import from_data
from cronq.store.tables import UNFINISHED_ITEM, batch, job, schedule_version
from cronq.store.terms import Term, hold_term

WAITING = (State.SCHEDULED, State.PENDING, State.RETRYING)
TOLD = (State.COMPLETED, State.FAILED, State.TIMED_OUT, State.CANCELLED)
"""What the task that runs at the end is told the number of."""


def begin_batch(database: Database, head_id: str) -> tuple[DueJob, Schedule]:
    """Note that the batch of the job `head_id` begins; return that job and its schedule as it was planned."""
    with database.begin() as connection:
        head = read_due(connection, head_id)
        if head is None:
            raise LeaseLost(f"the job {head_id} was taken back: its schedule was changed")
        definition = connection.execute(
            select(schedule_version.c.definition).where(
                schedule_version.c.schedule_id == head.schedule_id,
                schedule_version.c.version == head.schedule_version,
            )
        ).scalar_one()
        declared = from_data(definition)
        connection.execute(
            database.insert(batch)
            .values(
                id=head_id,
                schedule_id=head.schedule_id,
                schedule_name=head.schedule_name,
                fire_time=head.fire_time,
                task=head.task,
                on_complete=declared.on_complete,
                callback_url=declared.callback_url,
                created_at=database.now(),
            )
            # It is there if an attempt died, or if it ended and its job was sent back: then it goes on.
            .on_conflict_do_update(
                index_elements=[batch.c.id],
                set_={"ended_at": None, "counts": None, "cancelled_at": None},
                where=batch.c.ended_at.is_not(None),
            )
        )
    return head, declared


def add_items(database: Database, head_id: str, items: Sequence[DueJob], *, token: str) -> int:
    """Add items to a batch; return how many of them are new. Raise `LeaseLost` if another worker has it.

    The items of a paused batch are held, like those that it has.
    """
    with database.begin() as connection:
        row = _lock(connection, head_id)
        mine = select(job.c.id).where(
            job.c.id == head_id, job.c.lease_token == token, job.c.state == State.RUNNING
        )
        if row is None or row.cancelled_at is not None or connection.execute(mine).one_or_none() is None:
            raise LeaseLost(f"the batch {head_id} is another worker's now, or it was cancelled")
        for item in items:
            item.held_at = row.paused_at
        added = insert_jobs(database, connection, items, database.clock_in(connection))
        connection.execute(update(batch).where(batch.c.id == head_id).values(total=batch.c.total + added))
    return added


_OPEN: Final = select(batch.c.id, batch.c.schedule_id, batch.c.paused_at, batch.c.cancelled_at).where(
    batch.c.ended_at.is_(None)
)


def open_batches(database: Database) -> list[Row[Any]]:
    """Return (id, schedule_id, paused_at, cancelled_at) of the batches that are not at their end."""
    with database.autocommit() as connection:
        return list(connection.execute(_OPEN))


def hold_items(database: Database, batch_id: str) -> int:
    """Hold items of a paused batch that wait; return how many, 0 when none is left."""
    return _change(
        database,
        _items(batch_id, WAITING).where(job.c.held_at.is_(None), job.c.id != job.c.batch_id),
        WAITING,
        # A message that is out already is refused when a worker claims it.
        state=text("CASE state WHEN 'PENDING' THEN 'SCHEDULED' ELSE state END"),
        published_at=None,
        held_at=database.now(),
    )


def release_items(database: Database, batch_id: str) -> int:
    """Let held items of a batch that is not paused wait for their due time again; return how many."""
    held = _items(batch_id, WAITING).where(job.c.held_at.is_not(None), job.c.id != job.c.batch_id)
    return _change(database, held, WAITING, held_at=None)


def cancel_items(database: Database, batch_id: str) -> int:
    """Cancel items of a batch that wait, and ask those that run to stop; return how many waited."""
    now = database.now()
    running = _items(batch_id, (State.RUNNING,)).where(job.c.cancel_requested_at.is_(None))
    _change(database, running, (State.RUNNING,), cancel_requested_at=now)
    return _change(
        database,
        _items(batch_id, WAITING),
        WAITING,
        state=State.CANCELLED,
        cancel_requested_at=now,
        finished_at=now,
    )


def end_batch(database: Database, batch_id: str, term: Term) -> str | None:
    """End a batch if all its items are at an end; return the id of the job that is asked for then, or "".

    None: it goes on. That job is asked for in the same transaction, under an id of its own: once ever. So is
    the webhook of the batch, which tells of each end.
    """
    still = select(job.c.id).where(
        job.c.batch_id == batch_id, text(UNFINISHED_ITEM), job.c.state.in_([State.SCHEDULED, *ACTIVE])
    )
    with database.autocommit() as connection:
        if connection.execute(still.limit(1)).one_or_none() is not None:
            return None
    with database.begin() as connection:
        hold_term(connection, term)
        row = _lock(connection, batch_id)
        # Asked again under the lock: somebody may have sent a dead letter back.
        if row is None or row.ended_at is not None or connection.execute(still.limit(1)).one_or_none():
            return None
        now = database.clock_in(connection)
        counts = count_items(connection, batch_id, row.total)
        connection.execute(update(batch).where(batch.c.id == batch_id).values(ended_at=now, counts=counts))
        if row.callback_url is not None:
            insert_job(database, connection, _webhook(connection, row, counts, now), now)
        if row.on_complete is None:
            return ""
        follow_up = _follow_up(row, counts, now)
        return follow_up.id if insert_job(database, connection, follow_up, now) else ""


def _follow_up(row: Row[Any], counts: dict[str, int], now: datetime) -> DueJob:
    return DueJob(
        id=batch_end_job_id(row.id),
        task=row.on_complete,
        args=[end_facts(row.id, row.schedule_name, row.fire_time, row.total, counts)],
        kwargs={},
        due_at=now,
        trigger=Trigger.BATCH_END,
    )


def _webhook(connection: Connection, row: Row[Any], counts: dict[str, int], now: datetime) -> DueJob:
    """Return the job that tells the receiver; what it tells is how the batch ended now, whatever comes."""
    status = read_batch(connection, row.id).status
    told = end_facts(row.id, row.schedule_name, row.fire_time, row.total, counts) | {
        "task": row.task,
        "status": status,
        "ended_at": now.isoformat(),
    }
    return DueJob(
        id=demanded_job_id(None),
        task=TELLING,
        args=[],
        kwargs={"batch": told},
        due_at=now,
        trigger=Trigger.WEBHOOK,
    )


def end_facts(
    batch_id: str, schedule: str, fire_time: datetime | None, total: int, counts: Mapping[str, int]
) -> dict[str, Any]:
    """Return what is told of a batch at its end. counts: its items by the state in which they ended."""
    return {
        "batch_id": batch_id,
        "schedule": schedule,
        "fire_time": None if fire_time is None else fire_time.isoformat(),
        "total": total,
        **{state.lower(): counts.get(state, 0) for state in TOLD},
    }


def _lock(connection: Connection, batch_id: str) -> Row[Any] | None:
    return connection.execute(select(batch).where(batch.c.id == batch_id).with_for_update()).one_or_none()


def _items(batch_id: str, states: Sequence[State]) -> Select[Any]:
    return select(job.c.id).where(
        job.c.batch_id == batch_id, text(UNFINISHED_ITEM), job.c.state.in_(list(states))
    )


def _change(
    database: Database,
    which: Select[Any],
    states: Sequence[State],
    **values: Any,  # noqa: ANN401 - SQL values
) -> int:
    with database.begin() as connection:
        ids = list(connection.execute(which.limit(CHUNK)).scalars())
        if not ids:
            return 0
        # The states once more: a worker may have been faster.
        done = connection.execute(
            update(job)
            .where(job.c.id.in_(ids), job.c.state.in_(list(states)))
            .values(updated_at=database.now(), **values)
        )
    return done.rowcount
