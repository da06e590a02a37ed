"""What the tests of the API do over and over: ask for a job, start it, end it, plan a fire time."""

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any

import httpx
from fastapi.testclient import TestClient
from sqlalchemy import update

from cronq.app import Cronq
from cronq.declaration import every
from cronq.job import Outcome, State, Trigger, scheduled_job_id
from cronq.store import control
from cronq.store.agenda import DueJob, insert_jobs
from cronq.store.attempts import Settlement, claim, settle
from cronq.store.tables import schedule, schedule_version

BASE = "http://127.0.0.1:8787"
SECRET = "whsec_" + "c2VjcmV0" * 4
PAGE = {"Accept": "text/html"}


def ask(client: TestClient, **fields: Any) -> dict[str, Any]:
    answer = client.post("/api/jobs", json={"type": "demo.work", **fields})
    assert answer.status_code == 202, answer.text
    found: dict[str, Any] = answer.json()
    return found


def start(parts: Cronq, job_id: str) -> str:
    token = f"t-{job_id[:30]}"
    assert claim(parts.database, job_id, token=token, worker="w@host", lease_s=60)
    return token


def end(parts: Cronq, job_id: str, *, state: State = State.COMPLETED, error: str | None = None) -> None:
    token = start(parts, job_id)
    done = state is State.COMPLETED
    settled = settle(
        parts.database,
        Settlement(
            job_id=job_id,
            token=token,
            worker="w@host",
            number=1,
            outcome=Outcome.COMPLETED if done else Outcome.FAILED,
            state=state,
            kind=None if done else "error",
            error=error,
            dead=state is State.FAILED,
            result={"rows": 3} if done else None,
        ),
    )
    assert settled


def declare(parts: Cronq, name: str = "hourly", **policy: Any) -> str:
    stored, _new = control.write(
        parts.database, every("1h", **policy).schedule(name=name, task="demo.work"), actor="test"
    )
    return stored.id


def plan(parts: Cronq, schedule_id: str, name: str, fire: datetime, **more: Any) -> None:
    planned = DueJob(
        id=scheduled_job_id(schedule_id, fire),
        schedule_id=schedule_id,
        schedule_name=name,
        fire_time=fire,
        trigger=Trigger.SCHEDULE,
        task="demo.work",
        args=[],
        kwargs={},
        due_at=fire,
        **more,
    )
    with parts.database.begin() as connection:
        insert_jobs(parts.database, connection, [planned], parts.database.clock_in(connection))


def turn_back(parts: Cronq, schedule_id: str, *, born: datetime | None = None, **columns: datetime) -> None:

    oldest = born or min(columns.values()) - timedelta(days=1)
    with parts.database.begin() as connection:
        connection.execute(update(schedule).where(schedule.c.id == schedule_id).values(columns))
        connection.execute(update(schedule_version).values(at=oldest))


async def events(response: httpx.Response) -> AsyncIterator[dict[str, str]]:
    event: dict[str, str] = {}
    async for line in response.aiter_lines():
        if line:
            name, _, value = line.partition(": ")
            event[name] = value
        elif "data" in event:
            yield event
            event = {}
