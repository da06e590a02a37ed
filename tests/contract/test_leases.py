"""At most one worker has a job; whoever lost it can change nothing."""

import uuid
from functools import partial
from typing import Any

import pytest
from sqlalchemy import text

from cronq.job import Outcome, State
from cronq.schedule import Overlap
from cronq.settings import Settings
from cronq.store.database import Database
from cronq.store.jobs import request_cancel, request_cancel_of_schedules, retry_dead
from cronq.store.leases import renew, silent_jobs
from cronq.store.terms import Term
from cronq.upkeep.job_rescuer import JobRescuer

from .rows import LEASE_S, Rows, at_once

LOST: dict[str, Any] = {"outcome": Outcome.LOST, "state": State.RETRYING, "only_expired": True}
UNUSED: Any = None


@pytest.fixture
def rescue(database: Database, rows: Rows) -> Any:
    rescuer = JobRescuer(database, Settings(max_crashes=3))
    term: Term = UNUSED
    return lambda: rescuer.run(term)


def test_two_workers_claim_one_job_and_one_loses(rows: Rows) -> None:
    for _ in range(10):
        job_id = rows.job()
        tokens = [str(uuid.uuid4()) for _ in range(4)]
        won = at_once([partial(rows.claim, job_id, token, token) for token in tokens])
        assert [claim is not None for claim in won].count(True) == 1
        winner = tokens[[claim is not None for claim in won].index(True)]
        row = rows.row(job_id)
        assert (row["lease_token"], row["worker"], row["attempts"]) == (winner, winner, 1)


def test_a_claim_says_which_attempt_it_is(rows: Rows) -> None:
    job_id = rows.job(max_attempts=5)
    claim = rows.claim(job_id)
    assert claim is not None
    assert (claim.attempt, claim.max_attempts, claim.crashes, claim.cancel_requested) == (1, 5, 0, False)
    row = rows.row(job_id)
    assert row["state"] == State.RUNNING
    assert LEASE_S - 5 < (row["lease_until"] - rows.now()).total_seconds() <= LEASE_S
    assert row["started_at"] is not None


def test_a_claim_whose_answer_got_lost_is_confirmed_when_it_is_asked_again(rows: Rows) -> None:
    job_id = rows.job()
    first, again = rows.claim(job_id, "token"), rows.claim(job_id, "token")
    assert first == again
    assert first is not None
    assert rows.row(job_id)["attempts"] == 1
    assert rows.claim(job_id, "other") is None


def test_an_unknown_job_is_nobodys(rows: Rows) -> None:
    assert rows.claim(str(uuid.uuid4())) is None


def test_a_job_is_claimed_when_it_is_due_and_not_before(rows: Rows) -> None:
    assert rows.claim(rows.job(due_in=30)) is None
    # The publisher's clock may be a little ahead of the database's.
    assert rows.claim(rows.job(due_in=0.3)) is not None


@pytest.mark.parametrize("state", [State.COMPLETED, State.FAILED, State.CANCELLED, State.TIMED_OUT])
def test_a_late_copy_of_a_message_loses_to_the_outcome(rows: Rows, state: State) -> None:
    job_id = rows.job()
    rows.claim(job_id)
    assert rows.settle(job_id, state=state)
    assert rows.claim(job_id, "token-2") is None
    assert rows.state(job_id) is state


def test_a_second_copy_loses_to_a_lease_that_ran_out_but_was_not_rescued(rows: Rows) -> None:
    job_id = rows.job()
    rows.claim(job_id)
    rows.expire(job_id)
    assert rows.claim(job_id, "token-2") is None


def test_a_worker_that_is_late_but_not_rescued_keeps_its_job(rows: Rows) -> None:
    job_id = rows.job()
    rows.claim(job_id)
    rows.expire(job_id)
    assert renew(rows.database, ["token-1"], lease_s=LEASE_S) == {"token-1": False}
    assert silent_jobs(rows.database, limit=10) == []
    assert rows.settle(job_id)


def test_a_rescued_jobs_zombie_can_neither_renew_nor_settle(rows: Rows) -> None:
    job_id = rows.job()
    rows.claim(job_id)
    rows.expire(job_id)
    assert rows.settle(job_id, **LOST)
    assert renew(rows.database, ["token-1"], lease_s=LEASE_S) == {}
    assert not rows.settle(job_id)
    assert rows.state(job_id) is State.RETRYING
    assert rows.attempts(job_id) == [(1, "LOST", None)]


