"""A job that has a callback does not end without the job that tells of it."""

from typing import Any

import pytest

from cronq.job import Outcome, State
from cronq.schedule import Reason
from cronq.settings import Settings
from cronq.store.agenda import foreign_jobs, mark_skipped
from cronq.store.attempts import bury
from cronq.store.database import Database
from cronq.store.jobs import request_cancel, request_cancel_of_schedules, retry_dead
from cronq.store.tables import job
from cronq.upkeep.job_rescuer import JobRescuer

from .rows import Rows, told

URL = "https://example.org/hook"
FAILED: dict[str, Any] = {"outcome": Outcome.FAILED, "state": State.FAILED, "dead": True}
UNUSED: Any = None


def test_a_settled_job_leaves_a_webhook_that_the_leader_finds(database: Database, rows: Rows) -> None:
    job_id = rows.job(callback_url=URL)
    rows.claim(job_id)
    assert told(database) == []
    assert rows.settle(job_id)
    assert told(database) == [{"job_id": job_id, "status": "COMPLETED"}]
    (webhook,) = foreign_jobs(database, until=rows.now(), limit=10)
    assert (webhook.task, webhook.trigger, webhook.args) == ("cronq.webhook", "webhook", [])
    assert rows.claim(webhook.id, "token-2") is not None


def test_one_without_a_callback_leaves_nothing(database: Database, rows: Rows) -> None:
    job_id = rows.job()
    rows.claim(job_id)
    rows.settle(job_id)
    assert told(database) == []


def test_a_worker_that_lost_its_lease_tells_nobody(database: Database, rows: Rows) -> None:
    job_id = rows.job(callback_url=URL)
    rows.claim(job_id)
    assert not rows.settle(job_id, "another-token")
    assert told(database) == []


def test_each_retry_stays_quiet_until_the_end_and_a_second_end_is_told_again(
    database: Database, rows: Rows
) -> None:
    job_id = rows.job(callback_url=URL)
    rows.claim(job_id)
    rows.settle(job_id, outcome=Outcome.FAILED, state=State.RETRYING, retry_in_s=0.0)
    assert told(database) == []
    rows.claim(job_id, "token-2")
    rows.settle(job_id, "token-2", **FAILED)
    assert told(database) == [{"job_id": job_id, "status": "FAILED"}]
    retry_dead(database, job_id)
    rows.claim(job_id, "token-3")
    rows.settle(job_id, "token-3")
    assert [each["status"] for each in told(database)] == ["FAILED", "COMPLETED"]


@pytest.mark.parametrize("how", ["cancelled", "buried", "cancelled with its schedule", "lost for good"])
def test_whoever_ends_it_the_end_is_told(database: Database, rows: Rows, how: str) -> None:
    job_id = rows.job(callback_url=URL, schedule="s", state=State.PENDING)
    match how:
        case "cancelled":
            request_cancel(database, job_id)
        case "buried":
            assert bury(database, job_id, kind="unknown_task", error="nobody knows it")
        case "cancelled with its schedule":
            request_cancel_of_schedules(database, [rows.row(job_id)["schedule_id"]], at_once=False)
        case _:
            rows.claim(job_id)
            rows.expire(job_id)
            JobRescuer(database, Settings(max_crashes=1)).run(UNUSED)
    assert told(database) == [{"job_id": job_id, "status": rows.state(job_id)}]


def test_a_fire_time_that_is_left_out_is_no_end_of_a_job(database: Database, rows: Rows) -> None:
    job_id = rows.job(callback_url=URL, schedule="s")
    mark_skipped(database, [job_id], Reason.OVERLAP)
    assert rows.state(job_id) is State.SKIPPED
    assert told(database) == []


def test_an_end_that_is_rolled_back_leaves_no_webhook(database: Database, rows: Rows) -> None:
    job_id = rows.job(callback_url=URL)
    end = job.update().where(job.c.id == job_id).values(state="FAILED", finished_at=rows.now())
    with database.engine.connect() as connection, connection.begin() as transaction:
        connection.execute(end)
        transaction.rollback()
    assert told(database) == []
    with database.begin() as connection:
        connection.execute(end)
    assert len(told(database)) == 1
