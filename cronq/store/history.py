"""How did one schedule do lately, and how was it declared before? Answers for its page."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import RowMapping, select

from cronq.store.batches import Batch, batches_by_id
from cronq.store.database import Database
from cronq.store.fires import jobs_of
from cronq.store.schedules import StoredSchedule
from cronq.store.tables import job, schedule_version

OUTCOME: Final = (
    "id",
    "state",
    "reason",
    "fire_time",
    "due_at",
    "published_at",
    "started_at",
    "finished_at",
    "attempts",
    "batch_id",
)
"""What is told of each job."""

Outcome = Mapping[Any, Any]
"""`OUTCOME` of one fire time: of a fan-out's as `of_batch` says."""


def outcomes(
    database: Database, stored: StoredSchedule, since: datetime, until: datetime, *, limit: int
) -> list[Outcome]:
    """Return `OUTCOME` of the jobs whose fire time lies in [since, until], the newest first."""
    query = (
        jobs_of(stored)
        .with_only_columns(*(job.c[name] for name in OUTCOME))
        .where(job.c.fire_time >= since, job.c.fire_time <= until)
        .order_by(job.c.fire_time.desc())
        .limit(limit)
    )
    with database.autocommit() as connection:
        rows = list(connection.execute(query).mappings())
    return _of_batches(database, rows)


def recent_jobs(
    database: Database, schedules: Iterable[StoredSchedule], count: int
) -> dict[str, list[Outcome]]:
    """Return `OUTCOME` of the last `count` fire times' jobs of each of `schedules`, oldest first."""
    recent = {}
    with database.autocommit() as connection:
        now = database.clock_in(connection)
        for stored in schedules:
            query = (
                jobs_of(stored)
                .with_only_columns(*(job.c[name] for name in OUTCOME))
                .where(job.c.fire_time <= now)
                .order_by(job.c.fire_time.desc())
                .limit(count)
            )
            recent[stored.id] = list(connection.execute(query).mappings())[::-1]
    return {schedule_id: _of_batches(database, rows) for schedule_id, rows in recent.items()}


def of_batch(row: Outcome, batch: Batch | None) -> Outcome:
    """Return a job's outcome; of a fan-out's job that of its `batch`, from the fire time to the last end."""
    if batch is None or not batch.started or row["started_at"] is None:
        return row
    fire_time = row["fire_time"]
    given = {name: row[name] for name in OUTCOME} | {"state": batch.state, "finished_at": batch.ended_at}
    # Its items are found ahead of the fire time, and are due then.
    return given | {
        "due_at": fire_time,
        "published_at": None,
        "started_at": max(row["started_at"], fire_time),
    }


def _of_batches(database: Database, rows: list[RowMapping]) -> list[Outcome]:
    heads = [row["id"] for row in rows if row["batch_id"] is not None]
    batches = batches_by_id(database, heads) if heads else {}
    return [of_batch(row, batches.get(row["id"])) for row in rows]


class Version(NamedTuple):
    """How a schedule was declared once, by whom and when."""

    version: int
    definition: dict[str, Any]  #: as it is stored; empty if it is none
    actor: str
    at: datetime


def versions(database: Database, schedule_id: str, *, limit: int) -> list[Version]:
    """Return a schedule's versions, the newest first."""
    query = (
        select(
            schedule_version.c.version,
            schedule_version.c.definition,
            schedule_version.c.actor,
            schedule_version.c.at,
        )
        .where(schedule_version.c.schedule_id == schedule_id)
        .order_by(schedule_version.c.version.desc())
        .limit(limit)
    )
    with database.autocommit() as connection:
        return [
            Version(version, definition if isinstance(definition, dict) else {}, actor, at)
            for version, definition, actor, at in connection.execute(query)
        ]
