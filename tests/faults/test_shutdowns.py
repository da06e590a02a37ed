"""A worker that is told to stop finishes what runs, or hands it back at once: it costs no attempt."""

import signal

import pytest

from tests.support.processes import Process, wait_for

from .cluster import Cluster

ON_BOTH = pytest.mark.parametrize(
    "cluster",
    [("sqlite", "redis"), ("postgresql", "rabbitmq")],
    indirect=True,
    ids=["redis-sqlite", "rabbitmq-postgresql"],
)
POOLS = pytest.mark.parametrize("pool", ["prefork", "threads", "solo"])
HANDED_BACK = (1, "HANDED_BACK", "shutdown")


@pytest.fixture(autouse=True)
def no_schedules(cluster: Cluster) -> None:
    cluster.env["FAULT_SCHEDULES"] = "0"
    # Long leases: whatever starts again soon was handed back, not rescued.
    cluster.env["CRONQ_LEASE_S"] = "60"


def holder_of(cluster: Cluster, pool: str, **env: str) -> tuple[Process, str]:
    """Return a worker, and the job whose body it runs."""
    cluster.env.update(env)
    cluster.beat("beat")
    worker = cluster.working("leaving", pool=pool)
    job_id = cluster.demand("faults.hold")
    cluster.wait_for_start(job_id)
    return worker, job_id


def assert_handed_back(cluster: Cluster, job_id: str) -> None:
    wait_for(lambda: HANDED_BACK in cluster.attempts(job_id), 15, "the job to be handed back")
    cluster.worker("heir")
    wait_for(lambda: len(cluster.lines(job_id, "start")) == 2, 20, "the job to start elsewhere")
    cluster.gate.touch()
    row = cluster.wait_for_state(job_id, "COMPLETED")
    assert (row["attempts"], row["crashes"], row["result"]) == (1, 0, "attempt 1")
    assert cluster.attempts(job_id) == [HANDED_BACK, (1, "COMPLETED", None)]


@ON_BOTH
@POOLS
def test_a_cold_shutdown_hands_the_running_job_back_without_spending_an_attempt(
    cluster: Cluster, pool: str
) -> None:
    worker, job_id = holder_of(cluster, pool)
    worker.signal(signal.SIGQUIT)
    assert_handed_back(cluster, job_id)


@ON_BOTH
def test_sigterm_mapped_to_a_soft_shutdown_waits_a_while_then_hands_back(cluster: Cluster) -> None:
    worker, job_id = holder_of(cluster, "prefork", REMAP_SIGTERM="SIGQUIT", FAULT_SOFT_S="1")
    del cluster.env["REMAP_SIGTERM"]
    worker.signal(signal.SIGTERM)
    wait_for(lambda: "Initiating Soft Shutdown" in worker.output(), 15, "the soft shutdown")
    assert cluster.attempts(job_id) == []
    assert_handed_back(cluster, job_id)


@ON_BOTH
def test_a_body_that_ends_within_the_soft_shutdown_completes(cluster: Cluster) -> None:
    worker, job_id = holder_of(cluster, "prefork", FAULT_SOFT_S="5")
    worker.signal(signal.SIGQUIT)
    wait_for(lambda: "Initiating Soft Shutdown" in worker.output(), 15, "the soft shutdown")
    cluster.gate.touch()
    cluster.wait_for_state(job_id, "COMPLETED")
    assert cluster.attempts(job_id) == [(1, "COMPLETED", None)]


@ON_BOTH
@POOLS
def test_a_warm_shutdown_lets_the_body_finish_and_leaves_the_rest_to_others(
    cluster: Cluster, pool: str
) -> None:
    worker, job_id = holder_of(cluster, pool)
    waiting = [cluster.demand("faults.work") for _ in range(3 if pool != "solo" else 2)]
    held = [cluster.demand("faults.hold")] if pool != "solo" else []
    for each in held:
        cluster.wait_for_start(each)
    worker.signal(signal.SIGTERM)
    wait_for(lambda: "Warm shutdown" in worker.output(), 15, "the shutdown to begin")
    cluster.worker("heir")
    for each in waiting:
        cluster.wait_for_state(each, "COMPLETED")
    cluster.gate.touch()
    for each in [job_id, *held]:
        cluster.wait_for_state(each, "COMPLETED")
        assert cluster.attempts(each) == [(1, "COMPLETED", None)]
    assert worker.wait(20) == 0
