"""What was planned and not sent in time is left to the catch-up policy, like what was not planned."""

import time
from datetime import timedelta

import pytest
from sqlalchemy import update

from cronq.job import State
from cronq.schedule import CatchUp, Overlap, Reason
from cronq.store.control import pause
from cronq.store.jobs import JobFilter, list_jobs
from cronq.store.schedules import get_schedule
from cronq.store.tables import schedule
from cronq.timing import Every
from tests.support.processes import wait_for

from .test_beat_loop import World, world  # noqa: F401 - a fixture

Fate = tuple[State, Reason | None]
SENT, WAITS = (State.PENDING, None), (State.SCHEDULED, None)
INTO_NEWEST, MISSED = (State.SKIPPED, Reason.COALESCED), (State.SKIPPED, Reason.MISSED_WINDOW)


def plan(world: World, times: int, *, catch_up: CatchUp, overlap: Overlap = Overlap.SKIP) -> None:  # noqa: F811
    """Store a schedule with so many fire times planned, a minute apart, the newest half a minute late."""
    newest = world.rows.now() - timedelta(seconds=30)
    timing = Every(timedelta(minutes=1), anchor=newest)
    following = newest + timedelta(minutes=1)
    world.rows.schedule("s", first=following, timing=timing, catch_up=catch_up, overlap=overlap)
    for number in range(times):
        world.rows.job(
            schedule="s",
            due_in=-30 - 60 * number,
            fire_time=newest - timedelta(minutes=number),
            overlap=overlap,
        )


def fates(world: World) -> list[Fate]:  # noqa: F811
    """Return what became of the fire times so far, oldest first."""
    rows = list_jobs(world.rows.database, JobFilter(schedule="s"), limit=100)
    past = sorted(
        (row for row in rows if row["fire_time"] < world.rows.now()), key=lambda row: row["fire_time"]
    )
    return [(State(row["state"]), row["reason"] and Reason(row["reason"])) for row in past]


def comes_to(world: World, expected: list[Fate]) -> None:  # noqa: F811
    def has() -> bool:
        world.step()
        return fates(world) == expected

    wait_for(has, 10, f"the fire times to become {expected}")


POLICIES = [
    (CatchUp.SKIP, [MISSED, MISSED, MISSED]),
    (CatchUp.LATEST, [INTO_NEWEST, INTO_NEWEST, SENT]),
    (CatchUp.ALL, [SENT, WAITS, WAITS]),
]


@pytest.mark.parametrize(("catch_up", "expected"), POLICIES)
def test_a_leader_after_an_outage_of_all_beats_leaves_what_they_had_planned_to_the_policy(
    world: World,  # noqa: F811
    catch_up: CatchUp,
    expected: list[Fate],
) -> None:
    plan(world, 3, catch_up=catch_up)
    comes_to(world, expected)


@pytest.mark.parametrize(("catch_up", "expected"), POLICIES)
def test_a_leader_whose_broker_is_back_after_long_leaves_what_it_had_planned_to_the_policy(
    world: World,  # noqa: F811
    catch_up: CatchUp,
    expected: list[Fate],
) -> None:
    world.broker.away = True
    world.rows.job()  # it is what shows that the broker is away
    world.step()
    plan(world, 3, catch_up=catch_up)
    world.look_again()
    world.step()
    assert fates(world) == [WAITS] * 3
    world.loop.publishing.away_since = time.monotonic() - 60
    world.step()
    assert fates(world) == [WAITS] * 3, "decided while the broker is still away"
    world.broker.away = False
    comes_to(world, expected)


def test_no_fire_time_is_skipped_for_one_that_the_broker_did_not_take(world: World) -> None:  # noqa: F811
    world.broker.away = True
    world.rows.job(schedule="s", due_in=-8, overlap=Overlap.SKIP)
    world.step()
    world.rows.job(schedule="s", due_in=-7, overlap=Overlap.SKIP)
    world.look_again()
    for _ in range(3):
        world.step()
    assert fates(world) == [WAITS, WAITS]


def test_one_late_fire_time_just_runs(world: World) -> None:  # noqa: F811
    plan(world, 1, catch_up=CatchUp.LATEST)
    comes_to(world, [SENT])
    assert list_jobs(world.rows.database, JobFilter(schedule="s"), limit=9)[-1]["trigger"] == "schedule"


def test_what_waits_for_an_earlier_job_is_no_matter_of_the_policy(world: World) -> None:  # noqa: F811
    plan(world, 2, catch_up=CatchUp.LATEST, overlap=Overlap.QUEUE)
    running = world.rows.job(
        schedule="s", due_in=-300, fire_time=world.rows.now() - timedelta(minutes=5), overlap=Overlap.QUEUE
    )
    world.rows.claim(running)
    for _ in range(5):
        world.step()
    assert fates(world) == [(State.RUNNING, None), WAITS, WAITS]


def test_a_paused_schedule_stays_as_it_was_paused(world: World) -> None:  # noqa: F811
    plan(world, 2, catch_up=CatchUp.SKIP, overlap=Overlap.ALLOW)
    pause(world.rows.database, "s", note=None)
    comes_to(world, [SENT, SENT])


def test_a_cursor_that_is_set_back_sends_nothing_again(world: World) -> None:  # noqa: F811
    plan(world, 1, catch_up=CatchUp.ALL, overlap=Overlap.ALLOW)
    comes_to(world, [SENT])
    sent = list(world.broker.sent)
    with world.rows.database.begin() as connection:
        back = world.rows.now() - timedelta(seconds=45)
        connection.execute(update(schedule).values(next_fire_at=back))
    world.look_again()
    for _ in range(5):
        world.step()
    assert get_schedule(world.rows.database, "s").next_fire_at > world.rows.now(), "it was not planned anew"
    assert world.broker.sent == sent
