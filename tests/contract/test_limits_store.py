"""Limits in SQL: declared, counted, held back, and counted once more when a job is claimed."""

from typing import Any

import pytest

from cronq.breaker import WELL
from cronq.errors import NotLeader
from cronq.job import State, Trigger
from cronq.limits import Limits, limits_from
from cronq.store.agenda import foreign_jobs, mark_published, read_waiting, waiting_jobs
from cronq.store.attempts import Claim
from cronq.store.breakers import let_try, note_failure, note_success, read_breakers
from cronq.store.busy import busy_schedules
from cronq.store.guarded import claim_guarded
from cronq.store.limits import keys_by_hand, read_definitions, read_limits, set_by_hand, write_limits
from cronq.store.room import (
    Lane,
    count_recent,
    count_waiting,
    jobs_going_on,
    jobs_of_lane,
    mark_waiting,
    waiting_lanes,
)

from .rows import LEASE_S, Rows, at_once

DEMAND = {"trigger": Trigger.DEMAND}


def claim_under(rows: Rows, job_id: str, limits: Limits, token: str = "token-1", **job: Any) -> Any:
    facts = {"tenant": None, "task": "t", "queue": None} | job
    guards = limits.of(**facts)
    return claim_guarded(rows.database, job_id, guards, token=token, worker="w", lease_s=LEASE_S)


def publish(rows: Rows, *ids: str) -> None:
    mark_published(rows.database, rows.sent(*ids))


# -- declared ----------------------------------------------------------------------------------------------


def test_the_limits_of_a_deploy_replace_its_old_ones_and_nobody_else_s(rows: Rows) -> None:
    term = rows.begin_term("me")
    first = {"tenant": {"concurrency": 2}, "queue:mail": {"rate": "10/s"}}
    assert write_limits(rows.database, first, term=term, source="code:a") == []
    other = {"tenant": {"concurrency": 9}, "task:t": {"concurrency": 1}}
    assert write_limits(rows.database, other, term=term, source="code:b") == ["tenant"]
    write_limits(rows.database, {"tenant": {"concurrency": 3}}, term=term, source="code:a")
    assert read_definitions(rows.database) == {"task:t": {"concurrency": 1}, "tenant": {"concurrency": 3}}
    assert read_limits(rows.database) == limits_from(read_definitions(rows.database))


def test_a_beat_that_was_overtaken_declares_nothing(rows: Rows) -> None:
    old = rows.begin_term("me")
    rows.begin_term("another")
    with pytest.raises(NotLeader):
        write_limits(rows.database, {"tenant": {"concurrency": 2}}, term=old, source="code:a")
    assert not read_limits(rows.database)


# -- held back ---------------------------------------------------------------------------------------------


def test_a_job_that_waits_for_room_says_so_and_is_not_found_as_waiting_for_its_time(rows: Rows) -> None:
    held = rows.job(schedule="s", tenant="acme", due_in=-10)
    demanded, other = rows.job(**DEMAND, due_in=-10), rows.job(due_in=-5)
    mark_waiting(rows.database, [(held, "tenant:acme"), (demanded, "task:t")])
    assert rows.row(held)["waits_for"] == "tenant:acme"
    assert rows.state(held) is State.SCHEDULED
    now = rows.now()
    assert [job.id for job in waiting_jobs(rows.database, until=now, limit=9)] == [other]
    assert foreign_jobs(rows.database, until=now, limit=9) == []
    assert read_waiting(rows.database, [held, demanded]) == []
    assert count_waiting(rows.database) == {"task:t": 1, "tenant:acme": 1}


def test_a_schedule_whose_job_waits_for_room_is_busy(rows: Rows) -> None:
    held = rows.job(schedule="s")
    assert busy_schedules(rows.database) == set()
    mark_waiting(rows.database, [(held, "task:t")])
    schedule_id = rows.row(held)["schedule_id"]
    assert busy_schedules(rows.database) == busy_schedules(rows.database, [schedule_id]) == {schedule_id}


def test_a_job_that_is_published_claimed_or_over_is_not_marked_as_waiting(rows: Rows) -> None:
    published, claimed, cancelled = (rows.job() for _ in range(3))
    publish(rows, published)
    rows.claim(claimed)
    rows.set(cancelled, state="'CANCELLED'")
    mark_waiting(rows.database, [(each, "task:t") for each in (published, claimed, cancelled)])
    assert waiting_lanes(rows.database) == []


def test_publishing_and_claiming_take_the_mark_away(rows: Rows) -> None:
    published, claimed = rows.job(), rows.job()
    mark_waiting(rows.database, [(published, "task:t"), (claimed, "task:t")])
    publish(rows, published)
    rows.claim(claimed)
    assert [rows.row(each)["waits_for"] for each in (published, claimed)] == [None, None]


