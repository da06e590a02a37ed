"""A batch as one thing: in the API, on the page, in the shell."""

import json
from datetime import timedelta
from typing import Any

import pytest
from click.testing import CliRunner
from fastapi.testclient import TestClient
from sqlalchemy import update

from cronq.app import Cronq
from cronq.cli.main import cronq
from cronq.context import lease
from cronq.declaration import every
from cronq.job import State, Trigger
from cronq.store import control
from cronq.store.agenda import insert_jobs
from cronq.store.batch_steps import hold_items
from cronq.store.scheduled import job_of
from cronq.store.schedules import get_schedule
from cronq.store.tables import batch as batches
from cronq.store.tables import job
from cronq.worker.expansion import expand

from .steps import PAGE, end, start, turn_back

ITEMS = ["<i>x", "a", "b/c", "d"]


@pytest.fixture
def batch(parts: Cronq) -> str:
    """A batch of four items, two of which have ended."""
    declared = every("1h", fan_out=ITEMS, on_complete="demo.sum_up").schedule(
        name="nightly", task="demo.work"
    )
    stored, _new = control.write(parts.database, declared, actor="test")
    fire = parts.database.clock() - timedelta(seconds=5)
    head = job_of(stored, fire, due_at=fire, trigger=Trigger.SCHEDULE)
    with parts.database.begin() as connection:
        insert_jobs(parts.database, connection, [head], fire)
    leased = lease.set(start(parts, head.id))
    expand(parts.database, head.id, max_payload_bytes=10_000)
    lease.reset(leased)
    parts_end(parts, head.id)
    return head.id


def parts_end(parts: Cronq, head: str) -> None:
    """End the job that found the items; it is claimed already."""
    with parts.database.begin() as connection:
        connection.exec_driver_sql(f"UPDATE cronq_job SET state = 'COMPLETED' WHERE id = '{head}'")


def item(client: TestClient, batch: str, name: str) -> str:
    items = client.get(f"/api/batches/{batch}/items").json()["items"]
    return next(each["id"] for each in items if each["item"] == name)


def test_a_batch_is_shown_with_what_is_done_failed_and_left(
    client: TestClient, parts: Cronq, batch: str
) -> None:
    end(parts, item(client, batch, "a"))
    end(parts, item(client, batch, "d"), state=State.FAILED, error="no disk")
    shown = client.get(f"/api/batches/{batch}").json()
    assert (shown["total"], shown["done"], shown["failed"], shown["remaining"]) == (4, 2, 1, 2)
    assert (shown["status"], shown["progress"], shown["schedule"]) == ("running", 50, "nightly")
    assert shown["counts"] == {"COMPLETED": 1, "FAILED": 1, "SCHEDULED": 2}
    assert shown["rate_per_s"] > 0
    assert shown["eta_s"] > 0
    assert client.get("/api/batches?schedule=nightly&unfinished=true").json()["items"][0]["id"] == batch
    assert client.get("/api/batches?schedule=another").json()["items"] == []


def test_its_items_are_listed_in_order_page_by_page(client: TestClient, parts: Cronq, batch: str) -> None:
    end(parts, item(client, batch, "d"), state=State.FAILED)
    first = client.get(f"/api/batches/{batch}/items?limit=3").json()
    assert [each["item"] for each in first["items"]] == ["<i>x", "a", "b/c"]
    rest = client.get(f"/api/batches/{batch}/items", params={"after": first["next_after"]}).json()
    assert [each["item"] for each in rest["items"]] == ["d"]
    failed = client.get(f"/api/batches/{batch}/items?state=FAILED").json()["items"]
    assert [each["item"] for each in failed] == ["d"]
    assert failed[0]["batch"] == batch


def test_it_is_paused_resumed_cancelled_and_its_failed_items_sent_back(
    client: TestClient, parts: Cronq, batch: str
) -> None:
    assert client.post(f"/api/batches/{batch}/pause").json()["status"] == "paused"
    hold_items(parts.database, batch)
    assert client.post(f"/api/batches/{batch}/resume").json()["status"] == "running"
    with parts.database.begin() as connection:
        connection.exec_driver_sql("UPDATE cronq_job SET held_at = NULL")
    end(parts, item(client, batch, "d"), state=State.FAILED)
    assert client.post(f"/api/batches/{batch}/retry").json()["sent_back"] == 1
    assert client.post(f"/api/batches/{batch}/cancel").json()["status"] == "cancelling"


