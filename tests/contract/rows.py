"""Puts jobs into a database the way the planner does, and turns its clock for one lease."""

import itertools
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from threading import Barrier
from typing import Any, TypeVar

from sqlalchemy import select, text, update

from cronq.job import TELLING, Outcome, State, Trigger, scheduled_job_id
from cronq.schedule import Schedule, schedule_id
from cronq.store.agenda import DueJob, insert_jobs
from cronq.store.attempts import Claim, Settlement, claim, settle
from cronq.store.database import Database
from cronq.store.jobs import attempts_of, get_job
from cronq.store.schedules import Change, write_changes
from cronq.store.tables import job as job_table
from cronq.store.tables import schedule as schedule_table
from cronq.store.tables import schedule_version as version_table
from cronq.store.terms import Term, begin_term
from cronq.timing import Every

T = TypeVar("T")
LEASE_S = 60.0


def job_value(**facts: Any) -> DueJob:
    values: dict[str, Any] = {
        "id": str(uuid.uuid4()),
        "task": "t",
        "args": [1],
        "kwargs": {"k": "v"},
        "trigger": Trigger.SCHEDULE,
    }
    return DueJob(**{**values, **facts})


class Rows:
    """The jobs and schedules of one test."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._count = itertools.count()

    def now(self) -> datetime:
        return self.database.clock()

    def add(self, *jobs: DueJob) -> None:
        with self.database.begin() as connection:
            insert_jobs(self.database, connection, list(jobs), self.database.clock_in(connection))

    def job(self, *, due_in: float = -1, schedule: str | None = None, **facts: Any) -> str:
        """Add one job and return its id; `schedule` is a schedule's name."""
        moment = self.now() + timedelta(seconds=due_in)
        if schedule is not None:
            fire_time = facts.pop("fire_time", moment + timedelta(microseconds=next(self._count)))
            facts |= {
                "schedule_id": schedule_id(schedule),
                "schedule_name": schedule,
                "fire_time": fire_time,
                "id": scheduled_job_id(schedule_id(schedule), fire_time),
            }
        value = job_value(due_at=moment, **facts)
        self.add(value)
        return value.id

    def schedule(self, name: str, *, first_in: float = -1, **facts: Any) -> str:
        """Store one schedule, and return its id."""
        timing = facts.pop("timing", Every(timedelta(minutes=1)))
        delay_s = facts.pop("delay_s", None)
        first = facts.pop("first", self.now() + timedelta(seconds=first_in))
        definition = Schedule(name=name, task="t", timing=timing.to_data(), **facts)
        change = Change(definition, first_fire_at=first, restart=True, delay_s=delay_s)
        with self.database.begin() as connection:
            write_changes(self.database, connection, [change], source="code:x", actor="a test")
        return definition.id

    def write_by_hand(self, name: str, change: object) -> None:
        """Change a schedule's stored definition behind cronq's back; what is no dict takes its place."""
        ids = {schedule_table: schedule_table.c.id, version_table: version_table.c.schedule_id}
        with self.database.begin() as connection:
            for table, its_id in ids.items():
                where = its_id == schedule_id(name)
                was = connection.execute(select(table.c.definition).where(where)).scalars().first()
                wanted = {**(was or {}), **change} if isinstance(change, dict) else change
                connection.execute(update(table).where(where).values(definition=wanted))

    def set(self, job_id: str, **columns: str) -> None:
        """Set columns to SQL expressions."""
        assignments = ", ".join(f"{name} = {value}" for name, value in columns.items())
        with self.database.begin() as connection:
            connection.execute(text(f"UPDATE cronq_job SET {assignments} WHERE id = :id"), {"id": job_id})

    def expire(self, job_id: str) -> None:
        """Let the job's lease run out now."""
        self.set(job_id, lease_until=self.database.now_sql("-1"))

    def sent(self, *job_ids: str) -> list[DueJob]:
        """The jobs as the leader had them when it sent them for the first time."""
        return [job_value(id=job_id, due_at=self.now()) for job_id in job_ids]

    def state(self, job_id: str) -> State:
        return State(self.row(job_id)["state"])

    def row(self, job_id: str) -> Any:
        return get_job(self.database, job_id)

    def attempts(self, job_id: str) -> list[tuple[int, str, str | None]]:
        """(number, outcome, kind) of each finished attempt."""
        return [(a["number"], a["outcome"], a["kind"]) for a in attempts_of(self.database, job_id)]

    def claim(self, job_id: str, token: str = "token-1", worker: str = "w1") -> Claim | None:
        return claim(self.database, job_id, token=token, worker=worker, lease_s=LEASE_S)

    def settle(self, job_id: str, token: str = "token-1", **facts: Any) -> bool:
        only_expired = facts.pop("only_expired", False)
        return settle(self.database, settlement(job_id, token, **facts), only_expired=only_expired)

    def begin_term(self, holder: str) -> Term:
        return begin_term(self.database, shard=0, holder=holder, host="h", pid=1)


def settlement(job_id: str, token: str, **facts: Any) -> Settlement:
    values: dict[str, Any] = {
        "worker": "w1",
        "number": 1,
        "outcome": Outcome.COMPLETED,
        "state": State.COMPLETED,
    }
    return Settlement(job_id=job_id, token=token, **{**values, **facts})


def told(database: Database) -> list[dict[str, Any]]:
    """Return what the webhooks that wait for being sent will tell."""
    query = select(job_table.c.kwargs)
    query = query.where(job_table.c.task == TELLING).order_by(job_table.c.planned_at)
    with database.autocommit() as connection:
        return list(connection.execute(query).scalars())


def at_once(calls: Sequence[Callable[[], T]]) -> list[T]:
    """Run every call in a thread of its own, all from the same moment, and return their answers."""
    barrier = Barrier(len(calls))

    def run(call: Callable[[], T]) -> T:
        barrier.wait(20)
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))
