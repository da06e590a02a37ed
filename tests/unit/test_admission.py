"""The stage before the publisher, on a clock and a store in the test's hands."""

import itertools
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as some

from cronq.beat import admission as module
from cronq.beat.admission import Admission
from cronq.beat.buckets import Bucket
from cronq.job import Trigger
from cronq.limits import limits_from
from cronq.store.agenda import DueJob
from cronq.store.room import Going, lane_of

START = datetime(2026, 1, 1, tzinfo=UTC)
ALL = 10_000


class Store:
    """What waits, what goes on and what is over, as SQL would know it."""

    def __init__(self, **limits: Any) -> None:
        self.now = 100.0
        self.admission = Admission(lambda _task, queue: queue or "celery")
        self.take_over(limits)
        self.limits = limits
        self.jobs: dict[str, DueJob] = {}
        self.waiting: dict[str, str] = {}  # id → the key it waits for
        self.running: dict[str, DueJob] = {}
        self.out: list[str] = []
        self._count = itertools.count()

    def take_over(self, limits: dict[str, Any], recent: int = 0) -> None:
        self.admission.reset(limits_from(limits), self.now, lambda _bucket: recent)

    def job(self, **facts: Any) -> DueJob:
        number = next(self._count)
        values: dict[str, Any] = {"task": "t", "args": [], "kwargs": {}, "trigger": Trigger.DEMAND}
        job = DueJob(id=f"j{number}", due_at=START + timedelta(seconds=number), **{**values, **facts})
        self.jobs[job.id] = job
        return job

    def due(self, *jobs: DueJob) -> list[str]:
        """Let `jobs` come due; return those that go out."""
        free = self.admission.sort(list(jobs))
        return self._send(free) + self.release()

    def release(self, limit: int = ALL) -> list[str]:
        return self._send(self.admission.release(self.now, limit))

    def chores(self) -> None:
        """Do what the leader does between two releases."""
        marks = self.admission.unmarked(ALL)
        self.waiting.update(marks)
        self.admission.marked(job_id for job_id, _key in marks)
        for lane in self.admission.hungry():
            mine = [i for i in self.waiting if lane_of(self.jobs[i]) == lane]
            some = mine[: module.WINDOW]
            self.admission.fill(lane, [self.jobs[i] for i in some], all_read=len(some) == len(mine))

    def look(self) -> None:
        going = [Going(i, lane_of(job), claimed=True) for i, job in self.running.items()]
        self.admission.count_again(going, ())
        self.admission.recount(Counter(lane_of(self.jobs[i]) for i in self.waiting).items())

    def end(self, *ids: str, told: bool = True) -> None:
        for job_id in ids:
            del self.running[job_id]
            if told:
                self.admission.ended(job_id)

    def _send(self, jobs: Iterable[DueJob]) -> list[str]:
        sent = [job.id for job in jobs]
        for job_id in sent:
            assert job_id not in self.running
            self.running[job_id] = self.jobs[job_id]
            self.waiting.pop(job_id, None)
        self.out += sent
        return sent


def test_without_limits_nothing_is_asked_and_nothing_is_kept() -> None:
    store = Store()
    assert not store.admission
    store = Store(tenant={"concurrency": 1})
    free = [store.job() for _ in range(3)]
    assert store.due(*free) == ["j0", "j1", "j2"]
    assert store.admission.unmarked(ALL) == []
    assert not store.admission.waits


def test_no_more_than_the_limit_go_on_at_a_time_and_an_end_lets_the_next_one_go() -> None:
    store = Store(tenant={"concurrency": 2})
    acme = [store.job(tenant="acme") for _ in range(4)]
    assert sorted(store.due(*acme, store.job(tenant="globex"))) == ["j0", "j1", "j4"]
    store.chores()
    assert store.waiting == {"j2": "tenant:acme", "j3": "tenant:acme"}
    store.end("j1")
    assert store.release() == ["j2"]
    store.end("j4")
    assert store.release() == []


def test_one_that_is_stopped_does_not_stop_those_behind_it() -> None:
    store = Store(**{"queue:q": {"concurrency": 3}, "tenant": {"concurrency": 1}})
    jobs = [store.job(queue="q", tenant=tenant) for tenant in ("a", "a", "a", "b", "c", "d")]
    assert store.due(*jobs) == ["j0", "j3", "j4"]
    store.chores()
    store.end("j0")
    assert store.release() == ["j5"] or store.out[-1] == "j1"
    store.end(*store.running)
    store.release()
    assert set(store.out) >= {"j0", "j1", "j3", "j4", "j5"}


