"""Backfills: begun after a look, followed, paused, ended."""

from datetime import timedelta
from typing import Any

from fastapi.testclient import TestClient

from cronq.app import Cronq
from cronq.timing import Every

from .steps import declare


def past_day(parts: Cronq) -> dict[str, Any]:
    end = Every(timedelta(hours=1)).previous(parts.database.clock())
    assert end is not None
    return {"start": (end - timedelta(hours=24)).isoformat(), "end": end.isoformat()}


def test_a_backfill_is_looked_at_begun_paused_and_cancelled(client: TestClient, parts: Cronq) -> None:
    declare(parts, "hourly")
    asked = past_day(parts)
    looked = client.post("/api/schedules/hourly/backfill", json=asked | {"dry_run": True})
    assert (looked.json()["fires"], looked.json()["runs"]) == (24, 24)
    assert client.get("/api/backfills").json()["items"] == []
    begun = client.post("/api/schedules/hourly/backfill", json=asked | {"concurrency": 3})
    assert begun.status_code == 202
    address = begun.headers["location"]
    shown = client.get(address).json()
    assert (shown["state"], shown["fires"], shown["concurrency"], shown["jobs"]) == ("RUNNING", 24, 3, {})
    assert shown["actor"] == "api local"
    assert [each["id"] for each in client.get("/api/backfills?schedule=hourly").json()["items"]] == [
        shown["id"]
    ]
    assert client.post(address + "/pause").json()["state"] == "PAUSED"
    assert client.post(address + "/resume").json()["state"] == "RUNNING"
    assert client.post(address + "/cancel").json()["state"] == "CANCELLED"
    assert client.post(address + "/resume").status_code == 409


def test_a_wrong_backfill_is_refused(client: TestClient, parts: Cronq) -> None:
    declare(parts, "hourly")
    asked = past_day(parts)
    assert client.post("/api/schedules/nope/backfill", json=asked).status_code == 404
    turned = {"start": asked["end"], "end": asked["start"]}
    assert client.post("/api/schedules/hourly/backfill", json=turned).status_code in (409, 422)
    assert client.post("/api/schedules/hourly/backfill", json=asked | {"concurrency": 0}).status_code == 422
    for what in ("pause", "resume", "cancel"):
        assert client.post(f"/api/backfills/nope/{what}").status_code == 404
