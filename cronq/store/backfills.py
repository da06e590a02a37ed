"""Which ranges of fire times are being made up for? A backfill runs a schedule's past fire times again.

Each of its jobs is a job of its own beside what was recorded for the fire time: what happened then stays on
record. A backfill has its own concurrency, and takes no part in the schedule's overlap policy, so that it
never makes a live fire time wait or be skipped.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from itertools import islice
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, RowMapping, func, select, text, update

from cronq.errors import BackfillRefused, UnknownBackfill
from cronq.job import ACTIVE, ENDS, State, Trigger, uuid7
from cronq.schedule import Overlap
from cronq.store.agenda import DueJob, insert_jobs
from cronq.store.database import Database
from cronq.store.jobs import cancel_waiting
from cronq.store.scheduled import job_of
from cronq.store.schedules import StoredSchedule, get_schedule, stored
from cronq.store.tables import RUNNING_BACKFILL, backfill, job, schedule
from cronq.store.terms import Term, hold_term
from cronq.timing import Delay, Timing, timing_from
from cronq.timing.base import MICROSECOND

MOST_FIRES: Final = 100_000
MOST_AT_ONCE: Final = 1000
STEP: Final = 500
"""Fire times that one transaction looks at."""


class BackfillState(StrEnum):
    """Where a backfill stands."""

    RUNNING = "RUNNING"
    PAUSED = "PAUSED"  #: it starts nothing; what it started goes on
    COMPLETED = "COMPLETED"  #: every fire time has been dealt with; some of their jobs may have failed
    CANCELLED = "CANCELLED"


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillRange:
    """What is to be made up for: the fire times f with start <= f < end."""

    start: datetime
    end: datetime
    concurrency: int = 1  #: how many of its jobs may be under way at a time
    newest_first: bool = False
    again: bool = False  #: also the fire times that have a completed job, or one that is not at its end yet


@dataclass(frozen=True, slots=True)
class Preview:
    """What a backfill would do."""

    fires: int  #: fire times in the range
    runs: int  #: those of them that would run
    first: tuple[datetime, ...]  #: the first few that would run, in its order


def preview(database: Database, name: str, wanted: BackfillRange, *, shown: int = 10) -> Preview:
    """Say what a backfill would do, and do nothing. Raises `UnknownSchedule` and `BackfillRefused`."""
    found = get_schedule(database, name)
    fires = list(_checked_fires(database, found, wanted))
    runs: list[datetime] = []
    with database.autocommit() as connection:
        for start in range(0, len(fires), STEP):
            part = fires[start : start + STEP]
            done = set() if wanted.again else _dealt_with(connection, found.id, part)
            runs += [fire for fire in part if fire not in done]
    return Preview(len(fires), len(runs), tuple(runs[:shown]))


def start(database: Database, name: str, wanted: BackfillRange, *, actor: str) -> dict[str, Any]:
    """Begin a backfill, which the leader carries out; return what `get_backfill` does.

    Raises `UnknownSchedule` and `BackfillRefused`.
    """
    found = get_schedule(database, name)
    count = sum(1 for _ in _checked_fires(database, found, wanted))
    backfill_id = str(uuid7())
    with database.begin() as connection:
        now = database.clock_in(connection)
        connection.execute(
            backfill.insert().values(
                id=backfill_id,
                schedule_id=found.id,
                schedule_name=name,
                range_start=wanted.start,
                range_end=wanted.end,
                concurrency=wanted.concurrency,
                newest_first=wanted.newest_first,
                again=wanted.again,
                state=BackfillState.RUNNING,
                position=wanted.end if wanted.newest_first else wanted.start,
                fires=count,
                actor=actor,
                created_at=now,
                updated_at=now,
            )
        )
    return get_backfill(database, backfill_id)


def get_backfill(database: Database, backfill_id: str) -> dict[str, Any]:
    """Return one backfill's row, and `jobs`: how many stand in each state. Raises `UnknownBackfill`."""
    with database.autocommit() as connection:
        row = _read(connection, backfill_id)
        counts = connection.execute(
            select(job.c.state, func.count()).where(*_of(backfill_id)).group_by(job.c.state)
        )
        return {**row, "jobs": {each[0]: each[1] for each in counts}}


