"""A job that runs longer than a broker waits for an acknowledgement runs once, and ends no worker."""

from collections.abc import Iterator

import pytest

from tests.support.processes import wait_for
from tests.support.servers import RabbitMQServer

from .cluster import Cluster

TIMEOUT_MS = 1000


@pytest.fixture
def impatient(rabbitmq_server: RabbitMQServer) -> Iterator[RabbitMQServer]:
    """RabbitMQ that closes a channel soon after a message on it was not acknowledged in time."""
    for name, value in (("consumer_timeout", TIMEOUT_MS), ("channel_tick_interval", TIMEOUT_MS // 4)):
        rabbitmq_server.ctl("eval", f"application:set_env(rabbit, {name}, {value}).")
    yield rabbitmq_server
    for name, value in (("consumer_timeout", 1_800_000), ("channel_tick_interval", 60_000)):
        rabbitmq_server.ctl("eval", f"application:set_env(rabbit, {name}, {value}).")


@pytest.mark.parametrize("cluster", [("sqlite", "rabbitmq")], indirect=True, ids=["rabbitmq"])
@pytest.mark.parametrize("pool", ["prefork", "threads"])
@pytest.mark.parametrize("acks_late", ["", "1"], ids=["acks early", "acks late"])
def test_a_job_outlasts_the_consumer_timeout_with_others_waiting_behind_it(
    impatient: RabbitMQServer, cluster: Cluster, pool: str, acks_late: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAULT_ACKS_LATE", acks_late)
    cluster.leading_beat("beat")
    worker = cluster.working("w", "-c", "1", pool=pool)
    held = cluster.demand("faults.hold")
    cluster.wait_for_start(held)
    behind = [cluster.demand("faults.work") for _ in range(3)]
    clock = cluster.clock_without_servers()
    until = clock().timestamp() + 6 * TIMEOUT_MS / 1000
    wait_for(lambda: clock().timestamp() >= until or not worker.running, 30, "several time-outs to pass")
    assert worker.running
    cluster.gate.touch()
    for job_id in [held, *behind]:
        cluster.wait_for_state(job_id, "COMPLETED", timeout=30)
        assert len(cluster.lines(job_id, "end")) == 1
    assert worker.running
