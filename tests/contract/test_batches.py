"""A batch of many items on real SQL: each item once, its end seen once, held, stopped and sent back."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from sqlalchemy import text

from cronq.beat.planner import CatchUpSpread, plan
from cronq.context import lease
from cronq.errors import BatchRefused, LeaseLost, NotLeader, UnknownBatch
from cronq.job import State, batch_end_job_id, scheduled_job_id
from cronq.schedule import Reason, schedule_id
from cronq.store import batches
from cronq.store.agenda import foreign_jobs, mark_skipped
from cronq.store.attempts import bury
from cronq.store.batch_steps import end_batch
from cronq.store.busy import busy_schedules
from cronq.store.control import trigger
from cronq.store.jobs import JobFilter, count_by_state, request_cancel, retry_dead
from cronq.store.schedules import get_schedule
from cronq.upkeep.batch_keeper import BatchKeeper
from cronq.worker.expansion import BadItem, expand

from .rows import Rows, at_once, told

LIMIT = 262_144
HOUR = timedelta(hours=1)


class Floor:
    """One schedule that fans out, and everything that happens to its batch."""

    def __init__(self, rows: Rows) -> None:
        self.rows, self.database = rows, rows.database
        self.heard: list[dict[str, Any]] = []
        self.term = rows.begin_term("me")
        self.keeper = BatchKeeper(rows.database, self.heard.append)

    def head(self, name: str = "s", **policy: Any) -> str:
        """Plan the schedule's next fire time the way a beat does; return the id of the batch."""
        policy.setdefault("fan_out", {"items": ["a", "b", "c"]})
        self.rows.schedule(name, first_in=-1, args=(7,), **policy)
        now = self.rows.now()
        result = plan(
            get_schedule(self.database, name), now=now, until=now, limit=10, spread=CatchUpSpread(1e9)
        )
        head = result.jobs[0]
        self.rows.add(head)
        return head.id

    def expand(self, head: str, token: str = "token-1") -> dict[str, int]:
        assert self.rows.claim(head, token) is not None
        return self.go_on(head, token)

    def go_on(self, head: str, token: str = "token-1") -> dict[str, int]:
        leased = lease.set(token)
        try:
            return expand(self.database, head, max_payload_bytes=LIMIT)
        finally:
            lease.reset(leased)

    def began(self, **policy: Any) -> str:
        """Return a batch whose items have all been found."""
        head = self.head(**policy)
        self.expand(head)
        assert self.rows.settle(head)
        return head

    def items(self, head: str) -> dict[str, str]:
        query = text("SELECT item, id FROM cronq_job WHERE batch_id = :id AND item <> '' ORDER BY item")
        with self.database.autocommit() as connection:
            return dict(connection.execute(query, {"id": head}).all())

    def settle(self, job_id: str, state: State = State.COMPLETED, **facts: Any) -> None:
        token = f"token {job_id[:20]} {facts.get('number', 1)}"
        assert self.rows.claim(job_id, token) is not None
        assert self.rows.settle(job_id, token, state=state, dead=state is State.FAILED, **facts)

    def look(self) -> None:
        self.keeper.run(self.term)

    def counts(self, head: str) -> dict[str, int]:
        return batches.get_batch(self.database, head).counts

    def status(self, head: str) -> str:
        return batches.get_batch(self.database, head).status


@pytest.fixture
def floor(rows: Rows) -> Floor:
    return Floor(rows)


