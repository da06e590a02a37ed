"""What may be done to a schedule by hand? Pause, resume, run once, write, delete: each in one transaction.

A change that names the version it has seen is refused when somebody was faster. Afterwards tell the leader
with a notice; a lost notice costs a second, never a change.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Select, select, update

from cronq.errors import JobRefused, ScheduleRefused, UnknownSchedule, VersionConflict
from cronq.job import State, Trigger, demanded_job_id
from cronq.schedule import Overlap, Reason, Schedule, schedule_id
from cronq.store.agenda import DueJob, insert_jobs
from cronq.store.ahead import take_back_planned
from cronq.store.database import Database
from cronq.store.jobs import add_job
from cronq.store.scheduled import job_of
from cronq.store.schedules import (
    Change,
    StoredSchedule,
    get_schedule,
    retire,
    stored,
    write_changes,
)
from cronq.store.tables import schedule
from cronq.timing import Delay, timing_from
from cronq.timing.explain import explain

SOURCE = "api"
"""The source of schedules that are written here; code's own schedules are changed in the code."""


def pause(database: Database, name: str, *, note: str | None, version: int | None = None) -> StoredSchedule:
    """Let no further fire time of a schedule become a job, until it is resumed.

    Jobs whose due time lies ahead are taken back; those that are due or run already go on.
    """
    with database.begin() as connection:
        found = _lock(connection, database, name, version)
        if found.paused_at is not None:
            raise ScheduleRefused(f"schedule {name!r} is paused already: {found.pause_note or 'no note'}")
        now = database.clock_in(connection)
        take_back_planned(connection, [found.id], now)
        connection.execute(
            update(schedule)
            .where(schedule.c.id == found.id)
            .values(paused_at=now, pause_note=note, updated_at=now)
        )
    return get_schedule(database, name)


def resume(database: Database, name: str, *, limit: int, version: int | None = None) -> StoredSchedule:
    """Let a paused schedule go on with its next fire time.

    Each fire time that fell into the pause is recorded as skipped: the newest `limit` one by one, the older
    ones as one record at the last of them.
    """
    with database.begin() as connection:
        found = _lock(connection, database, name, version)
        if found.paused_at is None:
            raise ScheduleRefused(f"schedule {name!r} is not paused")
        require_readable(found)
        now = database.clock_in(connection)
        timing = timing_from(found.definition.timing)
        upcoming = found.next_fire_at
        if upcoming is not None and upcoming <= now and not isinstance(timing, Delay):
            passed = _passed(found, now, limit)
            insert_jobs(database, connection, [_paused(found, fire) for fire in passed], now)
            upcoming = timing.next(now)
        connection.execute(
            update(schedule)
            .where(schedule.c.id == found.id)
            .values(paused_at=None, pause_note=None, resumed_at=now, next_fire_at=upcoming, updated_at=now)
        )
    return get_schedule(database, name)


def trigger(database: Database, name: str, *, dedup_key: str | None = None) -> tuple[str, bool]:
    """Ask for one job of a schedule now, paused or not; return its id, and whether it is new.

    The schedule's overlap policy holds for it too. It is no fire time, so the schedule's own go on as ever.
    """
    found = get_schedule(database, name)
    if found.retired_at is not None:
        raise ScheduleRefused(f"schedule {name!r} is retired: nothing declares it any more")
    require_readable(found)
    now = database.clock()
    demanded = job_of(found, now, due_at=now, trigger=Trigger.MANUAL)
    demanded.id = demanded_job_id(None if dedup_key is None else f"{found.id} {dedup_key}")
    demanded.batch_id = None if demanded.batch_id is None else demanded.id
    demanded.fire_time = None
    if isinstance(timing_from(found.definition.timing), Delay):
        demanded.overlap = Overlap.QUEUE_ONE
    demanded, new = add_job(database, demanded, due=0.0)
    return demanded.id, new


