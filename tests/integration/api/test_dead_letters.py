"""Dead letters: jobs and messages in one list, sent back or discarded, singly and by filter."""

from fastapi.testclient import TestClient

from cronq.app import Cronq
from cronq.job import State

from .steps import ask, end


def fail(client: TestClient, parts: Cronq, **fields: str) -> str:
    job_id: str = ask(client, **fields)["id"]
    end(parts, job_id, state=State.FAILED, error="no answer")
    return job_id


def test_dead_letters_are_listed_page_by_page_and_narrowed(client: TestClient, parts: Cronq) -> None:
    ids = [fail(client, parts, tenant=tenant) for tenant in ("acme", "acme", "other")]
    first = client.get("/api/dead?limit=2").json()
    rest = client.get("/api/dead", params={"limit": 2, "cursor": first["next_cursor"]}).json()
    assert {item["id"] for item in first["items"] + rest["items"]} == set(ids)
    assert rest["next_cursor"] is None
    (one,) = client.get("/api/dead?tenant=other").json()["items"]
    assert (one["id"], one["what"], one["error"]) == (ids[2], "job", "no answer")
    assert client.get("/api/dead?tenannt=other").status_code == 422


def test_one_is_sent_back_and_another_is_discarded(client: TestClient, parts: Cronq) -> None:
    back, gone = fail(client, parts), fail(client, parts)
    assert client.post(f"/api/dead/{back}/retry").status_code == 202
    assert client.post(f"/api/dead/{gone}/discard").status_code == 204
    assert client.get("/api/dead").json()["items"] == []
    assert client.get(f"/api/jobs/{back}").json()["status"] == "SCHEDULED"
    assert client.get(f"/api/jobs/{gone}").json()["status"] == "FAILED"
    for what in ("retry", "discard"):
        assert client.post(f"/api/dead/{gone}/{what}").status_code == 404


def test_all_that_fit_are_sent_back_after_a_look_at_how_many(client: TestClient, parts: Cronq) -> None:
    for tenant in ("acme", "acme", "other"):
        fail(client, parts, tenant=tenant)
    body = {"filter": {"tenant": "acme"}}
    looked = client.post("/api/dead/retry", json=body).json()
    assert looked == {"dry_run": True, "matching": 2, "changed": 0}
    acted = client.post("/api/dead/retry", json=body | {"dry_run": False}).json()
    assert acted == {"dry_run": False, "matching": 2, "changed": 2}
    discarded = client.post("/api/dead/discard", json={"filter": {}, "dry_run": False}).json()
    assert discarded["changed"] == 1
    assert client.get("/api/dead").json()["items"] == []
