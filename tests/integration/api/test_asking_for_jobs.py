"""Asking for jobs: what is accepted is stored and found again; what is wrong is refused, saying why."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient

from cronq.app import Cronq

from .steps import ask


def test_a_job_is_accepted_shown_and_found(client: TestClient, parts: Cronq) -> None:
    answer = client.post("/api/jobs", json={"type": "demo.work", "input": {"a": 1}, "tenant": "acme"})
    assert answer.status_code == 202
    job = answer.json()
    assert answer.headers["location"] == f"/api/jobs/{job['id']}"
    shown = client.get(answer.headers["location"]).json()
    assert shown["status"] == "SCHEDULED"
    assert shown["kwargs"] == {"a": 1}
    documented = client.get("/openapi.json").json()["components"]["schemas"]["Job"]["properties"]
    assert set(shown) == set(documented)
    assert [item["id"] for item in client.get("/api/jobs?tenant=acme").json()["items"]] == [job["id"]]
    assert client.get("/api/jobs?tenant=other").json() == {"items": [], "next_cursor": None}


def test_the_same_key_is_the_same_job_and_another_content_is_refused(client: TestClient) -> None:
    send: dict[str, Any] = {"headers": {"Idempotency-Key": "k1"}}
    first = client.post("/api/jobs", json={"type": "demo.work", "args": [1]}, **send)
    again = client.post("/api/jobs", json={"type": "demo.work", "args": [1]}, **send)
    assert again.json()["id"] == first.json()["id"]
    assert again.headers["idempotency-replayed"] == "true"
    for more in ({"args": [2]}, {"args": [1], "queue": "other"}, {"args": [1], "callback_url": "http://h/"}):
        other = client.post("/api/jobs", json={"type": "demo.work", **more}, **send)
        assert other.status_code == 422
        assert "choose a new key" in other.json()["detail"]


def test_a_job_may_be_asked_for_later(client: TestClient) -> None:
    in_an_hour = ask(client, run_in="1h")
    at = datetime.now(UTC) + timedelta(hours=2)
    in_two = ask(client, run_at=at.isoformat())
    created = datetime.fromisoformat(in_an_hour["created_at"])
    assert datetime.fromisoformat(in_an_hour["due_at"]) - created == pytest.approx(
        timedelta(hours=1), abs=timedelta(seconds=1)
    )
    assert abs(datetime.fromisoformat(in_two["due_at"]) - at) < timedelta(seconds=5)


@pytest.mark.parametrize(
    ("body", "hint"),
    [
        ({}, "type"),
        ({"type": "t", "run_at": "2026-11-21T02:30:00"}, "timezone"),
        ({"type": "t", "run_in": "soon"}, "soon"),
        ({"type": "t", "run_in": -1}, "-1"),
        ({"type": "t", "run_in": 1, "run_at": "2026-11-21T02:30:00Z"}, "not both"),
        ({"type": "t", "priority": 10}, "priority"),
        ({"type": "t", "kwarg": {}}, "kwarg"),
        ({"type": "t", "callback_url": "ftp://h/"}, "callback_url"),
        ({"type": "t", "callback_url": "https://me:pw@h/"}, "callback_url"),
        ({"type": "t", "args": ["x" * 300_000]}, "CRONQ_MAX_PAYLOAD_BYTES"),
    ],
)
def test_a_wrong_wish_is_refused_with_what_to_correct(
    client: TestClient, body: dict[str, Any], hint: str
) -> None:
    answer = client.post("/api/jobs", json=body)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert hint in answer.json()["detail"]
    assert client.get("/api/jobs").json()["items"] == []


def test_a_callback_is_kept_with_the_job_and_with_the_jobs_of_a_schedule(client: TestClient) -> None:
    url = "https://example.org/hook"
    assert ask(client, callback_url=url)["callback_url"] == url
    body = {"task": "demo.work", "every": "1h", "callback_url": url}
    assert client.put("/api/schedules/told", json=body).json()["callback_url"] == url
    triggered = client.post("/api/schedules/told/trigger")
    assert client.get(triggered.headers["location"]).json()["callback_url"] == url
    refused = client.put("/api/schedules/told", json=body | {"callback_url": "file:///etc/passwd"})
    assert refused.status_code == 422
