"""How did one schedule do lately, and how was it declared before? Answers for its page."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import RowMapping, select

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
)
"""What is told of each job."""


def outcomes(
    database: Database, stored: StoredSchedule, since: datetime, until: datetime, *, limit: int
) -> list[RowMapping]:
    """Return `OUTCOME` of the jobs whose fire time lies in [since, until], the newest first."""
    query = (
        jobs_of(stored)
        .with_only_columns(*(job.c[name] for name in OUTCOME))
        .where(job.c.fire_time >= since, job.c.fire_time <= until)
        .order_by(job.c.fire_time.desc())
        .limit(limit)
    )
    with database.autocommit() as connection:
        return list(connection.execute(query).mappings())


def recent_jobs(
    database: Database, schedules: Iterable[StoredSchedule], count: int
) -> dict[str, list[RowMapping]]:
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
    return recent


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
