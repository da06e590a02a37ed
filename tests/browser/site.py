"""A running installation with its page: two stores, a beat, a worker, the API; and a browser."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from cronq.app import Cronq
from cronq.settings import Settings
from cronq.store.database import Database
from cronq.store.schema import upgrade
from tests.support.processes import Processes, wait_for
from tests.support.server import find_program, free_port

from .demo_app import app as demo

APP = "tests.browser.demo_app"
READY_S = 30


class Site:
    """One installation, and what a test asks of it."""

    def __init__(self, folder: Path, database_url: str, redis_url: str, broker_url: str) -> None:
        self.folder = folder
        self.database_url = database_url
        self.url = f"http://127.0.0.1:{free_port()}"
        self.gates = folder / "gates"
        self.gates.mkdir()
        self.allow_steps(0)
        self.env = {
            **os.environ,
            "CRONQ_DATABASE_URL": database_url,
            "CRONQ_REDIS_URL": redis_url,
            "CRONQ_BROKER_URL": broker_url,
            "CRONQ_FLOWER_URL": "http://127.0.0.1:5555",
            "DEMO_GATE": str(self.gates),
        }
        settings = {"database_url": database_url, "redis_url": redis_url}
        self.parts = Cronq(demo, Settings.model_validate(settings))
        upgrade(self.parts.database)

    @property
    def database(self) -> Database:
        return self.parts.database

    def allow_steps(self, count: int) -> None:
        part = self.gates / "steps.part"
        part.write_text(str(count))
        part.replace(self.gates / "steps")  # a reader never finds half of it

    def mend(self) -> None:
        (self.gates / "mended").touch()

    def ask(self, task: str, **fields: object) -> str:
        """Ask for one job and return its id."""
        answer = httpx.post(f"{self.url}/api/jobs", json={"type": task, **fields})
        assert answer.status_code == 202, answer.text
        return str(answer.json()["id"])

    def declare(self, name: str, **fields: object) -> None:
        """Make or change a schedule of the API."""
        httpx.put(f"{self.url}/api/schedules/{name}", json=fields).raise_for_status()

    def fail(self, **fields: object) -> str:
        """Let a job become a dead letter, and return its id."""
        (self.gates / "mended").unlink(missing_ok=True)
        job_id = self.ask("demo.fragile", kwargs={"password": "hunter2-secret"}, max_attempts=1, **fields)
        self.wait_for_state(job_id, "FAILED")
        return job_id

    def job(self, job_id: str) -> dict:
        found: dict = httpx.get(f"{self.url}/api/jobs/{job_id}").json()
        return found

    def wait_for_state(self, job_id: str, *states: str) -> None:
        wait_for(lambda: self.job(job_id)["status"] in states, 20, f"{job_id} to be {' or '.join(states)}")


@contextmanager
def running_site(folder: Path, database_url: str, redis_url: str, broker_url: str) -> Iterator[Site]:
    """Start it all, and end it all."""
    site = Site(folder, database_url, redis_url, broker_url)
    with Processes(folder, site.env) as processes:
        processes.cronq("api", "api", "--port", site.url.rpartition(":")[2])
        processes.beat("beat", APP)
        processes.worker("worker", APP, "--pool", "threads", "-c", "4", "--without-mingle")

        def ready() -> bool:
            there = httpx.get(f"{site.url}/api/leader").json()["holder"] is not None
            return there and bool(httpx.get(f"{site.url}/api/jobs?state=COMPLETED").json()["items"])

        wait_for(ready, READY_S, "a first completed job", ignoring=(httpx.HTTPError, ValueError))
        yield site
    site.database.dispose()


def chromium() -> Path:
    return find_program("chromium", "chromium")
