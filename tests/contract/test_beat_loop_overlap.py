"""Overlap policies at the edges of a batch."""

from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from cronq.job import State
from cronq.schedule import Overlap
from cronq.store import agenda
from cronq.store.schedules import get_schedule

from .rows import Rows
from .test_beat_loop import World, world

__all__ = ["world"]


@pytest.mark.parametrize("overlap", [Overlap.SKIP, Overlap.QUEUE, Overlap.QUEUE_ONE])
def test_the_second_fire_time_meets_the_first_in_an_earlier_batch(world: World, overlap: Overlap) -> None:
    # The first is on the broker, but SQL does not say so yet: it is marked after all batches are out.
    world.broker.batch = 1
    first = world.rows.job(schedule="s", overlap=overlap, due_in=-3)
    second = world.rows.job(schedule="s", overlap=overlap, due_in=-2)
    world.step()
    assert world.broker.sent == [first]
    assert world.rows.state(second) in (State.SKIPPED, State.SCHEDULED)


def test_a_job_that_ended_before_it_was_marked_does_not_make_the_next_one_skip(world: World) -> None:
    rows, publishing = world.rows, world.loop.publishing
    publishing.begin()
    first = rows.job(schedule="s", overlap=Overlap.SKIP, due_in=-3)
    publishing.add_unknown(agenda.read_waiting(rows.database, [first]))
    publishing.publish_due(lambda: True)
    rows.claim(first)
    rows.settle(first)
    second = rows.job(schedule="s", overlap=Overlap.SKIP, due_in=-2)
    publishing.add_unknown(agenda.read_waiting(rows.database, [second]))
    publishing.publish_due(lambda: True)
    assert world.broker.sent == [first, second]
    assert rows.state(second) is State.SCHEDULED


def test_a_queue_is_as_long_as_its_schedule_says(world: World) -> None:
    rows: Rows = world.rows
    rows.schedule("s", first_in=3600, overlap=Overlap.QUEUE, buffer=1)
    assert get_schedule(rows.database, "s").definition.buffer == 1
    rows.claim(rows.job(schedule="s", overlap=Overlap.QUEUE, due_in=-9))
    waiting = rows.job(schedule="s", overlap=Overlap.QUEUE, due_in=-3)
    dropped = rows.job(schedule="s", overlap=Overlap.QUEUE, due_in=-2)
    world.step()
    assert rows.state(waiting) is State.SCHEDULED
    assert (rows.row(dropped)["state"], rows.row(dropped)["reason"]) == ("SKIPPED", "buffer_full")


@pytest.mark.parametrize(
    "question", ["cronq.beat.publishing.busy_schedules", "cronq.store.agenda.mark_skipped"]
)
def test_what_is_due_while_sql_is_away_goes_out_as_soon_as_it_is_back(
    world: World, monkeypatch: pytest.MonkeyPatch, question: str
) -> None:
    rows: Rows = world.rows
    rows.claim(rows.job(schedule="busy", overlap=Overlap.SKIP, due_in=-9))
    skipped = rows.job(schedule="busy", overlap=Overlap.SKIP, due_in=-1)
    free = rows.job(schedule="free", overlap=Overlap.ALLOW, due_in=-1)

    def away(*_args: Any) -> None:
        raise OperationalError("SELECT 1", {}, Exception("the server went away"))

    with monkeypatch.context() as patched:
        world.loop.publishing.begin()
        world.loop.publishing.add_unknown(agenda.read_waiting(rows.database, [skipped, free]))
        patched.setattr(question, away)
        with pytest.raises(OperationalError):
            world.loop.publishing.publish_due(lambda: True)
    assert world.broker.sent == []
    world.loop.publishing.publish_due(lambda: True)
    assert world.broker.sent == [free]
    assert rows.state(skipped) is State.SKIPPED


def test_a_job_that_waits_for_its_turn_waits_on_when_somebody_asks_for_it_again(world: World) -> None:
    rows: Rows = world.rows
    rows.claim(rows.job(schedule="s", overlap=Overlap.QUEUE_ONE, due_in=-9))
    waiting = rows.job(schedule="s", overlap=Overlap.QUEUE_ONE, due_in=-1)
    for _ in range(2):
        world.loop.notice({"kind": "job", "job_id": waiting})
        world.step()
    assert rows.state(waiting) is State.SCHEDULED
    assert world.loop.publishing.gate.holds() == {waiting}


def test_a_job_that_is_out_is_not_skipped_for_itself_when_somebody_asks_for_it_again(world: World) -> None:
    job_id = world.rows.job(schedule="s", overlap=Overlap.SKIP, due_in=-1)
    world.loop.publishing.begin()
    for _ in range(2):
        world.loop.notice({"kind": "job", "job_id": job_id})
        world.loop._take_notices()
        world.loop.publishing.publish_due(lambda: True)
    assert world.broker.sent == [job_id]
    assert world.rows.state(job_id) is State.SCHEDULED


def test_a_retry_is_sent_at_once_even_if_the_first_sending_is_not_marked_yet(world: World) -> None:
    job_id = world.rows.job(schedule="s", overlap=Overlap.SKIP, due_in=-1)
    world.loop.publishing.begin()
    world.loop.publishing.add_unknown(agenda.read_waiting(world.rows.database, [job_id]))
    world.loop.publishing.publish_due(lambda: True)
    world.rows.claim(job_id)
    world.rows.settle(job_id, state=State.RETRYING)
    world.loop.notice({"kind": "job", "job_id": job_id})
    world.loop._take_notices()
    world.loop.publishing.publish_due(lambda: True)
    assert world.broker.sent == [job_id, job_id]
