"""What is no message at all does not end the worker that takes it, and the next job runs."""

import kombu
import pytest
import redis

from .cluster import Cluster


@pytest.fixture(autouse=True)
def no_schedules(cluster: Cluster) -> None:
    cluster.env["FAULT_SCHEDULES"] = "0"


@pytest.mark.parametrize(
    "cluster", [("sqlite", "redis"), ("sqlite", "rabbitmq")], indirect=True, ids=["redis", "rabbitmq"]
)
def test_a_body_that_is_a_bare_number_does_not_end_the_worker(cluster: Cluster) -> None:
    worker = cluster.working("w")
    with kombu.Connection(cluster.broker_url) as connection:
        kombu.Producer(connection.default_channel).publish(
            b"7",
            routing_key="celery",
            content_type="application/json",
            content_encoding="utf-8",
            headers={"id": "x", "task": "faults.work"},
        )
    cluster.beat("beat")
    good = cluster.demand("faults.work")
    cluster.wait_for_state(good, "COMPLETED", timeout=10)
    assert worker.running


ITEMS = {
    "garbage": b"garbage",
    "a number": b"7",
    "a body that is not base64": b'{"body": "!!!", "content-type": "application/json", "content-encoding": '
    b'"utf-8", "headers": {"id": "x", "task": "faults.work"}, "properties": {"body_encoding": "base64", '
    b'"delivery_tag": "t", "delivery_info": {"exchange": "", "routing_key": "celery"}}}',
}


@pytest.mark.parametrize("item", ITEMS.values(), ids=ITEMS.keys())
def test_a_redis_item_that_is_no_message_does_not_end_the_worker(cluster: Cluster, item: bytes) -> None:
    worker = cluster.working("w")
    with redis.Redis.from_url(cluster.broker_url) as client:
        client.lpush("celery", item)
    cluster.beat("beat")
    good = cluster.demand("faults.work")
    cluster.wait_for_state(good, "COMPLETED", timeout=10)
    assert worker.running


@pytest.mark.parametrize("pool", ["prefork", "solo", "threads"])
def test_a_body_that_calls_exit_has_failed_and_ends_no_worker(cluster: Cluster, pool: str) -> None:
    cluster.beat("beat")
    worker = cluster.working("w", pool=pool)
    job_id = cluster.demand("faults.leave")
    row = cluster.wait_for_state(job_id, "FAILED")
    assert "nothing to do for me" in row["error"]
    assert [line.what for line in cluster.lines(job_id)] == ["start"]
    assert cluster.attempts(job_id) == [(1, "FAILED", "error")]
    cluster.wait_for_state(cluster.demand("faults.work"), "COMPLETED")
    assert worker.running
