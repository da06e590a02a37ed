"""Schedules: written, changed, paused, triggered, found."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient

from cronq.app import Cronq
from cronq.declaration import cron
from cronq.job import scheduled_job_id
from cronq.schedule import After, Join
from cronq.store.schedules import Change, get_schedule, write_changes
from cronq.timing import Calendar, Every
from tests.contract.rows import Rows

from .steps import PAGE, declare, end, plan, turn_back


def test_a_schedule_is_written_read_changed_and_deleted(client: TestClient) -> None:
    body = {"task": "demo.work", "cron": "30 2 * * *", "tz": "Europe/Berlin"}
    made = client.put("/api/schedules/nightly", json=body)
    assert made.status_code == 201
    assert made.headers["etag"] == '"1"'
    assert made.json()["meaning"].startswith("At 02:30 every day")
    assert len(made.json()["next_fires"]) == 10
    same = client.put("/api/schedules/nightly", json=body)
    assert (same.status_code, same.headers["etag"]) == (200, '"1"')
    changed = client.put(
        "/api/schedules/nightly", json=body | {"cron": "0 3 * * *"}, headers={"If-Match": '"1"'}
    )
    assert changed.headers["etag"] == '"2"'
    late = client.put("/api/schedules/nightly", json=body, headers={"If-Match": '"1"'})
    assert late.status_code == 412
    assert client.delete("/api/schedules/nightly").status_code == 204
    assert client.get("/api/schedules").json()["items"] == []
    assert [s["name"] for s in client.get("/api/schedules?only=retired").json()["items"]] == ["nightly"]
    assert client.post("/api/schedules/nightly/trigger").status_code == 409
    # Who still sees the old page does not bring it back; who says nothing of a version does.
    gone = client.put("/api/schedules/nightly", json=body, headers={"If-Match": '"2"'})
    assert gone.status_code == 412
    assert "deleted" in gone.json()["detail"]
    assert client.put("/api/schedules/nightly", json=body).status_code == 201


@pytest.mark.parametrize(
    ("body", "hint"),
    [
        ({"task": "t"}, "exactly one"),
        ({"task": "t", "cron": "61 * * * *"}, "61"),
        ({"task": "t", "every": "5m", "tz": "UTC"}, "tz goes with"),
        ({"task": "t", "cron": "* * * * *", "tz": "Mars/Base"}, "Mars/Base"),
        ({"task": "t", "every": -5}, "period"),
        ({"task": "t", "at": "2020-01-01T09:00Z"}, "it would never run: Once, at 2020-01-01T09:00:00Z"),
        ({"task": "t", "every": 5, "overlap": "maybe"}, "overlap"),
        ({"task": "t", "every": 5, "on_complete": "sum"}, "end of a fan-out"),
        ({"task": "t", "every": 5, "fan_out": []}, "fan_out"),
        ({"task": "t", "every": 5, "fan_out": [True]}, "fan_out"),
        ({"task": "t", "every": 5, "fan_out": ["a" * 201]}, "201 characters"),
        ({"task": "t", "every": 5, "fan_out": {"function": "os:system"}}, "declared in code"),
        ({"task": "t", "every": 5, "fan_out": "os:listdir"}, "declared in code"),
        ({"task": "t", "every": 5, "after": "nobody"}, "'nobody', which is not declared"),
        ({"task": "t", "every": 5, "after": "wrong"}, "after itself"),
        ({"task": "t", "every": 5, "after": {"all": "a", "any": "b"}}, "after"),
        ({"task": "t", "delay": 5, "after": "wrong"}, "delay"),
    ],
)
def test_a_wrong_schedule_is_refused(client: TestClient, body: dict[str, Any], hint: str) -> None:
    answer = client.put("/api/schedules/wrong", json=body)
    assert answer.status_code == 422, answer.text
    assert hint in answer.json()["detail"]


def test_code_owns_its_schedules_but_anybody_may_pause_them(client: TestClient, parts: Cronq) -> None:

    declared = cron("0 * * * *").schedule(name="of-code", task="demo.work")
    first = datetime.now(UTC) + timedelta(minutes=5)
    change = Change(declared, first_fire_at=first, restart=True, delay_s=None)
    with parts.database.begin() as connection:
        write_changes(parts.database, connection, [change], source="code:demo", actor="deploy 1")
    refused = client.put("/api/schedules/of-code", json={"task": "t", "every": 5})
    assert refused.status_code == 409
    assert "code:demo" in refused.json()["detail"]
    assert client.delete("/api/schedules/of-code").status_code == 409
    paused = client.post("/api/schedules/of-code/pause", json={"note": "moving house"})
    assert paused.json()["pause_note"] == "moving house"
    assert client.post("/api/schedules/of-code/pause").status_code == 409
    assert client.post("/api/schedules/of-code/resume").json()["paused_at"] is None
    assert client.post("/api/schedules/of-code/resume").status_code == 409


def test_a_pause_takes_planned_jobs_back_and_resuming_records_what_passed(
    client: TestClient, parts: Cronq
) -> None:
    schedule_id = declare(parts, "hourly")
    hour = timedelta(hours=1)
    now = parts.database.clock()
    coming = Every(hour).next(now)
    assert coming is not None
    plan(parts, schedule_id, "hourly", coming)
    client.post("/api/schedules/hourly/pause")
    assert client.get("/api/jobs").json()["items"] == []
    # Three hours pass.
    since = coming - 3 * hour
    turn_back(parts, schedule_id, paused_at=since - hour / 2, next_fire_at=since)
    asked = {"schedule": "hourly", "from": (since - hour / 4).isoformat(), "to": now.isoformat()}
    before = client.get("/api/fires", params=asked).json()["items"]
    assert [(f["disposition"], f["reason"], f["job"]) for f in before] == [("skipped", "paused", None)] * 3
    client.post("/api/schedules/hourly/resume")
    after = client.get("/api/fires", params=asked).json()["items"]
    assert [(f["disposition"], f["reason"]) for f in after] == [("skipped", "paused")] * 3
    assert all(f["job"]["status"] == "SKIPPED" for f in after)
    assert client.get("/api/schedules/hourly").json()["next_fire_at"] == coming.isoformat().replace(
        "+00:00", "Z"
    )


def test_schedules_are_found_page_by_page(client: TestClient, parts: Cronq) -> None:
    for name in ("a_1", "a_2", "ab2", "b"):
        declare(parts, name)
    first = client.get("/api/schedules?limit=3").json()
    rest = client.get("/api/schedules", params={"limit": 3, "cursor": first["next_cursor"]}).json()
    assert [s["name"] for s in first["items"] + rest["items"]] == ["a_1", "a_2", "ab2", "b"]
    assert rest["next_cursor"] is None
    assert [s["name"] for s in client.get("/api/schedules?q=A_2").json()["items"]] == ["a_2"]


def test_run_now_makes_one_job_per_key(client: TestClient, parts: Cronq) -> None:
    declare(parts, "hourly", args=("acme",), tenant="acme")
    key = {"Idempotency-Key": "once"}
    first = client.post("/api/schedules/hourly/trigger", headers=key)
    assert first.status_code == 202
    assert client.post("/api/schedules/hourly/trigger", headers=key).json() == first.json()
    job = client.get(first.headers["location"]).json()
    assert (job["trigger"], job["schedule"], job["args"]) == ("manual", "hourly", ["acme"])
    assert job["fire_time"] is None


def test_versions_say_who_changed_what(client: TestClient) -> None:
    body = {"task": "demo.work", "every": "1h", "kwargs": {"api_key": "hunter2"}}
    client.put("/api/schedules/nightly", json=body)
    client.put("/api/schedules/nightly", json=body | {"tenant": "acme"})
    found = client.get("/api/versions?schedule=nightly")
    newest, first = found.json()["items"]
    assert (newest["version"], newest["actor"], first["version"]) == (2, "api local", 1)
    assert newest["changes"] == [{"field": "tenant", "before": None, "after": "acme"}]
    assert first["changes"] == []
    assert "hunter2" not in found.text
    (only,) = client.get("/api/versions?schedule=nightly&limit=1").json()["items"]
    assert only == newest


def test_calendars_in_use_are_listed_with_who_uses_them(client: TestClient, parts: Cronq) -> None:
    declare(parts, "plain")
    holidays = Calendar("holidays", days=((date(2026, 12, 25), date(2026, 12, 26)),))
    declare(parts, "office", exclude=holidays)
    declare(parts, "shop", exclude=holidays, start="2026-01-01T00:00:00Z")
    (entry,) = client.get("/api/calendars").json()["items"]
    assert (entry["name"], entry["schedules"]) == ("holidays", ["office", "shop"])


def test_punctuality_is_told_with_the_schedule(client: TestClient, parts: Cronq) -> None:
    schedule_id = declare(parts, "hourly")
    assert client.get("/api/schedules/hourly").json()["start_late_s"] == {"jobs": 0, "p50": None, "p99": None}
    fire = parts.database.clock() - timedelta(seconds=30)
    plan(parts, schedule_id, "hourly", fire)
    end(parts, scheduled_job_id(schedule_id, fire))
    late = client.get("/api/schedules/hourly").json()["start_late_s"]
    assert late["jobs"] == 1
    assert 30 <= late["p50"] <= late["p99"] < 40


def test_a_fan_out_and_an_order_are_written_as_code_would_declare_them(
    client: TestClient, parts: Cronq
) -> None:
    items = ["eu", 7, {"item": "us", "kwargs": {"size": 3}, "tenant": "acme"}]
    body = {"task": "demo.work", "cron": "0 2 * * *", "fan_out": items, "on_complete": "demo.sum"}
    assert client.put("/api/schedules/extract", json=body).status_code == 201
    after = {"any": ["extract"], "on_failure": True}
    report = {"task": "demo.work", "cron": "0 2 * * *", "after": after}
    assert client.put("/api/schedules/report", json=report).status_code == 201
    written = get_schedule(parts.database, "extract").definition
    assert written.fan_out is not None
    assert [i["item"] if isinstance(i, dict) else i for i in written.fan_out["items"]] == ["eu", 7, "us"]
    assert written.on_complete == "demo.sum"
    assert get_schedule(parts.database, "report").definition.after == After(
        ("extract",), Join.ANY, on_failure=True
    )
    circle = client.put("/api/schedules/extract", json=body | {"after": "report"})
    assert (circle.status_code, circle.json()["code"]) == (422, "invalid-schedule")
    assert "comes after itself: extract → report → extract" in circle.json()["detail"]


@pytest.mark.parametrize(
    "change", [{"overlap": "newer"}, {"timing": {"kind": "newer"}}, {"timing": 7}, [], 7]
)
def test_a_schedule_whose_definition_cannot_be_read_is_shown_and_can_be_written_again(
    client: TestClient, parts: Cronq, change: object
) -> None:
    body = {"task": "demo.work", "every": 60}
    for name in ("bad", "good"):
        client.put(f"/api/schedules/{name}", json=body)
    Rows(parts.database).write_by_hand("bad", change)
    listed = {each["name"]: each["meaning"] for each in client.get("/api/schedules").json()["items"]}
    assert "cannot be read" in listed["bad"]
    assert listed["good"].startswith("Every")
    paths = [
        "schedules/bad",
        "fires?schedule=bad",
        "versions?schedule=bad",
        "calendars",
        "overview",
        "queues",
    ]
    for path in paths:
        assert client.get(f"/api/{path}").status_code == 200, path
    for path in ("/", "/day", "/schedules", "/schedules/bad", "/schedules/bad?at=12:00"):
        page = client.get(path, headers=PAGE)
        assert page.status_code == 200, path
    assert "cannot be read" in client.get("/schedules/bad", headers=PAGE).text
    assert client.post("/api/schedules/bad/trigger").status_code == 409
    form = client.get("/backfill?schedule=bad", headers=PAGE)
    assert form.status_code == 409
    assert "cannot be read" in form.text
    assert client.put("/api/schedules/bad", json=body).json()["fault"] is None
    assert client.get("/api/schedules/bad").json()["meaning"].startswith("Every")
