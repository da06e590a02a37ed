"""Nothing that somebody sends makes it fall over."""

import base64
from typing import Any
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient

from cronq.app import Cronq

from .steps import PAGE, declare

ODD = [
    "\x00",
    "a\x00b",
    "x" * 5000,
    "'; DROP TABLE cronq_job; --",
    "%00",
    "../../etc/passwd",
    "\U0001f552",
    "\\",
    "-1",
]


@pytest.mark.parametrize("odd", ODD)
def test_nothing_odd_makes_it_fall_over(client: TestClient, parts: Cronq, odd: str) -> None:
    declare(parts, "hourly")
    quoted = quote(odd, safe="")
    for path in ("/api/jobs/{}", "/api/jobs/{}/log", "/api/schedules/{}", "/api/fires?schedule={}"):
        assert client.get(path.format(quoted)).status_code in (404, 422), path
    for path in ("/api/jobs", "/api/schedules", "/api/dead", "/jobs", "/schedules", "/dead"):
        for name in ("q", "cursor", "after", "task", "type", "tenant", "schedule", "limit", "since", "state"):
            status = client.get(path, params={name: odd}, headers=PAGE).status_code
            assert status in (200, 400, 404, 422), (path, name)
    bodies: list[dict[str, Any]] = [
        {"type": odd},
        {"type": "t", "kwargs": {odd: odd}},
        {"type": "t", "run_in": odd},
        {"type": "t", "dedup_key": odd, "tenant": odd, "queue": odd},
    ]
    for body in bodies:
        assert client.post("/api/jobs", json=body).status_code in (202, 422), body
    address = f"/api/schedules/{quoted}"
    assert client.put(address, json={"task": odd, "cron": odd, "tz": odd}).status_code in (404, 422)
    assert client.put(address, json={"task": "t", "every": 60}).status_code in (201, 404, 422)
    for path in ("/api/jobs", "/jobs", "/schedules", "/"):
        assert client.get(path, headers=PAGE).status_code == 200
    for path, form in (("/act/pause", {"name": odd, "note": odd}), ("/login", {"token": f"cronq_{odd}_x"})):
        assert client.post(path, data=form | {"next": odd}).status_code in (303, 403, 404, 422)


@pytest.mark.parametrize(
    "inside",
    [
        '["0001-01-01T00:00:00+14:00", "x"]',
        '["9999-12-31T23:59:59-14:00", "x"]',
        '["2026-11-21T00:00:00Z", "\\ud800"]',
        "[" * 5000,
    ],
    ids=["too early", "too late", "half a character", "nested"],
)
def test_a_cursor_that_is_not_ours_is_refused(client: TestClient, inside: str) -> None:
    cursor = base64.urlsafe_b64encode(inside.encode()).decode()
    for path in ("/api/jobs", "/api/dead", "/api/batches"):
        assert client.get(path, params={"cursor": cursor}).status_code == 400, path


@pytest.mark.parametrize("last", ["-62135596800000000", "9" * 30, "x"])
def test_an_event_id_that_is_not_ours_is_refused(client: TestClient, last: str) -> None:
    assert client.get("/api/events", headers={"Last-Event-ID": last}).status_code == 400


@pytest.mark.parametrize("odd", ["//[", "/\t/["])
def test_an_address_that_is_none_leads_to_the_first_page(client: TestClient, odd: str) -> None:
    assert client.get("/login", params={"next": odd}, headers=PAGE).status_code == 200
    assert client.post("/act/cancel_ticked", data={"next": odd}).headers["location"].startswith("/?said=")


def test_arguments_that_nest_too_deep_to_be_read_again_are_refused(client: TestClient) -> None:
    deep: Any = "x"
    for _ in range(700):
        deep = [deep]
    schedule = {"task": "t", "every": 60, "kwargs": {"deep": deep}}
    assert client.post("/api/jobs", json={"type": "t", "args": [deep]}).status_code == 422
    assert client.put("/api/schedules/deep", json=schedule).status_code == 422
    assert client.get("/api/jobs").json()["items"] == []


@pytest.mark.parametrize("wrong", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59-14:00", "2026-11-21T02:30"])
def test_an_instant_out_of_reach_is_refused(client: TestClient, parts: Cronq, wrong: str) -> None:
    declare(parts, "hourly")
    assert client.get("/api/fires", params={"schedule": "hourly", "from": wrong}).status_code == 422
    assert client.get("/api/jobs", params={"since": wrong}).status_code == 422
    assert client.post("/api/jobs", json={"type": "t", "run_at": wrong}).status_code == 422
    assert client.get("/schedules/hourly", params={"from": wrong}, headers=PAGE).status_code in (404, 422)


def test_half_of_a_surrogate_pair_is_shown_as_it_was_written(client: TestClient) -> None:
    half = r'"kwargs": {"half": "\ud800"}'
    headers = {"Content-Type": "application/json"}
    asked = client.post("/api/jobs", content=f'{{"type": "t", {half}}}', headers=headers)
    written = client.put(
        "/api/schedules/odd", content=f'{{"task": "t", "every": 60, {half}}}', headers=headers
    )
    if asked.status_code == 422:  # PostgreSQL stores no such text
        assert (asked.json()["code"], written.json()["code"]) == ("bad-value", "bad-value")
        return
    paths = ("/api/jobs", "/api/schedules", "/schedules/odd", "/edit?schedule=odd", asked.headers["location"])
    for path in (*paths, asked.headers["location"].removeprefix("/api")):
        shown = client.get(path, headers=PAGE)
        assert shown.status_code == 200, path
        assert r"\ud800" in shown.text, path
