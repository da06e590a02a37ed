"""Reports of two hundred tenants in five zones; a beat, a worker and Redis die meanwhile."""

import base64
import csv
import json
import urllib.request
from collections.abc import Callable

import pytest
from standardwebhooks import Webhook

from tasks import orders, tenants
from tests.support.deployment import Deployment
from tests.support.processes import Process, wait_for
from tests.support.receiver import Receiver, receiving
from tests.support.servers import RedisServer

LEAD_S = 25  # from the start of the processes to the fire time, which all zones have in common here
REAL = orders.TENANTS[:200]
GHOST = "never-ordered"
SECRET = "whsec_" + base64.b64encode(b"s" * 32).decode()


def batches(here: Deployment) -> list[dict]:
    return here.ask("batches", "list", "--json")["items"]


def get(here: Deployment, path: str) -> bytes:
    with urllib.request.urlopen(f"http://127.0.0.1:{here.port}{path}", timeout=10) as answer:
        return answer.read()


def latest(here: Deployment, tenant: str) -> dict:
    return json.loads(get(here, f"/api/reports/{tenant}/latest"))


def start(here: Deployment, receiver: Receiver) -> tuple[dict[int, Process], list[Process]]:
    table = here.at / "tenants.csv"
    with table.open("w", newline="") as file:
        rows: list[tuple[str, ...]] = [(name, tenants.ZONES[number % 5]) for number, name in enumerate(REAL)]
        rows[0] += (receiver.url,)
        csv.writer(file).writerows([*rows, (GHOST, "Asia/Tokyo", receiver.url)])
    here.env |= {
        "REPORT_TENANTS": "acme",
        "TENANT_REPORTS_AT": f"{here.fire_time.second} {here.fire_time.minute} * * * *",
        "TENANTS_FILE": str(table),
        "DEPLOYMENT_API_PORT": str(here.port),
        "CRONQ_WEBHOOK_SECRET": SECRET,
        "CRONQ_WEBHOOK_ALLOW": "127.0.0.1",
    }
    here.upgrade()
    beats = here.beats()
    workers = [here.processes.worker(f"worker-{n}", "workers.app", env=here.env) for n in (1, 2)]
    here.processes.python("api", "-m", "tasks.api", env=here.env)
    return beats, workers


@pytest.mark.timeout(300)
def test_every_tenant_gets_its_report_though_the_leader_a_worker_and_redis_die(
    deploy: Callable[[float], Deployment], redis_server: RedisServer
) -> None:
    here = deploy(LEAD_S)
    with receiving() as receiver:
        beats, workers = start(here, receiver)
        leader = wait_for(here.leader_pid, 20, "a leader")
        wait_for(lambda: sum(batch["done"] for batch in batches(here)) > 5, 90, "a first few reports")
        beats[leader].kill()
        workers[0].kill()
        redis_server.kill()
        redis_server.ensure_running()
        redis_server.client().flushall()  # what it had is lost as well

        ended = wait_for(
            lambda: len(found := batches(here)) == 5 and all(b["ended_at"] for b in found) and found,
            150,
            "the batches of all five zones to end",
        )
        wait_for(lambda: len(receiver.seen) == 2, 60, "the webhooks of two tenants")

    by_zone = {batch["schedule"].partition(":")[2]: batch for batch in ended}
    assert set(by_zone) == set(tenants.ZONES)
    assert {batch["fire_time"] for batch in ended} == {here.fire}
    for zone, batch in by_zone.items():
        ghosts = 1 if zone == "Asia/Tokyo" else 0
        assert (batch["total"], batch["failed"]) == (40 + ghosts, ghosts), zone
        assert batch["counts"]["COMPLETED"] == 40

    summaries = here.at / "reports" / "summary"
    wait_for(lambda: len(list(summaries.glob("*.json"))) == 5, 30, "a summary of each zone")
    assert sum(json.loads(path.read_text())["completed"] for path in summaries.glob("*.json")) == 200

    told = [Webhook(SECRET).verify(body, headers)["data"] for headers, body in receiver.seen]
    assert {(one["tenant"], one["status"]) for one in told} == {(REAL[0], "COMPLETED"), (GHOST, "FAILED")}
    for tenant in REAL[::20]:
        report = latest(here, tenant)
        assert (report["state"], report["progress"]) == ("COMPLETED", 100)
        assert f"Sales of {tenant}".encode() in get(here, report["download_url"])
    assert latest(here, GHOST)["state"] == "FAILED"
    assert latest(here, GHOST)["download_url"] is None
    dead = here.ask("jobs", "list", "--json", "--state", "FAILED")["items"]
    assert [(job["tenant"], job["item"]) for job in dead] == [(GHOST, GHOST)]
    assert "there are no orders" in dead[0]["error"]
