"""Batches, each the jobs of all items of one fire time: how far they are, and what operators want of them.

Nothing is counted when a job settles: a batch is counted when somebody asks, by an index that holds only the
items that are not completed. What an operator wants is noted on the batch; the leader carries it out.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection, Row, RowMapping, Select, func, select, text, update

from cronq.errors import BatchRefused, UnknownBatch
from cronq.job import ENDS, State
from cronq.schedule import schedule_id
from cronq.store.database import Database
from cronq.store.jobs import sent_back
from cronq.store.tables import UNFINISHED_ITEM, batch, job

RATE_WINDOW_S: Final = 30.0
CHUNK: Final = 1000
"""Rows that one statement changes: a batch of a million must not hold the others up."""
DEAD: Final = (State.FAILED, State.TIMED_OUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A batch as it stands."""

    id: str  #: also the id of the job that finds its items
    schedule: str
    fire_time: datetime | None
    task: str
    total: int  #: items found so far
    finding: bool  #: more may be found
    error: str | None  #: why not all of them could be found
    counts: dict[str, int]  #: items by state
    created_at: datetime
    paused_at: datetime | None
    cancelled_at: datetime | None
    ended_at: datetime | None
    on_complete: str | None
    callback_url: str | None = None  #: whom to tell of its end

    @property
    def done(self) -> int:
        """How many items are at an end, however they ended."""
        return sum(count for state, count in self.counts.items() if State(state) in ENDS)

    @property
    def failed(self) -> int:
        """How many items are out of attempts."""
        return sum(self.counts.get(state, 0) for state in DEAD)

    @property
    def started(self) -> bool:
        """Whether its items are known, or will not be."""
        return self.total > 0 or not self.finding

    @property
    def state(self) -> State:
        """The same as a job's state, where a batch stands among jobs: paused or not, it is under way."""
        return _AS_JOB.get(self.status, State.RUNNING)

    @property
    def status(self) -> str:
        """One word: finding, running, paused, cancelled, failed (some did) or completed."""
        if self.ended_at is not None:
            if self.cancelled_at is not None:
                return "cancelled"
            return (
                "completed"
                if self.counts.get(State.COMPLETED, 0) == self.total and not self.error
                else "failed"
            )
        if self.cancelled_at is not None:
            return "cancelling"
        if self.paused_at is not None:
            return "paused"
        return "finding" if self.finding else "running"


_AS_JOB: Final = {
    "completed": State.COMPLETED,
    "failed": State.FAILED,
    "cancelled": State.CANCELLED,
}


def get_batch(database: Database, batch_id: str) -> Batch:
    """Return one batch; raise `UnknownBatch`."""
    with database.autocommit() as connection:
        return read_batch(connection, batch_id)


def read_batch(connection: Connection, batch_id: str) -> Batch:
    """Do the same inside a transaction."""
    row = connection.execute(_batches().where(batch.c.id == batch_id)).one_or_none()
    if row is None:
        raise UnknownBatch(batch_id)
    return _batch(connection, row)


def batches_by_id(database: Database, ids: Iterable[str]) -> dict[str, Batch]:
    """Return those of the batches `ids` that there are."""
    wanted = list(ids)
    found: dict[str, Batch] = {}
    with database.autocommit() as connection:
        for begin in range(0, len(wanted), CHUNK):
            rows = connection.execute(_batches().where(batch.c.id.in_(wanted[begin : begin + CHUNK]))).all()
            found |= {row.id: _batch(connection, row) for row in rows}
    return found


def list_batches(
    database: Database,
    *,
    schedule: str | None = None,
    unfinished: bool = False,
    before: tuple[datetime, str] | None = None,
    limit: int = 50,
) -> list[Batch]:
    """Return batches, the newest first. before: the cursor, (created_at, id) of the last one seen."""
    query = _batches().order_by(batch.c.created_at.desc(), batch.c.id.desc()).limit(limit)
    if schedule is not None:
        query = query.where(batch.c.schedule_id == schedule_id(schedule))
    if unfinished:
        query = query.where(batch.c.ended_at.is_(None))
    if before is not None:
        at, last = before
        query = query.where(
            (batch.c.created_at < at) | ((batch.c.created_at == at) & (batch.c.id < last)),
        )
    with database.autocommit() as connection:
        return [_batch(connection, row) for row in connection.execute(query).all()]


def list_items(
    database: Database, batch_id: str, *, state: State | None = None, after: str = "", limit: int = 50
) -> list[RowMapping]:
    """Return the jobs of a batch's items, in the order of the items from `after` on. Raise `UnknownBatch`."""
    with database.autocommit() as connection:
        found = connection.execute(select(batch).where(batch.c.id == batch_id)).one_or_none()
        if found is None:
            raise UnknownBatch(batch_id)
        query = (
            select(job)
            # The fire time is implied, and lets the unique key of the items be used.
            .where(job.c.schedule_id == found.schedule_id, job.c.fire_time == found.fire_time)
            .where(job.c.batch_id == batch_id, job.c.id != batch_id, job.c.item > after)
            .order_by(job.c.item)
            .limit(limit)
        )
        if state is not None:
            query = query.where(job.c.state == state)
            if state is not State.COMPLETED:
                query = query.where(text(UNFINISHED_ITEM))
        return list(connection.execute(query).mappings())


