"""Which schedules are there? Their definitions, their versions, and who may change them."""

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, Row, bindparam, select, update

from cronq.errors import JobRefused, UnknownSchedule, first_line
from cronq.schedule import Schedule
from cronq.store.ahead import take_back_planned
from cronq.store.database import Database
from cronq.store.definitions import from_data, readable_part, to_data
from cronq.store.tables import schedule, schedule_version
from cronq.store.values import chunks
from cronq.timing import Timing, Unreadable, timing_to_show

LONGEST_NAME: Final = 255
TOP_PRIORITY: Final = 9
CANNOT_BE_READ: Final = (
    "its stored definition cannot be read ({}): another version of cronq wrote it, "
    "or somebody changed it by hand; update cronq, or write the schedule again"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSchedule:
    """A schedule as the database knows it: its declaration, and where it stands."""

    definition: Schedule
    version: int
    source: str
    shard: int
    next_fire_at: datetime | None
    paused_at: datetime | None
    pause_note: str | None
    resumed_at: datetime | None
    retired_at: datetime | None
    fault: str | None

    @property
    def id(self) -> str:
        """The schedule's id."""
        return self.definition.id

    @property
    def name(self) -> str:
        """The schedule's name."""
        return self.definition.name

    @property
    def timing(self) -> Timing:
        """When it is due: for all that show it, so it is `Unreadable` instead of an error."""
        return timing_to_show(self.definition.timing)

    @property
    def unreadable(self) -> str | None:
        """Why it must not be acted on: its definition is only what could be read of it; None: it is whole."""
        timing = self.timing
        return (self.fault or CANNOT_BE_READ.format(timing.why)) if isinstance(timing, Unreadable) else None


def check_schedule(declared: Schedule) -> None:
    """Raise `JobRefused` for what could be declared but not stored or sent."""
    for what in ("name", "task", "queue", "tenant", "on_complete"):
        value = getattr(declared, what)
        if value is not None and not 0 < len(value) <= LONGEST_NAME:
            raise JobRefused(f"its {what} has {len(value)} characters; write 1 to {LONGEST_NAME}", field=what)
        if value is not None and "\0" in value:
            raise JobRefused(f"its {what} has a NUL character in it, which cannot be stored", field=what)
    if declared.on_complete is not None and declared.fan_out is None:
        raise JobRefused(
            "on_complete is for the end of a fan-out, and it has none; use after= in another schedule"
        )
    if declared.after is not None and declared.timing.get("kind") == "delay":
        raise JobRefused(
            "a fixed delay has no fire times in common with others, so it cannot come after them"
        )
    if declared.priority is not None and not 0 <= declared.priority <= TOP_PRIORITY:
        raise JobRefused(f"its priority {declared.priority} is not between 0 and {TOP_PRIORITY}")
    if declared.pause_after is not None and declared.pause_after < 1:
        raise JobRefused(f"pause_after={declared.pause_after}: it takes at least one failure")


def stored(row: Row[Any]) -> StoredSchedule:
    """Return the value of one row of the schedule table; with a fault if its definition cannot be read."""
    fault = row.fault
    try:
        definition = from_data({**row.definition, "name": row.name})  # its id comes from the name
    except Exception as error:  # noqa: BLE001 - any JSON may stand there; the other schedules go on
        definition = readable_part(row.definition, name=row.name, task=row.task)
        fault = CANNOT_BE_READ.format(first_line(error))
    return StoredSchedule(
        definition=definition,
        version=row.version,
        source=row.source,
        shard=row.shard,
        next_fire_at=row.next_fire_at,
        paused_at=row.paused_at,
        pause_note=row.pause_note,
        resumed_at=row.resumed_at,
        retired_at=row.retired_at,
        fault=fault,
    )


def list_schedules(
    database: Database, *, retired: bool = False, connection: Connection | None = None
) -> list[StoredSchedule]:
    """Return all schedules by name, the retired ones only if asked; within `connection` if given."""
    query = select(schedule).order_by(schedule.c.name)
    if not retired:
        query = query.where(schedule.c.retired_at.is_(None))
    if connection is not None:
        return [stored(row) for row in connection.execute(query)]
    with database.autocommit() as own:
        return [stored(row) for row in own.execute(query)]


def get_schedule(database: Database, name: str) -> StoredSchedule:
    """Return the schedule called `name`; raise `UnknownSchedule` with the nearest name otherwise."""
    with database.autocommit() as connection:
        row = connection.execute(select(schedule).where(schedule.c.name == name)).one_or_none()
        if row is not None:
            return stored(row)
        names = connection.execute(select(schedule.c.name)).scalars().all()
    raise UnknownSchedule(name, difflib.get_close_matches(name, names, n=1))


@dataclass(frozen=True, slots=True)
class Change:
    """A schedule to write."""

    definition: Schedule
    first_fire_at: datetime | None  #: where planning starts
    restart: bool  #: False: its timing is as before, so planning goes on where it stands
    delay_s: float | None


_OF_SOURCE: Final = select(schedule).where(schedule.c.source == bindparam("source"))


def source_of(connection: Connection, source: str) -> dict[str, StoredSchedule]:
    """Return the schedules of `source` by id, the retired ones included."""
    rows = connection.execute(_OF_SOURCE, {"source": source})
    return {row.id: stored(row) for row in rows}


def owners_of(connection: Connection, ids: Iterable[str]) -> dict[str, str]:
    """Return which source each of the schedules `ids` belongs to."""
    query = select(schedule.c.id, schedule.c.source)
    return {
        row.id: row.source
        for part in chunks(list(ids))
        for row in connection.execute(query.where(schedule.c.id.in_(part)))
    }


def write_changes(
    database: Database,
    connection: Connection,
    changes: Sequence[Change],
    *,
    source: str,
    actor: str,
    shard: int = 0,
) -> None:
    """Insert or replace schedules, each under its next version.

    Jobs that were planned ahead under the old version are taken back, so that an edit takes effect at once;
    no fire time before now is added by an edit.
    """
    now = database.clock_in(connection)
    for part in chunks(changes):
        _write(database, connection, part, now, source=source, actor=actor, shard=shard)


def _write(
    database: Database,
    connection: Connection,
    changes: Sequence[Change],
    now: datetime,
    *,
    source: str,
    actor: str,
    shard: int,
) -> None:
    rows = [_row(change, source=source, shard=shard, now=now) for change in changes]
    insert = database.insert(schedule)
    kept = {"id", "name", "version", "created_at", "shard", "next_fire_at"}
    statement = insert.on_conflict_do_update(
        index_elements=[schedule.c.id],
        set_={
            **{name: insert.excluded[name] for name in rows[0] if name not in kept},
            "version": schedule.c.version + 1,
            "retired_at": None,
            "fault": None,
        },
    )
    connection.execute(statement, rows)
    ids = [change.definition.id for change in changes]
    take_back_planned(connection, ids, now)
    _restart(connection, [change for change in changes if change.restart])
    versions = connection.execute(select(schedule.c.id, schedule.c.version).where(schedule.c.id.in_(ids)))
    declared = {change.definition.id: change.definition for change in changes}
    connection.execute(
        schedule_version.insert(),
        [
            {
                "schedule_id": i,
                "version": version,
                "definition": to_data(declared[i]),
                "on_complete": declared[i].on_complete,
                "callback_url": declared[i].callback_url,
                "actor": actor,
                "at": now,
            }
            for i, version in versions
        ],
    )


def retire(database: Database, connection: Connection, ids: Sequence[str]) -> None:
    """Stop planning the schedules `ids`; their history stays."""
    now = database.clock_in(connection)
    for part in chunks(ids):
        connection.execute(
            update(schedule)
            .where(schedule.c.id.in_(part))
            .values(retired_at=now, updated_at=now, next_fire_at=None)
        )
        take_back_planned(connection, part, now, rewind=False)


def _restart(connection: Connection, changes: Sequence[Change]) -> None:
    if changes:
        connection.execute(
            update(schedule)
            .where(schedule.c.id == bindparam("_id"))
            .values(next_fire_at=bindparam("_first")),
            [{"_id": change.definition.id, "_first": change.first_fire_at} for change in changes],
        )


def mark_fault(database: Database, connection: Connection, schedule_id: str, fault: str) -> None:
    """Set a schedule aside that cannot be planned; the others go on."""
    connection.execute(
        update(schedule)
        .where(schedule.c.id == schedule_id)
        .values(fault=fault, next_fire_at=None, updated_at=database.now())
    )


def _row(change: Change, *, source: str, shard: int, now: datetime) -> dict[str, Any]:
    declared = change.definition
    return {
        "id": declared.id,
        "name": declared.name,
        "version": 1,
        "source": source,
        "shard": shard,
        "task": declared.task,
        "definition": to_data(declared),
        "next_fire_at": change.first_fire_at,
        "delay_s": change.delay_s,
        "created_at": now,
        "updated_at": now,
    }