def test_a_retry_gives_its_place_back_while_it_waits() -> None:
    store = Store(tenant={"concurrency": 1})
    first, second = store.job(tenant="a"), store.job(tenant="a")
    assert store.due(first, second) == ["j0"]
    store.end("j0")
    assert store.release() == ["j1"]
    assert store.due(first) == []
    store.end("j1")
    assert store.release() == ["j0"]


def test_a_rate_lets_out_one_after_another_and_a_burst_at_once() -> None:
    store = Store(**{"task:t": {"rate": "2/s", "burst": 3}})
    assert len(store.due(*[store.job() for _ in range(10)])) == 3
    store.end(*list(store.running))
    wait = store.admission.keys.opens_in(store.now)
    assert wait is not None
    assert 0.49 < wait <= 0.5
    for _ in range(6):
        store.now += 0.5
        assert len(store.release()) == 1
        store.end(*list(store.running))


def test_what_workers_do_not_claim_stops_a_rate_too() -> None:
    store = Store(task={"rate": "10/s"})
    store.due(*[store.job() for _ in range(100)])
    for _ in range(100):
        store.now += 0.1
        store.release()
    assert len(store.out) == 21  # two seconds' worth, and the burst
    store.look()
    store.now += 0.1
    assert len(store.release()) == 1


def test_a_new_leader_goes_on_with_the_rate_where_the_old_one_was() -> None:
    store = Store()
    store.take_over({"task": {"rate": "1/m"}}, recent=1)
    assert store.due(store.job()) == []
    store.now += 60
    assert store.release() == ["j0"]


def test_a_queue_is_filled_no_deeper_than_its_backlog() -> None:
    store = Store(**{"queue:q": {"backlog": 5}})
    assert store.due(*[store.job(queue="q") for _ in range(20)], store.job()) == ["j20"]
    assert store.admission.keys.deep() == ["q"]
    store.admission.keys.sounded("q", 2)
    assert store.release() == ["j0", "j1", "j2"]
    assert store.release() == []
    store.admission.keys.sounded("q", 4)
    assert store.release() == ["j3"]


def test_background_work_takes_half_at_most_and_only_what_live_work_leaves() -> None:
    store = Store(task={"concurrency": 4})
    late = [store.job(trigger=Trigger.CATCH_UP) for _ in range(5)]
    assert store.due(*late) == ["j0", "j1"]
    assert store.due(*[store.job() for _ in range(4)]) == ["j5", "j6"]
    store.end("j0")
    assert store.release() == ["j7"]
    store.end("j1", "j5")
    assert store.release() == ["j8", "j2"]


def test_background_work_alone_still_runs_under_a_limit_of_one() -> None:
    store = Store(task={"concurrency": 1})
    assert store.due(store.job(trigger=Trigger.BACKFILL), store.job(trigger=Trigger.BACKFILL)) == ["j0"]
    store.end("j0")
    assert store.release() == ["j1"]


def test_ten_jobs_of_one_tenant_pass_a_hundred_thousand_of_another() -> None:
    store = Store(queue={"concurrency": 10})
    crowd = [store.job(tenant="large") for _ in range(3000)]
    store.due(*crowd, *[store.job(tenant="small") for _ in range(10)])
    store.chores()
    small: set[str] = set()
    for _ in range(40):
        store.end(next(iter(store.running)))
        store.release()
        small = {i for i in store.out if store.jobs[i].tenant == "small"}
        if len(small) == 10:
            break
    assert len(small) == 10
    assert len(store.out) <= 30


def test_memory_holds_the_heads_of_the_lines_and_sql_the_rest() -> None:
    store = Store(tenant={"concurrency": 1})
    store.due(*[store.job(tenant="a") for _ in range(2000)])
    store.chores()
    assert len(store.admission._known) == module.WINDOW - 1  # one went out
    assert len(store.waiting) == 1999
    for _ in range(1999):
        store.end(*list(store.running))
        if not store.release():
            store.chores()
            store.release()
        store.chores()
    assert store.out == [f"j{number}" for number in range(2000)]


def test_a_new_leader_reads_who_waits_and_what_goes_on_and_exceeds_nothing() -> None:
    store = Store(tenant={"concurrency": 2})
    store.due(*[store.job(tenant="a") for _ in range(6)])
    store.chores()
    store.take_over({"tenant": {"concurrency": 2}})
    store.look()
    assert store.release() == []
    store.end("j0", told=False)
    store.look()
    store.release()
    store.chores()
    assert store.release() == ["j2"]


