"""Finding jobs, page by page, and doing something to all that fit."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient

from cronq.app import Cronq
from cronq.job import State
from cronq.store import bulk, search

from .steps import ask, end, start


def ids(client: TestClient, **params: Any) -> list[str]:
    """Return the ids on all pages."""
    seen: list[str] = []
    while True:
        found = client.get("/api/jobs", params=params).json()
        seen += [item["id"] for item in found["items"]]
        if found["next_cursor"] is None:
            return seen
        params["cursor"] = found["next_cursor"]


def test_pages_of_jobs_show_each_once_and_end(client: TestClient) -> None:
    asked = {ask(client)["id"] for _ in range(7)}
    seen = ids(client, limit=3)
    assert len(seen) == 7
    assert set(seen) == asked


def test_each_condition_narrows(client: TestClient, parts: Cronq) -> None:
    one = ask(client, tenant="acme", queue="slow")
    two = ask(client, tenant="acme")
    other = client.post("/api/jobs", json={"type": "demo.other"}).json()
    end(parts, two["id"], state=State.FAILED, error="no answer from 100%_SURE.example")
    assert set(ids(client, tenant="acme")) == {one["id"], two["id"]}
    assert ids(client, queue="slow") == [one["id"]]
    assert ids(client, state="FAILED", tenant="acme") == [two["id"]]
    assert ids(client, type="demo.other") == [other["id"]]
    assert ids(client, q="100%_sure") == [two["id"]]
    assert ids(client, q="100__sure") == []
    assert ids(client, q="OTHER") == [other["id"]]
    assert ids(client, q=one["id"][:13], tenant="acme", queue="slow") == [one["id"]]
    after = datetime.fromisoformat(other["created_at"]) + timedelta(hours=1)
    assert ids(client, since=after.isoformat()) == []
    assert len(ids(client, until=after.isoformat())) == 3


def test_a_rare_text_is_looked_for_stretch_by_stretch_until_it_is_found(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "LOOKED_AT", 2)
    oldest = ask(client, tenant="needle")["id"]
    for _ in range(5):
        ask(client)
    first = client.get("/api/jobs?q=needle").json()
    assert first["items"] == []
    assert first["next_cursor"] is not None
    assert ids(client, q="needle") == [oldest]


def test_an_unknown_condition_is_refused_and_not_ignored(client: TestClient) -> None:
    answer = client.get("/api/jobs?tennant=acme")
    assert answer.status_code == 422
    assert "tennant" in answer.json()["detail"]


def test_many_jobs_are_cancelled_after_a_look_at_how_many_there_are(
    client: TestClient, parts: Cronq, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "BATCH", 2)
    waiting = [ask(client, tenant="acme")["id"] for _ in range(5)]
    running, done, other = (
        ask(client, tenant="acme")["id"],
        ask(client, tenant="acme")["id"],
        ask(client)["id"],
    )
    start(parts, running)
    end(parts, done)
    body = {"filter": {"tenant": "acme"}}
    looked = client.post("/api/jobs/cancel", json=body)
    assert looked.json() == {"dry_run": True, "matching": 6, "changed": 0}
    assert client.get(f"/api/jobs/{waiting[0]}").json()["status"] == "SCHEDULED"
    acted = client.post("/api/jobs/cancel", json=body | {"dry_run": False})
    assert acted.json() == {"dry_run": False, "matching": 6, "changed": 6}
    states = {
        job_id: client.get(f"/api/jobs/{job_id}").json()["status"] for job_id in [*waiting, done, other]
    }
    assert [states[job_id] for job_id in waiting] == ["CANCELLED"] * 5
    assert (states[done], states[other]) == ("COMPLETED", "SCHEDULED")
    assert client.get(f"/api/jobs/{running}").json()["cancel_requested_at"] is not None
    assert client.post("/api/jobs/cancel", json=body).json()["matching"] == 0


def test_many_failed_jobs_are_sent_back(client: TestClient, parts: Cronq) -> None:
    failed = [ask(client)["id"] for _ in range(3)]
    for job_id in failed:
        end(parts, job_id, state=State.FAILED, error="upstream is down")
    fine = ask(client)["id"]
    end(parts, fine)
    body = {"filter": {"q": "upstream"}}
    assert client.post("/api/jobs/retry", json=body).json()["matching"] == 3
    acted = client.post("/api/jobs/retry", json=body | {"dry_run": False}).json()
    assert acted == {"dry_run": False, "matching": 3, "changed": 3}
    assert {client.get(f"/api/jobs/{job_id}").json()["status"] for job_id in failed} == {"SCHEDULED"}
    assert client.get("/api/dead").json()["items"] == []


@pytest.mark.parametrize("body", [{}, {"filter": {}}, {"filter": {"tenant": "a", "state": "DONE"}}])
def test_nothing_is_done_to_all_jobs_by_a_slip(client: TestClient, body: dict[str, Any]) -> None:
    job_id = ask(client)["id"]
    for what in ("cancel", "retry"):
        assert client.post(f"/api/jobs/{what}", json=body | {"dry_run": False}).status_code == 422
    assert client.get(f"/api/jobs/{job_id}").json()["status"] == "SCHEDULED"
