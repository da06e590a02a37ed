"""Backfills on real SQL: which fire times run again, how many at a time, and who may carry them on."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from cronq.errors import BackfillRefused, NotLeader, UnknownBackfill
from cronq.job import State, Trigger
from cronq.schedule import Reason, schedule_id
from cronq.store.agenda import foreign_jobs
from cronq.store.backfills import BackfillRange, BackfillState, get_backfill, preview, set_state, start
from cronq.store.control import pause
from cronq.store.fires import fires, why
from cronq.store.jobs import JobFilter, list_jobs
from cronq.store.schedules import get_schedule, retire
from cronq.store.terms import Term
from cronq.timing import Delay, Every
from cronq.upkeep.backfiller import Backfiller

from .rows import Rows

MINUTE = timedelta(minutes=1)


class World:
    """A schedule that fires each minute, and a leader that carries its backfills on."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.end = rows.now().replace(second=0, microsecond=0) - MINUTE
        rows.schedule("s", timing=Every(MINUTE, anchor=self.end), first_in=30)
        self.term: Term = rows.begin_term("me")
        self.told = 0
        self._backfiller = Backfiller(rows.database, self._tell)

    def _tell(self) -> None:
        self.told += 1

    def minutes(self, count: int, **options: Any) -> BackfillRange:
        return BackfillRange(start=self.end - count * MINUTE, end=self.end, **options)

    def begin(self, count: int, **options: Any) -> str:
        return str(start(self.rows.database, "s", self.minutes(count, **options), actor="a test")["id"])

    def go_on(self) -> None:
        self._backfiller.run(self.term)

    def jobs(self) -> list[Any]:
        found = list_jobs(self.rows.database, JobFilter(schedule="s"), limit=1000)
        return sorted((j for j in found if j["trigger"] == Trigger.BACKFILL), key=lambda j: j["fire_time"])

    def ago(self, moments: list[datetime]) -> list[int]:
        return [round((self.end - moment) / MINUTE) for moment in moments]

    def waiting(self) -> list[int]:
        return self.ago([j["fire_time"] for j in self.jobs() if j["state"] == State.SCHEDULED])

    def finish(self, state: State = State.COMPLETED) -> None:
        for each in self.jobs():
            if each["state"] == State.SCHEDULED:
                assert self.rows.claim(each["id"], token=each["id"])
                assert self.rows.settle(each["id"], token=each["id"], state=state)


@pytest.fixture
def world(rows: Rows) -> World:
    return World(rows)


def finish_all(world: World, backfill_id: str, *, rounds: int = 50) -> list[list[int]]:
    """Carry a backfill to its end; return what was under way in each round, in minutes before the end."""
    seen = []
    for _ in range(rounds):
        world.go_on()
        if get_backfill(world.rows.database, backfill_id)["state"] == BackfillState.COMPLETED:
            return seen
        seen.append(world.waiting())
        world.finish()
    raise AssertionError(f"not done after {rounds} rounds: {seen}")


def test_every_fire_time_of_the_range_runs_once_and_no_more_than_its_concurrency_at_a_time(
    world: World,
) -> None:
    backfill_id = world.begin(5, concurrency=2)
    assert finish_all(world, backfill_id) == [[5, 4], [3, 2], [1]]
    done = get_backfill(world.rows.database, backfill_id)
    assert (done["fires"], done["planned"], done["jobs"]) == (5, 5, {"COMPLETED": 5})
    assert done["finished_at"] is not None


def test_newest_first_goes_back_from_the_end_of_the_range(world: World) -> None:
    backfill_id = world.begin(4, newest_first=True)
    assert finish_all(world, backfill_id) == [[1], [2], [3], [4]]


def test_what_completed_or_is_under_way_is_passed_over_unless_asked_for_again(world: World) -> None:
    rows = world.rows
    done, failed, waiting, skipped = (
        rows.job(schedule="s", fire_time=world.end - k * MINUTE) for k in (4, 3, 2, 1)
    )
    rows.set(done, state="'COMPLETED'")
    rows.set(failed, state="'FAILED'")
    rows.set(skipped, state="'SKIPPED'", reason="'missed_window'")
    assert rows.state(waiting) is State.SCHEDULED
    looked = preview(rows.database, "s", world.minutes(5))
    assert (looked.fires, looked.runs, world.ago(list(looked.first))) == (5, 3, [5, 3, 1])
    assert finish_all(world, world.begin(5, concurrency=9)) == [[5, 3, 1]]
    assert preview(rows.database, "s", world.minutes(5, again=True)).runs == 5
    again = world.begin(5, concurrency=9, again=True)
    assert finish_all(world, again) == [[5, 4, 3, 2, 1]]


def test_what_was_recorded_for_a_fire_time_stays_and_says_what_made_up_for_it(world: World) -> None:
    missed = world.rows.job(schedule="s", fire_time=world.end - MINUTE)
    world.rows.set(missed, state="'SKIPPED'", reason="'missed_window'")
    finish_all(world, world.begin(1))
    stored = get_schedule(world.rows.database, "s")
    (fire,) = fires(world.rows.database, stored, world.end - MINUTE, world.end)[0]
    assert (fire.disposition, fire.reason) == ("skipped", Reason.MISSED_WINDOW)
    assert fire.backfill is not None
    assert fire.backfill["state"] == State.COMPLETED


