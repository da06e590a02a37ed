"""Overlap policies at the edges of a batch."""

import pytest

from cronq.job import State
from cronq.schedule import Overlap
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
