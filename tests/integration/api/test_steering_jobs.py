"""Steering jobs: cancel, send back; and what is not there."""

import json

from fastapi.testclient import TestClient

from cronq.app import Cronq
from cronq.job import State

from .steps import PAGE, ask, end


def test_a_dead_letter_is_listed_sent_back_and_keeps_its_history(client: TestClient, parts: Cronq) -> None:
    job_id = ask(client)["id"]
    end(parts, job_id, state=State.FAILED, error="no answer from redis://:hunter2@h/0")
    assert [item["id"] for item in client.get("/api/dead").json()["items"]] == [job_id]
    attempts = client.get(f"/api/jobs/{job_id}/attempts").json()["items"]
    assert attempts[0]["outcome"] == "FAILED"
    assert "token" not in attempts[0]
    for text in (json.dumps(attempts), client.get(f"/jobs/{job_id}", headers=PAGE).text):
        assert "hunter2" not in text
    assert client.post(f"/api/jobs/{job_id}/retry").json()["status"] == "SCHEDULED"
    assert client.get("/api/dead").json()["items"] == []
    assert client.post(f"/api/jobs/{job_id}/retry").status_code == 409


def test_a_waiting_job_is_cancelled_and_an_ended_one_cannot_be(client: TestClient, parts: Cronq) -> None:
    job_id = ask(client)["id"]
    assert client.post(f"/api/jobs/{job_id}/cancel").json()["status"] == "CANCELLED"
    done = ask(client)["id"]
    end(parts, done)
    refused = client.post(f"/api/jobs/{done}/cancel")
    assert refused.status_code == 409
    assert refused.json()["code"] == "job-over"


def test_what_is_not_there_is_a_problem_that_says_where_to_look(client: TestClient) -> None:
    for path in ("/api/jobs/nope", "/api/jobs/nope/events", "/api/schedules/nope", "/api/nope"):
        answer = client.get(path)
        assert answer.status_code == 404
        problem = answer.json()
        assert problem["instance"] == path
        assert problem["detail"]
    page = client.get("/jobs/nope", headers=PAGE)
    assert page.status_code == 404
    assert "<h1>There is no such job</h1>" in page.text