def test_a_zombie_loses_to_the_worker_that_took_over(rows: Rows) -> None:
    job_id = rows.job()
    rows.claim(job_id)
    rows.expire(job_id)
    rows.settle(job_id, **LOST)
    second = rows.claim(job_id, "token-2", "w2")
    assert second is not None
    assert (second.attempt, second.crashes) == (2, 1)
    assert renew(rows.database, ["token-1", "token-2"], lease_s=LEASE_S) == {"token-2": False}
    assert not rows.settle(job_id, "token-1", state=State.FAILED, outcome=Outcome.FAILED)
    assert rows.settle(job_id, "token-2", number=2)
    assert rows.state(job_id) is State.COMPLETED
    assert rows.attempts(job_id) == [(1, "LOST", None), (2, "COMPLETED", None)]


def test_rescue_loses_to_a_lease_that_was_renewed_in_between(rows: Rows) -> None:
    job_id = rows.job()
    rows.claim(job_id)
    rows.expire(job_id)
    assert [row.id for row in silent_jobs(rows.database, limit=10)] == [job_id]
    renew(rows.database, ["token-1"], lease_s=LEASE_S)
    assert not rows.settle(job_id, **LOST)
    assert rows.state(job_id) is State.RUNNING


def test_rescue_and_settlement_at_once_leave_one_outcome(rows: Rows) -> None:
    for _ in range(10):
        job_id = rows.job()
        rows.claim(job_id)
        rows.expire(job_id)
        settled, rescued = at_once([partial(rows.settle, job_id), partial(rows.settle, job_id, **LOST)])
        assert settled != rescued
        assert rows.state(job_id) is (State.COMPLETED if settled else State.RETRYING)
        assert len(rows.attempts(job_id)) == 1


def test_two_rescuers_at_once_count_one_loss(rows: Rows) -> None:
    for _ in range(5):
        job_id = rows.job()
        rows.claim(job_id)
        rows.expire(job_id)
        rescued = at_once([partial(rows.settle, job_id, **LOST)] * 3)
        assert rescued.count(True) == 1
        assert rows.row(job_id)["crashes"] == 1


def test_an_outcome_is_written_once(rows: Rows) -> None:
    job_id = rows.job()
    rows.claim(job_id)
    assert rows.settle(job_id, result={"rows": 7}, progress={"progress": 100})
    assert not rows.settle(job_id, state=State.FAILED, outcome=Outcome.FAILED, error="late")
    row = rows.row(job_id)
    assert (row["state"], row["result"], row["error"]) == ("COMPLETED", {"rows": 7}, None)
    assert row["progress"] == {"progress": 100}
    assert row["finished_at"] is not None
    assert rows.attempts(job_id) == [(1, "COMPLETED", None)]


def test_a_retry_has_a_due_time_and_waits_to_be_published_again(rows: Rows) -> None:
    job_id = rows.job()
    rows.claim(job_id)
    rows.settle(job_id, state=State.RETRYING, outcome=Outcome.FAILED, kind="network", retry_in_s=30)
    row = rows.row(job_id)
    assert row["state"] == State.RETRYING
    assert 25 < (row["due_at"] - rows.now()).total_seconds() <= 30
    assert (row["published_at"], row["publishes"], row["finished_at"]) == (None, 0, None)
    assert rows.claim(job_id, "token-2") is None, "not due yet"


def test_an_attempt_that_was_handed_back_does_not_count(rows: Rows) -> None:
    job_id = rows.job()
    rows.claim(job_id)
    rows.settle(job_id, state=State.RETRYING, outcome=Outcome.HANDED_BACK, kind="shutdown", retry_in_s=0)
    again = rows.claim(job_id, "token-2")
    assert again is not None
    assert (again.attempt, again.crashes) == (1, 0)
    assert rows.attempts(job_id) == [(1, "HANDED_BACK", "shutdown")]


def test_a_dead_letter_says_since_when(rows: Rows) -> None:
    job_id = rows.job()
    rows.claim(job_id)
    rows.settle(job_id, state=State.FAILED, outcome=Outcome.FAILED, dead=True, error="boom")
    row = rows.row(job_id)
    assert row["dead_at"] is not None
    assert row["error"] == "boom"


EXCLUSIVE = [overlap for overlap in Overlap if overlap is not Overlap.ALLOW]


@pytest.mark.parametrize("overlap", EXCLUSIVE)
def test_a_second_job_of_one_schedule_loses_to_the_running_one(rows: Rows, overlap: Overlap) -> None:
    first, second = (rows.job(schedule="s", overlap=overlap) for _ in range(2))
    other = rows.job(schedule="another", overlap=overlap)
    assert rows.claim(first) is not None
    assert rows.claim(second, "token-2") is None
    assert rows.claim(other, "token-3") is not None
    assert rows.settle(first)
    assert rows.claim(second, "token-2") is not None


