"""One beat's loop on real SQL, step by step, with a broker and a leadership in the test's hands."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select, text
from sqlalchemy.exc import OperationalError

from cronq.beat.loop import BeatLoop, Upkeep
from cronq.beat.planning import Planning
from cronq.beat.publishing import Publishing
from cronq.clock import Sighting, StoreClock
from cronq.delivery.failure import PublishFailed
from cronq.errors import NotLeader, ScheduleRefused
from cronq.job import State
from cronq.schedule import Overlap, schedule_id
from cronq.settings import Settings
from cronq.store import agenda as store
from cronq.store.agenda import DueJob
from cronq.store.control import trigger
from cronq.store.schedules import get_schedule, list_schedules
from cronq.store.tables import schedule
from cronq.store.terms import Term
from cronq.timing import Every

from .rows import Rows


@dataclass
class FakeLeadership:
    term: Term | None
    lost: list[Term] = field(default_factory=list)
    moves: int = 0

    def current(self) -> Term | None:
        return self.term

    def moved(self) -> None:
        self.moves += 1

    def step_down(self, term: Term) -> None:
        self.lost.append(term)
        self.term = None


@dataclass
class FakeBroker:
    """Takes what it is sent, unless told to be away or to refuse."""

    batch: int = 100
    sent: list[str] = field(default_factory=list)
    away: bool = False
    refused: set[str] = field(default_factory=set)
    oversized: set[str] = field(default_factory=set)
    outages: tuple[type[BaseException], ...] = (OSError,)

    depths: dict[str, int] = field(default_factory=dict)

    def queue_of(self, _task: str, queue: str | None) -> str:
        return queue or "celery"

    def depth(self, queue: str) -> int:
        if self.away:
            raise OSError("no broker")
        return self.depths.get(queue, 0)

    def render(self, due: DueJob) -> None:
        due.message = "written"

    def publish(self, batch: Sequence[DueJob]) -> list[str]:
        if self.away:
            raise PublishFailed(OSError("no broker"), "amqp://gone")
        taken = [due.id for due in batch if due.id not in self.refused]
        self.sent += taken
        for due in batch:
            if due.queue in self.depths and due.id in taken:
                self.depths[due.queue] += 1
        return taken

    def take_oversized(self) -> dict[str, str]:
        return dict.fromkeys(self.oversized, "too large")

    def close(self) -> None:
        pass


@dataclass
class World:
    rows: Rows
    loop: BeatLoop
    leadership: FakeLeadership
    broker: FakeBroker

    def step(self) -> float:
        # A broker that failed is left alone for a moment; the test does not wait for it.
        self.loop.publishing.again_at = 0.0
        return self.loop.step()

    def step_until_idle(self) -> None:
        while self.step() == 0:
            pass

    def look_again(self) -> None:
        self.loop.lookout._next_look = self.loop.lookout._next_overdue_look = 0.0
        self.loop.planning.look_again()


@pytest.fixture
def world(rows: Rows) -> World:
    leadership, broker = FakeLeadership(rows.begin_term("me")), FakeBroker()
    settings, clock = Settings(horizon_s=60), StoreClock()
    loop = BeatLoop(
        settings=settings,
        database=rows.database,
        leadership=leadership,  # type: ignore[arg-type]
        planning=Planning(settings, rows.database, clock, shard=0),
        publishing=Publishing(rows.database, broker, clock),  # type: ignore[arg-type]
        clock=clock,
        sight=lambda: Sighting(None, None),
        begin_term=lambda _term: None,
    )
    return World(rows, loop, leadership, broker)


def test_a_due_job_is_sent_and_marked_and_one_that_is_not_due_waits(world: World) -> None:
    due, later = world.rows.job(due_in=-1), world.rows.job(due_in=30)
    world.step()
    assert world.broker.sent == [due]
    assert [world.rows.state(each) for each in (due, later)] == [State.PENDING, State.SCHEDULED]
    world.step()
    assert world.broker.sent == [due]


def test_fire_times_are_planned_ahead_and_the_cursor_moves_on(world: World) -> None:
    first = world.rows.now() + timedelta(seconds=20)
    world.rows.schedule("s", first=first, timing=Every(timedelta(seconds=15), anchor=first))
    world.step_until_idle()
    assert len(world.loop.publishing.agenda) == 3
    assert get_schedule(world.rows.database, "s").next_fire_at == first + timedelta(seconds=45)


def test_what_the_broker_did_not_take_is_sent_until_it_does(world: World) -> None:
    due = world.rows.job()
    world.broker.away = True
    for _ in range(3):
        world.step()
    assert world.rows.state(due) is State.SCHEDULED
    world.broker.away = False
    world.step()
    assert world.broker.sent == [due]
    assert world.rows.state(due) is State.PENDING


def test_a_beat_whose_broker_is_away_waits_and_does_not_turn_round_and_round(world: World) -> None:
    world.rows.job()
    world.broker.away = True
    assert world.loop.step() > 0
    assert world.loop.step() > 0


def test_a_job_without_a_queue_is_tried_again_and_holds_up_nobody(world: World) -> None:
    refused, fine = world.rows.job(due_in=-9), world.rows.job(due_in=-8)
    world.broker.refused.add(refused)
    world.step()
    assert world.broker.sent == [fine]
    assert world.rows.state(refused) is State.SCHEDULED
    world.broker.refused.clear()
    world.look_again()
    world.step()
    world.step()
    assert world.broker.sent == [fine, refused]


def test_a_job_with_too_many_arguments_is_a_dead_letter_and_the_others_go_out(world: World) -> None:
    big, fine = world.rows.job(due_in=-9), world.rows.job(due_in=-8)
    world.broker.refused.add(big)
    world.broker.oversized.add(big)
    world.step()
    row = world.rows.row(big)
    assert (row["state"], row["kind"], row["error"]) == ("FAILED", "oversized", "too large")
    assert row["dead_at"] is not None
    assert world.broker.sent == [fine]


def test_a_beat_that_was_overtaken_plans_nothing_and_stands_by(world: World) -> None:
    world.step()
    first = world.rows.now() + timedelta(seconds=20)
    world.rows.schedule("s", first=first)
    world.rows.begin_term("another")
    world.look_again()
    world.step()
    assert [term.holder for term in world.leadership.lost] == ["me"]
    assert get_schedule(world.rows.database, "s").next_fire_at == first
    due = world.rows.job()
    world.look_again()
    world.step()
    assert world.broker.sent == []
    assert world.rows.state(due) is State.SCHEDULED


def test_a_beat_that_is_overtaken_before_its_first_step_stands_by(world: World) -> None:
    def overtaken(_term: Term) -> None:
        raise NotLeader("another beat started a newer term")

    world.loop.begin_term = overtaken
    world.step()
    assert [term.holder for term in world.leadership.lost] == ["me"]
    assert world.step() > 0


def test_a_new_term_starts_from_the_rows_and_forgets_the_old_agenda(world: World) -> None:
    ahead = world.rows.job(due_in=30)
    world.step()
    assert ahead in world.loop.publishing.agenda
    world.rows.set(ahead, state="'CANCELLED'")
    world.leadership.term = world.rows.begin_term("me")
    world.step()
    assert ahead not in world.loop.publishing.agenda


def test_what_a_standby_was_told_of_an_edit_takes_nothing_from_the_term_it_begins(world: World) -> None:
    term, world.leadership.term = world.leadership.term, None
    world.rows.schedule("s", first_in=30)
    for _ in range(3):
        world.loop.notice({"kind": "schedule", "schedule_id": schedule_id("s")})
    world.step()
    assert world.loop.notices.empty(), "what nobody will act on piles up"
    ahead = world.rows.job(schedule="s", due_in=30)
    world.loop.notice({"kind": "schedule", "schedule_id": schedule_id("s")})
    world.leadership.term = term
    world.step()
    assert ahead in world.loop.publishing.agenda


def test_a_leader_that_hears_late_of_an_edit_keeps_what_was_planned_after_it(world: World) -> None:
    world.step()
    ahead = world.rows.job(schedule="s", due_in=30)
    gone = world.rows.job(schedule="s", due_in=40)
    world.look_again()
    world.loop.lookout.doubt()
    world.step()
    assert ahead in world.loop.publishing.agenda
    world.rows.set(gone, state="'CANCELLED'")
    world.loop.notice({"kind": "schedule", "schedule_id": schedule_id("s")})
    world.step()
    assert ahead in world.loop.publishing.agenda
    assert gone not in world.loop.publishing.agenda


def test_one_schedule_that_cannot_be_planned_is_set_aside_and_the_others_go_on(world: World) -> None:
    world.rows.schedule("good", first_in=10)
    bad = world.rows.schedule("bad", first_in=5)
    with world.rows.database.begin() as connection:
        connection.execute(
            text("UPDATE cronq_schedule SET definition = replace(CAST(definition AS text), 'every', 'evry')"
                 " WHERE id = :id" if world.rows.database.dialect == "sqlite" else
                 "UPDATE cronq_schedule SET definition ="
                 " CAST(replace(CAST(definition AS text), 'every', 'evry') AS json) WHERE id = :id"),
            {"id": bad},
        )  # fmt: skip
    world.step()
    stored = get_schedule(world.rows.database, "bad")
    assert stored.fault is not None
    assert stored.next_fire_at is None
    assert get_schedule(world.rows.database, "good").fault is None
    assert {job.schedule_name for job in world.loop.publishing.agenda._jobs.values()} == {"good"}


@pytest.mark.parametrize(
    "change",
    [
        {"overlap": "a word of a newer version"},
        {"catch_up": "a word of a newer version"},
        {"jitter": "soon"},
        {"after": {"schedules": ["good"]}},
        {"priority": "high"},
        {"pause_after": [3]},
        {"timing": {"kind": "a word of a newer version"}},
        {"timing": {"kind": "every"}},
        {"timing": "soon"},
        [],
        "text",
    ],
)
def test_one_schedule_whose_definition_cannot_be_read_is_set_aside_and_the_others_go_on(
    world: World, change: Any
) -> None:
    database = world.rows.database
    world.rows.schedule("good", first_in=10)
    world.rows.schedule("bad", first_in=5)
    world.rows.write_by_hand("bad", change)
    world.step()
    with database.autocommit() as connection:
        fault = connection.execute(select(schedule.c.fault).where(schedule.c.name == "bad")).scalar_one()
    assert "cannot be read" in fault
    assert get_schedule(database, "good").fault is None
    assert {job.schedule_name for job in world.loop.publishing.agenda._jobs.values()} == {"good"}
    # Everybody who lists schedules sees it, and nobody acts on what is left of it.
    assert [(each.name, each.fault) for each in list_schedules(database)] == [("bad", fault), ("good", None)]
    with pytest.raises(ScheduleRefused, match="cannot be read"):
        trigger(database, "bad")
    # Writing it again mends it.
    world.rows.schedule("bad", first_in=5)
    world.look_again()
    world.step()
    assert "bad" in {job.schedule_name for job in world.loop.publishing.agenda._jobs.values()}


def test_a_fire_time_beside_a_running_job_is_skipped_with_a_reason(world: World) -> None:
    running = world.rows.job(schedule="s", overlap=Overlap.SKIP)
    world.rows.claim(running)
    due = world.rows.job(schedule="s", overlap=Overlap.SKIP)
    world.step()
    assert world.broker.sent == []
    assert (world.rows.row(due)["state"], world.rows.row(due)["reason"]) == ("SKIPPED", "overlap")


def test_a_waiting_job_goes_out_when_the_leader_hears_of_the_end(world: World) -> None:
    running = world.rows.job(schedule="s", overlap=Overlap.QUEUE)
    world.rows.claim(running)
    waiting = world.rows.job(schedule="s", overlap=Overlap.QUEUE)
    world.step()
    assert world.broker.sent == []
    assert world.rows.state(waiting) is State.SCHEDULED
    world.rows.settle(running)
    world.loop.notice({"kind": "ended", "job_id": running, "schedule_id": schedule_id("s")})
    world.step()
    assert world.broker.sent == [waiting]


def test_the_previous_job_is_told_to_stop_and_the_new_one_waits_for_it(world: World) -> None:
    running = world.rows.job(schedule="s", overlap=Overlap.CANCEL_PREVIOUS)
    world.rows.claim(running)
    due = world.rows.job(schedule="s", overlap=Overlap.CANCEL_PREVIOUS)
    world.step()
    assert world.rows.row(running)["cancel_requested_at"] is not None
    assert world.broker.sent == []
    world.rows.settle(running, state=State.CANCELLED)
    world.look_again()
    world.step()
    world.step()
    assert world.broker.sent == [due]


def test_a_retry_that_nobody_told_of_is_found(world: World) -> None:
    job_id = world.rows.job()
    world.step()
    world.rows.claim(job_id)
    world.rows.settle(job_id, state=State.RETRYING, retry_in_s=0)
    world.look_again()
    world.step()
    world.step()
    assert world.broker.sent == [job_id, job_id]


def test_an_edit_drops_what_waits_in_memory(world: World) -> None:
    ahead = world.rows.job(schedule="s", due_in=30)
    world.step()
    assert ahead in world.loop.publishing.agenda
    with world.rows.database.begin() as connection:
        connection.execute(text("DELETE FROM cronq_job"))
    world.loop.notice({"kind": "schedule", "schedule_id": schedule_id("s")})
    world.step()
    assert ahead not in world.loop.publishing.agenda


def test_a_service_that_fails_does_not_stop_publishing(world: World) -> None:
    ran: list[Any] = []

    def fail(_term: Term) -> None:
        ran.append(1)
        raise ValueError("broken service")

    world.loop.upkeep.append(Upkeep("broken", 0.0, fail))
    for _ in range(3):
        due = world.rows.job(due_in=-9)
        world.look_again()
        world.step()
        world.step()
        assert due in world.broker.sent
    assert len(ran) > 3


def test_a_leader_that_cannot_reach_sql_does_not_count_as_alive(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.step()
    alive = world.leadership.moves

    def away(*_args: Any) -> None:
        raise OperationalError("SELECT 1", {}, Exception("no route to the server"))

    with monkeypatch.context() as patched:
        patched.setattr(store, "lock_due_schedules", away)
        world.look_again()
        world.step()
    assert world.leadership.moves == alive
    world.step()
    assert world.leadership.moves == alive + 1


def test_what_was_planned_when_the_answer_got_lost_is_found_before_it_is_due(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = Planning.step

    def cut_off(*args: Any, **how: Any) -> None:
        step(*args, **how)
        raise OperationalError("COMMIT", {}, Exception("the connection was cut"))

    world.rows.schedule("s", first_in=20, timing=Every(timedelta(seconds=15)))
    with monkeypatch.context() as patched:
        patched.setattr(Planning, "step", cut_off)
        world.step()
    assert len(world.loop.publishing.agenda) == 0
    world.step_until_idle()
    assert len(world.loop.publishing.agenda) >= 2