def test_lanes_are_counted_apart_and_read_in_the_order_of_their_due_times(rows: Rows) -> None:
    late = rows.job(tenant="a", due_in=-1)
    early = rows.job(tenant="a", due_in=-9)
    others = [
        rows.job(tenant="b"),
        rows.job(tenant="a", queue="q"),
        rows.job(tenant="a", priority=5),
        rows.job(tenant="a", trigger=Trigger.CATCH_UP),
        rows.job(),
    ]
    mark_waiting(rows.database, [(each, "task:t") for each in (late, early, *others)])
    lanes = dict(waiting_lanes(rows.database))
    of_a = Lane("t", None, "a", None, background=False)
    assert lanes.pop(of_a) == 2
    assert sorted(lanes.values()) == [1] * 5
    assert [job.id for job in jobs_of_lane(rows.database, of_a, limit=9)] == [early, late]
    assert [job.id for job in jobs_of_lane(rows.database, of_a, limit=1)] == [early]
    found = [job.id for lane in lanes for job in jobs_of_lane(rows.database, lane, limit=9)]
    assert sorted(found) == sorted(others)


def test_what_goes_on_is_counted_where_a_limit_may_count_it(rows: Rows) -> None:
    pending, running, waiting, free = (rows.job(tenant=tenant) for tenant in ("a", "a", "a", None))
    publish(rows, pending, running, free)
    rows.claim(running)
    by_tenant = jobs_going_on(rows.database, limits_from({"tenant": {"concurrency": 1}}))
    assert {(each.id, each.claimed) for each in by_tenant} == {(pending, False), (running, True)}
    assert {each.lane.tenant for each in by_tenant} == {"a"}
    every = jobs_going_on(rows.database, limits_from({"task": {"rate": "1/s"}}))
    assert {each.id for each in every} == {pending, running, free}
    queues = jobs_going_on(rows.database, limits_from({"queue:q": {"concurrency": 1}}))
    assert {each.id for each in queues} == {pending, running, free}, "their route may lead to q"
    assert jobs_going_on(rows.database, limits_from({"queue": {"backlog": 1}})) == []
    assert waiting not in {each.id for each in every}


def test_recent_starts_are_counted_for_a_rate(rows: Rows) -> None:
    for tenant in ("a", "a", "b"):
        publish(rows, rows.job(tenant=tenant))
    old = rows.job(tenant="a")
    publish(rows, old)
    rows.set(old, published_at=rows.database.now_sql("-100"))
    rows.job(tenant="a")
    limit = limits_from({"tenant": {"rate": "1/s"}}).limits["tenant"]
    assert count_recent(rows.database, "tenant:a", limit, within_s=50) == 2


# -- counted again by the worker ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "declared",
    [
        {"tenant": {"concurrency": 1}},
        {"task:t": {"concurrency": 1}},
        {"dependency:d": {"tasks": ["x", "t"], "concurrency": 1}},
    ],
    ids=["tenant", "task", "dependency"],
)
def test_the_second_of_two_loses_its_claim_and_goes_back_to_wait(
    rows: Rows, declared: dict[str, Any]
) -> None:
    limits = limits_from(declared)
    first, second = rows.job(tenant="a"), rows.job(tenant="a")
    publish(rows, first, second)
    assert isinstance(claim_under(rows, first, limits, tenant="a"), Claim)
    key = limits.of("a", "t", None)[0][0]
    assert claim_under(rows, second, limits, "token-2", tenant="a") == key
    row = rows.row(second)
    assert (row["state"], row["published_at"], row["attempts"]) == ("SCHEDULED", None, 0)
    assert [job.id for job in read_waiting(rows.database, [second])] == [second]
    rows.settle(first)
    publish(rows, second)
    assert isinstance(claim_under(rows, second, limits, "token-2", tenant="a"), Claim)


def test_of_many_claims_at_once_no_more_than_the_limit_win(rows: Rows) -> None:
    limits = limits_from({"tenant": {"concurrency": 3}, "task": {"concurrency": 4}})
    jobs = [rows.job(tenant="a") for _ in range(8)]
    publish(rows, *jobs)
    answers = at_once(
        [lambda job=job: claim_under(rows, job, limits, job, tenant="a") for job in jobs]  # type: ignore[misc]
    )
    assert sum(isinstance(answer, Claim) for answer in answers) == 3
    assert answers.count("tenant:a") == 5


def test_a_retry_that_finds_no_room_stays_a_retry(rows: Rows) -> None:
    limits = limits_from({"tenant": {"concurrency": 1}})
    retry, other = rows.job(tenant="a"), rows.job(tenant="a")
    rows.claim(retry)
    rows.settle(retry, state=State.RETRYING, retry_in_s=0)
    sent = rows.sent(retry)
    sent[0].state, sent[0].attempts = State.RETRYING, 1
    mark_published(rows.database, sent)
    rows.claim(other, "token-2")
    assert claim_under(rows, retry, limits, tenant="a") == "tenant:a"
    row = rows.row(retry)
    assert (row["state"], row["published_at"], row["attempts"]) == ("RETRYING", None, 1)