def list_backfills(database: Database, *, schedule_name: str | None = None, limit: int) -> list[RowMapping]:
    """Return backfills, the newest first."""
    query = select(backfill).order_by(backfill.c.id.desc()).limit(limit)
    if schedule_name is not None:
        query = query.where(backfill.c.schedule_name == schedule_name)
    with database.autocommit() as connection:
        return list(connection.execute(query).mappings())


def set_state(database: Database, backfill_id: str, wanted: BackfillState) -> dict[str, Any]:
    """Pause, resume or cancel a backfill. Cancelled, its jobs that have not started never will.

    Raises `UnknownBackfill`, and `BackfillRefused` if it is at its end already.
    """
    with database.begin() as connection:
        row = _read(connection, backfill_id, lock=True)
        if row["state"] in (BackfillState.COMPLETED, BackfillState.CANCELLED):
            raise BackfillRefused(f"backfill {backfill_id} is {row['state']}: nothing was changed")
        now = database.clock_in(connection)
        ended = now if wanted is BackfillState.CANCELLED else None
        connection.execute(
            update(backfill)
            .where(backfill.c.id == backfill_id)
            .values(state=wanted, note=None, updated_at=now, finished_at=ended)
        )
        if wanted is BackfillState.CANCELLED:
            cancel_waiting(connection, now, *_of(backfill_id))
    return get_backfill(database, backfill_id)


# Not a parameter: SQLite plans a statement anew whenever one may be what a partial index is about.
_RUNNING: Final = select(backfill.c.id).where(text(RUNNING_BACKFILL)).order_by(backfill.c.id)


def running_backfills(database: Database) -> list[str]:
    """Return the ids of the backfills that have something to do, the oldest first."""
    with database.autocommit() as connection:
        return list(connection.execute(_RUNNING).scalars())


def go_on(database: Database, term: Term, backfill_id: str) -> int:
    """Insert the jobs that a backfill has room for, in one fenced transaction; return how many there were.

    Raises `NotLeader`.
    """
    with database.begin() as connection:
        hold_term(connection, term)
        row = _read(connection, backfill_id, lock=True)
        if row["state"] != BackfillState.RUNNING:
            return 0
        found = stored(connection.execute(select(schedule).where(schedule.c.id == row["schedule_id"])).one())
        if found.retired_at is not None or found.fault is not None or found.unreadable:
            note = "its schedule is retired or set aside; resume it when the schedule is back"
            connection.execute(
                update(backfill)
                .where(backfill.c.id == backfill_id)
                .values(state=BackfillState.PAUSED, note=note, updated_at=database.now())
            )
            return 0
        under_way = _under_way(connection, row)
        now = database.clock_in(connection)
        planned, position = _next_jobs(connection, row, found, row["concurrency"] - under_way, now)
        insert_jobs(database, connection, planned, now)
        over = position is None and under_way == 0 and not planned
        connection.execute(
            update(backfill)
            .where(backfill.c.id == backfill_id)
            .values(
                position=position,
                planned=backfill.c.planned + len(planned),
                updated_at=now,
                **({"state": BackfillState.COMPLETED, "finished_at": now} if over else {}),
            )
        )
    return len(planned)


def item_of(backfill_id: str) -> str:
    """Return what tells a backfill's job of a fire time from the fire time's own."""
    return f"backfill:{backfill_id}"


