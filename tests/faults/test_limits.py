"""Limits hold on real workers, whoever is killed."""

import signal
from collections import Counter

import pytest

from cronq.breaker import WELL
from cronq.store.breakers import read_breakers
from cronq.store.room import waiting_lanes
from tests.support.processes import wait_for

from .cluster import Cluster, Line, stopped_by_itself, wake

ON_BOTH = pytest.mark.parametrize(
    "cluster", [("sqlite", "redis"), ("postgresql", "rabbitmq")], indirect=True, ids=["redis", "rabbitmq"]
)


@pytest.fixture(autouse=True)
def no_schedules(cluster: Cluster) -> None:
    cluster.env["FAULT_SCHEDULES"] = "0"


def most_at_a_time(lines: list[Line]) -> int:
    """Return how many bodies ran side by side at the busiest moment."""
    running = most = 0
    for line in sorted(lines, key=lambda each: (each.at, each.what == "start")):
        running += 1 if line.what == "start" else -1
        most = max(most, running)
    return most


def wait_until_over(cluster: Cluster, jobs: list[str], timeout: float = 60) -> None:
    def over() -> bool:
        return Counter(cluster.row(job)["state"] for job in jobs) == {"COMPLETED": len(jobs)}

    wait_for(over, timeout, "all jobs to be over")


@ON_BOTH
def test_a_tenant_s_jobs_run_two_at_a_time_though_its_leader_is_killed_and_nobody_waits_for_ever(
    cluster: Cluster,
) -> None:
    cluster.env["CRONQ_LIMITS"] = '{"tenant": {"concurrency": 2}}'
    for name in ("w1", "w2"):
        cluster.worker(name)
    leader = cluster.leading_beat("leader", "after_publish_before_mark:4:kill")
    cluster.beat("standby")
    jobs = [cluster.demand("faults.nap", tenant="acme") for _ in range(40)]
    other = cluster.demand("faults.nap", tenant="globex")
    assert leader.wait(30) == -signal.SIGKILL
    cluster.wait_for_state(other, "COMPLETED")
    wait_until_over(cluster, jobs)
    ours = [line for line in cluster.lines() if line.job_id in jobs]
    assert most_at_a_time(ours) == 2
    assert Counter(line.job_id for line in ours if line.what == "start") == dict.fromkeys(jobs, 1)


def test_a_leader_that_wakes_with_a_batch_in_its_hands_exceeds_no_limit(cluster: Cluster) -> None:
    cluster.env["CRONQ_LIMITS"] = '{"task:faults.nap": {"concurrency": 1}}'
    for name in ("w1", "w2"):
        cluster.worker(name)
    zombie = cluster.leading_beat("zombie", "before_publish:3:stop")
    standby = cluster.beat("standby")
    jobs = [cluster.demand("faults.nap") for _ in range(20)]
    wait_for(lambda: stopped_by_itself(zombie), 20, "the leader to freeze")
    cluster.wait_for_lead(standby)
    wait_for(lambda: len(cluster.lines(what="end")) > 5, 20, "the standby to go on")
    wake(zombie)
    wait_until_over(cluster, jobs)
    assert most_at_a_time(cluster.lines()) == 1


@ON_BOTH
def test_a_rate_holds_over_all_workers_and_leaders(cluster: Cluster) -> None:
    cluster.env["CRONQ_LIMITS"] = '{"dependency:bank": {"tasks": ["faults.work"], "rate": "10/s"}}'
    for name in ("w1", "w2"):
        cluster.worker(name)
    leader = cluster.leading_beat("leader")
    cluster.beat("standby")
    jobs = [cluster.demand("faults.work") for _ in range(40)]
    wait_for(lambda: len(cluster.lines(what="end")) > 12, 20, "a part to be done")
    leader.kill()
    wait_until_over(cluster, jobs)
    starts = sorted(line.at for line in cluster.lines(what="start"))
    assert len(starts) == 40
    for first, at in enumerate(starts):
        within = [start for start in starts[first:] if start < at + 0.95]
        assert len(within) <= 11, "ten a second, and the burst of one"


@ON_BOTH
def test_a_failing_service_is_spared_and_its_jobs_come_back_though_the_leader_is_killed(
    cluster: Cluster,
) -> None:
    cluster.env["CRONQ_LIMITS"] = (
        '{"dependency:bank": {"tasks": ["faults.call"], "break_after": 3, "break_for_s": 2}}'
    )
    for name in ("w1", "w2"):
        cluster.worker(name)
    leader = cluster.leading_beat("leader")
    cluster.beat("standby")
    jobs = [cluster.demand("faults.call") for _ in range(20)]
    wait_for(lambda: read_breakers(cluster.database), 20, "a failure")
    wait_for(lambda: read_breakers(cluster.database)["dependency:bank"].room == 0, 20, "the breaker to open")
    wait_for(lambda: waiting_lanes(cluster.database), 20, "the jobs to wait")
    leader.kill()
    wait_for(lambda: read_breakers(cluster.database)["dependency:bank"].wait_s > 2, 20, "a failed try")
    calls = len(cluster.lines(what="start"))
    assert calls < 20, "without a breaker there would be hundreds"
    cluster.gate.touch()
    wait_until_over(cluster, jobs)
    assert read_breakers(cluster.database)["dependency:bank"] == WELL
    assert Counter(line.job_id for line in cluster.lines(what="end")) == dict.fromkeys(jobs, 1)