def test_a_batch_that_is_not_there_is_a_problem(client: TestClient) -> None:
    for path in ("", "/items"):
        assert client.get(f"/api/batches/nope{path}").json()["code"] == "unknown-batch"
    assert client.post("/api/batches/nope/pause").status_code == 404


def test_the_pages_show_it_and_their_buttons_work(client: TestClient, parts: Cronq, batch: str) -> None:
    end(parts, item(client, batch, "<i>x"), state=State.FAILED, error="<img src=x>")
    paths = ("/batches", f"/batches/{batch}", f"/batches/{batch}?state=FAILED", f"/jobs/{batch}", "/")
    for path in (*paths, "/schedules/nightly"):
        answer = client.get(path, headers=PAGE)
        assert answer.status_code == 200, path
        assert "<i>x" not in answer.text
        assert "<img src=x>" not in answer.text
    for act, status in (("pause_batch", "paused"), ("resume_batch", "running"), ("retry_batch", "running")):
        back = client.post(f"/act/{act}", data={"id": batch, "next": f"/batches/{batch}"})
        assert back.status_code == 303, act
        assert client.get(f"/api/batches/{batch}").json()["status"] == status
    client.post("/act/cancel_batch", data={"id": batch})
    assert client.get(f"/api/batches/{batch}").json()["status"] == "cancelling"


def test_its_fire_time_stands_as_its_items_do(
    client: TestClient, parts: Cronq, batch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = get_schedule(parts.database, "nightly")
    fire = parts.database.clock() - timedelta(seconds=5)
    with parts.database.begin() as connection:  # the items were found six seconds ahead of the fire time
        found_at = {"started_at": fire - timedelta(seconds=6), "finished_at": fire - timedelta(seconds=5)}
        connection.execute(update(job).where(job.c.id == batch).values(found_at))
    turn_back(parts, stored.id, born=fire - timedelta(minutes=2), next_fire_at=stored.next_fire_at)
    for name in ITEMS[:2]:
        end(parts, item(client, batch, name))
    end(parts, item(client, batch, "d"), state=State.FAILED, error="no disk")

    def shown() -> dict[str, Any]:
        (fire_time,) = client.get("/api/schedules/nightly").json()["last_fires"]
        return dict(fire_time)

    assert shown()["detail"] == "2 of 4 items completed, 1 failed, 1 under way"
    end(parts, item(client, batch, "b/c"))
    with parts.database.begin() as connection:
        connection.execute(update(batches).values(ended_at=parts.database.now()))
    assert shown()["detail"] == "3 of 4 items completed, 1 failed"
    assert shown()["batch"]["status"] == "failed"
    monkeypatch.setattr("cronq.cli.schedules.parts_of", lambda _context: parts)
    shell = CliRunner().invoke(cronq, ["schedules", "show", "nightly"]).output
    assert "FAILED" in shell
    assert "COMPLETED" not in shell
    page = client.get("/schedules/nightly", headers=PAGE).text
    assert f'href="/batches/{batch}"' in page
    assert 'class="chip failed"' in page
    assert 'class="chip completed"' not in page
    assert 'class="cell failed most"' in page.partition("legend")[0]
    assert ">-" not in page.partition('id="fires"')[2]


def test_the_shell_says_the_same(
    client: TestClient, parts: Cronq, batch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cronq.cli.batches.parts_of", lambda _context: parts)
    end(parts, item(client, batch, "d"), state=State.FAILED)

    def said(*words: str) -> str:
        done = CliRunner().invoke(cronq, ["batches", *words])
        assert done.exit_code == 0, done.output
        return done.output

    assert json.loads(said("show", "--json", batch))["failed"] == 1
    assert json.loads(said("list", "--json"))["items"][0]["id"] == batch
    assert "nightly" in said("list")
    assert "1 of 4 done: 1 FAILED, 3 SCHEDULED" in said("show", batch)
    assert "paused" in said("pause", batch)
    assert "running" in said("resume", batch)
    assert "1 items are due again" in said("retry", batch)
    assert "cancelling" in said("cancel", batch)
