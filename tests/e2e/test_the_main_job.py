"""The main job as users run it: two beats, a worker, Flower; 200 tenants; the leader killed meanwhile."""

import json
import urllib.request
from collections import Counter
from collections.abc import Callable

import pytest
import redis

from tasks import orders
from tests.support.deployment import Deployment
from tests.support.processes import Process, wait_for

TENANTS = orders.TENANTS[:200]
LEAD_S = (
    20  # from the start of the processes to the one fire time: two beats, a worker and Flower are up by then
)


def of_the_fire(here: Deployment, **wanted: str) -> list[dict]:
    options = [word for name, value in wanted.items() for word in (f"--{name}", value)]
    items = here.ask("jobs", "list", "--json", "-n", "2000", *options)["items"]
    return [job for job in items if (job["type"], job["fire_time"]) == ("tasks.daily_report", here.fire)]


def flower_tasks(here: Deployment) -> dict[str, dict]:
    with urllib.request.urlopen(f"http://127.0.0.1:{here.port}/api/tasks?limit=1000", timeout=10) as answer:
        return json.load(answer)


def start(here: Deployment) -> dict[int, Process]:
    # One fire time a day, a little ahead: what is late or doubled cannot hide behind the next one.
    here.env |= {
        "REPORT_TENANTS": ",".join(TENANTS),
        "REPORTS_AT": f"{here.fire_time.second} {here.fire_time.minute} {here.fire_time.hour} * * *",
        "FLOWER_UNAUTHENTICATED_API": "true",
        "CRONQ_LEASE_S": "15",  # no worker dies here, and none may lose a job by being slow
    }
    here.upgrade()
    beats = here.beats()
    here.processes.worker("worker", "workers.app", env=here.env)
    here.processes.celery(
        "flower", "workers.app", "flower", f"--port={here.port}", "--address=127.0.0.1", env=here.env
    )
    wait_for(lambda: flower_tasks(here) is not None, 30, "Flower to answer", ignoring=OSError)
    return beats


@pytest.mark.timeout(240)
def test_two_hundred_reports_are_made_once_each_though_the_leader_is_killed(
    deploy: Callable[[float], Deployment],
) -> None:
    here = deploy(LEAD_S)
    beats = start(here)
    leader = wait_for(here.leader_pid, 20, "a leader")
    planned = wait_for(lambda: len(of_the_fire(here)) == 200 and of_the_fire(here), 20, "200 planned jobs")
    wait_for(
        lambda: of_the_fire(here, state="RUNNING") or of_the_fire(here, state="COMPLETED"), 60, "a first one"
    )
    beats[leader].kill()

    done = wait_for(
        lambda: len(jobs := of_the_fire(here, state="COMPLETED")) == 200 and jobs, 120, "200 completed jobs"
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
            (tasks := flower_tasks(here))
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
