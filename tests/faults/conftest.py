"""Real beats and workers on real servers, with a short lock and a short lease."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes import Processes
from tests.support.servers import PostgreSQLServer, RabbitMQServer, RedisServer

from .cluster import Cluster


class Killed(Processes):
    """Processes that need no farewell."""

    def kill(self) -> None:
        for process in self._all:
            process.kill()


@pytest.fixture
def cluster(request: pytest.FixtureRequest, redis_server: RedisServer, tmp_path: Path) -> Iterator[Cluster]:
    """One installation; its parameter names the database and the broker."""
    database, broker = getattr(request, "param", ("sqlite", "redis"))
    redis_url = redis_server.database(1)
    postgresql: PostgreSQLServer | None = None
    rabbitmq: RabbitMQServer | None = None
    if database == "postgresql":
        postgresql = request.getfixturevalue("postgresql_server")
        database_url = postgresql.database()
    else:
        database_url = f"sqlite:///{tmp_path / 'cronq.db'}"
    if broker == "rabbitmq":
        rabbitmq = request.getfixturevalue("rabbitmq_server")
        broker_url = rabbitmq.vhost()
    else:
        broker_url = redis_server.database(0)
    with Killed(tmp_path) as processes:
        cluster = Cluster(processes, tmp_path, database_url, redis_url, broker_url)
        yield cluster
        print(processes.tails())  # noqa: T201 - pytest shows it only for a failed test
        processes.kill()
    cluster.close()
    if postgresql is not None:
        postgresql.drop_database(database_url)
    if rabbitmq is not None:
        rabbitmq.delete_vhost(broker_url)