def test_starts_beyond_the_rate_lose_their_claim(rows: Rows) -> None:
    limits = limits_from({"task": {"rate": "2/m", "burst": 3}})  # 3 starts in any ten seconds
    jobs = [rows.job() for _ in range(5)]
    publish(rows, *jobs)
    answers = [claim_under(rows, job, limits, job) for job in jobs]
    assert [isinstance(answer, Claim) for answer in answers] == [True] * 3 + [False] * 2
    rows.set(jobs[0], started_at=rows.database.now_sql("-11"))
    publish(rows, jobs[4])
    assert isinstance(claim_under(rows, jobs[4], limits, jobs[4]), Claim)


def test_a_job_that_is_over_or_another_s_is_not_sent_back(rows: Rows) -> None:
    limits = limits_from({"task": {"concurrency": 1}})
    running, cancelled = rows.job(), rows.job()
    rows.claim(running)
    rows.set(cancelled, state="'CANCELLED'")
    assert claim_under(rows, cancelled, limits, "token-2") is None
    assert claim_under(rows, running, limits, "token-2") is None
    assert rows.state(cancelled) is State.CANCELLED


def test_overlap_is_refused_under_limits_too(rows: Rows) -> None:
    limits = limits_from({"task": {"concurrency": 5}})
    first, second = (rows.job(schedule="s", overlap="skip") for _ in range(2))
    assert isinstance(claim_under(rows, first, limits, "token-1"), Claim)
    assert claim_under(rows, second, limits, "token-2") is None
    assert rows.state(second) is State.SCHEDULED


# -- breakers ----------------------------------------------------------------------------------------------

BANK = limits_from({"dependency:bank": {"tasks": ["t"], "break_after": 3, "break_for_s": 1000}})
BANK_LIMIT = BANK.limits["dependency:bank"]


def test_failures_of_several_workers_at_once_are_all_counted(rows: Rows) -> None:
    at_once([lambda: note_failure(rows.database, "dependency:bank", BANK_LIMIT, "Boom")] * 3)
    assert read_breakers(rows.database)["dependency:bank"].room == 0


def test_while_all_is_well_nothing_is_written(rows: Rows) -> None:
    assert note_success(rows.database, "dependency:bank") == (WELL, WELL)
    assert read_breakers(rows.database) == {}


def test_a_claim_loses_to_an_open_breaker_and_only_one_may_try(rows: Rows) -> None:
    jobs = [rows.job() for _ in range(3)]
    publish(rows, *jobs)
    for _ in range(3):
        note_failure(rows.database, "dependency:bank", BANK_LIMIT, "Boom")
    assert claim_under(rows, jobs[0], BANK) == "dependency:bank"
    assert rows.state(jobs[0]) is State.SCHEDULED
    assert not let_try(rows.database)
    with rows.database.begin() as connection:
        connection.exec_driver_sql(f"UPDATE cronq_breaker SET until = {rows.database.now_sql('-1')}")
    assert let_try(rows.database)
    assert isinstance(claim_under(rows, jobs[1], BANK, "token-1"), Claim)
    assert claim_under(rows, jobs[2], BANK, "token-2") == "dependency:bank"
    rows.settle(jobs[1])
    note_success(rows.database, "dependency:bank")
    assert read_breakers(rows.database)["dependency:bank"].room == 2


def test_a_dependency_that_is_not_declared_any_more_has_no_breaker(rows: Rows) -> None:
    note_failure(rows.database, "dependency:bank", BANK_LIMIT, "Boom")
    write_limits(rows.database, {"task": {"concurrency": 1}}, term=rows.begin_term("me"), source="code:a")
    assert read_breakers(rows.database) == {}


def test_what_was_set_by_hand_outlives_deploys_and_what_they_declare_is_back_when_it_is_unset(
    rows: Rows,
) -> None:
    term = rows.begin_term("me")
    declared, by_hand = {"queue:q": {"backlog": 9}}, {"backlog": 1}
    write_limits(rows.database, declared, term=term, source="code:x")
    assert set_by_hand(rows.database, "queue:q", by_hand)
    assert write_limits(rows.database, declared, term=term, source="code:x") == []
    assert (read_definitions(rows.database), keys_by_hand(rows.database)) == (
        {"queue:q": by_hand},
        {"queue:q"},
    )
    assert set_by_hand(rows.database, "queue:q", None)
    assert not set_by_hand(rows.database, "queue:q", None)
    assert read_definitions(rows.database) == declared
    with pytest.raises(ValueError, match="there is no 'many'"):
        set_by_hand(rows.database, "queue:q", {"many": 1})
