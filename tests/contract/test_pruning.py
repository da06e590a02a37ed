"""What is over goes after its time; what somebody still goes by stays."""

from datetime import timedelta

import pytest
from sqlalchemy import text

from cronq.errors import UnknownBatch, UnknownJob
from cronq.job import State
from cronq.store.batches import get_batch
from cronq.store.pruning import prune_jobs
from cronq.upkeep.job_pruner import CHUNK, REST, JobPruner

from .rows import Rows

KEEP_S = 3600.0


@pytest.fixture(autouse=True)
def schedule(rows: Rows) -> None:
    rows.schedule("s", first_in=3600)


def age(rows: Rows, job_id: str, days: int = 1) -> str:
    """Let the job have ended days ago."""
    rows.set(job_id, updated_at=rows.database.now_sql(f"-{days * 86_400}"))
    return job_id


def ended(rows: Rows, state: State = State.COMPLETED, **facts: object) -> str:
    job_id = rows.job(**facts)  # type: ignore[arg-type]
    assert rows.claim(job_id, token=job_id)
    assert rows.settle(job_id, token=job_id, state=state, dead=state is State.FAILED)
    return job_id


def prune(rows: Rows) -> int:
    return prune_jobs(rows.database, older_than_s=KEEP_S, limit=100)


def is_there(rows: Rows, job_id: str) -> bool:
    try:
        rows.row(job_id)
    except UnknownJob:
        return False
    return True


def test_a_job_goes_with_its_attempts_when_its_time_is_over_and_not_before(rows: Rows) -> None:
    old, fresh = age(rows, ended(rows)), ended(rows)
    assert prune(rows) == 1
    assert not is_there(rows, old)
    assert is_there(rows, fresh)
    assert rows.attempts(old) == []
    assert len(rows.attempts(fresh)) == 1


def test_what_is_not_at_an_end_stays_however_old(rows: Rows) -> None:
    waiting = age(rows, rows.job())
    running = rows.job()
    assert rows.claim(running)
    age(rows, running)
    assert prune(rows) == 0
    assert is_there(rows, waiting)
    assert is_there(rows, running)


def test_a_dead_letter_waits_for_a_person(rows: Rows) -> None:
    dead = age(rows, ended(rows, State.FAILED))
    assert prune(rows) == 0
    assert is_there(rows, dead)


def test_the_last_completed_job_of_a_schedule_stays_so_that_failures_in_a_row_are_in_a_row(
    rows: Rows,
) -> None:
    first, last = (age(rows, ended(rows, schedule="s")) for _ in range(2))
    skipped = age(rows, rows.job(schedule="s"))
    rows.set(skipped, state="'SKIPPED'", reason="'overlap'")
    assert prune(rows) == 2
    assert [is_there(rows, each) for each in (first, last, skipped)] == [False, True, False]


def test_an_upstream_job_stays_while_a_job_of_its_fire_time_waits(rows: Rows) -> None:
    moment = rows.now() - timedelta(days=1)
    upstream = age(rows, ended(rows, schedule="s", fire_time=moment))
    ended(rows, schedule="s")
    downstream = rows.job(schedule="t", fire_time=moment)
    rows.set(downstream, held_at=rows.database.now_sql())
    assert prune(rows) == 0
    rows.set(downstream, held_at="NULL")
    assert prune(rows) == 1
    assert not is_there(rows, upstream)


def test_a_job_with_a_webhook_stays_until_its_receiver_was_told(rows: Rows) -> None:
    job = ended(rows, callback_url="https://example.org/")
    age(rows, job, days=1)
    prune(rows)
    assert is_there(rows, job)
    age(rows, job, days=3)
    prune(rows)
    assert not is_there(rows, job)


def put_batch(rows: Rows, head: str, *, ended_days_ago: int | None) -> None:
    end = "NULL" if ended_days_ago is None else rows.database.now_sql(f"-{ended_days_ago * 86_400}")
    now = rows.database.now_sql()
    with rows.database.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO cronq_batch (id, schedule_id, schedule_name, task, total, created_at, ended_at) "
                f"VALUES (:id, 'x', 's', 't', 1, {now}, {end})"
            ),
            {"id": head},
        )


@pytest.mark.parametrize("days", [None, 0])
def test_the_items_of_a_batch_stay_until_the_whole_is_over_for_long(rows: Rows, days: int | None) -> None:
    head = age(rows, ended(rows))
    item = age(rows, ended(rows, item="a"))
    rows.set(head, batch_id=f"'{head}'")
    rows.set(item, batch_id=f"'{head}'")
    put_batch(rows, head, ended_days_ago=days)
    assert prune(rows) == 0
    assert is_there(rows, item)


def test_a_batch_goes_with_its_items_and_stays_with_a_dead_one(rows: Rows) -> None:
    head, item = age(rows, ended(rows)), age(rows, ended(rows, item="a"))
    dead = age(rows, ended(rows, State.FAILED, item="b"))
    for each in (head, item, dead):
        rows.set(each, batch_id=f"'{head}'")
    put_batch(rows, head, ended_days_ago=1)
    assert prune(rows) == 1
    assert [is_there(rows, each) for each in (head, item, dead)] == [True, False, True]
    rows.set(dead, dead_at="NULL")
    while prune(rows):
        pass
    assert not is_there(rows, head)
    with pytest.raises(UnknownBatch):
        get_batch(rows.database, head)


def test_the_pruner_deletes_a_chunk_a_look_and_rests_when_there_is_no_more(rows: Rows) -> None:
    jobs = [age(rows, rows.job()) for _ in range(CHUNK + 1)]
    for each in jobs:
        rows.set(each, state="'CANCELLED'")
    pruner, term = JobPruner(rows.database, KEEP_S), rows.begin_term("me")
    pruner.run(term)
    assert sum(is_there(rows, each) for each in jobs) == 1
    pruner.run(term)
    assert sum(is_there(rows, each) for each in jobs) == 0
    late = age(rows, ended(rows))
    for _ in range(REST):
        pruner.run(term)
    assert is_there(rows, late)
    pruner.run(term)
    assert not is_there(rows, late)
