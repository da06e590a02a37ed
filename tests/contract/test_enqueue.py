"""`cronq.enqueue`: a request is stored as it is, or refused; within the caller's transaction if so wished."""

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from celery import Celery
from sqlalchemy import Engine, create_engine
from sqlalchemy.orm import Session

import cronq
from cronq.app import cronq_of
from cronq.errors import JobRefused, UnknownJob
from cronq.job import State
from cronq.store.database import Database

from .rows import Rows

NO_REDIS = "redis://127.0.0.1:1/0"
SECOND = timedelta(seconds=1)


@pytest.fixture
def app(database: Database, database_url: str) -> Iterator[Celery]:
    app = Celery("asks", set_as_current=False)
    app.conf.update(cronq_database_url=database_url, cronq_redis_url=NO_REDIS)
    yield app
    cronq_of(app).database.dispose()


@pytest.fixture
def engine(database: Database, database_url: str) -> Iterator[Engine]:
    engine = create_engine(database_url.replace("postgresql://", "postgresql+psycopg://"))
    yield engine
    engine.dispose()


def exists(rows: Rows, job_id: str) -> bool:
    try:
        rows.row(job_id)
    except UnknownJob:
        return False
    return True


def test_a_job_is_stored_as_it_was_asked_for(app: Celery, rows: Rows) -> None:
    job_id = cronq.enqueue(
        "reports.make", "acme", 7, kwargs={"dry": True}, app=app,
        queue="slow", priority=3, max_attempts=4, tenant="acme",
    )  # fmt: skip
    row = rows.row(job_id)
    assert (row["task"], row["args"], row["kwargs"]) == ("reports.make", ["acme", 7], {"dry": True})
    assert (row["queue"], row["priority"], row["max_attempts"], row["tenant"]) == ("slow", 3, 4, "acme")
    assert (row["state"], row["trigger"], row["schedule_id"]) == (State.SCHEDULED, "demand", None)
    assert abs(row["due_at"] - rows.now()) < 30 * SECOND


def test_a_task_of_the_app_may_be_given_instead_of_its_name(app: Celery, rows: Rows) -> None:
    @app.task(name="reports.make")
    def make(tenant: str) -> None:
        raise AssertionError(tenant)

    assert rows.row(cronq.enqueue(make, "acme"))["task"] == "reports.make"


def test_it_is_due_at_an_instant_or_so_long_from_now_by_the_databases_clock(app: Celery, rows: Rows) -> None:
    instant = datetime(2030, 5, 1, 12, 30, 15, 250_000, tzinfo=UTC)
    assert rows.row(cronq.enqueue("t", run_at=instant, app=app))["due_at"] == instant
    for run_in in (90, 90.0, timedelta(seconds=90)):
        row = rows.row(cronq.enqueue("t", run_in=run_in, app=app))
        assert abs(row["due_at"] - row["planned_at"] - 90 * SECOND) < SECOND / 100


@pytest.mark.parametrize(
    "wrong",
    [
        {"run_at": datetime(2030, 1, 1)},  # noqa: DTZ001 - without an offset
        {"run_at": datetime(2030, 1, 1, tzinfo=UTC), "run_in": 5},
        {"priority": 10},
        {"kwargs": {"when": datetime(2030, 1, 1, tzinfo=UTC)}},
        {"kwargs": {"text": "x" * 300_000}},
    ],
    ids=["naive", "two instants", "priority", "not JSON", "too large"],
)
def test_what_could_never_run_is_refused_and_not_stored(
    app: Celery, rows: Rows, wrong: dict[str, Any]
) -> None:
    key = str(uuid.uuid4())
    with pytest.raises(JobRefused):
        cronq.enqueue("t", dedup_key=key, app=app, **wrong)
    job_id = cronq.enqueue("fine", dedup_key=key, app=app)
    assert rows.row(job_id)["task"] == "fine"


def test_a_second_request_with_the_same_key_is_the_first_ones_job(app: Celery, rows: Rows) -> None:
    first = cronq.enqueue("t", 1, dedup_key="invoice 7", app=app)
    second = cronq.enqueue("t", 2, dedup_key="invoice 7", app=app)
    assert first == second
    assert rows.row(first)["args"] == [1]
    assert cronq.enqueue("t", 1, dedup_key="invoice 8", app=app) != first


@pytest.mark.parametrize("kind", ["session", "connection"])
def test_in_the_callers_transaction_it_commits_and_rolls_back_with_it(
    app: Celery, engine: Engine, rows: Rows, kind: str
) -> None:
    def opened() -> Any:
        return Session(engine) if kind == "session" else engine.connect()

    with opened() as session:
        kept = cronq.enqueue("t", run_in=5, priority=2, dedup_key="kept", session=session, app=app)
        session.commit()
    with opened() as session:
        lost = cronq.enqueue("t", dedup_key="lost", session=session, app=app)
        session.rollback()
    assert (exists(rows, kept), exists(rows, lost)) == (True, False)
    assert rows.row(kept)["priority"] == 2
    with opened() as session:
        assert cronq.enqueue("t", dedup_key="kept", session=session, app=app) == kept
        session.commit()
