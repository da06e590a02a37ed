"""Narrow races and awkward data: a job is neither forgotten nor stuck because of them."""

import threading
from functools import partial
from typing import Any

import pytest
from sqlalchemy import text

from cronq.job import TRANSITIONS, Outcome, State
from cronq.schedule import Schedule
from cronq.settings import Settings
from cronq.store.agenda import foreign_jobs, mark_published
from cronq.store.attempts import bury
from cronq.store.database import Database
from cronq.store.jobs import add_job, request_cancel, retry_dead
from cronq.store.schedules import list_schedules
from cronq.store.schema import found_version, upgrade, wanted_version
from cronq.upkeep.job_rescuer import JobRescuer

from .rows import Rows, at_once, job_value
from .test_planning_store import declared, deploy


def test_a_retry_that_was_decided_before_the_publish_was_marked_is_still_sent(rows: Rows) -> None:
    job_id = rows.job()
    # Sent, claimed and failed, all before the leader writes down that it was sent.
    rows.claim(job_id)
    rows.settle(job_id, state=State.RETRYING, outcome=Outcome.FAILED, retry_in_s=0)
    mark_published(rows.database, rows.sent(job_id))
    assert [job.id for job in foreign_jobs(rows.database, until=rows.now(), limit=9)] == [job_id]


def test_a_dead_letter_that_is_sent_back_forgets_that_it_was_to_stop(rows: Rows) -> None:
    job_id = rows.job()
    rows.claim(job_id)
    request_cancel(rows.database, job_id)
    rows.settle(job_id, state=State.FAILED, outcome=Outcome.FAILED, dead=True)
    retry_dead(rows.database, job_id)
    claim = rows.claim(job_id, "token-2")
    assert claim is not None
    assert not claim.cancel_requested


def test_each_time_a_dead_letter_is_sent_back_it_gets_as_many_attempts_as_at_first(rows: Rows) -> None:
    job_id = rows.job(max_attempts=2)
    number = 0
    for allowed in (2, 4, 6):
        for _ in range(2):
            number += 1
            claim = rows.claim(job_id, f"token-{number}")
            assert claim is not None
            assert claim.max_attempts == allowed
            last = number == allowed
            state = State.FAILED if last else State.RETRYING
            rows.settle(job_id, f"token-{number}", number=number, state=state, outcome=Outcome.FAILED)
        retry_dead(rows.database, job_id)


@pytest.mark.parametrize(
    "facts",
    [
        {"error": "a NUL \x00 in the message", "kind": "error"},
        {"error": "a lone surrogate \udcff, as file names have them", "kind": "error"},
        {"result": {"name": "a\x00b"}},
        {"progress": {"step": "a\x00b"}},
    ],
    ids=["NUL in error", "surrogate in error", "NUL in result", "NUL in progress"],
)
def test_an_outcome_with_awkward_text_is_written_all_the_same(rows: Rows, facts: dict[str, Any]) -> None:
    job_id = rows.job()
    rows.claim(job_id)
    state = State.FAILED if "error" in facts else State.COMPLETED
    assert rows.settle(job_id, state=state, outcome=Outcome(state.value), **facts)
    assert rows.state(job_id) is state


def test_a_row_that_a_frozen_worker_holds_does_not_keep_the_rescuer_from_the_others(
    rows: Rows, database_url: str
) -> None:
    if rows.database.dialect == "sqlite":
        pytest.skip("SQLite has one lock for all rows")
    stuck, other = rows.job(), rows.job()
    rows.claim(stuck, "token-1")
    rows.claim(other, "token-2")
    rows.expire(stuck)
    rows.expire(other)
    frozen = Database(database_url)
    rescued = threading.Event()

    def rescue() -> None:
        try:
            JobRescuer(rows.database, Settings(max_crashes=3)).run(None)  # type: ignore[arg-type]
        finally:
            rescued.set()

    with frozen.engine.connect() as connection, connection.begin():
        # It was stopped between the statement of its settlement and the commit.
        connection.execute(text("SELECT 1 FROM cronq_job WHERE id = :id FOR UPDATE"), {"id": stuck})
        rescuer = threading.Thread(target=rescue)
        rescuer.start()
        in_time = rescued.wait(2.0)
        state = rows.state(other)
    rescuer.join(20)
    frozen.dispose()
    assert in_time, "the leader's main loop waited for a frozen worker"
    assert state is State.RETRYING


def test_processes_that_upgrade_at_once_all_find_the_newest_schema(database_url: str) -> None:
    databases = [Database(database_url) for _ in range(3)]
    assert at_once([partial(upgrade, each) for each in databases]) == [wanted_version()] * 3
    assert found_version(databases[0]) == wanted_version()
    for each in databases:
        each.dispose()


BAD: list[Schedule] = [
    declared("n" * 300),
    declared("bad-queue", queue="q" * 300),
    declared("bad-tenant", tenant="a\x00b"),
    declared("bad-priority", priority=10**12),
]


@pytest.mark.parametrize("bad", BAD, ids=["long name", "long queue", "NUL in tenant", "huge priority"])
def test_one_schedule_that_the_database_refuses_does_not_stop_the_deploy(rows: Rows, bad: Schedule) -> None:
    # It may be stored and flagged or left out, but the others are taken over and can be planned.
    deploy(rows, declared("good"), bad)
    assert "good" in [each.name for each in list_schedules(rows.database)]


def test_a_job_that_is_buried_moves_as_the_table_says(rows: Rows) -> None:
    for state in (State.SCHEDULED, State.PENDING, State.RETRYING):
        job_id = rows.job()
        rows.set(job_id, state=f"'{state}'")
        assert bury(rows.database, job_id, kind="unknown_task", error="no such task")
        assert rows.state(job_id) in TRANSITIONS[state]


def test_of_requests_with_one_key_at_once_one_is_told_that_its_job_is_new(rows: Rows) -> None:
    for number in range(5):

        def ask(number: int = number) -> bool:
            return add_job(rows.database, job_value(id=f"j{number}", due_at=rows.now()), due=0)[1]

        assert at_once([ask] * 4).count(True) == 1
