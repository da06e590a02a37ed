"""The API over real stores: in the test's own process, or served on a port."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn
from celery import Celery
from fastapi.testclient import TestClient

from cronq.api.app import create_app
from cronq.app import Cronq
from cronq.settings import Settings
from cronq.store.schema import upgrade

from .steps import BASE, SECRET


@pytest.fixture
def parts(
    database_url: str, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Cronq]:
    monkeypatch.chdir(tmp_path)  # a stack that runs here must not lend its settings
    given = {"database_url": database_url, "redis_url": redis_url, "webhook_secret": SECRET}
    settings = Settings.model_validate(given)
    app = Celery("api-test", broker=redis_url, set_as_current=False)
    made = Cronq(app, settings)
    upgrade(made.database)
    yield made
    made.database.dispose()


@pytest.fixture
def client(parts: Cronq) -> Iterator[TestClient]:
    with TestClient(create_app(parts), base_url=BASE, follow_redirects=False) as made:
        yield made


@pytest.fixture
def served(parts: Cronq) -> Iterator[str]:
    """A real server: the test client would only hand over a stream that has ended."""

    app = create_app(parts)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        thread.join(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}"
    app.state.feed.stop()
    server.should_exit = True
    thread.join()
