"""What the leader writes: fenced by its term, once per fire time, and taken back by an edit."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import OperationalError

from cronq.beat.catalog import take_over
from cronq.errors import JobRefused, NotLeader, UnknownJob
from cronq.job import Outcome, State, Trigger, scheduled_job_id
from cronq.schedule import Reason, Schedule, schedule_id
from cronq.store.agenda import (
    advance,
    foreign_jobs,
    lock_due_schedules,
    mark_published,
    mark_skipped,
    read_waiting,
    waiting_jobs,
)
from cronq.store.busy import busy_schedules
from cronq.store.database import Database
from cronq.store.delays import set_next_by_delay
from cronq.store.jobs import add_job, check_payload, request_cancel, retry_dead
from cronq.store.schedules import get_schedule, list_schedules
from cronq.store.terms import Term, hold_term, read_term
from cronq.store.unclaimed import count_on_broker, unclaimed_jobs
from cronq.timing import At, Cron, Delay, Every

from .rows import Rows, at_once, job_value

MINUTE = timedelta(minutes=1)


def test_each_term_is_one_more_than_the_last_and_the_newest_is_read(rows: Rows) -> None:
    assert read_term(rows.database, 0) is None
    terms = [rows.begin_term(holder).term for holder in ("a", "b", "b")]
    assert terms == [1, 2, 3]
    newest = read_term(rows.database, 0)
    assert newest is not None
    assert (newest.term, newest.holder) == (3, "b")


def test_beats_that_begin_a_term_at_once_get_different_ones(rows: Rows) -> None:
    terms = at_once([partial(rows.begin_term, f"beat-{number}") for number in range(6)])
    assert sorted(term.term for term in terms) == [1, 2, 3, 4, 5, 6]


def test_a_former_leaders_planning_is_refused(rows: Rows) -> None:
    old = rows.begin_term("old")
    new = rows.begin_term("new")
    with rows.database.begin() as connection, pytest.raises(NotLeader):
        hold_term(connection, old)
    with rows.database.begin() as connection:
        hold_term(connection, new)


def test_a_new_term_waits_for_the_open_planning_transaction(rows: Rows, database_url: str) -> None:
    old = rows.begin_term("old")
    began, started = threading.Event(), threading.Event()
    newest: list[Term] = []

    def take_lead() -> None:
        other = Database(database_url)
        started.set()
        while not newest:
            # PostgreSQL refuses after a short wait; a beat looks again then.
            with suppress(OperationalError):
                newest.append(Rows(other).begin_term("new"))
        began.set()
        other.dispose()

    standby = threading.Thread(target=take_lead)
    with rows.database.begin() as connection:
        hold_term(connection, old)
        standby.start()
        assert started.wait(10)
        assert not began.wait(0.4), "the new term did not wait for the one that plans"
        insert(rows, connection, "planned-under-old")
    assert began.wait(10)
    standby.join()
    # What the old leader wrote was complete before the new term began, so the new leader sees it.
    assert newest[0].term == old.term + 1
    assert rows.state("planned-under-old") is State.SCHEDULED
    with rows.database.begin() as connection, pytest.raises(NotLeader):
        hold_term(connection, old)


def insert(rows: Rows, connection: Connection, job_id: str) -> None:
    add_job(rows.database, job_value(id=job_id, due_at=rows.now()), due=0, session=connection)


def test_a_planning_transaction_that_is_refused_leaves_nothing(rows: Rows) -> None:
    old = rows.begin_term("old")
    rows.begin_term("new")

    def plan() -> None:
        with rows.database.begin() as connection:
            insert(rows, connection, "ghost")
            hold_term(connection, old)

    with pytest.raises(NotLeader):
        plan()
    with pytest.raises(UnknownJob):
        rows.row("ghost")


def test_a_fire_time_is_planned_once_however_often_it_is_inserted(rows: Rows) -> None:
    fire_time = rows.now() + MINUTE
    first = rows.job(schedule="s", fire_time=fire_time, args=["first"])
    again = rows.job(schedule="s", fire_time=fire_time, args=["again"])
    assert first == again == scheduled_job_id(schedule_id("s"), fire_time)
    assert rows.row(first)["args"] == ["first"]


def test_a_fire_time_under_another_id_is_still_the_same_fire_time(rows: Rows) -> None:
    fire_time = rows.now() + MINUTE
    first = rows.job(schedule="s", fire_time=fire_time)
    rows.add(
        job_value(id="forged", due_at=fire_time, schedule_id=schedule_id("s"), fire_time=fire_time),
        job_value(id="item", due_at=fire_time, schedule_id=schedule_id("s"), fire_time=fire_time, item="eu"),
    )
    with pytest.raises(UnknownJob):
        rows.row("forged")
    assert rows.state(first) is rows.state("item") is State.SCHEDULED


def test_two_beats_that_plan_one_fire_time_at_once_make_one_job(rows: Rows) -> None:
    for number in range(5):
        fire_time = rows.now() + number * MINUTE
        ids = at_once([lambda: rows.job(schedule="s", fire_time=fire_time)] * 4)  # noqa: B023
        assert len(set(ids)) == 1
    assert len(waiting_jobs(rows.database, until=rows.now() + timedelta(hours=1), limit=99)) == 5


def test_due_schedules_come_earliest_first_without_those_that_rest(rows: Rows) -> None:
    for name, first_in in (("b", -5), ("a", -9), ("later", 500), ("paused", -9), ("retired", -9)):
        rows.schedule(name, first_in=first_in)
    with rows.database.begin() as connection:
        for name, column in (("paused", "paused_at"), ("retired", "retired_at")):
            connection.execute(
                text(f"UPDATE cronq_schedule SET {column} = created_at WHERE name = :name"), {"name": name}
            )
        due = lock_due_schedules(connection, shard=0, until=rows.now(), limit=10)
        assert [each.name for each in due] == ["a", "b"]
        assert [
            s.name for s in lock_due_schedules(connection, shard=0, until=rows.now() + 9 * MINUTE, limit=2)
        ] == ["a", "b"]
        assert lock_due_schedules(connection, shard=1, until=rows.now(), limit=10) == []


def test_the_cursor_moves_on(rows: Rows) -> None:
    ids = [rows.schedule(name, first_in=1) for name in ("a", "b")]
    first, second = rows.now() + 5 * MINUTE, rows.now() + 3 * MINUTE
    with rows.database.begin() as connection:
        advance(connection, [(ids[0], first), (ids[1], second)], rows.now())
    a, b = get_schedule(rows.database, "a"), get_schedule(rows.database, "b")
    assert (a.next_fire_at, b.next_fire_at) == (first, second)


def test_waiting_jobs_are_due_in_time_and_unpublished(rows: Rows) -> None:
    due, later, retrying = rows.job(due_in=-2), rows.job(due_in=3600), rows.job(due_in=-1)
    published, running = rows.job(), rows.job()
    rows.set(retrying, state="'RETRYING'")
    mark_published(rows.database, rows.sent(published))
    rows.claim(running)
    until = rows.now() + MINUTE
    assert [job.id for job in waiting_jobs(rows.database, until=until, limit=10)] == [due, retrying]
    assert [job.id for job in waiting_jobs(rows.database, until=until, limit=1)] == [due]
    assert {job.id for job in read_waiting(rows.database, [due, later, published, running])} == {due, later}


def test_what_others_stored_is_found_without_what_was_planned(rows: Rows) -> None:
    rows.job(schedule="s", due_in=-5)
    retrying, demanded, dead = rows.job(schedule="r", due_in=-4), rows.job(due_in=-3), rows.job(schedule="d")
    later, published = rows.job(due_in=3600), rows.job()
    rows.set(retrying, state="'RETRYING'")
    rows.set(demanded, trigger="'demand'")
    rows.set(later, trigger="'demand'")
    rows.set(published, trigger="'demand'")
    mark_published(rows.database, rows.sent(published))
    rows.claim(dead)
    rows.settle(dead, state=State.FAILED, outcome=Outcome.FAILED, dead=True)
    retry_dead(rows.database, dead)
    found = [job.id for job in foreign_jobs(rows.database, until=rows.now() + MINUTE, limit=10)]
    assert found == [retrying, demanded, dead]


def test_a_published_job_is_pending_unless_a_worker_was_faster(rows: Rows) -> None:
    slow, fast, done, cancelled = (rows.job() for _ in range(4))
    rows.claim(fast, "t-fast")
    rows.claim(done, "t-done")
    rows.settle(done, "t-done")
    request_cancel(rows.database, cancelled)
    mark_published(rows.database, rows.sent(slow, fast, done, cancelled))
    assert [rows.state(job_id) for job_id in (slow, fast, done, cancelled)] == [
        State.PENDING,
        State.RUNNING,
        State.COMPLETED,
        State.CANCELLED,
    ]
    assert [rows.row(job_id)["publishes"] for job_id in (slow, fast, done, cancelled)] == [1, 0, 0, 0]
    assert rows.row(slow)["published_at"] is not None


def test_thousands_are_marked_at_once(rows: Rows) -> None:
    jobs = [job_value(due_at=rows.now()) for _ in range(2500)]
    rows.add(*jobs)
    mark_published(rows.database, jobs)
    assert count_on_broker(rows.database) == {("t", None): 2500}


def test_a_skip_decided_late_loses_to_the_worker(rows: Rows) -> None:
    waiting, running = rows.job(schedule="s"), rows.job(schedule="r")
    rows.claim(running)
    mark_skipped(rows.database, [waiting, running], Reason.OVERLAP)
    assert (rows.row(waiting)["state"], rows.row(waiting)["reason"]) == ("SKIPPED", "overlap")
    assert (rows.row(running)["state"], rows.row(running)["reason"]) == ("RUNNING", None)
    assert rows.claim(waiting) is None


def test_a_schedule_is_busy_from_publishing_to_its_end(rows: Rows) -> None:
    job_id, sid = rows.job(schedule="s"), schedule_id("s")
    busy = [busy_schedules(rows.database, [sid])]
    mark_published(rows.database, rows.sent(job_id))
    busy.append(busy_schedules(rows.database, [sid]))
    rows.claim(job_id)
    busy.append(busy_schedules(rows.database))
    rows.settle(job_id, state=State.RETRYING, outcome=Outcome.FAILED, retry_in_s=99)
    busy.append(busy_schedules(rows.database))
    request_cancel(rows.database, job_id)
    busy.append(busy_schedules(rows.database))
    assert busy == [set(), {sid}, {sid}, {sid}, set()]


@pytest.mark.parametrize(
    ("publishes", "age_s", "overdue"),
    [
        (1, 19, False),
        (1, 21, True),
        (2, 39, False),
        (2, 41, True),
        (3, 79, False),
        (3, 81, True),
        (7, 1279, False),
        (7, 1281, True),
        (99, 1281, True),
    ],
)
def test_an_unclaimed_job_is_looked_for_less_and_less_often(
    rows: Rows, publishes: int, age_s: int, overdue: bool
) -> None:
    job_id = rows.job()
    mark_published(rows.database, rows.sent(job_id))
    rows.set(job_id, publishes=str(publishes), published_at=rows.database.now_sql(str(-age_s)))
    found = unclaimed_jobs(rows.database, after_s=20.0, limit=10)
    assert [job.id for job in found] == ([job_id] if overdue else [])


def test_claimed_and_unpublished_jobs_are_not_looked_for(rows: Rows) -> None:
    claimed, waiting, oldest, old = (rows.job() for _ in range(4))
    mark_published(rows.database, rows.sent(claimed, oldest, old))
    for job_id, age in ((claimed, 500), (oldest, 400), (old, 300)):
        rows.set(job_id, published_at=rows.database.now_sql(str(-age)))
    rows.claim(claimed)
    assert rows.state(waiting) is State.SCHEDULED
    assert [job.id for job in unclaimed_jobs(rows.database, after_s=20.0, limit=10)] == [oldest, old]
    assert [job.id for job in unclaimed_jobs(rows.database, after_s=20.0, limit=1)] == [oldest]


# -- fixed delay -------------------------------------------------------------------------------------------


def delayed(rows: Rows) -> str:
    """Return the job of a fixed-delay schedule that was planned and has no next fire time."""
    rows.schedule("d", first=None, timing=Delay(timedelta(seconds=90.5)), delay_s=90.5)
    return rows.job(schedule="d")


def test_a_fixed_delay_counts_from_the_end_of_its_last_job(rows: Rows) -> None:
    job_id = delayed(rows)
    rows.claim(job_id)
    assert set_next_by_delay(rows.database, 0) == 0, "it has not ended"
    rows.settle(job_id)
    ended = rows.row(job_id)["finished_at"]
    assert set_next_by_delay(rows.database, 0) == 1
    following = get_schedule(rows.database, "d").next_fire_at
    assert following is not None
    # SQLite's clock knows milliseconds.
    assert abs(following - ended - timedelta(seconds=90.5)) <= timedelta(milliseconds=1)
    assert set_next_by_delay(rows.database, 0) == 0


@pytest.mark.parametrize("state", [State.SCHEDULED, State.PENDING, State.RUNNING, State.RETRYING])
def test_a_fixed_delay_does_not_count_while_its_job_is_not_over(rows: Rows, state: State) -> None:
    rows.set(delayed(rows), state=f"'{state}'")
    assert set_next_by_delay(rows.database, 0) == 0


@pytest.mark.parametrize("end", [State.FAILED, State.CANCELLED, State.TIMED_OUT])
def test_a_fixed_delay_goes_on_after_any_end(rows: Rows, end: State) -> None:
    job_id = delayed(rows)
    rows.claim(job_id)
    rows.settle(job_id, state=end, outcome=Outcome.FAILED)
    assert set_next_by_delay(rows.database, 0) == 1


# -- edits -------------------------------------------------------------------------------------------------


def deploy(
    rows: Rows, *schedules: Schedule, stamp: str = "1", source: str = "code:x", now: datetime | None = None
) -> bool:
    term = read_term(rows.database, 0) or rows.begin_term("deployer")
    return take_over(rows.database, schedules, term=term, source=source, stamp=stamp, now=now or rows.now())


def declared(name: str, timing: Any = None, **policy: Any) -> Schedule:
    timing = timing or Every(MINUTE)
    return Schedule(name=name, task="t", timing=timing.to_data(), **policy)


def jobs_of(rows: Rows, name: str) -> list[tuple[str, str]]:
    with rows.database.autocommit() as connection:
        found = connection.execute(
            text("SELECT id, state FROM cronq_job WHERE schedule_name = :name ORDER BY fire_time"),
            {"name": name},
        )
        return [(row.id, row.state) for row in found]


def test_a_new_schedule_starts_after_its_deploy_and_fires_nothing_by_itself(rows: Rows) -> None:
    assert deploy(rows, declared("s"))
    stored = get_schedule(rows.database, "s")
    assert stored.next_fire_at is not None
    assert stored.next_fire_at > rows.now()
    assert jobs_of(rows, "s") == []


def test_the_same_deploy_again_changes_nothing(rows: Rows) -> None:
    deploy(rows, declared("s"))
    first = get_schedule(rows.database, "s")
    planned = rows.job(schedule="s", due_in=30)
    deploy(rows, declared("s"), stamp="2")
    assert get_schedule(rows.database, "s") == first
    assert rows.state(planned) is State.SCHEDULED


def test_an_edit_takes_back_what_was_planned_ahead_and_nothing_else(rows: Rows) -> None:
    deploy(rows, declared("s"))
    due = rows.job(schedule="s", due_in=-5)
    running = rows.job(schedule="s", due_in=-9)
    rows.claim(running)
    ahead = rows.job(schedule="s", due_in=30)
    asked = rows.job(schedule="s", due_in=31, trigger=Trigger.MANUAL)
    others = rows.job(schedule="another", due_in=30)
    deploy(rows, declared("s", args=(2,)), stamp="2")
    assert {job_id for job_id, _ in jobs_of(rows, "s")} == {due, running, asked}
    assert rows.state(others) is State.SCHEDULED
    with pytest.raises(UnknownJob):
        rows.row(ahead)


def test_an_edit_of_the_arguments_goes_on_where_planning_stood(rows: Rows) -> None:
    deploy(rows, declared("s"))
    planned = rows.now() + 2 * MINUTE
    rows.job(schedule="s", fire_time=planned, due_in=120)
    with rows.database.begin() as connection:
        advance(connection, [(schedule_id("s"), planned + MINUTE)], rows.now())
    deploy(rows, declared("s", args=(2,)), stamp="2")
    stored = get_schedule(rows.database, "s")
    assert stored.next_fire_at == planned, "the fire time that was taken back is planned anew"
    assert (stored.version, stored.definition.args) == (2, (2,))


def test_an_edit_of_the_timing_starts_after_the_edit_and_never_in_the_past(rows: Rows) -> None:
    deploy(rows, declared("s", Every(timedelta(hours=1))))
    with rows.database.begin() as connection:
        advance(connection, [(schedule_id("s"), rows.now() - timedelta(hours=5))], rows.now())
    deploy(rows, declared("s", Cron("* * * * *")), stamp="2")
    stored = get_schedule(rows.database, "s")
    assert stored.next_fire_at is not None
    assert rows.now() < stored.next_fire_at <= rows.now() + MINUTE
    assert jobs_of(rows, "s") == []


def test_an_edit_of_the_arguments_does_not_forget_what_was_missed(rows: Rows) -> None:
    deploy(rows, declared("s"))
    missed = rows.now() - timedelta(minutes=30)
    with rows.database.begin() as connection:
        advance(connection, [(schedule_id("s"), missed)], rows.now())
    deploy(rows, declared("s", args=(2,)), stamp="2")
    assert get_schedule(rows.database, "s").next_fire_at == missed


def test_a_deploy_retires_its_own_schedules_and_nobody_elses(rows: Rows) -> None:
    deploy(rows, declared("mine"), declared("old"))
    deploy(rows, declared("theirs"), source="code:y")
    rows.job(schedule="old", due_in=30)
    deploy(rows, declared("mine"), stamp="2")
    assert [each.name for each in list_schedules(rows.database)] == ["mine", "theirs"]
    assert jobs_of(rows, "old") == []
    assert get_schedule(rows.database, "old").next_fire_at is None


def test_a_schedule_that_comes_back_does_not_make_up_for_its_absence(rows: Rows) -> None:
    deploy(rows, declared("s"))
    deploy(rows, stamp="2")
    deploy(rows, declared("s"), stamp="3")
    stored = get_schedule(rows.database, "s")
    assert stored.retired_at is None
    assert stored.next_fire_at is not None
    assert stored.next_fire_at > rows.now()


def test_an_older_deploy_loses_to_the_newer_one(rows: Rows) -> None:
    assert deploy(rows, declared("s", args=("new",)), stamp="2026-02")
    assert not deploy(rows, declared("s", args=("old",)), declared("extra"), stamp="2026-01")
    assert [each.name for each in list_schedules(rows.database)] == ["s"]
    assert get_schedule(rows.database, "s").definition.args == ("new",)


def test_a_name_that_another_app_has_stays_with_it(rows: Rows) -> None:
    deploy(rows, declared("s", args=("theirs",)), source="code:y")
    deploy(rows, declared("s", args=("mine",)), declared("r"))
    assert get_schedule(rows.database, "s").definition.args == ("theirs",)
    assert get_schedule(rows.database, "r").source == "code:x"


def test_one_whose_time_has_passed_when_it_is_declared_is_told_once(
    rows: Rows, caplog: pytest.LogCaptureFixture
) -> None:
    passed, coming = (declared(name, At(rows.now() + by)) for name, by in (("p", -MINUTE), ("c", MINUTE)))
    for stamp in ("1", "2"):
        deploy(rows, passed, coming, stamp=stamp)
    told = [each.getMessage() for each in caplog.records if "never_runs" in each.getMessage()]
    assert len(told) == 1
    assert "schedule=p" in told[0]


def test_a_former_leaders_deploy_is_refused(rows: Rows) -> None:
    old = rows.begin_term("old")
    rows.begin_term("new")
    with pytest.raises(NotLeader):
        take_over(rows.database, [declared("s")], term=old, source="code:x", stamp="1", now=rows.now())
    assert list_schedules(rows.database) == []


def test_every_version_of_a_schedule_is_kept(rows: Rows) -> None:
    for number in (1, 2, 3):
        deploy(rows, declared("s", args=(number,)), stamp=str(number))
    with rows.database.autocommit() as connection:
        kept = connection.execute(text("SELECT version, actor FROM cronq_schedule_version ORDER BY version"))
        assert [tuple(row) for row in kept] == [(1, "deploy 1"), (2, "deploy 2"), (3, "deploy 3")]


# -- on demand ---------------------------------------------------------------------------------------------


def test_one_dedup_key_is_one_job(rows: Rows) -> None:
    first, new = add_job(rows.database, job_value(id="j", args=["first"], due_at=rows.now()), due=0)
    again, new_again = add_job(rows.database, job_value(id="j", args=["again"], due_at=rows.now()), due=0)
    assert (first.id, new, again.id, new_again) == ("j", True, "j", False)
    assert rows.row("j")["args"] == ["first"]


def test_requests_with_one_key_at_once_make_one_job(rows: Rows) -> None:
    def ask() -> str:
        return add_job(rows.database, job_value(id="j", due_at=rows.now()), due=0)[0].id

    assert at_once([ask] * 6) == ["j"] * 6
    assert rows.state("j") is State.SCHEDULED


@contextmanager
def transaction_of_the_caller(url: str) -> Iterator[Connection]:
    theirs = Database(url)
    with theirs.engine.connect() as connection, connection.begin():
        yield connection
    theirs.dispose()


def test_a_job_commits_and_rolls_back_with_its_caller(rows: Rows, database_url: str) -> None:
    def fail() -> None:
        with transaction_of_the_caller(database_url) as connection:
            add_job(rows.database, job_value(id="lost", due_at=rows.now()), due=0, session=connection)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with pytest.raises(UnknownJob):
        rows.row("lost")
    with transaction_of_the_caller(database_url) as connection:
        add_job(rows.database, job_value(id="kept", due_at=rows.now()), due=0, session=connection)
        with pytest.raises(UnknownJob):
            rows.row("kept")
    assert rows.claim("kept") is not None


def test_a_job_is_due_by_the_databases_clock(rows: Rows) -> None:
    wrong = rows.now() + timedelta(days=9)
    job, _new = add_job(rows.database, job_value(due_at=wrong), due=30)
    assert 25 < (job.due_at - rows.now()).total_seconds() <= 30
    assert rows.row(job.id)["due_at"] == job.due_at


@pytest.mark.parametrize("value", [object(), float("nan"), {1}, "x" * 2000])
def test_arguments_that_could_never_be_sent_are_refused(value: object) -> None:
    with pytest.raises(JobRefused):
        check_payload([value], {}, 1024)


REFUSALS: list[tuple[Callable[[Rows, str], object], str]] = [
    (lambda rows, job_id: rows.claim(job_id), "not over yet"),
    (lambda rows, job_id: (rows.claim(job_id), rows.settle(job_id)), "only a failed"),
]


@pytest.mark.parametrize(("before", "why"), REFUSALS, ids=["running", "completed"])
def test_only_dead_letters_are_sent_back(rows: Rows, before: Callable[[Rows, str], object], why: str) -> None:
    job_id = rows.job()
    before(rows, job_id)
    state = rows.state(job_id)
    with pytest.raises(JobRefused, match=why):
        retry_dead(rows.database, job_id)
    assert rows.state(job_id) is state
    with pytest.raises(UnknownJob):
        retry_dead(rows.database, "nobody")
