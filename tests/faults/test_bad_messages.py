"""What no worker can run does not end the worker, and does not keep the next job waiting."""

import kombu
import pytest

from .cluster import Cluster

ON_BOTH = pytest.mark.parametrize(
    "cluster", [("sqlite", "redis"), ("sqlite", "rabbitmq")], indirect=True, ids=["redis", "rabbitmq"]
)


@ON_BOTH
def test_a_job_of_an_unknown_task_ends_neither_the_worker_nor_the_jobs_behind_it(cluster: Cluster) -> None:
    cluster.env["FAULT_SCHEDULES"] = "0"
    cluster.beat("beat")
    unknown = cluster.demand("faults.no_such_task")
    worker = cluster.working("w")
    good = cluster.demand("faults.work")
    cluster.wait_for_state(good, "COMPLETED")
    row = cluster.wait_for_state(unknown, "FAILED")
    assert row["dead_at"] is not None
    assert "faults.no_such_task" in row["error"]
    assert worker.running


BODIES = {
    "not JSON": (b"{", "application/json", {}),
    "no headers": (b"[[], {}, {}]", "application/json", {}),
    "pickle": (b"\x80\x04K\x01.", "application/x-python-serialize", {"id": "x", "task": "faults.work"}),
    "no job": (b"[[], {}, {}]", "application/json", {"id": "x", "task": "faults.work", "cronq": {"v": 1}}),
    "odd header": (b"[[], {}, {}]", "application/json", {"id": "y", "task": "faults.work", "cronq": "?"}),
}


@ON_BOTH
def test_malformed_messages_do_not_end_the_worker(cluster: Cluster) -> None:
    cluster.env["FAULT_SCHEDULES"] = "0"
    worker = cluster.working("w")
    with kombu.Connection(cluster.broker_url) as connection:
        producer = kombu.Producer(connection.default_channel)
        for body, content_type, headers in BODIES.values():
            producer.publish(
                body,
                routing_key="celery",
                content_type=content_type,
                content_encoding="utf-8",
                headers=headers,
            )
    cluster.beat("beat")
    good = cluster.demand("faults.work")
    cluster.wait_for_state(good, "COMPLETED")
    assert worker.running
    assert [line.job_id for line in cluster.lines(what="start")] == [good]
