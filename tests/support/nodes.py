"""pytest-celery's nodes as local processes.

pytest-celery reaches every node through its container object, so an object with the same methods that
drives a process lets the same tests run with and without Docker.
"""

import functools
import sys
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import docker
from docker.errors import DockerException
from pytest_celery import CeleryTestContainer

from .processes import ROOT, Process, wait_for
from .server import Server

WORKER_NAME = "local"


@functools.cache
def docker_answers() -> bool:
    try:
        client = docker.from_env(timeout=2)
    except DockerException:
        return False
    try:
        return bool(client.ping())
    except (DockerException, OSError):
        return False
    finally:
        client.close()


class LocalNode(CeleryTestContainer):
    """The container object of a node that is a process."""

    def __init__(self, name: str) -> None:
        # No super().__init__(): it would ask for a container of the Docker engine.
        self._name = name
        self._id = uuid.uuid4().hex

    @property
    def name(self) -> str:
        return self._name

    @property
    def id(self) -> str:
        return self._id

    @property
    def process(self) -> Process:
        raise NotImplementedError

    @property
    def status(self) -> str:
        return "running" if self.process.running else "exited"

    def logs(self) -> str:
        return self.process.output()

    def reload(self) -> None:
        """A process has no cached state to read anew."""

    def kill(self, signal: str | int | None = None) -> None:
        if signal in (None, "SIGKILL", 9):
            self.process.kill()
        else:
            self.process.stop()


class ServerNode(LocalNode):
    """A broker or result backend: a server of the session, with a database or virtual host for this test."""

    def __init__(self, server: Server, url: str) -> None:
        super().__init__(server.name)
        self._server = server
        self._url = url

    @property
    def process(self) -> Process:
        return self._server.process

    @property
    def celeryconfig(self) -> dict[str, Any]:
        return {
            "url": self._url,
            "host_url": self._url,
            "hostname": "127.0.0.1",
            "port": self._server.port,
            "vhost": self._url.rpartition("/")[2],
        }

    def ready(self) -> bool:
        self._server.wait_ready()
        return True

    def restart(self, timeout: int = 10) -> None:
        self._server.restart()


class WorkerNode(LocalNode):
    """A worker: `celery -A app worker` with one process, as in pytest-celery's own image."""

    def __init__(self, app: str, env: Mapping[str, str], folder: Path) -> None:
        super().__init__(WORKER_NAME)
        argv = ["celery", "-A", app, "worker", "-c", "1", "-l", "INFO", "-n", f"{WORKER_NAME}@{self.id[:12]}"]
        # Away from the checkout: what lies about in its .cronq/ must not decide how a worker starts.
        self._process = Process(
            f"worker-{self.id[:6]}",
            [sys.executable, "-m", *argv],
            log=folder / "worker.log",
            env={"PYTHONPATH": str(ROOT), **env},
            cwd=folder,
        )
        self._process.start()

    @property
    def process(self) -> Process:
        return self._process

    @property
    def celeryconfig(self) -> dict[str, Any]:
        return {}

    @classmethod
    def worker_name(cls) -> str:
        return WORKER_NAME

    @classmethod
    def worker_queue(cls) -> str:
        return "celery"

    def ready(self) -> bool:
        def said_so() -> bool:
            assert self._process.running, self._process.tail()
            return f"{self.id[:12]} ready." in self._process.new_output()

        return wait_for(said_so, 60, "the worker to be ready")

    def restart(self, timeout: int = 10) -> None:
        self._process.restart()
        self.ready()

    def teardown(self) -> None:
        self._process.close()
