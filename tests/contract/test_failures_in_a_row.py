"""Schedules that fail again and again are paused, for a person to look."""

from typing import Any

import pytest

from cronq.job import Outcome, State
from cronq.store.control import resume
from cronq.store.schedules import StoredSchedule, get_schedule
from cronq.upkeep.failure_watcher import FailureWatcher

from .rows import Rows


class World:
    """A schedule that is paused after three failures in a row, and the leader's watcher."""

    def __init__(self, rows: Rows) -> None:
        self.rows, self.dropped = rows, list[str]()
        self.id = rows.schedule("s", first_in=3600, pause_after=3)
        rows.schedule("forgiving", first_in=3600)
        self.term = rows.begin_term("me")
        self.watcher = FailureWatcher(rows.database, self.dropped.append)

    def end(self, state: State, *, schedule: str = "s") -> str:
        job_id = self.rows.job(schedule=schedule)
        assert self.rows.claim(job_id, token=job_id)
        failed = state in (State.FAILED, State.TIMED_OUT)
        facts: dict[str, Any] = {"error": "Traceback\nValueError: broken", "dead": True} if failed else {}
        outcome = Outcome(state.value)
        assert self.rows.settle(job_id, token=job_id, state=state, outcome=outcome, **facts)
        return job_id

    def look(self) -> StoredSchedule:
        self.watcher.run(self.term)
        return get_schedule(self.rows.database, "s")


@pytest.fixture
def world(rows: Rows) -> World:
    return World(rows)


def test_three_failures_in_a_row_pause_it_with_a_note_that_names_the_last_one(world: World) -> None:
    world.end(State.FAILED)
    world.end(State.TIMED_OUT)
    assert world.look().paused_at is None
    last = world.end(State.FAILED)
    paused = world.look()
    assert paused.paused_at is not None
    assert paused.pause_note == f"its last 3 jobs failed; the last one ({last}) with: ValueError: broken"
    assert world.dropped == [world.id]


def test_a_success_in_between_starts_the_count_anew(world: World) -> None:
    for state in (State.FAILED, State.FAILED, State.COMPLETED, State.FAILED, State.FAILED):
        world.end(state)
    assert world.look().paused_at is None


def test_what_was_cancelled_or_skipped_neither_counts_nor_breaks_the_row(world: World) -> None:
    for state in (State.FAILED, State.FAILED, State.CANCELLED, State.FAILED):
        world.end(state)
    skipped = world.rows.job(schedule="s")
    world.rows.set(skipped, state="'SKIPPED'", reason="'overlap'")
    assert world.look().paused_at is not None


def test_after_it_was_resumed_three_new_failures_are_needed(world: World) -> None:
    for _ in range(3):
        world.end(State.FAILED)
    world.look()
    resume(world.rows.database, "s", limit=10)
    world.end(State.FAILED)
    world.end(State.FAILED)
    assert world.look().paused_at is None
    world.end(State.FAILED)
    assert world.look().paused_at is not None


def test_one_that_did_not_ask_for_it_is_never_paused(world: World) -> None:
    for _ in range(5):
        world.end(State.FAILED, schedule="forgiving")
    world.look()
    assert get_schedule(world.rows.database, "forgiving").paused_at is None


def test_what_failed_while_nobody_led_is_seen_by_the_next_leader(world: World) -> None:
    world.look()
    for _ in range(3):
        world.end(State.FAILED)
    world.term = world.rows.begin_term("another")
    world.watcher = FailureWatcher(world.rows.database, world.dropped.append)
    assert world.look().paused_at is not None
