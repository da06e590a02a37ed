"""A past to look at: schedules that have run for weeks, well and badly, each fire time with its outcome."""

import random
from datetime import datetime, timedelta
from typing import Any

from cronq.declaration import When, cron
from cronq.job import State, scheduled_job_id
from cronq.schedule import Reason, Schedule
from cronq.store import control
from cronq.store.database import Database
from cronq.store.tables import attempt, job, schedule, schedule_version
from cronq.timing import fires_between, timing_from

BERLIN, NEW_YORK = "Europe/Berlin", "America/New_York"
ERROR = """Traceback (most recent call last):
  File "tasks/rates.py", line 31, in import_rates
    rates = fetch(url)
RuntimeError: the rates server at https://ann:s3cr3t-p4ss@rates.example/ said 503"""
DECLARED: dict[str, tuple[str, When]] = {
    "daily-report:acme": ("demo.report", cron("0 6 * * *", tz=BERLIN, tenant="acme", max_attempts=3)),
    "daily-report:globex": ("demo.report", cron("0 6 * * *", tz=NEW_YORK, tenant="globex", max_attempts=3)),
    "import-rates": ("demo.import_rates", cron("*/10 * * * *", kwargs={"api_key": "s3cr3t-p4ss"})),
    "invoice-run": ("demo.invoices", cron("0 7 1,15 * *", tz=BERLIN)),
    "prune-sessions": ("demo.prune", cron("0 * * * *")),
    "send-digests": ("demo.digests", cron("0 8 * * MON-FRI", tz=BERLIN, jitter="5m")),
    "sync-crm": ("demo.sync", cron("0 * * * *", overlap="skip")),
}
EARLIER = cron("30 5 * * *", tz=BERLIN, tenant="acme")
"""How one of them was declared before."""


def fill_past(database: Database) -> None:
    """Store them, and what became of their last 35 days."""
    chance = random.Random(7)
    now = database.clock()
    begin = now - timedelta(days=35)
    control.write(database, EARLIER.schedule(name="daily-report:acme", task="demo.report"), actor="api ann")
    jobs, attempts = [], []
    for name, (task, when) in DECLARED.items():
        stored, _new = control.write(database, when.schedule(name=name, task=task), actor="api bob")
        for fire in fires_between(timing_from(stored.definition.timing), begin, now - timedelta(seconds=90)):
            row = _job(stored.definition, fire, chance)
            jobs.append(row)
            if row["started_at"] is not None:
                attempts.append(_attempt(row))
    with database.begin() as connection:
        connection.execute(job.insert(), jobs)
        connection.execute(attempt.insert(), attempts)
        connection.execute(schedule.update().values(created_at=begin))
        connection.execute(schedule_version.update().where(schedule_version.c.version == 1).values(at=begin))
    control.pause(database, "invoice-run", note="the tax rates are being changed")


def _job(declared: Schedule, fire: datetime, chance: random.Random) -> dict[str, Any]:
    luck = chance.random()
    state, reason = State.COMPLETED, None
    if declared.name == "import-rates" and luck < 0.04:
        state = State.FAILED
    elif declared.name in ("sync-crm", "import-rates") and luck < 0.1:
        state, reason = State.SKIPPED, Reason.OVERLAP
    elif declared.name == "daily-report:globex" and luck < 0.1:
        state = State.TIMED_OUT
    ran = state is not State.SKIPPED
    started = fire + timedelta(milliseconds=chance.lognormvariate(3.0, 0.5)) if ran else None
    dead = state in (State.FAILED, State.TIMED_OUT)
    ended = started + timedelta(seconds=chance.lognormvariate(2.2, 0.4)) if started is not None else fire
    return {
        "id": scheduled_job_id(declared.id, fire),
        "schedule_id": declared.id,
        "schedule_name": declared.name,
        "schedule_version": 1,
        "fire_time": fire,
        "trigger": "schedule",
        "task": declared.task,
        "args": [],
        "kwargs": declared.kwargs,
        "tenant": declared.tenant,
        "overlap": declared.overlap,
        "exclusive": True,
        "state": state,
        "reason": reason,
        "due_at": fire,
        "attempts": 1 if ran else 0,
        "max_attempts": declared.max_attempts,
        "worker": "worker@host" if ran else None,
        "error": ERROR if dead else None,
        "dead_at": ended if dead else None,
        "planned_at": fire - timedelta(seconds=60),
        "published_at": fire + timedelta(milliseconds=4) if ran else None,
        "started_at": started,
        "finished_at": ended,
        "updated_at": ended,
    }


def _attempt(row: dict[str, Any]) -> dict[str, Any]:
    dead = row["dead_at"] is not None
    return {
        "job_id": row["id"],
        "token": row["id"],
        "number": 1,
        "worker": row["worker"],
        "started_at": row["started_at"],
        "ended_at": row["finished_at"],
        "outcome": row["state"],
        "kind": "error" if dead else None,
        "error": row["error"],
    }
