"""Where jobs with needs go, on a clock, a broker and workers in the test's hands."""

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cronq.beat.admission import Admission
from cronq.job import Trigger
from cronq.limits import limits_from
from cronq.store.agenda import DueJob
from cronq.store.room import lane_of

START = datetime(2026, 1, 1, tzinfo=UTC)
NEEDS = "cpu@a,b+30"


class Site:
    """One leader's admission, the workers that it knows of, and the queues."""

    def __init__(self, **limits: Any) -> None:
        self.now = 100.0
        self.admission = Admission(lambda _task, queue: queue or "celery")
        self.admission.reset(limits_from(limits), self.now)
        self.depths: dict[str, int] = {}
        self._count = itertools.count()

    def job(self, needs: str | None = NEEDS, **facts: Any) -> DueJob:
        number = next(self._count)
        values: dict[str, Any] = {"task": "t", "args": [], "kwargs": {}, "trigger": Trigger.DEMAND}
        queue = None if needs is None else "cpu.a"
        due_at = START + timedelta(seconds=number)
        return DueJob(id=f"j{number}", due_at=due_at, **{**values, "queue": queue, "needs": needs, **facts})

    def workers(self, **slots: int) -> None:
        self.admission.keys.offered({queue.replace("_", "."): count for queue, count in slots.items()})

    def due(self, *jobs: DueJob) -> list[str]:
        free = self.admission.sort(list(jobs))
        return [job.id for job in free] + self.go()

    def go(self) -> list[str]:
        """Release, look at the queues, release again; return where jobs went."""
        out = self._release()
        for queue in self.admission.keys.deep():
            self.admission.keys.sounded(queue, self.depths.get(queue, 0))
        return out + self._release()

    def _release(self) -> list[str]:
        released = self.admission.release(self.now, 1000)
        for job in released:
            assert job.queue is not None
            self.depths[job.queue] = self.depths.get(job.queue, 0) + 1
        return [str(job.queue) for job in released]


def test_a_job_goes_to_its_first_place_and_its_message_stays_as_it_was_written() -> None:
    site = Site()
    site.workers(cpu_a=1, cpu_b=1)
    job = site.job()
    job.message = "written"
    assert site.due(job) == ["cpu.a"]
    assert job.message == "written"


def test_a_place_without_workers_is_passed_over_at_once_and_the_message_written_anew() -> None:
    site = Site()
    site.workers(cpu_b=1)
    job = site.job()
    job.message = "written for cpu.a"
    assert site.due(job) == ["cpu.b"]
    assert (job.queue, job.message) == ("cpu.b", None)


def test_a_busy_place_is_waited_for_then_the_next_one_counts_as_well() -> None:
    site = Site()
    site.workers(cpu_a=1, cpu_b=1)
    assert site.due(site.job(), site.job(), site.job()) == ["cpu.a"]
    site.now += 29
    assert site.go() == []
    site.now += 1
    assert site.go() == ["cpu.b"]
    site.depths["cpu.a"] = 0
    assert site.go() == ["cpu.a"], "the first place stays the most wanted"


def test_the_wait_begins_anew_when_nobody_waits_any_more() -> None:
    site = Site()
    site.workers(cpu_a=1, cpu_b=1)
    site.due(site.job(), site.job())
    site.now += 40
    assert site.go() == ["cpu.b"]
    assert site.due(site.job()) == []
    site.now += 29
    assert site.go() == []


def test_jobs_wait_in_sql_while_nobody_is_at_any_place_and_go_when_somebody_comes() -> None:
    site = Site()
    site.workers(cpu_c=4)
    job = site.job()
    assert site.due(job) == []
    assert site.admission.unmarked(10) == [(job.id, f"place:{NEEDS}")]
    site.workers(cpu_b=4)
    assert site.go() == ["cpu.b"]


def test_nothing_is_sent_that_would_only_wait_on_the_broker() -> None:
    site = Site()
    site.workers(cpu_a=3)
    assert site.due(*[site.job() for _ in range(10)]) == ["cpu.a"] * 3
    site.depths["cpu.a"] = 1
    assert site.go() == ["cpu.a"] * 2


def test_where_nobody_knows_who_works_the_first_place_counts() -> None:
    site = Site()
    assert site.due(site.job(), site.job()) == ["cpu.a"] * 2


def test_background_work_leaves_half_of_a_place_to_the_others() -> None:
    site = Site()
    site.workers(cpu_a=4)
    assert site.due(*[site.job(trigger=Trigger.BACKFILL) for _ in range(5)]) == ["cpu.a"] * 2
    assert site.due(*[site.job() for _ in range(5)]) == ["cpu.a"] * 2


def test_tenants_take_turns_at_a_place() -> None:
    site = Site()
    site.workers(cpu_a=1)
    crowd, few = [site.job(tenant="large") for _ in range(50)], [site.job(tenant="small") for _ in range(2)]
    site.due(*crowd, *few)
    gone = set()
    for _ in range(4):
        site.depths["cpu.a"] = 0
        for queue in site.admission.keys.deep():
            site.admission.keys.sounded(queue, 0)
        gone |= {job.id for job in site.admission.release(site.now, 1)}
    assert {job.id for job in few} <= gone


@pytest.mark.parametrize("kind", ["tenant", "task"])
def test_other_limits_count_as_well_and_one_that_waits_for_a_place_takes_up_nothing(kind: str) -> None:
    site = Site(**{kind: {"concurrency": 1}})
    site.workers()
    placed, plain = site.job(tenant="x"), site.job(needs=None, tenant="x")
    assert site.due(placed) == []
    assert [job.id for job in site.admission.release(site.now, 9)] == []
    assert site.admission.sort([plain]) == []
    assert [job.id for job in site.admission.release(site.now, 9)] == [plain.id]
    site.workers(cpu_a=1)
    assert site.go() == [], "now the limit is full"
    site.admission.ended(plain.id)
    assert site.go() == ["cpu.a"]


def test_a_job_is_in_one_line_wherever_it_went_the_last_time() -> None:
    site = Site()
    assert lane_of(site.job(queue="cpu.a")) == lane_of(site.job(queue="cpu.b"))
