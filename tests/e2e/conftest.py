"""pytest-celery's fixtures: its own containers where a Docker engine answers, local processes elsewhere."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from celery import Celery
from pytest_celery import CeleryTestBackend, CeleryTestBroker, CeleryTestWorker

from tests.e2e import plain_tasks
from tests.support.deployment import Deployment, environment
from tests.support.nodes import ServerNode, WorkerNode, docker_answers
from tests.support.processes import Processes
from tests.support.server import free_port
from tests.support.servers import RabbitMQServer, RedisServer


@pytest.fixture(params=["redis", "rabbitmq"])
def celery_broker(request: pytest.FixtureRequest) -> Iterator[CeleryTestBroker]:
    if docker_answers():
        yield from torn_down(request.getfixturevalue(f"celery_{request.param}_broker"))
    elif request.param == "redis":
        redis: RedisServer = request.getfixturevalue("redis_server")
        yield CeleryTestBroker(ServerNode(redis, redis.database(0)))
    else:
        rabbitmq: RabbitMQServer = request.getfixturevalue("rabbitmq_server")
        url = rabbitmq.vhost()
        yield CeleryTestBroker(ServerNode(rabbitmq, url))
        rabbitmq.delete_vhost(url)


@pytest.fixture
def celery_backend(request: pytest.FixtureRequest) -> Iterator[CeleryTestBackend]:
    if docker_answers():
        yield from torn_down(request.getfixturevalue("celery_redis_backend"))
    else:
        redis: RedisServer = request.getfixturevalue("redis_server")
        yield CeleryTestBackend(ServerNode(redis, redis.database(2)))


@pytest.fixture
def celery_worker(
    request: pytest.FixtureRequest,
    celery_worker_cluster_config: dict[str, Any],
    celery_setup_app: Celery,
    tmp_path: Path,
) -> Iterator[CeleryTestWorker]:
    if docker_answers():
        yield from torn_down(request.getfixturevalue("celery_setup_worker"))
        return
    env = {
        "CELERY_BROKER_URL": celery_worker_cluster_config["celery_broker_cluster_config"]["urls"][0],
        "CELERY_RESULT_BACKEND": celery_worker_cluster_config["celery_backend_cluster_config"]["urls"][0],
    }
    worker = CeleryTestWorker(WorkerNode("tests.e2e.plain_app", env, tmp_path), app=celery_setup_app)
    yield worker
    worker.teardown()


@pytest.fixture
def default_worker_tasks(default_worker_tasks: set[ModuleType]) -> set[ModuleType]:
    """What pytest-celery copies into its worker image; local workers import it."""
    return default_worker_tasks | {plain_tasks}


def torn_down(node: Any) -> Iterator[Any]:
    yield node
    node.teardown()


@pytest.fixture
def deployment_env(broker_url: str, redis_url: str, database_url: str) -> dict[str, str]:
    return environment(broker_url, redis_url, database_url)


@pytest.fixture
def deploy(
    processes: Processes, deployment_env: dict[str, str], tmp_path: Path
) -> Callable[[float], Deployment]:
    """Return a deployment whose one fire time is so many seconds ahead."""

    def make(lead_s: float) -> Deployment:
        fire = (datetime.now(UTC) + timedelta(seconds=lead_s)).replace(microsecond=0)
        env = {
            **deployment_env,
            "CRONQ_ORDERS_PATH": str(tmp_path / "orders.sqlite"),
            "CRONQ_REPORTS_DIR": str(tmp_path / "reports"),
        }
        return Deployment(processes, env, tmp_path, fire, free_port())

    return make
