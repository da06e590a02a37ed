"""Reports of two hundred tenants in five zones, a batch each; a beat and a worker are killed meanwhile."""

import csv
import json
import os
import sys
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tasks import orders, tenants
from tests.support.processes import Process, Processes, wait_for
from tests.support.server import free_port

LEAD_S = 25  # from the start of the processes to the fire time, which all zones have in common here
REAL = orders.TENANTS[:200]
GHOST = "never-ordered"


@dataclass
class Deployment:
    processes: Processes
    env: dict[str, str]
    at: Path
    fire_time: datetime
    port: int

    def ask(self, *words: str) -> dict:
        code, said = self.processes.run("asked", sys.executable, "-m", "cronq", *words, env=self.env)
        assert code == 0, said
        return json.loads(said[said.index("{") :])

    def batches(self) -> list[dict]:
        return self.ask("batches", "list", "--json")["items"]

    def get(self, path: str) -> bytes:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
            return answer.read()

    def latest(self, tenant: str) -> dict:
        return json.loads(self.get(f"/api/reports/{tenant}/latest"))

    def leader_pid(self) -> int | None:
        code, said = self.processes.run(
            "leader", sys.executable, "-m", "cronq", "leader", "--json", env=self.env
        )
        return json.loads(said[said.index("{") :])["pid"] if code == 0 else None


@pytest.fixture
def deploy(
    processes: Processes, broker_url: str, redis_url: str, database_url: str, tmp_path: Path
) -> Callable[[], Deployment]:
    def make() -> Deployment:
        fire = (datetime.now(UTC) + timedelta(seconds=LEAD_S)).replace(microsecond=0)
        table = tmp_path / "tenants.csv"
        with table.open("w", newline="") as file:
            rows = [(name, tenants.ZONES[number % 5]) for number, name in enumerate(REAL)]
            csv.writer(file).writerows([*rows, (GHOST, "Asia/Tokyo")])
        port = free_port()
        env = {
            **os.environ,
            "CRONQ_BROKER_URL": broker_url,
            "CRONQ_REDIS_URL": redis_url,
            "CRONQ_DATABASE_URL": database_url,
            "CRONQ_LOCK_S": "1",
            "CRONQ_LEASE_S": "3",
            "CRONQ_REPUBLISH_S": "3",
            "CRONQ_ORDERS_PATH": str(tmp_path / "orders.sqlite"),
            "CRONQ_REPORTS_DIR": str(tmp_path / "reports"),
            "REPORT_TENANTS": "acme",
            "REPORTS_AT": "0 0 1 1 *",
            "TENANT_REPORTS_AT": f"{fire.second} {fire.minute} * * * *",
            "TENANTS_FILE": str(table),
            "DEPLOYMENT_API_PORT": str(port),
        }
        return Deployment(processes, env, tmp_path, fire, port)

    return make


def start(here: Deployment) -> tuple[dict[int, Process], list[Process]]:
    assert here.processes.cronq("upgrade", "db", "upgrade", env=here.env).wait(60) == 0
    beats = [here.processes.beat(f"beat-{n}", "beat.app", "-S", "cronq", env=here.env) for n in (1, 2)]
    workers = [here.processes.worker(f"worker-{n}", "workers.app", env=here.env) for n in (1, 2)]
    here.processes.start("api", sys.executable, "-m", "tasks.api", env=here.env)
    return {beat.pid: beat for beat in beats}, workers


@pytest.mark.timeout(300)
def test_every_tenant_gets_its_report_though_the_leader_and_a_worker_are_killed(
    deploy: Callable[[], Deployment],
) -> None:
    here = deploy()
    beats, workers = start(here)
    leader = wait_for(here.leader_pid, 20, "a leader")
    wait_for(lambda: sum(batch["done"] for batch in here.batches()) > 5, 90, "a first few reports")
    beats[leader].kill()
    workers[0].kill()

    ended = wait_for(
        lambda: len(found := here.batches()) == 5 and all(b["ended_at"] for b in found) and found,
        150,
        "the batches of all five zones to end",
    )

    by_zone = {batch["schedule"].partition(":")[2]: batch for batch in ended}
    assert set(by_zone) == set(tenants.ZONES)
    fire = here.fire_time.isoformat().replace("+00:00", "Z")
    assert {batch["fire_time"] for batch in ended} == {fire}
    for zone, batch in by_zone.items():
        ghosts = 1 if zone == "Asia/Tokyo" else 0
        assert (batch["total"], batch["failed"]) == (40 + ghosts, ghosts), zone
        assert batch["counts"]["COMPLETED"] == 40

    summaries = here.at / "reports" / "summary"
    wait_for(lambda: len(list(summaries.glob("*.json"))) == 5, 30, "a summary of each zone")
    assert sum(json.loads(path.read_text())["completed"] for path in summaries.glob("*.json")) == 200

    for tenant in REAL[::20]:
        report = here.latest(tenant)
        assert (report["state"], report["progress"]) == ("COMPLETED", 100)
        assert f"Sales of {tenant}".encode() in here.get(report["download_url"])
    assert here.latest(GHOST)["state"] == "FAILED"
    assert here.latest(GHOST)["download_url"] is None
    dead = here.ask("jobs", "list", "--json", "--state", "FAILED")["items"]
    assert [(job["tenant"], job["item"]) for job in dead] == [(GHOST, GHOST)]
    assert "there are no orders" in dead[0]["error"]
