"""What becomes of a job that fails, on real workers: tried again as its task says, or a dead letter."""

import os
import signal
from typing import Any

import psutil
import pytest

from .cluster import Cluster

ON_BOTH = pytest.mark.parametrize(
    "cluster", [("sqlite", "redis"), ("postgresql", "rabbitmq")], indirect=True, ids=["redis", "rabbitmq"]
)


@pytest.fixture(autouse=True)
def failing(cluster: Cluster) -> None:
    cluster.env["FAULT_SCHEDULES"] = "0"
    cluster.app = "tests.support.failing_app"


CASES: list[tuple[str, dict[str, Any], str, list[str]]] = [
    ("failing.always", {}, "error", ["FAILED"]),
    ("failing.always", {"max_attempts": 2}, "error", ["FAILED", "FAILED"]),
    ("failing.asks_again", {}, "network", ["FAILED"] * 3),
    ("failing.autoretry", {}, "network", ["FAILED"] * 3),
    ("failing.permanent", {}, "permanent", ["FAILED"]),
    ("failing.by_policy", {}, "network", ["FAILED"] * 3),
    ("failing.too_long", {}, "network", ["FAILED"]),
    ("failing.takes_one", {"args": [1, 2], "max_attempts": 5}, "wrong_arguments", ["FAILED"]),
]


@ON_BOTH
def test_each_failure_is_tried_again_as_its_task_says_and_sorted(cluster: Cluster) -> None:
    cluster.beat("beat")
    cluster.working("w")
    jobs = [cluster.demand(task, **facts) for task, facts, _kind, _outcomes in CASES]
    for job_id, (task, _facts, kind, outcomes) in zip(jobs, CASES, strict=True):
        row = cluster.wait_for_state(job_id, "FAILED")
        assert row["dead_at"] is not None
        assert (task, row["kind"]) == (task, kind)
        assert [outcome for _n, outcome, _k in cluster.attempts(job_id)] == outcomes, task
        assert row["error"].startswith("not tried again: "), task
    assert cluster.lines(jobs[-1]) == [], "a body ran although it does not accept its arguments"


@ON_BOTH
def test_a_rate_limited_job_comes_back_when_it_was_told_to(cluster: Cluster) -> None:
    cluster.beat("beat")
    cluster.working("w")
    job_id = cluster.demand("failing.rate_limited")
    cluster.wait_for_state(job_id, "COMPLETED")
    first, second = cluster.lines(job_id, "start")
    assert second.at - first.at >= 1.0
    assert cluster.attempts(job_id) == [(1, "FAILED", "rate_limited"), (2, "COMPLETED", None)]


@pytest.mark.parametrize("pool", ["prefork", "threads"])
def test_a_job_that_kills_its_workers_is_dead_after_three_and_says_so(cluster: Cluster, pool: str) -> None:
    cluster.beat("beat")
    job_id = cluster.demand("faults.hold")
    worker = cluster.working("w1", pool=pool)
    for attempt in (1, 2, 3):
        pid = cluster.wait_for_start(job_id, attempt).pid
        if pool == "prefork":
            psutil.Process(pid).kill()
        else:
            os.kill(pid, signal.SIGKILL)
            assert worker.wait(10) == -signal.SIGKILL
            worker = cluster.worker(f"w{attempt + 1}", pool=pool)
    row = cluster.wait_for_state(job_id, "FAILED")
    assert row["kind"] == "worker_lost"
    assert "it took 3 with it" in row["error"]
    assert "CRONQ_MAX_CRASHES" in row["error"]
    assert cluster.attempts(job_id) == [(n, "LOST", "worker_lost") for n in (1, 2, 3)]
    other = cluster.demand("faults.work")
    cluster.wait_for_state(other, "COMPLETED")
    assert worker.running
