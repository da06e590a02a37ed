"""A body that runs too long times out in every pool; where nobody can end it, its late result is refused."""

import pytest

from tests.support.processes import wait_for

from .cluster import Cluster

POOLS = pytest.mark.parametrize("pool", ["prefork", "threads", "solo"])
ON_BOTH = pytest.mark.parametrize(
    "cluster",
    [("sqlite", "redis"), ("postgresql", "rabbitmq")],
    indirect=True,
    ids=["redis-sqlite", "rabbitmq-postgresql"],
)


@pytest.fixture(autouse=True)
def no_schedules(cluster: Cluster) -> None:
    cluster.env["FAULT_SCHEDULES"] = "0"
    cluster.beat("beat")


@ON_BOTH
@POOLS
def test_a_body_over_its_hard_limit_is_timed_out_and_its_late_result_refused(
    cluster: Cluster, pool: str
) -> None:
    worker = cluster.working("w", pool=pool)
    job_id = cluster.demand("faults.overrun", max_attempts=1)
    row = cluster.wait_for_state(job_id, "TIMED_OUT")
    assert row["dead_at"] is not None
    assert cluster.attempts(job_id) == [(1, "TIMED_OUT", "timeout")]
    cluster.gate.touch()
    if pool != "prefork":
        wait_for(lambda: "job.settle_refused" in worker.output(), 15, "the late result to be refused")
    other = cluster.demand("faults.work")
    cluster.wait_for_state(other, "COMPLETED")
    assert cluster.row(job_id)["state"] == "TIMED_OUT"


@POOLS
def test_what_timed_out_is_tried_again_where_the_job_has_attempts_left(cluster: Cluster, pool: str) -> None:
    cluster.working("w1", pool=pool)
    cluster.working("w2", pool=pool)
    job_id = cluster.demand("faults.overrun", max_attempts=2)
    cluster.wait_for_state(job_id, "COMPLETED", timeout=30)
    assert cluster.attempts(job_id) == [(1, "TIMED_OUT", "timeout"), (2, "COMPLETED", None)]


@ON_BOTH
@POOLS
def test_a_body_over_its_soft_limit_learns_it_and_times_out(cluster: Cluster, pool: str) -> None:
    cluster.working("w", pool=pool)
    job_id = cluster.demand("faults.overrun_softly", max_attempts=1)
    cluster.wait_for_state(job_id, "TIMED_OUT")
    assert cluster.attempts(job_id) == [(1, "TIMED_OUT", "timeout")]
    assert cluster.lines(job_id, "end") == []


def test_a_limit_of_the_whole_worker_counts_as_a_time_out(cluster: Cluster) -> None:
    cluster.working("w", "--time-limit", "1.5", pool="prefork")
    job_id = cluster.demand("faults.hold", max_attempts=1)
    cluster.wait_for_state(job_id, "TIMED_OUT")
    assert cluster.attempts(job_id) == [(1, "TIMED_OUT", "timeout")]
