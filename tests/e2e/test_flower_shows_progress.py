"""Flower, as it is shipped, shows how far a job is, and keeps it among its started tasks."""

import json
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cronq.store.database import Database
from cronq.store.jobs import JobFilter, list_jobs
from tests.support.processes import Processes, wait_for
from tests.support.server import free_port

APP = "tests.e2e.progress_app"
POOLS = {"prefork": ("prefork", "-E"), "threads": ("threads", "-E")}


@dataclass
class Here:
    processes: Processes
    env: dict[str, str]
    gate: Path
    flower: str

    def ask(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self.flower}{path}", timeout=10) as answer:
            return json.load(answer)

    def tasks(self, **wanted: str) -> list[dict[str, Any]]:
        query = "&".join(f"{name}={value}" for name, value in wanted.items())
        return list(self.ask(f"/api/tasks?{query}").values())

    def job(self) -> Any:
        found = list_jobs(Database(self.env["CRONQ_DATABASE_URL"]), JobFilter(), limit=1)
        return found[0] if found else None


@pytest.fixture
def here(processes: Processes, broker_url: str, redis_url: str, tmp_path: Path) -> Here:
    port = free_port()
    env = {
        "CRONQ_BROKER_URL": broker_url,
        "CRONQ_REDIS_URL": redis_url,
        "CRONQ_DATABASE_URL": f"sqlite:///{tmp_path / 'cronq.db'}",
        "FLOWER_UNAUTHENTICATED_API": "true",
        "GATE": str(tmp_path / "gate"),
        "DUE_AT": datetime.now(UTC).isoformat(),
    }
    here = Here(processes, env, tmp_path / "gate", f"http://127.0.0.1:{port}")
    assert processes.cronq("upgrade", "db", "upgrade", env=env).wait(60) == 0
    processes.celery("flower", APP, "flower", f"--port={port}", "--address=127.0.0.1", env=env)
    wait_for(lambda: here.tasks() == [], 60, "Flower to answer", ignoring=OSError)
    return here


def start(here: Here, pool: str, *args: str) -> None:
    worker = here.processes.worker("worker", APP, "--pool", pool, "-c", "2", *args, env=here.env)
    # Flower hears only what is sent while it listens: the worker's own sign of life comes first.
    if "-E" in args:
        wait_for(lambda: here.ask("/workers?json=1")["data"], 60, "Flower to hear the worker")
    else:
        wait_for(lambda: " ready." in worker.output(), 30, "the worker")
    here.env["DUE_AT"] = (datetime.now(UTC) + timedelta(seconds=12)).isoformat()  # time to lead
    here.processes.beat("beat", APP, env=here.env)


def eventually(here: Here, right: Callable[[dict[str, Any]], bool], **wanted: str) -> dict[str, Any]:
    def found() -> dict[str, Any] | None:
        return next((task for task in here.tasks(**wanted) if right(task)), None)

    task = wait_for(found, 60, "Flower to show it")
    assert task is not None
    return task


@pytest.mark.parametrize(("pool", "events"), POOLS.values(), ids=POOLS)
def test_a_job_shows_its_progress_among_the_started_tasks_with_its_facts(
    here: Here, pool: str, events: str
) -> None:
    start(here, pool, events)
    task = eventually(here, lambda task: bool(task["result"]), state="STARTED")
    assert task["result"] == "42 % · Adding up"
    assert task["state"] == "STARTED"
    job = here.job()
    assert task["uuid"] == job["id"]
    assert task["name"] == "add-up"
    fire_time = job["fire_time"].isoformat().replace("+00:00", "Z")
    assert task["args"] == f"{fire_time} ('march')"
    assert task["kwargs"] == "tenant=acme {}"
    started_at = task["started"]

    here.gate.touch()
    done = eventually(here, lambda task: task["state"] == "SUCCESS")
    assert done["result"] == "31"
    assert done["started"] == started_at
    (worker,) = here.ask("/workers?json=1")["data"]
    assert (worker["task-received"], worker["task-started"], worker["task-succeeded"]) == (1, 1, 1)
