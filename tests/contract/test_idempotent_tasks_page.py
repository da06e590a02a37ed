"""The examples of docs/howto/idempotent-tasks.md, as they stand there, run twice."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from celery import Celery
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.orm import Session

import cronq
from cronq.coordination.redis_client import open_redis
from cronq.job import Outcome, State
from cronq.progress.board import Board
from cronq.retry import Policy
from cronq.settings import Settings
from cronq.store.database import Database
from cronq.worker.attempt import Work, run_attempt
from cronq.worker.desk import StoreDesk

from .rows import Rows

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "idempotent-tasks.md"
NO_REDIS = "redis://127.0.0.1:1/0"


class Service:
    """A payment or mail service that may be away."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.away = False

    def call(self, *args: Any, **kwargs: Any) -> str:
        if self.away:
            raise ConnectionError("away")
        self.calls.append((*args, *kwargs.values()))
        return f"receipt {len(self.calls)}"

    charge = send = call


@pytest.fixture
def engine(database: Database, database_url: str) -> Iterator[Engine]:
    engine = create_engine(database_url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.begin() as connection:
        for table in (
            "invoice (job_id VARCHAR(36) PRIMARY KEY, customer TEXT, cents INTEGER)",
            "account (name VARCHAR(20) PRIMARY KEY, cents INTEGER)",
        ):
            connection.execute(text(f"CREATE TABLE {table}"))
        connection.execute(text("INSERT INTO account VALUES ('a', 100), ('b', 0)"))
    yield engine
    engine.dispose()


@pytest.fixture
def page(engine: Engine) -> SimpleNamespace:
    names: dict[str, Any] = {
        "app": Celery("page", set_as_current=False),
        "cronq": cronq,
        "engine": engine,
        "mails": Service(),
        "payments": Service(),
        "Session": Session,
        "text": text,
    }
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        exec(block, names)
    return SimpleNamespace(**names)


@pytest.fixture
def run(database: Database, rows: Rows) -> Callable[..., str]:
    """Run a task as the next attempt of a job."""
    client = open_redis(NO_REDIS)
    desk = StoreDesk(database, client, Board(client, prefix="p:"), Settings())

    def attempt(task: Any, *args: Any, job_id: str | None = None) -> str:
        job_id = rows.job() if job_id is None else job_id
        work = Work(
            job_id=job_id, task=task.name, schedule=None, fire_time=None, tenant=None, worker="w",
            default_attempts=9, policies=(Policy(attempts=9, wait=lambda _attempt: 0.0),),
        )  # fmt: skip
        run_attempt(desk, work, lambda: task.__wrapped__(*args), lambda _claim: None)
        return job_id

    return attempt


def read(engine: Engine, query: str) -> list[tuple[Any, ...]]:
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(text(query))]


def lose(rows: Rows, job_id: str) -> None:
    """Let the attempt that has just completed be one whose worker died before it could say so."""
    rows.set(job_id, state="'RETRYING'", due_at=rows.database.now_sql(), finished_at="NULL")
    with rows.database.begin() as connection:
        connection.execute(text("DELETE FROM cronq_attempt WHERE job_id = :id"), {"id": job_id})


def test_an_upsert_by_a_second_attempt_changes_nothing(
    page: SimpleNamespace, engine: Engine, rows: Rows, run: Any
) -> None:
    job_id = run(page.write_invoice, "acme", 500)
    lose(rows, job_id)
    run(page.write_invoice, "acme", 500, job_id=job_id)
    assert rows.row(job_id)["attempts"] == 2
    assert read(engine, "SELECT * FROM invoice") == [(job_id, "acme", 500)]


def test_a_transfer_and_its_outcome_are_one(
    page: SimpleNamespace, engine: Engine, rows: Rows, run: Any
) -> None:
    job_id = run(page.book_transfer, "a", "b", 30)
    assert rows.row(job_id)["result"] == {"booked": 30}
    run(page.book_transfer, "a", "b", 30, job_id=job_id)
    assert rows.attempts(job_id) == [(1, Outcome.COMPLETED, None)]
    assert read(engine, "SELECT * FROM account ORDER BY name") == [("a", 70), ("b", 30)]


def test_a_charge_is_not_repeated_when_the_mail_fails(page: SimpleNamespace, rows: Rows, run: Any) -> None:
    page.mails.away = True
    job_id = run(page.renew, "gold")
    assert rows.state(job_id) is State.RETRYING
    page.mails.away = False
    rows.set(job_id, due_at=rows.database.now_sql())
    run(page.renew, "gold", job_id=job_id)
    assert rows.state(job_id) is State.COMPLETED
    assert page.payments.calls == [("gold", job_id)]
    assert page.mails.calls == [("gold", "receipt 1")]