def test_each_item_gets_a_job_with_the_schedules_arguments_and_its_own(floor: Floor) -> None:
    source = ["a", 5, {"item": "c", "kwargs": {"k": 1}, "tenant": "acme"}]
    head = floor.began(fan_out={"items": source}, kwargs={"x": 0}, queue="q", priority=3, max_attempts=2)
    items = floor.items(head)
    assert list(items) == ["5", "a", "c"]
    first, number, last = (floor.rows.row(items[key]) for key in ("a", "5", "c"))
    fire_time = floor.rows.row(head)["fire_time"]
    assert first["id"] == scheduled_job_id(schedule_id("s"), fire_time, "a")
    assert (first["args"], number["args"], last["args"]) == (["a", 7], [5, 7], ["c", 7])
    assert (first["kwargs"], last["kwargs"]) == ({"x": 0}, {"x": 0, "k": 1})
    assert (first["tenant"], last["tenant"]) == (None, "acme")
    for row in (first, number, last):
        assert (row["queue"], row["priority"], row["max_attempts"]) == ("q", 3, 2)
        assert (row["state"], row["fire_time"], row["batch_id"]) == ("SCHEDULED", fire_time, head)


def test_the_leader_finds_the_items_page_by_page(floor: Floor) -> None:
    head = floor.began(fan_out={"items": [f"i{n:02}" for n in range(25)]})
    until, seen = floor.rows.now() + HOUR, []
    page = foreign_jobs(floor.database, until=until, limit=10)
    while page:
        seen += [due.id for due in page]
        page = foreign_jobs(floor.database, until=until, limit=10, after=page[-1])
    assert sorted(seen) == sorted(floor.items(head).values())


