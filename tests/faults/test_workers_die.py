"""Workers that are killed or frozen in the middle of a job, and the one that takes it over."""

import signal

import psutil
import pytest

from tests.support.processes import Process, wait_for

from .cluster import LEASE_S, Cluster

RESCUED_WITHIN_S = LEASE_S + 2
ON_BOTH = pytest.mark.parametrize(
    "cluster", [("sqlite", "redis"), ("postgresql", "rabbitmq")], indirect=True, ids=["redis", "rabbitmq"]
)


@pytest.fixture(autouse=True)
def no_schedules(cluster: Cluster) -> None:
    cluster.env["FAULT_SCHEDULES"] = "0"


def two_workers(cluster: Cluster, job_id: str) -> tuple[Process, Process]:
    """Return the worker that holds `job_id`, and the other one."""
    workers = {each.name: each for each in (cluster.worker("w1"), cluster.worker("w2"))}
    cluster.wait_for_start(job_id)
    holder = workers.pop(cluster.row(job_id)["worker"].partition("@")[0])
    (other,) = workers.values()
    wait_for(lambda: " ready." in other.output(), 20, "the other worker")
    return holder, other


@ON_BOTH
def test_a_job_of_a_killed_worker_completes_elsewhere_soon_and_the_loss_is_recorded(
    cluster: Cluster,
) -> None:
    cluster.beat("beat")
    job_id = cluster.demand("faults.hold")
    holder, _other = two_workers(cluster, job_id)
    holder.kill()
    killed_at = cluster.now()
    cluster.wait_for_start(job_id, attempt=2)
    assert (cluster.row(job_id)["started_at"] - killed_at).total_seconds() < RESCUED_WITHIN_S
    cluster.gate.touch()
    row = cluster.wait_for_state(job_id, "COMPLETED")
    assert (row["attempts"], row["crashes"], row["result"]) == (2, 1, "attempt 2")
    assert cluster.attempts(job_id) == [(1, "LOST", "worker_lost"), (2, "COMPLETED", None)]


def test_a_killed_pool_process_is_not_kept_alive_by_its_parent(cluster: Cluster) -> None:
    cluster.beat("beat")
    worker = cluster.working("w", pool="prefork")
    job_id = cluster.demand("faults.hold")
    psutil.Process(cluster.wait_for_start(job_id).pid).kill()
    killed_at = cluster.now()
    cluster.wait_for_start(job_id, attempt=2)
    assert (cluster.row(job_id)["started_at"] - killed_at).total_seconds() < RESCUED_WITHIN_S
    cluster.gate.touch()
    cluster.wait_for_state(job_id, "COMPLETED")
    assert worker.running
    assert [outcome for _n, outcome, _k in cluster.attempts(job_id)] == ["LOST", "COMPLETED"]


def test_a_body_that_lets_no_thread_of_its_process_run_keeps_its_lease(cluster: Cluster) -> None:
    cluster.beat("beat")
    cluster.working("w", pool="prefork")
    job_id = cluster.demand("faults.hog", args=[2 * LEASE_S])
    cluster.wait_for_state(job_id, "COMPLETED")
    assert [line.what for line in cluster.lines(job_id)] == ["start", "end"]
    assert cluster.attempts(job_id) == [(1, "COMPLETED", None)]


def test_a_job_whose_process_lives_on_without_settling_it_is_run_again(cluster: Cluster) -> None:
    cluster.beat("beat")
    cluster.working("w", pool="prefork")
    job_id = cluster.demand("faults.unsettled")
    cluster.wait_for_state(job_id, "COMPLETED")
    assert cluster.attempts(job_id) == [(1, "LOST", "worker_lost"), (2, "COMPLETED", None)]


@pytest.mark.parametrize("cluster", [("postgresql", "redis")], indirect=True, ids=["postgresql"])
def test_a_worker_frozen_past_its_lease_loses_its_job_and_its_late_result(cluster: Cluster) -> None:
    cluster.beat("beat")
    job_id = cluster.demand("faults.hold")
    zombie, _other = two_workers(cluster, job_id)
    zombie.pause()
    cluster.wait_for_start(job_id, attempt=2)
    cluster.gate.touch()
    cluster.wait_for_state(job_id, "COMPLETED")
    zombie.resume()
    # Its body ends too, and its outcome is refused.
    wait_for(lambda: len(cluster.lines(job_id, "end")) == 2, 15, "the zombie's body to end")
    wait_for(lambda: "job.settle_refused" in zombie.output(), 15, "the zombie's result to be refused")
    assert cluster.row(job_id)["result"] == "attempt 2"
    assert cluster.attempts(job_id) == [(1, "LOST", "worker_lost"), (2, "COMPLETED", None)]
    assert zombie.running


def test_a_job_longer_than_its_lease_runs_once(cluster: Cluster) -> None:
    cluster.beat("beat")
    job_id = cluster.demand("faults.hold")
    two_workers(cluster, job_id)
    renewed = [cluster.row(job_id)["lease_until"]]

    def renewed_often() -> bool:
        now = cluster.row(job_id)["lease_until"]
        if now != renewed[-1]:
            renewed.append(now)
        return (renewed[-1] - renewed[0]).total_seconds() > 2 * LEASE_S

    wait_for(renewed_often, 20, "the lease to be renewed past twice its time")
    cluster.gate.touch()
    cluster.wait_for_state(job_id, "COMPLETED")
    assert [line.what for line in cluster.lines(job_id)] == ["start", "end"]
    assert cluster.attempts(job_id) == [(1, "COMPLETED", None)]


@ON_BOTH
@pytest.mark.parametrize(
    ("failpoint", "runs", "outcomes"),
    [
        ("after_claim", 1, ["LOST", "COMPLETED"]),
        ("mid_task", 1, ["LOST", "COMPLETED"]),
        # Between the end of the body and its outcome nobody can know: it runs again.
        ("before_settle", 2, ["LOST", "COMPLETED"]),
        ("after_settle_before_ack", 1, ["COMPLETED"]),
    ],
)
def test_a_worker_killed_at_any_step_leaves_one_outcome(
    cluster: Cluster, failpoint: str, runs: int, outcomes: list[str]
) -> None:
    cluster.gate.touch()
    cluster.beat("beat")
    doomed = cluster.worker("doomed", pool="solo", failpoint=f"{failpoint}:1:kill")
    job_id = cluster.demand("faults.hold")
    assert doomed.wait(20) == -signal.SIGKILL
    cluster.worker("heir")
    cluster.wait_for_state(job_id, "COMPLETED")
    assert len(cluster.lines(job_id, "end")) == runs
    assert [outcome for _n, outcome, _k in cluster.attempts(job_id)] == outcomes
