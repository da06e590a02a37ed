"""Real servers and child processes for every test that asks for them."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from celery import _state

from .support.processes import Processes
from .support.server import Server, ServerMissing
from .support.servers import PostgreSQLServer, RabbitMQServer, RedisServer

S = TypeVar("S", bound=Server)


def running(make: type[S]) -> Iterator[S]:
    try:
        server = make()
    except ServerMissing as missing:
        # A check that is skipped where it counts would be a check that nobody has.
        if os.environ.get("CI") == "true":
            pytest.fail(str(missing))
        pytest.skip(str(missing))
    with server:
        yield server


@pytest.fixture(autouse=True)
def _tasks_of_their_own_app(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep a test's tasks out of the next tests' apps.

    Celery makes each app's tasks in every app that is finalized later, in no order: of two with one name
    either may be the one that runs.
    """
    monkeypatch.setattr(_state, "_on_app_finalizers", set(_state._on_app_finalizers))


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    yield from running(RedisServer)


@pytest.fixture(scope="session")
def rabbitmq_server() -> Iterator[RabbitMQServer]:
    yield from running(RabbitMQServer)


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[PostgreSQLServer]:
    yield from running(PostgreSQLServer)


@pytest.fixture
def redis_url(redis_server: RedisServer) -> str:
    """An empty database for locks, progress and signals; never the broker's."""
    return redis_server.database(1)


@pytest.fixture(params=["redis", "rabbitmq"])
def broker_url(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "redis":
        redis_server: RedisServer = request.getfixturevalue("redis_server")
        yield redis_server.database(0)
        return
    rabbitmq: RabbitMQServer = request.getfixturevalue("rabbitmq_server")
    url = rabbitmq.vhost()
    yield url
    rabbitmq.delete_vhost(url)


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'cronq.db'}"
        return
    postgresql: PostgreSQLServer = request.getfixturevalue("postgresql_server")
    url = postgresql.database()
    yield url
    postgresql.drop_database(url)


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    """Start child processes; all end with the test, and a failed one shows the end of their output."""
    with Processes(tmp_path) as started:
        yield started
        print(started.tails())  # noqa: T201 - pytest shows it only for a failed test
