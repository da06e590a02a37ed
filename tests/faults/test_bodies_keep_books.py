"""What a body wrote down survives its worker; what it had not, does not count."""

import signal

import pytest
from sqlalchemy import text

from tests.support.processes import wait_for

from .cluster import Cluster

EVERYWHERE = pytest.mark.parametrize(
    "cluster",
    [("sqlite", "rabbitmq"), ("postgresql", "redis")],
    indirect=True,
    ids=["sqlite-rabbitmq", "postgresql-redis"],
)


@pytest.fixture(autouse=True)
def ledger(cluster: Cluster) -> None:
    cluster.env["FAULT_SCHEDULES"] = "0"
    with cluster.database.begin() as connection:
        connection.execute(text("CREATE TABLE ledger (job VARCHAR(36), attempt INTEGER)"))


def posted(cluster: Cluster) -> list[tuple[str, int]]:
    with cluster.database.autocommit() as connection:
        return [(row.job, row.attempt) for row in connection.execute(text("SELECT * FROM ledger"))]


def run_and_kill_at(cluster: Cluster, task: str, failpoint: str) -> str:
    """Run one job of `task` on a worker that dies at `failpoint`, with another one to go on."""
    cluster.gate.touch()
    cluster.beat("beat")
    doomed = cluster.worker("doomed", pool="solo", failpoint=f"{failpoint}:1:kill")
    job_id = cluster.demand(task)
    assert doomed.wait(20) == -signal.SIGKILL
    cluster.worker("heir")
    cluster.wait_for_state(job_id, "COMPLETED")
    return job_id


@EVERYWHERE
@pytest.mark.parametrize(
    ("failpoint", "by_attempt"), [("mid_task", 2), ("before_commit", 2), ("after_commit", 1)]
)
def test_own_work_and_outcome_are_kept_or_lost_together_wherever_the_worker_dies(
    cluster: Cluster, failpoint: str, by_attempt: int
) -> None:
    job_id = run_and_kill_at(cluster, "faults.post_entry", failpoint)
    assert posted(cluster) == [(job_id, by_attempt)]
    outcomes = [outcome for _n, outcome, _k in cluster.attempts(job_id)]
    assert outcomes == ["LOST"] * (by_attempt - 1) + ["COMPLETED"]
    assert len(cluster.lines(job_id, "start")) == by_attempt
    assert cluster.row(job_id)["result"] == "posted"


@EVERYWHERE
def test_a_worker_frozen_past_its_lease_rolls_its_own_work_back(cluster: Cluster) -> None:
    cluster.beat("beat")
    zombie = cluster.working("zombie")
    job_id = cluster.demand("faults.post_entry")
    cluster.wait_for_start(job_id)
    zombie.pause()
    cluster.worker("heir")
    cluster.wait_for_state(job_id, "COMPLETED")
    cluster.gate.touch()
    zombie.resume()
    wait_for(lambda: "job.settle_refused" in zombie.output(), 15, "the zombie to be refused")
    assert posted(cluster) == [(job_id, 2)]
    assert cluster.attempts(job_id) == [(1, "LOST", "worker_lost"), (2, "COMPLETED", None)]
    assert zombie.running


@EVERYWHERE
@pytest.mark.parametrize(
    # Between doing and writing down nobody can know: it is done again.
    ("failpoint", "done_by"),
    [("mid_task", [1]), ("after_once_before_record", [1, 2])],
)
def test_a_step_that_is_written_down_is_not_done_again(
    cluster: Cluster, failpoint: str, done_by: list[int]
) -> None:
    job_id = run_and_kill_at(cluster, "faults.two_steps", failpoint)
    assert [line.attempt for line in cluster.lines(job_id, "first")] == done_by
    assert [line.attempt for line in cluster.lines(job_id, "second")] == [2]
