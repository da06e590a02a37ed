"""Limits in the beat's loop, step by step: who waits, who is next, what a new leader makes of it."""

from typing import Any

import pytest

from cronq.job import State, Trigger
from cronq.schedule import Overlap
from cronq.store.breakers import note_failure, note_success
from cronq.store.limits import read_limits, set_by_hand, write_limits

from .rows import Rows
from .test_beat_loop import World, world

__all__ = ["world"]

DEMAND: dict[str, Any] = {"trigger": Trigger.DEMAND}


def declare(world: World, **limits: Any) -> None:
    """Let a new term begin with `limits`."""
    world.leadership.term = world.rows.begin_term("me")
    write_limits(
        world.rows.database,
        {key.replace("__", ":"): given for key, given in limits.items()},
        term=world.leadership.term,
        source="code:x",
    )


def steps(world: World, count: int = 6) -> None:
    for _ in range(count):
        world.loop.publishing.waiting_room._next_count = 0.0
        world.loop.publishing.waiting_room._next_recount = 0.0
        world.loop.publishing.waiting_room._next_sounding = 0.0
        world.loop.publishing.waiting_room._next_offers = 0.0
        world.loop.publishing.waiting_room._next_limits = 0.0
        world.step()


def waiting(rows: Rows, *ids: str) -> list[str | None]:
    return [rows.row(each)["waits_for"] for each in ids]


def test_a_second_job_of_a_tenant_waits_in_sql_with_the_reason(world: World) -> None:
    declare(world, tenant={"concurrency": 1})
    first, second = (world.rows.job(tenant="a", due_in=-when) for when in (9, 8))
    other = world.rows.job(tenant="b", due_in=-1)
    steps(world)
    assert sorted(world.broker.sent) == sorted([first, other])
    assert waiting(world.rows, first, second) == [None, "tenant:a"]
    assert world.rows.state(second) is State.SCHEDULED


def test_the_word_of_an_end_lets_the_next_one_go(world: World) -> None:
    declare(world, tenant={"concurrency": 1})
    first, second = (world.rows.job(tenant="a", due_in=-when) for when in (9, 8))
    world.step()
    world.rows.claim(first)
    world.rows.settle(first)
    world.loop.notice({"kind": "ended", "job_id": first})
    world.step()
    assert world.broker.sent == [first, second]


def test_an_end_that_nobody_told_of_is_found(world: World) -> None:
    declare(world, tenant={"concurrency": 1})
    first, second = (world.rows.job(tenant="a", due_in=-when) for when in (9, 8))
    steps(world)
    world.rows.claim(first)
    world.rows.settle(first)
    steps(world)
    assert world.broker.sent == [first, second]
    assert waiting(world.rows, second) == [None]


def test_a_new_leader_neither_exceeds_the_limit_nor_forgets_who_waits(world: World) -> None:
    declare(world, tenant={"concurrency": 2})
    jobs = [world.rows.job(tenant="a", due_in=-9 + n) for n in range(4)]
    steps(world)
    assert world.broker.sent == jobs[:2]
    world.leadership.term = world.rows.begin_term("me")
    steps(world)
    assert world.broker.sent == jobs[:2]
    world.rows.claim(jobs[0])
    world.rows.settle(jobs[0])
    steps(world)
    assert world.broker.sent == jobs[:3]


def test_a_failed_attempt_makes_room_while_it_waits_for_the_next(world: World) -> None:
    declare(world, tenant={"concurrency": 1})
    first, second = (world.rows.job(tenant="a", due_in=-when) for when in (9, 8))
    world.step()
    world.rows.claim(first)
    world.rows.settle(first, state=State.RETRYING, retry_in_s=600)
    world.loop.notice({"kind": "job", "job_id": first})
    world.step()
    assert world.broker.sent == [first, second]


def test_a_job_that_a_worker_sent_back_is_sent_again(world: World) -> None:
    declare(world, tenant={"concurrency": 1})
    job = world.rows.job(tenant="a")
    world.step()
    world.rows.set(job, state="'SCHEDULED'", published_at="NULL")
    world.loop.notice({"kind": "job", "job_id": job})
    world.step()
    assert world.broker.sent == [job, job]


def test_jobs_wait_while_the_queue_is_deep(world: World) -> None:
    declare(world, queue__q={"backlog": 2})
    world.broker.depths["q"] = 2
    jobs = [world.rows.job(queue="q", due_in=-9 + n) for n in range(3)]
    free = world.rows.job()
    steps(world)
    assert world.broker.sent == [free]
    assert waiting(world.rows, *jobs) == ["queue:q"] * 3
    world.broker.depths["q"] = 1
    steps(world)
    assert world.broker.sent == [free, jobs[0]]


def test_a_fire_time_is_skipped_while_the_one_before_waits_for_room(world: World) -> None:
    declare(world, task={"concurrency": 1})
    world.rows.claim(world.rows.job(due_in=-20))
    first = world.rows.job(schedule="s", overlap=Overlap.SKIP)
    steps(world)
    second = world.rows.job(schedule="s", overlap=Overlap.SKIP, due_in=-9)
    world.look_again()
    steps(world)
    assert waiting(world.rows, first) == ["task:t"]
    assert (world.rows.state(second), world.rows.row(second)["reason"]) == (State.SKIPPED, "overlap")


