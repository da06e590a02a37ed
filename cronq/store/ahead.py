"""What is planned ahead of now? Fire times that have jobs already, and that an edit may still take back."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from sqlalchemy import Connection, bindparam, delete, select, text, update

from cronq.job import State, Trigger
from cronq.store.tables import BATCH_HEAD, batch, job, schedule
from cronq.store.values import chunks

_DELETE_BATCHES_AHEAD: Final = delete(batch).where(
    batch.c.schedule_id.in_(bindparam("ids", expanding=True)), batch.c.fire_time > bindparam("now")
)
_DELETE_JOBS_AHEAD: Final = (
    delete(job)
    .where(
        job.c.schedule_id.in_(bindparam("ids", expanding=True)),
        # SKIPPED: a fire time ahead that the old timing left out.
        job.c.state.in_([State.SCHEDULED, State.SKIPPED]) | text(f"({BATCH_HEAD})"),
        job.c.trigger == Trigger.SCHEDULE,
        job.c.fire_time > bindparam("now"),
    )
    .returning(job.c.schedule_id, job.c.fire_time, job.c.state)
)


def take_back_planned(
    connection: Connection, ids: Sequence[str], now: datetime, *, rewind: bool = True
) -> None:
    """Delete the jobs of `ids` whose fire time lies ahead of `now`: they have no disposition yet.

    rewind: let planning start again at the first of them.
    """
    first: dict[str, datetime] = {}
    # Whoever is finding a batch's items learns here that it is over; they go with it.
    values = {"ids": list(ids), "now": now}
    connection.execute(_DELETE_BATCHES_AHEAD, values)
    for schedule_id, fire_time, state in connection.execute(_DELETE_JOBS_AHEAD, values):
        if state != State.SKIPPED:
            first[schedule_id] = min(fire_time, first.get(schedule_id, fire_time))
    if rewind and first:
        connection.execute(
            update(schedule)
            .where(schedule.c.id == bindparam("_id"))
            .values(next_fire_at=bindparam("_first")),
            [{"_id": schedule_id, "_first": fire_time} for schedule_id, fire_time in first.items()],
        )


def planned_ahead(connection: Connection, now: datetime) -> dict[str, list[datetime]]:
    """Return the fire times ahead of `now` that are planned and not published, by schedule."""
    planned: dict[str, list[datetime]] = {}
    rows = connection.execute(
        select(job.c.schedule_id, job.c.fire_time)
        .where(job.c.state == State.SCHEDULED, job.c.trigger == Trigger.SCHEDULE, job.c.fire_time > now)
        .distinct()
    )
    for schedule_id, fire_time in rows:
        planned.setdefault(schedule_id, []).append(fire_time)
    return planned


_KNOWN: Final = select(job.c.id).where(
    job.c.id.in_(bindparam("ids", expanding=True)), job.c.planned_at != bindparam("now")
)


def known_before(connection: Connection, ids: Sequence[str], now: datetime) -> set[str]:
    """Return those of the jobs `ids` that were there before those inserted at `now`."""
    found: set[str] = set()
    for part in chunks(ids):
        found.update(connection.execute(_KNOWN, {"ids": part, "now": now}).scalars())
    return found