def _next_jobs(
    connection: Connection, row: RowMapping, found: StoredSchedule, room: int, now: datetime
) -> tuple[list[DueJob], datetime | None]:
    """Return the next jobs, at most `room`, and where to go on (None: the range is through)."""
    if row["position"] is None or room <= 0:
        return [], row["position"]
    timing = timing_from(found.definition.timing)
    looked_at = list(islice(_fires(timing, row["range_start"], row["range_end"], row), STEP))
    done = set() if row["again"] else _dealt_with(connection, found.id, looked_at)
    planned: list[DueJob] = []
    for fire in looked_at:
        if len(planned) == room:
            return planned, fire + MICROSECOND if row["newest_first"] else fire
        if fire not in done:
            planned.append(_job(found, fire, row["id"], now))
    if len(looked_at) < STEP:
        return planned, None
    return planned, looked_at[-1] if row["newest_first"] else looked_at[-1] + MICROSECOND


def _job(found: StoredSchedule, fire: datetime, backfill_id: str, now: datetime) -> DueJob:
    planned = job_of(found, fire, due_at=now, trigger=Trigger.BACKFILL, item=item_of(backfill_id))
    planned.overlap = Overlap.ALLOW
    return planned


def _fires(
    timing: Timing, start_: datetime, end: datetime, row: RowMapping | dict[str, Any]
) -> Iterator[datetime]:
    """Yield the fire times that are still to be dealt with, in the backfill's order."""
    if row["newest_first"]:
        fire = timing.previous(min(end, row["position"]))
        while fire is not None and fire >= start_:
            yield fire
            fire = timing.previous(fire)
    else:
        fire = timing.next(max(start_, row["position"]) - MICROSECOND)
        while fire is not None and fire < end:
            yield fire
            fire = timing.next(fire)


def _checked_fires(database: Database, found: StoredSchedule, wanted: BackfillRange) -> Iterator[datetime]:
    timing = found.timing
    name = f"schedule {found.name!r}"
    if found.retired_at is not None or found.fault is not None or found.unreadable:
        raise BackfillRefused(f"{name} is retired or set aside; declare it anew first")
    if isinstance(timing, Delay):
        raise BackfillRefused(f"{name} runs a fixed delay after its own end: it has no past fire times")
    if wanted.start >= wanted.end:
        raise BackfillRefused(f"the range is empty: {wanted.start} is not before {wanted.end}")
    if wanted.end.astimezone(UTC) > database.clock():
        raise BackfillRefused(f"the range ends at {wanted.end}, which lies ahead: the schedule runs those")
    if not 1 <= wanted.concurrency <= MOST_AT_ONCE:
        raise BackfillRefused(f"concurrency {wanted.concurrency} is not between 1 and {MOST_AT_ONCE}")
    position = wanted.end if wanted.newest_first else wanted.start
    row = {"newest_first": wanted.newest_first, "position": position}
    for number, fire in enumerate(_fires(timing, wanted.start, wanted.end, row)):
        if number >= MOST_FIRES:
            raise BackfillRefused(f"{name} has over {MOST_FIRES} fire times in the range; split it")
        yield fire


def _dealt_with(connection: Connection, schedule_id: str, fires: Sequence[datetime]) -> set[datetime]:
    """Return those of `fires` that have a job which completed, or is not at its end yet."""
    if not fires:
        return set()
    unfit = [state for state in ENDS if state is not State.COMPLETED]
    query = select(job.c.fire_time).where(
        job.c.schedule_id == schedule_id, job.c.fire_time.in_(fires), job.c.state.not_in(unfit)
    )
    return set(connection.execute(query).scalars())


def _under_way(connection: Connection, row: RowMapping) -> int:
    query = select(func.count()).where(*_of(row["id"]), job.c.state.in_([State.SCHEDULED, *ACTIVE]))
    return int(connection.execute(query).scalar_one())


def _of(backfill_id: str) -> tuple[ColumnElement[bool], ...]:
    return job.c.trigger == Trigger.BACKFILL, job.c.item == item_of(backfill_id)


def _read(connection: Connection, backfill_id: str, *, lock: bool = False) -> RowMapping:
    query = select(backfill).where(backfill.c.id == backfill_id)
    row = connection.execute(query.with_for_update() if lock else query).mappings().one_or_none()
    if row is None:
        raise UnknownBackfill(backfill_id)
    return row