def rate_of(database: Database, found: Batch) -> float:
    """Return how many of the batch's items come to an end per second, lately."""
    now = database.clock()
    since = max(now - timedelta(seconds=RATE_WINDOW_S), found.created_at)
    query = (
        select(func.count())
        .select_from(job)
        .where(job.c.updated_at >= since, job.c.finished_at >= since, job.c.batch_id == found.id)
        .where(job.c.item != "")
    )
    with database.autocommit() as connection:
        ended: int = connection.execute(query).scalar_one()
    return ended / max((now - since).total_seconds(), 1.0)


def count_items(connection: Connection, batch_id: str, total: int) -> dict[str, int]:
    """Return how many items of a batch, of which `total` were found, stand in each state."""
    head = connection.execute(select(job.c.state).where(job.c.id == batch_id)).scalar_one_or_none()
    query = (
        select(job.c.state, func.count())
        .where(job.c.batch_id == batch_id, text(UNFINISHED_ITEM))
        .group_by(job.c.state)
    )
    counts = {row[0]: row[1] for row in connection.execute(query)}
    if head in counts:
        counts[head] -= 1  # the job that finds the items is none of them
    completed = total - sum(counts.values())
    return {
        state: count for state, count in {**counts, State.COMPLETED.value: max(completed, 0)}.items() if count
    }


def pause_batch(database: Database, batch_id: str) -> Batch:
    """Let no further item start until the batch is resumed; items that run go on."""
    _wish(database, batch_id, "pause", paused_at=func.coalesce(batch.c.paused_at, database.now()))
    return get_batch(database, batch_id)


def resume_batch(database: Database, batch_id: str) -> Batch:
    """Let a paused batch go on."""
    _wish(database, batch_id, "resume", paused_at=None)
    return get_batch(database, batch_id)


def cancel_batch(database: Database, batch_id: str) -> Batch:
    """Stop a batch: items that have not started never will; those that run are asked to stop."""
    _wish(database, batch_id, "cancel", cancelled_at=func.coalesce(batch.c.cancelled_at, database.now()))
    return get_batch(database, batch_id)


def retry_failed(database: Database, batch_id: str) -> int:
    """Send a batch's dead letters back, and open it again; return how many there were.

    What is to happen when the batch ends happens once, and not again after this.
    """
    found = get_batch(database, batch_id)
    sent = 0
    while True:
        with database.begin() as connection:
            connection.execute(
                update(batch)
                .where(batch.c.id == found.id)
                .values(ended_at=None, counts=None, cancelled_at=None)
            )
            ids = connection.execute(
                select(job.c.id)
                .where(job.c.batch_id == found.id, text(UNFINISHED_ITEM), job.c.state.in_(DEAD))
                .limit(CHUNK)
            ).scalars()
            statement = update(job).where(job.c.id.in_(list(ids)), job.c.state.in_(DEAD))
            done = connection.execute(statement.values(sent_back(database))).rowcount
        sent += done
        if done == 0:
            return sent


def _wish(database: Database, batch_id: str, what: str, **wish: Any) -> None:  # noqa: ANN401 - SQL values
    with database.begin() as connection:
        noted = connection.execute(
            update(batch).where(batch.c.id == batch_id, batch.c.ended_at.is_(None)).values(wish)
        )
    if noted.rowcount == 0:
        found = get_batch(database, batch_id)
        raise BatchRefused(f"batch {batch_id} is over ({found.status}), so there is nothing to {what}")


def _batches() -> Select[Any]:
    return select(batch, job.c.state.label("head_state"), job.c.error.label("head_error")).join(
        job, job.c.id == batch.c.id, isouter=True
    )


def _batch(connection: Connection, row: Row[Any]) -> Batch:
    over = row.head_state is None or State(row.head_state) in ENDS
    unfound = over and row.head_state not in (None, State.COMPLETED)
    return Batch(
        id=row.id,
        schedule=row.schedule_name,
        fire_time=row.fire_time,
        task=row.task,
        total=row.total,
        finding=not over,
        error=(row.head_error or row.head_state) if unfound else None,
        counts=row.counts if row.counts is not None else count_items(connection, row.id, row.total),
        created_at=row.created_at,
        paused_at=row.paused_at,
        cancelled_at=row.cancelled_at,
        ended_at=row.ended_at,
        on_complete=row.on_complete,
        callback_url=row.callback_url,
    )