def test_its_jobs_are_found_by_the_leader_and_gate_nothing(world: World) -> None:
    world.begin(3, concurrency=3)
    world.go_on()
    found = foreign_jobs(world.rows.database, until=world.rows.now(), limit=10)
    assert sorted(world.ago([job.fire_time for job in found if job.fire_time])) == [1, 2, 3]
    assert not any(job.exclusive for job in found)
    assert world.told == 1


def test_a_paused_one_starts_nothing_and_a_resumed_one_goes_on_where_it_stood(world: World) -> None:
    backfill_id = world.begin(3)
    world.go_on()
    set_state(world.rows.database, backfill_id, BackfillState.PAUSED)
    world.finish()
    world.go_on()
    assert world.waiting() == []
    set_state(world.rows.database, backfill_id, BackfillState.RUNNING)
    assert finish_all(world, backfill_id) == [[2], [1]]


def test_a_cancelled_one_takes_back_what_has_not_started_and_lets_the_rest_go_on(world: World) -> None:
    backfill_id = world.begin(5, concurrency=2)
    world.go_on()
    running, waiting = (each["id"] for each in world.jobs())
    assert world.rows.claim(running)
    set_state(world.rows.database, backfill_id, BackfillState.CANCELLED)
    assert [world.rows.state(each) for each in (running, waiting)] == [State.RUNNING, State.CANCELLED]
    world.go_on()
    assert len(world.jobs()) == 2
    with pytest.raises(BackfillRefused, match="CANCELLED: nothing was changed"):
        set_state(world.rows.database, backfill_id, BackfillState.RUNNING)


def test_a_leader_that_was_overtaken_starts_nothing_and_the_next_one_goes_on(world: World) -> None:
    backfill_id = world.begin(3)
    world.go_on()
    world.finish()
    later = world.rows.begin_term("another")
    with pytest.raises(NotLeader):
        world.go_on()
    assert world.waiting() == []
    world.term = later
    assert finish_all(world, backfill_id) == [[2], [1]]


def test_a_failed_job_counts_as_dealt_with_and_is_not_tried_by_the_same_backfill_again(world: World) -> None:
    backfill_id = world.begin(2)
    world.go_on()
    world.finish(State.FAILED)
    assert finish_all(world, backfill_id) == [[1]]
    assert get_backfill(world.rows.database, backfill_id)["jobs"] == {"COMPLETED": 1, "FAILED": 1}


def test_a_paused_schedule_can_be_made_up_for_and_a_retired_one_puts_its_backfill_aside(world: World) -> None:
    database = world.rows.database
    pause(database, "s", note=None)
    backfill_id = world.begin(3)
    world.go_on()
    assert world.waiting() == [3]
    with database.begin() as connection:
        retire(database, connection, [schedule_id("s")])
    world.go_on()
    aside = get_backfill(database, backfill_id)
    assert aside["state"] == BackfillState.PAUSED
    assert "retired" in aside["note"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: w.minutes(0), "the range is empty"),
        (lambda w: BackfillRange(start=w.end, end=w.end + timedelta(days=1)), "lies ahead"),
        (lambda w: w.minutes(5, concurrency=0), "concurrency 0 is not between 1 and 1000"),
        (lambda w: BackfillRange(start=w.end - timedelta(days=400), end=w.end), "split it"),
    ],
)
def test_a_range_that_makes_no_sense_is_refused_and_nothing_begins(
    world: World, change: Callable[[World], BackfillRange], message: str
) -> None:
    for call in (preview, lambda *args: start(*args, actor="a test")):
        with pytest.raises(BackfillRefused, match=message):
            call(world.rows.database, "s", change(world))


def test_a_fixed_delay_has_nothing_to_make_up_for(world: World) -> None:
    world.rows.schedule("after", timing=Delay(MINUTE))
    with pytest.raises(BackfillRefused, match="no past fire times"):
        preview(world.rows.database, "after", world.minutes(5))


def test_an_unknown_backfill_is_said_to_be_unknown(world: World) -> None:
    with pytest.raises(UnknownBackfill, match="cronq backfills list"):
        get_backfill(world.rows.database, "none")


def test_a_time_before_the_schedule_was_declared_says_so_and_what_made_up_for_it(world: World) -> None:
    stored = get_schedule(world.rows.database, "s")
    at = world.end - MINUTE
    (fire,) = why(world.rows.database, stored, at)
    assert (fire.fire_time, fire.disposition, fire.backfill) == (at, "none", None)
    assert "not declared then" in fire.detail
    finish_all(world, world.begin(1))
    (fire,) = why(world.rows.database, stored, at)
    assert (fire.disposition, fire.backfill is not None) == ("none", True)
    assert "not declared then" in fire.detail
