"""The main job as users run it: two beats, a worker, Flower; 200 tenants; the leader killed meanwhile."""

import json
import os
import sys
import urllib.request
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import redis

from tasks import orders
from tests.support.processes import Process, Processes, wait_for
from tests.support.server import free_port

TENANTS = orders.TENANTS[:200]
LEAD_S = (
    20  # from the start of the processes to the one fire time: two beats, a worker and Flower are up by then
)


@dataclass
class Deployment:
    processes: Processes
    env: dict[str, str]
    at: Path
    fire_time: datetime
    flower: str

    def ask(self, *words: str) -> dict:
        code, said = self.processes.run("asked", *self.cronq(*words), env=self.env)
        assert code == 0, said
        return json.loads(said[said.index("{") :])

    def cronq(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "cronq", *words]

    def jobs(self, **wanted: str) -> list[dict]:
        options = [word for name, value in wanted.items() for word in (f"--{name}", value)]
        items = self.ask("jobs", "list", "--json", "-n", "2000", *options)["items"]
        return [job for job in items if job["type"] == "tasks.daily_report"]

    def of_the_fire(self, **wanted: str) -> list[dict]:
        fire = self.fire_time.isoformat().replace("+00:00", "Z")
        return [job for job in self.jobs(**wanted) if job["fire_time"] == fire]

    def leader_pid(self) -> int | None:
        code, said = self.processes.run("leader", *self.cronq("leader", "--json"), env=self.env)
        return json.loads(said[said.index("{") :])["pid"] if code == 0 else None

    def flower_tasks(self) -> dict[str, dict]:
        with urllib.request.urlopen(f"{self.flower}/api/tasks?limit=1000", timeout=10) as answer:
            return json.load(answer)


@pytest.fixture
def deploy(
    processes: Processes, broker_url: str, redis_url: str, database_url: str, tmp_path: Path
) -> Callable[[], Deployment]:
    def make() -> Deployment:
        # One fire time a day, a little ahead: what is late or doubled cannot hide behind the next one.
        fire = (datetime.now(UTC) + timedelta(seconds=LEAD_S)).replace(microsecond=0)
        port = free_port()
        env = {
            **os.environ,
            "CRONQ_BROKER_URL": broker_url,
            "CRONQ_REDIS_URL": redis_url,
            "CRONQ_DATABASE_URL": database_url,
            "CRONQ_LOCK_S": "1",
            "CRONQ_ORDERS_PATH": str(tmp_path / "orders.sqlite"),
            "CRONQ_REPORTS_DIR": str(tmp_path / "reports"),
            "REPORT_TENANTS": ",".join(TENANTS),
            "REPORTS_AT": f"{fire.second} {fire.minute} {fire.hour} * * *",
            "FLOWER_UNAUTHENTICATED_API": "true",
        }
        return Deployment(processes, env, tmp_path, fire, f"http://127.0.0.1:{port}")

    return make


def start(here: Deployment) -> dict[int, Process]:
    assert here.processes.cronq("upgrade", "db", "upgrade", env=here.env).wait(60) == 0
    beats = [here.processes.beat(f"beat-{n}", "beat.app", "-S", "cronq", env=here.env) for n in (1, 2)]
    here.processes.worker("worker", "workers.app", "-l", "INFO", env=here.env)
    port = here.flower.rpartition(":")[2]
    here.processes.celery(
        "flower", "workers.app", "flower", f"--port={port}", "--address=127.0.0.1", env=here.env
    )
    wait_for(lambda: here.flower_tasks() is not None, 30, "Flower to answer", ignoring=OSError)
    return {beat.pid: beat for beat in beats}


@pytest.mark.timeout(240)
def test_two_hundred_reports_are_made_once_each_though_the_leader_is_killed(
    deploy: Callable[[], Deployment],
) -> None:
    here = deploy()
    beats = start(here)
    leader = wait_for(here.leader_pid, 20, "a leader")
    planned = wait_for(lambda: len(here.of_the_fire()) == 200 and here.of_the_fire(), 20, "200 planned jobs")
    wait_for(
        lambda: here.of_the_fire(state="RUNNING") or here.of_the_fire(state="COMPLETED"), 60, "a first one"
    )
    beats[leader].kill()

    done = wait_for(
        lambda: len(jobs := here.of_the_fire(state="COMPLETED")) == 200 and jobs, 120, "200 completed jobs"
    )

    assert {job["id"] for job in done} == {job["id"] for job in planned}
    assert Counter(job["tenant"] for job in done) == Counter(TENANTS)
    assert all(job["attempts"] == 1 and job["progress"] == 100 for job in done)
    reports = here.at / "reports"
    name = here.fire_time.strftime("%Y-%m-%dT%H-%M-%SZ")
    for tenant in TENANTS:
        assert sorted(path.name for path in (reports / tenant).iterdir()) == [f"{name}.csv", f"{name}.html"]

    board = redis.Redis.from_url(here.env["CRONQ_REDIS_URL"])
    live = [json.loads(board.get(f"cronq:progress:{job['id']}")) for job in done]
    assert {state["progress"] for state in live} == {100}

    flower = wait_for(
        lambda: (
            (tasks := here.flower_tasks())
            and all(tasks.get(job["id"], {}).get("state") == "SUCCESS" for job in done)
            and tasks
        ),
        20,
        "Flower to show all 200",
    )
    one = done[0]
    assert flower[one["id"]]["name"] == one["schedule"] == f"daily-report:{one['tenant']}"
    assert one["fire_time"] in flower[one["id"]]["args"]
    assert f"tenant={one['tenant']}" in flower[one["id"]]["kwargs"]
    assert wait_for(here.leader_pid, 5, "the other beat to lead") != leader