def test_jobs_that_waited_for_a_limit_that_is_gone_go_out() -> None:
    store = Store(tenant={"concurrency": 1})
    store.due(*[store.job(tenant="a") for _ in range(3)])
    store.chores()
    store.take_over({})
    store.look()
    store.release()
    store.chores()
    assert store.release() == ["j1", "j2"]


def test_what_the_broker_did_not_take_counts_as_not_sent() -> None:
    store = Store(tenant={"concurrency": 1, "rate": "1/h"})
    job = store.job(tenant="a")
    assert store.due(job) == ["j0"]
    del store.running["j0"]
    store.admission.give_back([job])
    assert store.due(job) == ["j0"]


def test_a_lost_notice_costs_a_look_and_not_a_place() -> None:
    store = Store(tenant={"concurrency": 1})
    store.due(store.job(tenant="a"), store.job(tenant="a"))
    store.chores()
    store.end("j0", told=False)
    assert store.release() == []
    store.look()
    assert store.release() == ["j1"]


def test_a_key_that_was_used_up_a_moment_ago_is_not_forgotten_among_fifty_thousand(
    monkeypatch: Any,
) -> None:
    monkeypatch.setattr(module, "LINES", 10)
    store = Store(tenant={"rate": "1/h"})
    store.due(*[store.job(tenant=f"t{number}") for number in range(20)])
    store.end(*list(store.running))
    store.look()
    assert len(store.admission._lines) == 0
    assert store.due(store.job(tenant="t3")) == []


TENANTS = ("a", "b", "c", None)
LIMITS = {
    "tenant": {"concurrency": 2},
    "tenant:b": {"concurrency": 1, "rate": "4/s"},
    "queue:q": {"concurrency": 3},
    "dependency:d": {"tasks": ["u"], "concurrency": 2},
    "tier:gold": {"tenants": ["c"], "share": 0.5, "priority": 1},
}
STEP = some.tuples(
    some.sampled_from(["due", "due", "due", "end", "silent end", "chores", "look", "wait", "new leader"]),
    some.sampled_from(TENANTS),
    some.sampled_from(["t", "u"]),
    some.sampled_from(["q", "r", None]),
    some.booleans(),
)


def over_limit(running: Iterable[DueJob]) -> bool:
    tenants = Counter(job.tenant for job in running)
    return (
        any(count > 2 for tenant, count in tenants.items() if tenant is not None)
        or tenants["b"] > 1
        or sum(job.queue == "q" for job in running) > 3
        or sum(job.task == "u" for job in running) > 2
    )


@settings(max_examples=150, deadline=None)
@given(some.lists(STEP, max_size=60))
def test_whatever_happens_no_limit_is_exceeded_and_every_job_goes_out_once(steps: list[Any]) -> None:
    store = Store(**LIMITS)
    for what, tenant, task, queue, late in steps:
        store.now += 0.01
        if what == "due":
            trigger = Trigger.CATCH_UP if late else Trigger.SCHEDULE
            store.due(*[store.job(tenant=tenant, task=task, queue=queue, trigger=trigger) for _ in range(2)])
        elif what in ("end", "silent end") and store.running:
            store.end(next(iter(store.running)), told=what == "end")
        elif what == "chores":
            store.chores()
        elif what == "look" and not store.admission.unmarked(1):
            store.look()
        elif what == "wait":
            store.now += 0.25
        elif what == "new leader":
            store.chores()
            store.take_over(LIMITS)
            store.look()
        store.release()
        assert not over_limit(store.running.values())
    for _ in range(20 + 2 * len(store.jobs)):
        store.now += 0.5
        store.end(*list(store.running))
        store.chores()
        store.look()
        store.release()
        assert not over_limit(store.running.values())
    assert sorted(store.out) == sorted(store.jobs)


def test_a_bucket_never_lets_out_more_than_its_burst_and_its_rate_allow() -> None:
    limit = limits_from({"task": {"rate": "5/s", "burst": 2}}).limits["task"]
    bucket: Bucket = Bucket("task:t", limit, turns=None)  # type: ignore[arg-type]
    bucket.start(0.0)
    out, now = 0, 0.0
    while now < 10:
        while not bucket.stops(now, background=False):
            bucket.take(now, background=False)
            bucket.unclaimed = 0
            out += 1
        now += 0.013
    assert 50 <= out <= 52
