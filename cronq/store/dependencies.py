"""Jobs that wait for jobs of other schedules: what became of those, and what becomes of them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from sqlalchemy import Connection, Row, bindparam, case, select, text, update

from cronq.job import ENDS, State
from cronq.schedule import After, Reason, schedule_id
from cronq.store.database import Database
from cronq.store.schedules import stored
from cronq.store.tables import AWAITING, batch, job, schedule
from cronq.store.terms import Term, hold_term

FAILED = (State.FAILED, State.TIMED_OUT)


class Upstream(StrEnum):
    """What became of another schedule's job of the same fire time."""

    OPEN = "open"  #: it is not at its end, or not even planned
    COMPLETED = "completed"
    FAILED = "failed"
    LEFT_OUT = "left_out"  #: it was skipped or cancelled, or that schedule has no such fire time


@dataclass(frozen=True, slots=True)
class WaitingJob:
    """A job that waits for others."""

    id: str
    fire_time: datetime
    after: After
    upstream: dict[str, Upstream] = field(default_factory=dict)  #: by the other schedule's name


_AWAITING: Final = (
    select(job.c.id, job.c.fire_time, job.c.schedule_id)
    .where(text(AWAITING))
    .order_by(job.c.fire_time, job.c.id)
    .limit(bindparam("limit"))
)


def waiting_for_others(database: Database, *, seen: WaitingJob | None = None, limit: int) -> list[WaitingJob]:
    """Return jobs that wait for others, the oldest fire time first; `seen`: the last one, to go on from."""
    query = _AWAITING
    if seen is not None:
        same = (job.c.fire_time == seen.fire_time) & (job.c.id > seen.id)
        query = query.where(job.c.fire_time >= seen.fire_time, (job.c.fire_time > seen.fire_time) | same)
    with database.autocommit() as connection:
        rows = connection.execute(query, {"limit": limit}).all()
        after = _afters(connection, {row.schedule_id for row in rows})
        found = [_waiting(row, after[row.schedule_id]) for row in rows]
        _look_up(connection, found)
    return found


def let_go(database: Database, term: Term, go: Sequence[str], skip: Sequence[str]) -> None:
    """Let the jobs `go` be due, and record that the jobs `skip` do not run. Raise `NotLeader`.

    A job that does not wait any more stays as it is.
    """
    if not go and not skip:
        return
    now = database.now()
    with database.begin() as connection:
        hold_term(connection, term)
        waits = (job.c.state == State.SCHEDULED, job.c.held_at.is_not(None))
        connection.execute(
            update(job)
            .where(job.c.id.in_(go), *waits)
            .values(held_at=None, updated_at=now, due_at=case((job.c.due_at < now, now), else_=job.c.due_at))
        )
        connection.execute(
            update(job)
            .where(job.c.id.in_(skip), *waits)
            .values(
                held_at=None, updated_at=now, finished_at=now, state=State.SKIPPED, reason=Reason.UPSTREAM
            )
        )


def _waiting(row: Row[Any, Any, Any], after: After | None) -> WaitingJob:
    if after is None:  # nobody knows what for: until somebody writes the schedule again
        return WaitingJob(row.id, row.fire_time, After(()), {"": Upstream.OPEN})
    return WaitingJob(row.id, row.fire_time, after)


def _afters(connection: Connection, ids: Collection[str]) -> dict[str, After | None]:
    """Return what each of the schedules `ids` comes after, as it is declared now; None: it cannot be read."""
    if not ids:
        return {}
    rows = connection.execute(select(schedule).where(schedule.c.id.in_(list(ids))))
    found = {row.id: stored(row) for row in rows}
    return {i: None if each.unreadable else each.definition.after or After(()) for i, each in found.items()}


def _look_up(connection: Connection, found: Sequence[WaitingJob]) -> None:
    names = {name for waiting in found for name in waiting.after.schedules}
    if not names:
        return
    ids = {schedule_id(name): name for name in names}
    # The cursors first: what is planned after this is seen below, and counts as open at worst.
    cursors = {
        row.id: row
        for row in connection.execute(
            select(schedule.c.id, schedule.c.next_fire_at, schedule.c.retired_at).where(
                schedule.c.id.in_(list(ids))
            )
        )
    }
    rows = connection.execute(
        select(
            job.c.schedule_id, job.c.fire_time, job.c.state, job.c.batch_id, batch.c.ended_at, batch.c.counts
        )
        .join(batch, batch.c.id == job.c.id, isouter=True)
        .where(
            job.c.schedule_id.in_(list(ids)),
            job.c.fire_time.in_(list({waiting.fire_time for waiting in found})),
            job.c.item == "",
        )
    )
    jobs = {(row.schedule_id, row.fire_time): row for row in rows}
    for waiting in found:
        for name in waiting.after.schedules:
            other = schedule_id(name)
            row = jobs.get((other, waiting.fire_time))
            waiting.upstream[name] = (
                _unplanned(cursors.get(other), waiting.fire_time) if row is None else _became(row)
            )


def _unplanned(cursor: Any, fire_time: datetime) -> Upstream:  # noqa: ANN401 - a row, or None
    to_come = (
        cursor is not None
        and cursor.retired_at is None
        and cursor.next_fire_at is not None
        and cursor.next_fire_at <= fire_time
    )
    return Upstream.OPEN if to_come else Upstream.LEFT_OUT


def _became(row: Any) -> Upstream:  # noqa: ANN401 - a row
    state = State(row.state)
    if state not in ENDS:
        return Upstream.OPEN
    if row.batch_id is not None and state not in (State.SKIPPED, State.CANCELLED):
        return _batch_became(state, row.ended_at, row.counts or {})
    if state is State.COMPLETED:
        return Upstream.COMPLETED
    return Upstream.FAILED if state in FAILED else Upstream.LEFT_OUT


def _batch_became(head: State, ended_at: datetime | None, counts: Mapping[str, int]) -> Upstream:
    if ended_at is None:
        return Upstream.OPEN
    if head in FAILED or any(counts.get(state) for state in FAILED):
        return Upstream.FAILED
    return Upstream.COMPLETED if set(counts) <= {State.COMPLETED} else Upstream.LEFT_OUT
