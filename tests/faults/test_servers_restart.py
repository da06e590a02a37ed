"""Servers that are killed, restarted or emptied under load: no process ends, and no fire time is lost."""

from collections.abc import Callable

import pytest
import redis

from tests.support.processes import Process, wait_for
from tests.support.servers import PostgreSQLServer, RabbitMQServer, RedisServer

from .cluster import SECOND, Cluster


def started(cluster: Cluster) -> list[Process]:
    processes = [cluster.leading_beat("leader"), cluster.beat("standby"), cluster.worker("w")]
    cluster.wait_for_fires(1)
    return processes


def down_for(
    cluster: Cluster, seconds: float, kill: Callable[[], object], start: Callable[[], object]
) -> None:
    """Keep a server down for at least that long by the clock of this process."""
    clock = cluster.clock_without_servers()
    until = clock() + seconds * SECOND
    kill()
    wait_for(lambda: clock() >= until, 20, "the outage to pass")
    start()


@pytest.mark.parametrize("cluster", [("postgresql", "redis")], indirect=True, ids=["redis"])
def test_redis_restarted_ends_nobody_and_loses_nothing(cluster: Cluster, redis_server: RedisServer) -> None:
    processes = started(cluster)
    down_for(cluster, 2, redis_server.kill, redis_server.start)
    cluster.run_and_check(timeout=28)
    assert all(process.running for process in processes)


@pytest.mark.parametrize("cluster", [("sqlite", "rabbitmq")], indirect=True, ids=["sqlite"])
def test_without_redis_a_leader_on_rabbitmq_goes_on_firing(
    cluster: Cluster, redis_server: RedisServer
) -> None:
    started(cluster)
    term = cluster.term()
    redis_server.kill()
    try:
        cluster.run_and_check(3)
        assert cluster.term() == term
    finally:
        redis_server.start()


def test_an_emptied_redis_loses_no_job_that_was_on_its_way(
    cluster: Cluster, redis_server: RedisServer
) -> None:
    leader = cluster.leading_beat("leader")
    until = cluster.now() + 3 * SECOND

    def on_the_broker() -> bool:
        return len([row for row in cluster.fires(until) if row["state"] == "PENDING"]) >= 4

    wait_for(on_the_broker, 15, "messages that wait for a worker")
    with redis_server.client() as client:
        client.flushall()
    cluster.worker("w")
    # Those that were lost are looked for; those that came later are there already.
    cluster.run_and_check(timeout=28)
    assert cluster.wait_for_lead(leader).term == 1


def test_an_emptied_redis_changes_no_leader_while_work_goes_on(
    cluster: Cluster, redis_server: RedisServer
) -> None:
    started(cluster)
    term = cluster.term()
    with redis_server.client() as client:
        for _ in range(3):
            client.flushall()
            cluster.wait_for_fires(0.5)
    cluster.run_and_check(timeout=28)
    # Whoever leads now, it is one beat in the newest term, and it is in the lock again.
    newest = cluster.term()
    assert newest is not None
    assert term is not None
    assert newest.term >= term.term

    def holder() -> object:
        with redis.Redis.from_url(cluster.env["CRONQ_REDIS_URL"], decode_responses=True) as client:
            return client.get("cronq:leader:0")

    wait_for(lambda: holder() == newest.holder, 10, "the leader to hold the lock")


@pytest.mark.parametrize("cluster", [("sqlite", "rabbitmq")], indirect=True, ids=["sqlite"])
def test_rabbitmq_restarted_ends_nobody_and_loses_nothing(
    cluster: Cluster, rabbitmq_server: RabbitMQServer
) -> None:
    processes = started(cluster)
    rabbitmq_server.kill()
    rabbitmq_server.start()
    cluster.run_and_check(timeout=28)
    assert all(process.running for process in processes)


@pytest.mark.parametrize("cluster", [("postgresql", "redis")], indirect=True, ids=["redis"])
def test_postgresql_restarted_ends_nobody_and_loses_nothing(
    cluster: Cluster, postgresql_server: PostgreSQLServer
) -> None:
    processes = started(cluster)
    down_for(cluster, 2, postgresql_server.kill, postgresql_server.start)
    cluster.database.dispose()  # the test's own connections died with it
    cluster.run_and_check(timeout=28)
    assert all(process.running for process in processes)