def write(
    database: Database, wanted: Schedule, *, actor: str, version: int | None = None
) -> tuple[StoredSchedule, bool]:
    """Create or change a schedule; return it, and whether it is new. An equal one stays as it is.

    Raises `JobRefused` for a timing that has no fire time left.

    version: the one that the caller has seen; 0: there was none, so none is overwritten; None: any.
    """
    with database.begin() as connection:
        row = connection.execute(_locked(wanted.name)).one_or_none()
        known = None if row is None else stored(row)
        if known is not None:
            require_ours(known)
        there = known if known is not None and known.retired_at is None else None
        if there is not None:
            _require_version(there, version)
        elif version:
            raise VersionConflict(wanted.name, version, 0)
        if there is None or there.fault is not None or there.definition != wanted:
            goes_on = there is not None and there.fault is None and there.definition.timing == wanted.timing
            change = _change(wanted, restart=not goes_on, now=database.clock_in(connection))
            write_changes(database, connection, [change], source=SOURCE, actor=actor)
            if known is None and version == 0:
                _require_first(connection, wanted)
    return get_schedule(database, wanted.name), there is None


def delete(database: Database, name: str, *, version: int | None = None) -> StoredSchedule:
    """Stop planning a schedule that was written here; its jobs and its history stay."""
    with database.begin() as connection:
        found = _lock(connection, database, name, version)
        require_ours(found)
        retire(database, connection, [found.id])
    return found


def require_deletable(database: Database, name: str, *, version: int | None = None) -> None:
    """Raise what `delete` would."""
    with database.autocommit() as connection:
        require_ours(_lock(connection, database, name, version))


def require_readable(found: StoredSchedule) -> None:
    """Raise `ScheduleRefused` if what can be read of a schedule is not all of it."""
    if (why := found.unreadable) is not None:
        raise ScheduleRefused(f"schedule {found.name!r} is set aside: {why}")


def require_ours(found: StoredSchedule) -> None:
    """Raise `ScheduleRefused` for a schedule that is not written here."""
    if found.source != SOURCE:
        raise ScheduleRefused(
            f"schedule {found.name!r} belongs to {found.source}; change it there (pause and resume work here)"
        )


def _lock(connection: Connection, database: Database, name: str, version: int | None) -> StoredSchedule:
    row = connection.execute(_locked(name)).one_or_none()
    if row is None:
        get_schedule(database, name)  # raises, with the nearest name
        raise UnknownSchedule(name, [])
    found = stored(row)
    if found.retired_at is not None:
        raise ScheduleRefused(f"schedule {name!r} is retired: nothing declares it any more")
    _require_version(found, version)
    return found


def _locked(name: str) -> Select[Any]:
    return select(schedule).where(schedule.c.id == schedule_id(name)).with_for_update()


def _require_version(found: StoredSchedule, version: int | None) -> None:
    if version is not None and found.version != version:
        raise VersionConflict(found.name, version, found.version)


def _require_first(connection: Connection, written: Schedule) -> None:
    """Raise `VersionConflict` if somebody made it while we did: PostgreSQL locks no row that is not there."""
    found = connection.execute(select(schedule.c.version).where(schedule.c.id == written.id)).scalar_one()
    if found > 1:
        raise VersionConflict(written.name, 0, found - 1)


def _change(wanted: Schedule, *, restart: bool, now: datetime) -> Change:
    timing = timing_from(wanted.timing)
    delay_s, first = None, timing.next(now)
    if isinstance(timing, Delay):
        delay_s = timing.period.total_seconds()
        first = first or timing.after_end(now)
    if restart and first is None:
        said = f"no fire time lies ahead, so it would never run: {explain(timing)}"
        raise JobRefused(said, field="when")
    return Change(wanted, first_fire_at=first, restart=restart, delay_s=delay_s)


def _passed(found: StoredSchedule, now: datetime, limit: int) -> Iterator[datetime]:
    """Yield the fire times from the cursor to `now`, newest first; of those beyond `limit` only the last."""
    timing, first = timing_from(found.definition.timing), found.next_fire_at
    fire = timing.previous(now)
    for _ in range(limit + 1):
        if fire is None or first is None or fire < first:
            return
        yield fire
        fire = timing.previous(fire)


def _paused(found: StoredSchedule, fire: datetime) -> DueJob:
    passed = job_of(found, fire, due_at=fire, trigger=Trigger.SCHEDULE)
    passed.state, passed.reason = State.SKIPPED, Reason.PAUSED
    return passed