def test_an_expansion_that_died_half_way_is_made_again_and_doubles_nothing(
    floor: Floor, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = [f"i{n}" for n in range(1200)]
    head = floor.head(fan_out={"items": source})
    chunks = iter([None, RuntimeError("killed")])

    def die(_name: str) -> None:
        if (error := next(chunks, None)) is not None:
            raise error

    with monkeypatch.context() as patch:
        patch.setattr("cronq.worker.expansion.failpoint", die)
        with pytest.raises(RuntimeError):
            floor.expand(head)
    assert len(floor.items(head)) == 1000
    floor.rows.settle(head, state=State.RETRYING, retry_in_s=0)
    assert floor.expand(head, "token-2") == {"items": 1200, "new": 200}
    assert len(floor.items(head)) == batches.get_batch(floor.database, head).total == 1200


def test_a_worker_that_lost_its_lease_adds_nothing(floor: Floor) -> None:
    head = floor.head()
    floor.rows.claim(head, "lost")
    floor.rows.settle(head, "lost", state=State.RETRYING, retry_in_s=0)
    floor.rows.claim(head, "token-2")
    with pytest.raises(LeaseLost):
        floor.go_on(head, "lost")
    assert floor.items(head) == {}
    assert floor.go_on(head, "token-2") == {"items": 3, "new": 3}


def test_two_workers_that_expand_at_once_add_each_item_once_and_count_it_once(floor: Floor) -> None:
    head = floor.head(fan_out={"items": [f"i{n}" for n in range(900)]})
    floor.rows.claim(head)
    results = at_once([partial(floor.go_on, head)] * 3)
    assert sum(result["new"] for result in results) == 900
    assert batches.get_batch(floor.database, head).total == 900


def test_an_item_that_comes_twice_is_one_job(floor: Floor) -> None:
    head = floor.began(fan_out={"items": ["a", "a", "b", "a"]})
    assert batches.get_batch(floor.database, head).total == 2


@pytest.mark.parametrize(
    ("item", "says"),
    [
        (None, "no item"),
        (True, "no item"),
        ({"kwargs": {}}, "no item"),
        ({"item": "a", "keys": 1}, "has no 'keys'"),
        ("", "0 characters"),
        ("x" * 201, "201 characters"),
        ("a\0b", "NUL"),
        ({"item": "a", "kwargs": {"k": "x" * LIMIT}}, "over the limit"),
    ],
)
def test_what_is_no_item_is_refused_with_a_sentence(floor: Floor, item: Any, says: str) -> None:
    head = floor.head(fan_out={"function": "tests.contract.test_batches:give", "kwargs": {"what": [item]}})
    with pytest.raises(BadItem, match=says):
        floor.expand(head)


def give(what: list[Any]) -> Iterator[Any]:
    yield from what


def test_a_function_that_is_not_there_is_named(floor: Floor) -> None:
    head = floor.head(fan_out={"function": "tests.contract.test_batches:gone"})
    with pytest.raises(BadItem, match="gone"):
        floor.expand(head)


def test_a_query_gives_items_and_the_arguments_beside_them(
    floor: Floor, monkeypatch: pytest.MonkeyPatch, database_url: str
) -> None:
    monkeypatch.setenv("ITEMS_DATABASE", database_url)
    query = "SELECT 'eu' AS region, 3 AS size UNION ALL SELECT 'us', 4 ORDER BY 1"
    head = floor.began(fan_out={"query": query, "database": "ITEMS_DATABASE"})
    items = floor.items(head)
    assert list(items) == ["eu", "us"]
    assert floor.rows.row(items["us"])["kwargs"] == {"size": 4}


def test_a_batch_is_counted_and_ends_when_its_last_item_does(floor: Floor) -> None:
    head = floor.began(on_complete="tasks.sum_up")
    a, b, c = floor.items(head).values()
    assert (floor.status(head), floor.counts(head)) == ("running", {"SCHEDULED": 3})
    floor.settle(a)
    floor.settle(b, State.FAILED)
    floor.look()
    assert floor.counts(head) == {"COMPLETED": 1, "FAILED": 1, "SCHEDULED": 1}
    assert floor.heard == []
    floor.settle(c)
    floor.look()
    found = batches.get_batch(floor.database, head)
    assert (found.status, found.done, found.failed) == ("failed", 3, 1)
    assert found.counts == {"COMPLETED": 2, "FAILED": 1}
    then = floor.rows.row(batch_end_job_id(head))
    assert (then["task"], then["trigger"], then["state"]) == ("tasks.sum_up", "batch_end", "SCHEDULED")
    assert then["args"][0] | {"fire_time": None} == {
        "batch_id": head, "schedule": "s", "fire_time": None, "total": 3,
        "completed": 2, "failed": 1, "timed_out": 0, "cancelled": 0,
    }  # fmt: skip
    assert [notice["kind"] for notice in floor.heard] == ["ended", "job"]
    assert then["id"] in [due.id for due in foreign_jobs(floor.database, until=floor.rows.now(), limit=9)]


def test_a_batch_without_items_ends_too(floor: Floor) -> None:
    head = floor.began(
        fan_out={"function": "tests.contract.test_batches:give", "kwargs": {"what": []}}, on_complete="t"
    )
    floor.look()
    assert floor.status(head) == "completed"
    assert floor.rows.row(batch_end_job_id(head))["args"][0]["total"] == 0


def test_a_batch_does_not_end_while_items_are_still_being_found(floor: Floor) -> None:
    head = floor.head()
    floor.expand(head)
    for job_id in floor.items(head).values():
        floor.settle(job_id)
    floor.look()
    assert floor.status(head) == "finding"
    floor.rows.settle(head)
    floor.look()
    assert floor.status(head) == "completed"


def test_a_batch_whose_items_could_not_all_be_found_ends_as_failed(floor: Floor) -> None:
    head = floor.head(on_complete="t")
    floor.expand(head)
    floor.rows.settle(head, state=State.FAILED, error="no database", dead=True)
    for job_id in floor.items(head).values():
        floor.settle(job_id)
    floor.look()
    found = batches.get_batch(floor.database, head)
    assert (found.status, found.error, found.counts) == ("failed", "no database", {"COMPLETED": 3})
    assert floor.rows.state(batch_end_job_id(head)) is State.SCHEDULED


def test_of_leaders_that_see_the_end_at_once_one_asks_for_what_follows(floor: Floor) -> None:
    head = floor.began(on_complete="t")
    for job_id in floor.items(head).values():
        floor.settle(job_id)
    ends = at_once([partial(end_batch, floor.database, head, floor.term)] * 4)
    assert [end for end in ends if end is not None] == [batch_end_job_id(head)]


def test_of_a_batch_one_webhook_tells_each_end_and_its_items_are_quiet(floor: Floor) -> None:
    head = floor.began(fan_out={"items": ["a", "b"]}, callback_url="https://example.org/hook")
    a, b = floor.items(head).values()
    floor.settle(a)
    floor.settle(b, State.FAILED)
    assert told(floor.database) == []
    floor.look()
    floor.look()
    assert batches.retry_failed(floor.database, head) == 1
    floor.settle(b, number=2)
    floor.look()
    first, second = (each["batch"] for each in told(floor.database))
    assert (first["batch_id"], first["status"], first["completed"], first["failed"]) == (head, "failed", 1, 1)
    assert (second["status"], second["completed"], second["failed"]) == ("completed", 2, 0)


@pytest.mark.parametrize("kwargs", [{}, {"odd": "\0 and \ud800"}], ids=["plain", "odd"])
@pytest.mark.parametrize("how", ["cancelled", "buried"])
def test_a_batch_that_ends_before_its_items_are_looked_for_ends_like_any_other(
    floor: Floor, how: str, kwargs: dict[str, str]
) -> None:
    head = floor.head(callback_url="https://example.org/hook", on_complete="t", kwargs=kwargs)
    if how == "cancelled":
        request_cancel(floor.database, head)
    else:
        assert bury(floor.database, head, kind="unknown_task", error="nobody knows it")
    for _ in range(2):
        floor.look()
    status = "cancelled" if how == "cancelled" else "failed"
    (end,) = (each["batch"] for each in told(floor.database))
    assert (end["batch_id"], end["status"], end["total"]) == (head, status, 0)
    assert floor.status(head) == status
    assert floor.rows.state(batch_end_job_id(head)) is State.SCHEDULED


def test_a_batch_that_is_sent_back_before_its_items_were_looked_for_goes_on_and_ends_again(
    floor: Floor,
) -> None:
    head = floor.head(fan_out={"items": ["a"]}, callback_url="https://example.org/hook")
    assert bury(floor.database, head, kind="unknown_task", error="nobody knows it")
    floor.look()
    retry_dead(floor.database, head)
    floor.expand(head)
    assert floor.rows.settle(head)
    floor.settle(floor.items(head)["a"])
    floor.look()
    first, second = (each["batch"] for each in told(floor.database))
    assert (first["status"], second["status"], second["completed"]) == ("failed", "completed", 1)


def test_a_fire_time_of_a_fan_out_that_is_left_out_is_no_batch(floor: Floor) -> None:
    head = floor.head(callback_url="https://example.org/hook")
    mark_skipped(floor.database, [head], Reason.OVERLAP)
    with pytest.raises(UnknownBatch):
        floor.status(head)


def test_an_item_with_a_callback_of_its_own_is_told_by_itself(floor: Floor) -> None:
    head = floor.began(fan_out={"items": ["a", {"item": "b", "callback_url": "https://h.org/"}]})
    a, b = floor.items(head).values()
    floor.settle(a)
    floor.settle(b)
    floor.look()
    assert told(floor.database) == [{"job_id": b, "status": "COMPLETED"}]


def test_a_former_leader_does_not_end_a_batch(floor: Floor) -> None:
    head = floor.began()
    for job_id in floor.items(head).values():
        floor.settle(job_id)
    floor.rows.begin_term("another")
    with pytest.raises(NotLeader):
        floor.look()
    assert floor.status(head) == "running"


def test_only_the_failed_ones_are_sent_back_and_what_follows_the_end_stays_one(floor: Floor) -> None:
    head = floor.began(on_complete="t")
    a, b, c = floor.items(head).values()
    floor.settle(a)
    floor.settle(b, State.FAILED)
    floor.settle(c, State.FAILED)
    floor.look()
    assert batches.retry_failed(floor.database, head) == 2
    assert batches.retry_failed(floor.database, head) == 0
    assert [floor.rows.state(each) for each in (a, b, c)] == [
        State.COMPLETED, State.SCHEDULED, State.SCHEDULED,
    ]  # fmt: skip
    assert floor.status(head) == "running"
    for job_id in (b, c):
        floor.settle(job_id, number=2)
    floor.look()
    assert floor.status(head) == "completed"
    done = count_by_state(floor.database, JobFilter(task="t"))
    assert floor.rows.row(batch_end_job_id(head))["attempts"] == 0
    assert done["SCHEDULED"] == 1


def test_one_item_that_is_sent_back_by_hand_is_counted_again(floor: Floor) -> None:
    head = floor.began()
    a, b, c = floor.items(head).values()
    floor.settle(a, State.FAILED)
    retry_dead(floor.database, a)
    for job_id, number in ((a, 2), (b, 1), (c, 1)):
        floor.settle(job_id, number=number)
    floor.look()
    assert floor.counts(head) == {"COMPLETED": 3}


def test_a_paused_batch_starts_nothing_and_goes_on_where_it_was(floor: Floor) -> None:
    head = floor.began()
    a, b, c = floor.items(head).values()
    floor.rows.claim(a)
    floor.rows.set(b, state="'PENDING'", published_at=floor.database.now_sql())
    batches.pause_batch(floor.database, head)
    floor.look()
    assert floor.status(head) == "paused"
    assert floor.rows.claim(b, "x") is None, "its message is on the broker, and refused"
    assert floor.rows.claim(c, "y") is None
    assert foreign_jobs(floor.database, until=floor.rows.now() + HOUR, limit=9) == []
    assert floor.rows.settle(a), "one that runs goes on"
    floor.look()
    assert floor.counts(head) == {"COMPLETED": 1, "SCHEDULED": 2}

    batches.resume_batch(floor.database, head)
    floor.look()
    assert {due.id for due in foreign_jobs(floor.database, until=floor.rows.now() + HOUR, limit=9)} == {b, c}
    assert floor.heard == [{"kind": "items"}]
    floor.settle(b)
    floor.settle(c)
    floor.look()
    assert floor.status(head) == "completed"


def test_items_that_are_found_while_the_batch_is_paused_are_held_too(floor: Floor) -> None:
    head = floor.head()
    floor.rows.claim(head)
    floor.go_on(head)
    batches.pause_batch(floor.database, head)
    floor.rows.schedule("s", first_in=500, args=(7,), fan_out={"items": ["a", "b", "c", "d"]})
    floor.rows.set(head, schedule_version="2")
    assert floor.go_on(head)["new"] == 1
    assert floor.rows.claim(floor.items(head)["d"], "x") is None


def test_a_cancelled_batch_ends_what_waits_and_asks_what_runs_to_stop(floor: Floor) -> None:
    head = floor.began(on_complete="t")
    a, b, c = floor.items(head).values()
    floor.settle(a)
    floor.rows.claim(b)
    batches.cancel_batch(floor.database, head)
    floor.look()
    assert floor.status(head) == "cancelling"
    assert floor.rows.state(c) is State.CANCELLED
    assert floor.rows.row(b)["cancel_requested_at"] is not None
    floor.rows.settle(b, state=State.CANCELLED)
    floor.look()
    assert (floor.status(head), floor.counts(head)) == ("cancelled", {"CANCELLED": 2, "COMPLETED": 1})
    assert floor.rows.row(batch_end_job_id(head))["args"][0]["cancelled"] == 2


def test_a_worker_that_finds_items_stops_when_the_batch_is_cancelled(floor: Floor) -> None:
    head = floor.head()
    floor.rows.claim(head)
    floor.go_on(head)
    batches.cancel_batch(floor.database, head)
    with pytest.raises(LeaseLost):
        floor.go_on(head)


@pytest.mark.parametrize("act", [batches.pause_batch, batches.resume_batch, batches.cancel_batch])
def test_nothing_can_be_done_to_a_batch_that_is_over_or_unknown(
    floor: Floor, act: Callable[..., Any]
) -> None:
    head = floor.began(fan_out={"items": ["a"]})
    floor.settle(floor.items(head)["a"])
    floor.look()
    with pytest.raises(BatchRefused, match="is over"):
        act(floor.database, head)
    with pytest.raises(UnknownBatch):
        act(floor.database, "nothing")


def test_a_schedule_is_busy_until_its_batch_is_over(floor: Floor) -> None:
    head = floor.head(fan_out={"items": ["a"]})
    assert busy_schedules(floor.database) == set()
    floor.rows.claim(head)
    assert busy_schedules(floor.database) == {schedule_id("s")}
    floor.go_on(head)
    floor.rows.settle(head)
    assert busy_schedules(floor.database, [schedule_id("s")]) == {schedule_id("s")}
    request_cancel(floor.database, floor.items(head)["a"])
    floor.look()
    assert busy_schedules(floor.database) == set()


def test_an_edit_takes_a_batch_that_lies_ahead_back_and_it_is_found_anew(floor: Floor) -> None:
    fire_time = floor.rows.now() + HOUR
    floor.rows.schedule("s", first=fire_time, fan_out={"items": ["a", "b"]})
    now = floor.rows.now()

    def planned() -> str:
        stored = get_schedule(floor.database, "s")
        spread = CatchUpSpread(1e9)
        (head,) = plan(stored, now=now, until=fire_time, limit=9, spread=spread).jobs
        head.due_at = now
        floor.rows.add(head)
        return head.id

    head = planned()
    floor.expand(head)
    assert floor.rows.settle(head)
    floor.rows.schedule("s", first=fire_time, fan_out={"items": ["b", "c"]})
    assert floor.items(head) == {}
    assert planned() == head
    floor.expand(head)
    assert list(floor.items(head)) == ["b", "c"]
    assert batches.get_batch(floor.database, head).total == 2


def test_batches_are_listed_newest_first_page_by_page(floor: Floor) -> None:
    heads = [floor.began(name=f"s{n}") for n in range(3)]
    first = batches.list_batches(floor.database, limit=2)
    assert [found.id for found in first] == [heads[2], heads[1]]
    last = first[-1]
    rest = batches.list_batches(floor.database, before=(last.created_at, last.id))
    assert [found.id for found in rest] == [heads[0]]
    assert [found.id for found in batches.list_batches(floor.database, schedule="s1")] == [heads[1]]


def test_the_rate_is_that_of_the_items_that_ended_lately(floor: Floor) -> None:
    head = floor.began()
    found = batches.get_batch(floor.database, head)
    assert batches.rate_of(floor.database, found) == 0
    floor.settle(floor.items(head)["a"])
    assert batches.rate_of(floor.database, found) > 0


def test_items_are_due_at_the_fire_time_each_with_a_jitter_of_its_own(floor: Floor) -> None:
    jitter = timedelta(seconds=30)
    head = floor.began(fan_out={"items": [f"i{n}" for n in range(50)]}, jitter=jitter)
    fire_time = floor.rows.row(head)["fire_time"]
    delays = [floor.rows.row(job_id)["due_at"] - fire_time for job_id in floor.items(head).values()]
    assert all(timedelta(0) <= delay < jitter for delay in delays)
    assert len(set(delays)) == 50


def test_items_that_were_asked_for_by_hand_are_due_at_once(floor: Floor) -> None:
    floor.rows.schedule("s", first_in=500, args=(7,), fan_out={"items": ["a"]})
    head, _new = trigger(floor.database, "s")
    floor.expand(head)
    assert floor.rows.row(floor.items(head)["a"])["due_at"] <= floor.rows.now()
    assert [row["item"] for row in batches.list_items(floor.database, head)] == ["a"]
