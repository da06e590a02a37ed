"""Puts schedules and jobs into cronq's database, and plays the workers that settle them."""

import multiprocessing
import os
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import islice
from multiprocessing.process import BaseProcess
from multiprocessing.queues import Queue as ProcessQueue
from typing import Any, Self

from sqlalchemy import bindparam, func, select, text

from benchmarks.noop import TASK
from benchmarks.stage import Stage
from cronq.coordination.notices import send_notice
from cronq.coordination.redis_client import open_redis
from cronq.schedule import Reason, Schedule
from cronq.store.database import Database
from cronq.store.schedules import Change, write_changes
from cronq.store.tables import job, leader
from cronq.timing import timing_from

BATCH = 5000
PREFIX = "cronq:"


def schedule(name: str, timing: dict[str, Any], **policy: Any) -> Schedule:  # noqa: ANN401
    """Return a schedule of the job that does nothing."""
    return Schedule(name=name, task=TASK, timing=timing, args=(name, 0), **policy)


def cron(expression: str) -> dict[str, Any]:
    """Return the data of a cron timing in UTC."""
    return {"kind": "cron", "expression": expression, "tz": "UTC"}


def seed(database: Database, schedules: Iterable[Schedule], first: datetime | None = None) -> None:
    """Store schedules. first: the first fire time of all of them; None: their timing says."""
    rest = iter(schedules)
    while batch := list(islice(rest, BATCH)):
        now = datetime.now(UTC)
        changes = [
            Change(each, first or timing_from(each.timing).next(now), restart=True, delay_s=None)
            for each in batch
        ]  # fmt: skip
        with database.begin() as connection:
            write_changes(database, connection, changes, source="api", actor="bench")


def edit(stage: Stage, changed: Schedule) -> None:
    """Change one schedule as the API does: write it, then tell the leader."""
    seed(stage.database, [changed])
    send_notice(open_redis(stage.redis.url), PREFIX, "schedule", schedule_id=changed.id)


def count_planned(database: Database) -> int:
    """Return how many jobs are in the database."""
    with database.autocommit() as connection:
        return int(connection.execute(select(func.count()).select_from(job)).scalar_one())


def count_by_state(database: Database) -> dict[str, int]:
    """Return how many jobs stand in each state."""
    with database.autocommit() as connection:
        rows = connection.execute(select(job.c.state, func.count()).group_by(job.c.state))
        return dict(rows.all())


def count_skipped(database: Database, reason: Reason) -> int:
    """Return how many fire times were skipped for `reason`."""
    query = select(func.count()).where(job.c.state == "SKIPPED", job.c.reason == reason)
    with database.autocommit() as connection:
        return int(connection.execute(query).scalar_one())


def term(database: Database) -> int:
    """Return the newest leader's term; 0 before the first."""
    with database.autocommit() as connection:
        return int(connection.execute(select(func.coalesce(func.max(leader.c.term), 0))).scalar_one())


def leader_pid(stage: Stage) -> int | None:
    """Return the process that holds the leader's lock."""
    holder = stage.redis.client().get(f"{PREFIX}leader:0")
    return None if holder is None else int(str(holder).split(":")[-2])


def beat_pids(stage: Stage) -> set[int]:
    """Return the beats that are on the roll: leading, or ready to."""
    holders = stage.redis.client().smembers(f"{PREFIX}beats")
    return {int(str(holder).split(":")[-2]) for holder in holders}


class Settling:
    """Settles jobs in a process of its own, in place of the workers that a beat's benchmark does not have.

    Without it the leader would find jobs that nobody claims, and under `skip` every second fire time.
    """

    def __init__(self, database_url: str) -> None:
        context = multiprocessing.get_context("spawn")
        self._queue: ProcessQueue[list[str] | None] = context.Queue()
        self._process: BaseProcess = context.Process(target=_settle_all, args=(database_url, self._queue))

    def __enter__(self) -> Self:
        self._process.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._queue.put(None)
        self._process.join(10)
        self._process.kill()

    def settle(self, ids: Sequence[str]) -> None:
        """Have the jobs settled as completed, soon."""
        if ids:
            self._queue.put(list(ids))


def _settle_all(database_url: str, queue: "ProcessQueue[list[str] | None]") -> None:
    os.nice(5)
    database = Database(database_url)
    now = database.now_sql()
    statement = text(
        f"UPDATE cronq_job SET state = 'COMPLETED', attempts = 1, started_at = {now}, finished_at = {now}, "
        f"updated_at = {now} WHERE id IN :ids AND state || '' IN ('SCHEDULED', 'PENDING')"
    ).bindparams(bindparam("ids", expanding=True))
    while (ids := queue.get()) is not None:
        with database.begin() as connection:
            connection.execute(statement, {"ids": ids})