def test_jobs_that_may_overlap_run_side_by_side(rows: Rows) -> None:
    first, second = (rows.job(schedule="s", overlap=Overlap.ALLOW) for _ in range(2))
    assert rows.claim(first) is not None
    assert rows.claim(second, "token-2") is not None


def test_of_many_jobs_of_one_schedule_claimed_at_once_one_runs(rows: Rows) -> None:
    for number in range(5):
        jobs = [rows.job(schedule=f"s{number}", overlap=Overlap.SKIP) for _ in range(4)]
        won = at_once([partial(rows.claim, job_id, str(uuid.uuid4())) for job_id in jobs])
        assert [claim is not None for claim in won].count(True) == 1
        running = [job_id for job_id in jobs if rows.state(job_id) is State.RUNNING]
        assert len(running) == 1


def test_all_leases_of_a_process_are_renewed_at_once(rows: Rows) -> None:
    jobs = {f"token-{number}": rows.job() for number in range(50)}
    for token, job_id in jobs.items():
        assert rows.claim(job_id, token) is not None
        rows.expire(job_id)
    answer = renew(rows.database, [*jobs, "somebody-elses"], lease_s=LEASE_S)
    assert answer == dict.fromkeys(jobs, False)
    assert silent_jobs(rows.database, limit=100) == []


def test_a_running_job_that_is_cancelled_hears_it_when_it_renews(rows: Rows) -> None:
    job_id = rows.job()
    rows.claim(job_id)
    assert request_cancel(rows.database, job_id) is State.RUNNING
    assert renew(rows.database, ["token-1"], lease_s=LEASE_S) == {"token-1": True}


@pytest.mark.parametrize("state", [State.SCHEDULED, State.PENDING, State.RETRYING])
def test_a_job_cancelled_before_it_starts_never_starts(rows: Rows, state: State) -> None:
    job_id = rows.job()
    rows.set(job_id, state=f"'{state}'")
    assert request_cancel(rows.database, job_id) is State.CANCELLED
    assert rows.claim(job_id) is None
    assert rows.row(job_id)["finished_at"] is not None


def test_a_cancel_and_a_claim_at_once_never_both_win_silently(rows: Rows) -> None:
    for _ in range(10):
        job_id = rows.job()

        def cancel(job_id: str = job_id) -> State:
            return request_cancel(rows.database, job_id)

        answers = at_once([cancel, partial(rows.claim, job_id)])  # type: ignore[list-item]
        row = rows.row(job_id)
        if answers[1] is None:
            assert row["state"] == State.CANCELLED
        else:
            # It started: then it runs, and knows that it is to stop.
            assert row["state"] == State.RUNNING
            assert row["cancel_requested_at"] is not None


def test_an_end_is_not_cancelled(rows: Rows) -> None:
    job_id = rows.job()
    rows.claim(job_id)
    rows.settle(job_id)
    assert request_cancel(rows.database, job_id) is State.COMPLETED
    assert rows.state(job_id) is State.COMPLETED


def test_cancelling_a_schedules_jobs_leaves_the_planned_ones(rows: Rows) -> None:
    planned, pending, running = (rows.job(schedule="s", overlap=Overlap.CANCEL_PREVIOUS) for _ in range(3))
    other = rows.job(schedule="another")
    rows.set(pending, state="'PENDING'")
    rows.set(other, state="'PENDING'")
    rows.claim(running)
    row = rows.row(running)
    request_cancel_of_schedules(rows.database, [row["schedule_id"]], at_once=False)
    assert [rows.state(job_id) for job_id in (planned, pending, running, other)] == [
        State.SCHEDULED,
        State.CANCELLED,
        State.RUNNING,
        State.PENDING,
    ]
    assert rows.row(running)["cancel_requested_at"] is not None


def test_a_silent_worker_costs_one_crash_and_the_job_is_due_at_once(rows: Rows, rescue: Any) -> None:
    job_id, healthy = rows.job(), rows.job()
    rows.claim(job_id)
    rows.claim(healthy, "token-2")
    rows.expire(job_id)
    rescue()
    row = rows.row(job_id)
    assert (row["state"], row["crashes"], row["published_at"]) == ("RETRYING", 1, None)
    assert row["due_at"] <= rows.now()
    assert "w1" in row["error"]
    assert rows.attempts(job_id) == [(1, "LOST", "worker_lost")]
    assert rows.state(healthy) is State.RUNNING


