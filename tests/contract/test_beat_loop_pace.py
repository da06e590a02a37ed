"""What is due comes before everything else, and nothing else takes long: planning, marking, looking after."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text

from cronq.beat import planning
from cronq.beat.loop import Upkeep
from cronq.beat.overlap import OverlapGate
from cronq.job import State
from cronq.schedule import Overlap, schedule_id
from cronq.store import agenda
from cronq.store.agenda import DueJob
from cronq.store.schedules import get_schedule
from cronq.timing import Every

from .test_beat_loop import World, world

__all__ = ["world"]

SECOND = timedelta(seconds=1)


def fire_times(world: World) -> list[Any]:
    with world.rows.database.autocommit() as connection:
        return [row[0] for row in connection.execute(text("SELECT fire_time FROM cronq_job ORDER BY 1"))]


def test_a_leader_whose_trust_ends_between_two_batches_sends_nothing_more(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.broker.batch = 2
    jobs = [world.rows.job(due_in=-9 + number) for number in range(6)]
    leads, publish = world.leadership.term, world.broker.publish

    def publish_and_freeze(batch: Sequence[DueJob]) -> list[str]:
        world.leadership.term = None
        return publish(batch)

    with monkeypatch.context() as patched:
        patched.setattr(world.broker, "publish", publish_and_freeze)
        world.step()
        world.step()
    assert world.broker.sent == jobs[:2]
    world.leadership.term = leads
    world.step_until_idle()
    assert sorted(world.broker.sent) == sorted(jobs)


def test_a_job_that_comes_due_amid_the_chores_goes_out_before_the_next_chore(world: World) -> None:
    seen: list[bool] = []
    come_due: list[str] = []

    def something_comes_due(_term: Any) -> None:
        come_due.append(world.rows.job())
        world.loop.publishing.agenda.add(agenda.read_waiting(world.rows.database, come_due))

    world.loop.upkeep += [
        Upkeep("first", 60, something_comes_due),
        Upkeep("second", 60, lambda _term: seen.append(come_due[0] in world.broker.sent)),
    ]
    world.step()
    assert seen == [True]


def test_a_schedule_with_very_many_fire_times_is_planned_in_batches_that_leave_none_out(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "JOBS", 10)
    first = world.rows.now() + 20 * SECOND
    world.rows.schedule("s", first=first, timing=Every(SECOND / 10, anchor=first))
    leads, planner = world.leadership.term, world.loop.planning
    assert leads is not None
    planner.look_again()
    largest, assigned = 0, 0
    while planner.next_at <= world.loop.clock.now():
        batch = planner.step(leads, enough=False, within_s=1.0)
        largest, assigned = max(largest, len(batch)), assigned + len(batch)
    planned = fire_times(world)
    assert largest == 10
    assert assigned == len(planned) > 300
    assert len(set(planned)) == len(planned)
    assert get_schedule(world.rows.database, "s").next_fire_at == first + len(planned) * SECOND / 10


def test_of_many_fire_times_the_ones_that_are_due_first_are_planned_first(world: World) -> None:
    first = world.rows.now() + 2 * SECOND
    for name in ("a", "b"):
        world.rows.schedule(name, first=first, timing=Every(SECOND, anchor=first))
    leads, planner = world.leadership.term, world.loop.planning
    assert leads is not None
    planner.look_again()
    planned: list[DueJob] = []
    while {job.schedule_name for job in planned} != {"a", "b"}:
        planned += planner.step(leads, enough=False, within_s=0.0)
    assert max(job.due_at for job in planned) <= first + 10 * SECOND


def test_a_schedule_that_somebody_edits_does_not_hold_up_the_others(world: World) -> None:
    database = world.rows.database
    if database.dialect == "sqlite":
        pytest.skip("SQLite has one write lock: the leader waits for whoever has it")
    edited, other = world.rows.schedule("edited", first_in=5), world.rows.schedule("other", first_in=5)
    with database.begin() as editor:
        editor.execute(text("UPDATE cronq_schedule SET version = version WHERE id = :id"), {"id": edited})
        world.step_until_idle()
        assert {job.schedule_id for job in world.loop.publishing.agenda._jobs.values()} == {other}
    world.look_again()
    world.step_until_idle()
    assert {job.schedule_id for job in world.loop.publishing.agenda._jobs.values()} == {other, edited}


def test_a_schedule_that_is_looked_up_just_before_need_not_be_when_its_job_is_due(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, publishing = world.rows, world.loop.publishing
    first = rows.job(schedule="s", overlap=Overlap.SKIP)
    world.step()
    rows.claim(first)
    rows.settle(first)
    second = rows.job(schedule="s", overlap=Overlap.SKIP, due_in=30)
    publishing.agenda.add(agenda.read_waiting(rows.database, [second]))
    asked: list[list[str]] = []
    monkeypatch.setattr(
        "cronq.beat.publishing.busy_schedules", lambda _database, ids: asked.append(list(ids)) or set()
    )
    publishing.look_ahead()
    publishing.look_ahead()
    assert asked == [[schedule_id("s")]]
    (due,) = publishing.agenda.pop_due(rows.now() + 60 * SECOND, 9)
    assert publishing.gate.doubtful([due]) == []
    assert OverlapGate.decide(publishing.gate, [due]).go == [due]


def test_what_the_broker_took_is_marked_in_parts_and_none_is_left_out(world: World) -> None:
    jobs = [world.rows.job() for _ in range(30)]
    world.loop.publishing.add_unknown(agenda.read_waiting(world.rows.database, jobs))
    world.loop.publishing.publish_due(lambda: True)
    steps = 1
    while world.loop.publishing.mark_published(0.0):
        steps += 1
    assert steps > 1
    assert {world.rows.state(job) for job in jobs} == {State.PENDING}
