"""Jobs go where a real worker can run them, and elsewhere when it is gone."""

import pytest

from tests.support.processes import wait_for

from .cluster import Cluster

ON_BOTH = pytest.mark.parametrize(
    "cluster", [("sqlite", "redis"), ("postgresql", "rabbitmq")], indirect=True, ids=["redis", "rabbitmq"]
)


@pytest.fixture(autouse=True)
def no_schedules(cluster: Cluster) -> None:
    cluster.env["FAULT_SCHEDULES"] = "0"


def place(cluster: Cluster, task: str, needs: str, first: str) -> str:
    return cluster.demand(task, needs=needs, queue=first)


@ON_BOTH
def test_jobs_run_at_their_first_place_and_elsewhere_when_its_worker_is_killed(cluster: Cluster) -> None:
    west = cluster.working("west", "-Q", "cpu.eu-west")
    cluster.leading_beat("leader")
    job = place(cluster, "faults.work", "cpu@eu-west,eu-central", "cpu.eu-west")
    assert cluster.wait_for_state(job, "COMPLETED")["queue"] == "cpu.eu-west"

    running = [place(cluster, "faults.hold", "cpu@eu-west,eu-central+600", "cpu.eu-west") for _ in range(2)]
    for each in running:
        cluster.wait_for_state(each, "RUNNING")
    waiting = [place(cluster, "faults.work", "cpu@eu-west,eu-central+600", "cpu.eu-west") for _ in range(5)]
    wait_for(lambda: cluster.row(waiting[0])["state"] == "PENDING", 20, "a message to wait in the west")
    cluster.working("central", "-Q", "cpu.eu-central")
    west.kill()
    cluster.gate.touch()
    for each in [*running, *waiting]:
        cluster.wait_for_state(each, "COMPLETED", timeout=60)
    assert {cluster.row(each)["queue"] for each in waiting} == {"cpu.eu-central"}
    starts = [line.job_id for line in cluster.lines() if line.what == "start"]
    assert len([each for each in starts if each in waiting]) == len(waiting), "each ran once"


def test_a_job_that_nobody_can_run_waits_for_its_worker_to_come(cluster: Cluster) -> None:
    cluster.working("west", "-Q", "cpu.eu-west")
    cluster.leading_beat("leader")
    job = place(cluster, "faults.work", "gpu@eu-west", "gpu.eu-west")
    wait_for(lambda: cluster.row(job)["waits_for"] == "place:gpu@eu-west", 20, "the job to be flagged")
    cluster.worker("gpu", "-Q", "gpu.eu-west,gpu")
    cluster.wait_for_state(job, "COMPLETED")