def test_after_an_outage_workers_may_renew_before_any_is_rescued(database: Database, rows: Rows) -> None:
    now = 1000.0
    rescuer = JobRescuer(database, Settings(lease_s=15), monotonic=lambda: now)
    alive, dead = rows.job(), rows.job()
    rows.claim(alive, "token-1")
    rows.claim(dead, "token-2")
    rows.expire(alive)
    rows.expire(dead)
    now += 20.0  # nobody saw SQL
    rescuer.run(UNUSED)
    assert renew(database, ["token-1"], lease_s=60)
    now += 0.5
    rescuer.run(UNUSED)
    assert rows.state(dead) is State.RUNNING
    for _ in range(20):
        now += 0.5
        rescuer.run(UNUSED)
    assert rows.state(alive) is State.RUNNING
    assert rows.state(dead) is State.RETRYING


def test_a_standby_that_saw_sql_all_the_time_takes_no_change_of_leader_for_an_outage(
    database: Database, rows: Rows
) -> None:
    now = 1000.0
    standby = JobRescuer(database, Settings(lease_s=15), monotonic=lambda: now)
    dead = rows.job()
    rows.claim(dead)
    rows.expire(dead)
    for _ in range(20):
        now += 1.0
        standby.saw_sql()
    now += 1.0
    standby.run(UNUSED)  # it leads now
    assert rows.state(dead) is State.RETRYING


def test_an_outage_that_a_standby_lived_through_counts_once_it_leads(database: Database, rows: Rows) -> None:
    now = 1000.0
    standby = JobRescuer(database, Settings(lease_s=15), monotonic=lambda: now)
    alive = rows.job()
    rows.claim(alive)
    rows.expire(alive)
    now += 20.0
    standby.saw_sql()
    now += 1.0
    standby.run(UNUSED)
    assert rows.state(alive) is State.RUNNING


def test_one_job_that_cannot_be_rescued_does_not_keep_the_others_from_it(rows: Rows, rescue: Any) -> None:
    broken, fine = rows.job(), rows.job()
    for job_id in (broken, fine):
        rows.claim(job_id, token=job_id)
        rows.expire(job_id)
    with rows.database.begin() as connection:
        # An attempt of this lease is on record, as it never should be: its second outcome cannot be stored.
        connection.execute(
            text(
                "INSERT INTO cronq_attempt (job_id, token, number, ended_at, outcome)"
                f" VALUES (:id, :id, 1, {rows.database.now_sql()}, 'LOST')"
            ),
            {"id": broken},
        )
    rescue()
    assert [rows.state(each) for each in (broken, fine)] == [State.RUNNING, State.RETRYING]


def test_a_job_that_keeps_killing_its_worker_is_dead_after_three(rows: Rows, rescue: Any) -> None:
    job_id = rows.job(max_attempts=50)
    for number in (1, 2, 3):
        assert rows.claim(job_id, f"token-{number}") is not None
        rows.expire(job_id)
        rescue()
    row = rows.row(job_id)
    assert (row["state"], row["crashes"]) == ("FAILED", 3)
    assert row["dead_at"] is not None
    assert [outcome for _number, outcome, _kind in rows.attempts(job_id)] == ["LOST"] * 3


def test_a_cancelled_job_whose_worker_went_silent_does_not_run_again(rows: Rows, rescue: Any) -> None:
    job_id = rows.job()
    rows.claim(job_id)
    request_cancel(rows.database, job_id)
    rows.expire(job_id)
    rescue()
    assert rows.state(job_id) is State.CANCELLED


@pytest.mark.parametrize("end", [State.FAILED, State.TIMED_OUT])
def test_a_dead_letter_that_is_sent_back_keeps_its_id_and_history(rows: Rows, end: State) -> None:
    job_id = rows.job(max_attempts=1)
    rows.claim(job_id)
    rows.settle(job_id, state=end, outcome=Outcome.FAILED, dead=True)
    retry_dead(rows.database, job_id)
    row = rows.row(job_id)
    assert (row["state"], row["dead_at"], row["published_at"]) == ("SCHEDULED", None, None)
    again = rows.claim(job_id, "token-2")
    assert again is not None
    assert (again.attempt, again.max_attempts) == (2, 2)
    assert rows.settle(job_id, "token-2", number=2)
    assert [number for number, _outcome, _kind in rows.attempts(job_id)] == [1, 2]


def test_a_claim_that_is_asked_again_after_the_rescue_took_its_job_gets_nothing(rows: Rows) -> None:
    job_id = rows.job()
    rows.claim(job_id, "slow")
    rows.expire(job_id)
    rescued = {"outcome": Outcome.LOST, "state": State.RETRYING, "only_expired": True}
    assert rows.settle(job_id, "slow", **rescued)
    assert rows.claim(job_id, "slow") is None
    assert rows.claim(job_id, "another") is not None
    rows.expire(job_id)
    assert rows.settle(job_id, "another", **rescued)
    assert rows.claim(job_id, "slow") is None