def test_what_the_broker_did_not_take_is_sent_when_it_is_back_and_counted_once(world: World) -> None:
    declare(world, tenant={"concurrency": 1})
    first, second = (world.rows.job(tenant="a", due_in=-when) for when in (9, 8))
    world.broker.away = True
    steps(world, 3)
    world.broker.away = False
    steps(world)
    (sent,) = world.broker.sent
    (other,) = {first, second} - {sent}
    assert world.rows.state(other) is State.SCHEDULED


def test_a_job_that_the_broker_refused_while_it_was_held_is_tried_again(world: World) -> None:
    declare(world, tenant={"concurrency": 1})
    first, second = (world.rows.job(tenant="a", due_in=-when) for when in (9, 8))
    steps(world)
    world.broker.refused.add(second)
    world.rows.claim(first)
    world.rows.settle(first)
    steps(world)
    world.broker.refused.clear()
    steps(world)
    assert world.broker.sent == [first, second]


def test_when_the_limit_is_gone_all_who_waited_go(world: World) -> None:
    declare(world, tenant={"concurrency": 1})
    jobs = [world.rows.job(tenant="a", due_in=-9 + n) for n in range(4)]
    steps(world)
    declare(world)
    steps(world)
    assert world.broker.sent == jobs


@pytest.mark.parametrize("count", [1300])
def test_more_than_memory_keeps_go_out_in_order_and_once(world: World, count: int) -> None:
    declare(world, tenant={"concurrency": 700})
    with_time = [world.rows.job(tenant="a", due_in=-3000 + n, **DEMAND) for n in range(count)]
    steps(world, 40)
    assert world.broker.sent == with_time[:700]
    world.rows.database.engine.dispose()
    with world.rows.database.begin() as connection:
        connection.exec_driver_sql("UPDATE cronq_job SET state = 'COMPLETED' WHERE published_at IS NOT NULL")
    steps(world, 40)
    assert world.broker.sent == with_time


def test_jobs_of_a_failing_dependency_wait_and_come_back_one_two_and_all(world: World) -> None:
    declare(world, dependency__bank={"tasks": ["t"], "break_after": 1, "break_for_s": 0.001})
    limit = read_limits(world.rows.database).limits["dependency:bank"]
    note_failure(world.rows.database, "dependency:bank", limit, "Boom")
    jobs = [world.rows.job(due_in=-30 + n) for n in range(20)]
    world.step()
    steps(world)
    assert len(world.broker.sent) == 1, "it is half open: one tries"
    assert waiting(world.rows, jobs[1]) == ["dependency:bank"]
    done: set[str] = set()
    for most in (3, 7, 15, 20):
        for job in [job for job in world.broker.sent if job not in done]:
            world.rows.claim(job, job)
            world.rows.settle(job, job)
            note_success(world.rows.database, "dependency:bank")
            done.add(job)
        world.loop.notice({"kind": "breaker"})
        steps(world)
        assert len(world.broker.sent) == most


def test_a_job_with_needs_waits_in_sql_until_somebody_can_run_it_and_its_place_is_recorded(
    world: World,
) -> None:
    room = world.loop.publishing.waiting_room
    room.offers = lambda: {"cpu.c": 1}
    job = world.rows.job(queue="cpu.a", needs="cpu@a,b")
    steps(world)
    assert world.broker.sent == []
    assert waiting(world.rows, job) == ["place:cpu@a,b"]
    world.leadership.term = world.rows.begin_term("me")  # a new leader knows it from SQL
    room.offers = lambda: {"cpu.b": 1}
    steps(world)
    assert world.broker.sent == [job]
    row = world.rows.row(job)
    assert (row["state"], row["queue"], row["needs"], row["waits_for"]) == (
        State.PENDING, "cpu.b", "cpu@a,b", None,
    )  # fmt: skip


def test_the_place_of_a_job_is_recorded_also_if_its_worker_outran_the_mark(world: World) -> None:
    world.loop.publishing.waiting_room.offers = lambda: {"cpu.b": 1}
    job = world.rows.job(queue="cpu.a", needs="cpu@a,b")
    claim = world.broker.publish

    def taken(batch: Any) -> list[str]:
        world.rows.claim(batch[0].id)
        return claim(batch)

    world.broker.publish = taken  # type: ignore[method-assign]
    steps(world)
    assert (world.rows.state(job), world.rows.row(job)["queue"]) == (State.RUNNING, "cpu.b")


def test_a_limit_that_is_set_by_hand_counts_in_the_term_that_is_and_what_waits_goes_when_it_is_unset(
    world: World,
) -> None:
    steps(world)
    set_by_hand(world.rows.database, "tenant", {"concurrency": 1})
    steps(world, 1)
    jobs = [world.rows.job(tenant="a", due_in=-9 + n) for n in range(3)]
    world.look_again()
    steps(world)
    assert world.broker.sent == jobs[:1]
    assert waiting(world.rows, *jobs) == [None, "tenant:a", "tenant:a"]
    set_by_hand(world.rows.database, "tenant", {"concurrency": 2})
    steps(world)
    assert world.broker.sent == jobs[:2], "what went on before counts"
    set_by_hand(world.rows.database, "tenant", None)
    steps(world)
    assert world.broker.sent == jobs
