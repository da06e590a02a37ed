"""The status API and the page over real stores: what is asked for is stored, shown, followed and guarded."""

import asyncio
import json
import re
import threading
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from celery import Celery
from fastapi.testclient import TestClient

from cronq.api.app import create_app
from cronq.api.metrics import LAG, Metrics
from cronq.app import Cronq
from cronq.declaration import cron, every
from cronq.job import Outcome, State, Trigger, scheduled_job_id
from cronq.progress.reporter import Report
from cronq.schedule import Reason
from cronq.settings import Settings
from cronq.store import control
from cronq.store.agenda import DueJob, insert_jobs
from cronq.store.attempts import Settlement, claim, settle
from cronq.store.schema import upgrade
from cronq.store.tokens import Role, check_token, create_token, list_tokens, revoke_token
from cronq.timing import Every

BASE = "http://127.0.0.1:8787"
PAGE = {"Accept": "text/html"}


@pytest.fixture
def parts(
    database_url: str, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Cronq]:
    monkeypatch.chdir(tmp_path)  # a stack that runs here must not lend its settings
    settings = Settings.model_validate({"database_url": database_url, "redis_url": redis_url})
    app = Celery("api-test", broker=redis_url, set_as_current=False)
    made = Cronq(app, settings)
    upgrade(made.database)
    yield made
    made.database.dispose()


@pytest.fixture
def client(parts: Cronq) -> Iterator[TestClient]:
    with TestClient(create_app(parts), base_url=BASE, follow_redirects=False) as made:
        yield made


def ask(client: TestClient, **fields: Any) -> dict[str, Any]:
    answer = client.post("/api/jobs", json={"type": "demo.work", **fields})
    assert answer.status_code == 202, answer.text
    found: dict[str, Any] = answer.json()
    return found


def start(parts: Cronq, job_id: str) -> str:
    token = f"t-{job_id[:30]}"
    assert claim(parts.database, job_id, token=token, worker="w@host", lease_s=60)
    return token


def end(parts: Cronq, job_id: str, *, state: State = State.COMPLETED, error: str | None = None) -> None:
    token = start(parts, job_id)
    done = state is State.COMPLETED
    settled = settle(
        parts.database,
        Settlement(
            job_id=job_id,
            token=token,
            worker="w@host",
            number=1,
            outcome=Outcome.COMPLETED if done else Outcome.FAILED,
            state=state,
            kind=None if done else "error",
            error=error,
            dead=not done,
            result={"rows": 3} if done else None,
        ),
    )
    assert settled


def declare(parts: Cronq, name: str = "hourly", **policy: Any) -> str:
    stored, _new = control.write(
        parts.database, every("1h", **policy).schedule(name=name, task="demo.work"), actor="test"
    )
    return stored.id


# -- jobs --------------------------------------------------------------------------------------------------


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
    other = client.post("/api/jobs", json={"type": "demo.work", "args": [2]}, **send)
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


def test_pages_of_jobs_show_each_once_and_end(client: TestClient) -> None:
    ids = {ask(client)["id"] for _ in range(7)}
    seen: list[str] = []
    cursor = ""
    while True:
        found = client.get("/api/jobs", params={"limit": 3} | ({"cursor": cursor} if cursor else {})).json()
        seen += [item["id"] for item in found["items"]]
        cursor = found["next_cursor"]
        if cursor is None:
            break
    assert len(seen) == 7
    assert set(seen) == ids


def test_polling_with_an_etag_costs_nothing_until_it_changes(client: TestClient, parts: Cronq) -> None:
    job_id = ask(client)["id"]
    first = client.get(f"/api/jobs/{job_id}")
    etag = first.headers["etag"]
    assert client.get(f"/api/jobs/{job_id}", headers={"If-None-Match": etag}).status_code == 304
    end(parts, job_id)
    changed = client.get(f"/api/jobs/{job_id}", headers={"If-None-Match": etag})
    assert changed.status_code == 200
    assert changed.json()["result"] == {"rows": 3}


def test_a_long_poll_answers_at_the_change_and_not_before(client: TestClient, parts: Cronq) -> None:
    job_id = ask(client)["id"]
    etag = client.get(f"/api/jobs/{job_id}").headers["etag"]
    ending = threading.Timer(0.3, end, (parts, job_id))
    ending.start()
    answer = client.get(f"/api/jobs/{job_id}?wait=30", headers={"If-None-Match": etag})
    ending.join()
    assert answer.json()["status"] in ("RUNNING", "COMPLETED")
    assert answer.elapsed < timedelta(seconds=5)
    nothing = client.get(
        f"/api/jobs/{ask(client)['id']}?wait=0.2",
    )
    assert nothing.json()["status"] == "SCHEDULED"


def test_live_progress_and_the_log_are_shown_while_it_runs(client: TestClient, parts: Cronq) -> None:
    job_id = ask(client)["id"]
    start(parts, job_id)
    report = Report(
        job_id, 1, interval_s=0, send=lambda r: parts.board.write(job_id, r.state(), r.take_lines())
    )
    report.lines.append("reading orders")
    report.update(13, 20, "Transcoding 720p")
    shown = client.get(f"/api/jobs/{job_id}").json()
    assert shown["progress"] == 65
    assert shown["metadata"] == {
        "current_step": "Transcoding 720p",
        "steps_completed": 13,
        "steps_total": 20,
    }
    assert client.get(f"/api/jobs/{job_id}/log").json() == {"lines": ["reading orders"]}
    assert 'value="65"' in client.get(f"/jobs/{job_id}", headers=PAGE).text


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


# -- events ------------------------------------------------------------------------------------------------


async def events(response: httpx.Response) -> AsyncIterator[dict[str, str]]:
    event: dict[str, str] = {}
    async for line in response.aiter_lines():
        if line:
            name, _, value = line.partition(": ")
            event[name] = value
        elif "data" in event:
            yield event
            event = {}


@pytest.fixture
def served(parts: Cronq) -> Iterator[str]:
    """A real server: the test client would only hand over a stream that has ended."""
    import uvicorn  # noqa: PLC0415

    app = create_app(parts)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        thread.join(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}"
    app.state.feed.stop()
    server.should_exit = True
    thread.join()


def test_a_jobs_events_go_from_how_it_stands_to_its_end(served: str, parts: Cronq) -> None:
    job_id = httpx.post(f"{served}/api/jobs", json={"type": "demo.work"}).json()["id"]

    async def follow() -> list[tuple[str, str]]:
        seen = []
        url = f"{served}/api/jobs/{job_id}/events"
        async with httpx.AsyncClient(timeout=20) as http, http.stream("GET", url) as response:
            async for event in events(response):
                facts = json.loads(event["data"])
                seen.append((event["event"], str(facts.get("status", facts.get("progress")))))
                if len(seen) == 1:
                    await asyncio.to_thread(start, parts, job_id)
                elif facts.get("status") == "RUNNING":
                    await asyncio.to_thread(parts.board.write, job_id, {"job_id": job_id, "progress": 50}, [])
                elif event["event"] == "progress":
                    await asyncio.to_thread(
                        settle,
                        parts.database,
                        Settlement(
                            job_id=job_id,
                            token=f"t-{job_id[:30]}",
                            worker="w",
                            number=1,
                            outcome=Outcome.COMPLETED,
                            state=State.COMPLETED,
                        ),
                    )
        return seen

    seen = asyncio.run(follow())
    assert seen == [("job", "SCHEDULED"), ("job", "RUNNING"), ("progress", "50"), ("job", "COMPLETED")]


def test_a_client_that_comes_back_misses_no_change(served: str, parts: Cronq) -> None:
    async def until(wanted: set[str], last: str | None) -> str:
        headers = {} if last is None else {"Last-Event-ID": last}
        seen: set[str] = set()
        stream: dict[str, Any] = {"method": "GET", "url": f"{served}/api/events", "headers": headers}
        async with httpx.AsyncClient(timeout=20) as http, http.stream(**stream) as response:
            if last is None:
                for job_id in wanted:
                    await asyncio.to_thread(end, parts, job_id)
            async for event in events(response):
                facts = json.loads(event["data"])
                if facts.get("status") == "COMPLETED":
                    seen.add(facts["id"])
                    last = event["id"]
                if wanted <= seen:
                    break
        assert last is not None
        return last

    def new(count: int) -> set[str]:
        return {httpx.post(f"{served}/api/jobs", json={"type": "t"}).json()["id"] for _ in range(count)}

    last = asyncio.run(until(new(2), None))
    away = new(5)
    for job_id in away:
        end(parts, job_id)
    asyncio.run(until(away, last))
    assert httpx.get(f"{served}/api/events", headers={"Last-Event-ID": "x"}).status_code == 400


# -- schedules ---------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize(
    ("body", "hint"),
    [
        ({"task": "t"}, "exactly one"),
        ({"task": "t", "cron": "61 * * * *"}, "61"),
        ({"task": "t", "every": "5m", "tz": "UTC"}, "tz goes with"),
        ({"task": "t", "cron": "* * * * *", "tz": "Mars/Base"}, "Mars/Base"),
        ({"task": "t", "every": -5}, "period"),
        ({"task": "t", "every": 5, "overlap": "maybe"}, "overlap"),
    ],
)
def test_a_wrong_schedule_is_refused(client: TestClient, body: dict[str, Any], hint: str) -> None:
    answer = client.put("/api/schedules/wrong", json=body)
    assert answer.status_code == 422, answer.text
    assert hint in answer.json()["detail"]


def test_code_owns_its_schedules_but_anybody_may_pause_them(client: TestClient, parts: Cronq) -> None:
    from cronq.store.schedules import Change, write_changes  # noqa: PLC0415

    declared = cron("0 * * * *").schedule(name="of-code", task="demo.work")
    first = datetime.now(UTC) + timedelta(minutes=5)
    change = Change(declared, first_fire_at=first, restart=True, delay_s=None, fires_left=None)
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
    _turn_back(parts, schedule_id, paused_at=since - hour / 2, next_fire_at=since)
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


def test_every_fire_time_has_an_answer(client: TestClient, parts: Cronq) -> None:
    schedule_id = declare(parts, "hourly")
    hour = timedelta(hours=1)
    now = parts.database.clock()
    newest = Every(hour).previous(now)
    assert newest is not None
    _turn_back(parts, schedule_id, born=newest - 6 * hour, next_fire_at=newest)
    ran, skipped, folded = newest - hour, newest - 2 * hour, newest - 3 * hour
    plan(parts, schedule_id, "hourly", ran)
    end(parts, scheduled_job_id(schedule_id, ran))
    plan(parts, schedule_id, "hourly", skipped, state=State.SKIPPED, reason=Reason.OVERLAP)
    plan(parts, schedule_id, "hourly", folded, state=State.SKIPPED, reason=Reason.MISSED_WINDOW)
    asked = {
        "schedule": "hourly",
        "from": (folded - hour).isoformat(),
        "to": (newest + 2 * hour).isoformat(),
    }
    found = client.get("/api/fires", params=asked).json()
    assert [(f["disposition"], f["reason"]) for f in found["items"]] == [
        ("skipped", "missed_window"),  # one of the stretch whose record stands at its end
        ("skipped", "missed_window"),
        ("skipped", "overlap"),
        ("job", None),
        ("undecided", None),
        ("to_come", None),
    ]
    assert all(f["detail"] for f in found["items"])
    first_two = client.get("/api/fires", params=asked | {"limit": 2}).json()
    rest = client.get("/api/fires", params=asked | {"from": first_two["next_from"]}).json()
    assert first_two["items"] + rest["items"] == found["items"]
    page = client.get("/schedules/hourly", headers=PAGE).text
    assert "the previous job was still going on" in page


def plan(parts: Cronq, schedule_id: str, name: str, fire: datetime, **more: Any) -> None:
    planned = DueJob(
        id=scheduled_job_id(schedule_id, fire),
        schedule_id=schedule_id,
        schedule_name=name,
        fire_time=fire,
        trigger=Trigger.SCHEDULE,
        task="demo.work",
        args=[],
        kwargs={},
        due_at=fire,
        **more,
    )
    with parts.database.begin() as connection:
        insert_jobs(parts.database, connection, [planned], parts.database.clock_in(connection))


def _turn_back(parts: Cronq, schedule_id: str, *, born: datetime | None = None, **columns: datetime) -> None:
    from sqlalchemy import update  # noqa: PLC0415

    from cronq.store.tables import schedule, schedule_version  # noqa: PLC0415

    oldest = born or min(columns.values()) - timedelta(days=1)
    with parts.database.begin() as connection:
        connection.execute(update(schedule).where(schedule.c.id == schedule_id).values(columns))
        connection.execute(update(schedule_version).values(at=oldest))


# -- who may -----------------------------------------------------------------------------------------------


def test_roles_reach_as_far_as_they_say(client: TestClient, parts: Cronq) -> None:
    tokens = {role: create_token(parts.database, role.value, role) for role in Role}

    def status(role: Role, method: str, path: str, **body: Any) -> int:
        headers = {"Authorization": f"Bearer {tokens[role]}"}
        return int(client.request(method, path, headers=headers, **body).status_code)

    job, schedule = {"json": {"type": "t"}}, {"json": {"task": "t", "every": 60}}
    assert [status(role, "GET", "/api/jobs") for role in Role] == [200, 200, 200]
    assert [status(role, "POST", "/api/jobs", **job) for role in Role] == [403, 202, 202]
    assert [status(role, "PUT", "/api/schedules/x", **schedule) for role in Role] == [403, 403, 201]
    assert [status(role, "DELETE", "/api/schedules/x") for role in Role] == [403, 403, 204]


def test_once_there_is_a_token_nobody_gets_in_without(client: TestClient, parts: Cronq) -> None:
    assert client.get("/api/jobs").status_code == 200
    text = create_token(parts.database, "ci", Role.VIEWER)
    refused = client.get("/api/jobs")
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"].startswith("Bearer")
    assert "cronq token create" in refused.json()["detail"]
    for wrong in ("x", text[:-1], text + "a", text.replace("cronq_", "other_"), "cronq__", ""):
        assert client.get("/api/jobs", headers={"Authorization": f"Bearer {wrong}"}).status_code == 401
    good = {"Authorization": f"Bearer {text}"}
    assert client.get("/api/jobs", headers=good).status_code == 200
    assert client.get("/healthz").status_code == 200
    assert client.get("/metrics").status_code == 401
    revoke_token(parts.database, "ci")
    assert client.get("/api/jobs", headers=good).status_code == 401
    assert check_token(parts.database, text) is None
    assert text.rsplit("_", 1)[1] not in str(list_tokens(parts.database))


def test_the_page_is_signed_in_by_a_cookie_no_script_can_read(client: TestClient, parts: Cronq) -> None:
    text = create_token(parts.database, "ann", Role.VIEWER)
    sent_away = client.get("/jobs", headers=PAGE)
    assert (sent_away.status_code, sent_away.headers["location"]) == (303, "/login?next=/jobs")
    assert client.post("/login", data={"token": "wrong"}).status_code == 403
    back = client.post("/login", data={"token": text, "next": "/jobs"})
    assert (back.status_code, back.headers["location"]) == (303, "/jobs")
    assert re.search("HttpOnly.*SameSite=strict", back.headers["set-cookie"])
    page = client.get("/jobs", headers=PAGE)
    assert page.status_code == 200
    assert client.post("/act/run", data={"name": "x"}, headers=PAGE).status_code == 403
    elsewhere = client.post("/login", data={"token": text, "next": "//evil.example"})
    assert elsewhere.headers["location"] == "/"


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site", "Origin": "http://127.0.0.1:9999"},
        {"Origin": "http://[broken"},
    ],
)
def test_another_sites_page_can_change_nothing(client: TestClient, headers: dict[str, str]) -> None:
    answer = client.post("/api/jobs", json={"type": "t"}, headers=headers)
    assert answer.status_code == 403
    assert answer.json()["code"] == "cross-site"
    assert client.get("/api/jobs").json()["items"] == []


def test_the_pages_own_form_gets_in_even_where_the_browser_hides_the_origin(client: TestClient) -> None:
    headers = {"Origin": "null", "Sec-Fetch-Site": "same-origin"}
    assert client.post("/api/jobs", json={"type": "t"}, headers=headers).status_code == 202
    own = {"Origin": BASE}
    assert client.post("/api/jobs", json={"type": "t"}, headers=own).status_code == 202


def test_another_hosts_name_for_this_machine_is_refused(client: TestClient) -> None:
    answer = client.get("/api/jobs", headers={"Host": "evil.example"})
    assert answer.status_code == 421
    assert client.get("/api/jobs", headers={"Host": "localhost:8787"}).status_code == 200


def test_off_loopback_nothing_is_open(parts: Cronq) -> None:
    with TestClient(create_app(parts, host="0.0.0.0"), base_url="http://cronq.example") as client:
        assert client.get("/api/jobs").status_code == 401
        text = create_token(parts.database, "ci", Role.VIEWER)
        assert client.get("/api/jobs", headers={"Authorization": f"Bearer {text}"}).status_code == 200


def test_a_body_is_bounded(client: TestClient, parts: Cronq) -> None:
    size = 2 * parts.settings.max_payload_bytes + 1
    assert client.post("/api/jobs", content=b"x" * size).status_code == 413

    def drops() -> Iterator[bytes]:
        yield b"{"

    assert client.post("/api/jobs", content=drops()).status_code == 411


# -- the whole ---------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("wrong", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59-14:00", "2026-11-21T02:30"])
def test_an_instant_out_of_reach_is_refused(client: TestClient, parts: Cronq, wrong: str) -> None:
    declare(parts, "hourly")
    assert client.get("/api/fires", params={"schedule": "hourly", "from": wrong}).status_code == 422
    assert client.get("/api/jobs", params={"since": wrong}).status_code == 422
    assert client.post("/api/jobs", json={"type": "t", "run_at": wrong}).status_code == 422
    assert client.get("/schedules/hourly", params={"from": wrong}, headers=PAGE).status_code in (404, 422)


def test_readiness_names_what_is_down(client: TestClient, parts: Cronq) -> None:
    well = client.get("/readyz")
    assert well.status_code == 200
    assert all(check["ok"] for check in well.json()["checks"].values())
    parts.app.conf.broker_url = "redis://user:hunter2@127.0.0.1:1/0"
    parts.app.amqp.app.pool.force_close_all()
    down = client.get("/readyz")
    assert down.status_code == 503
    checks = down.json()["checks"]
    assert (checks["database"]["ok"], checks["broker"]["ok"]) == (True, False)
    assert "hunter2" not in down.text


def test_metrics_count_each_end_once(client: TestClient, parts: Cronq) -> None:
    schedule_id = declare(parts)
    counted = Metrics(parts.database.clock() - timedelta(hours=1))
    fire = parts.database.clock() - timedelta(seconds=2)
    plan(parts, schedule_id, "hourly", fire)
    end(parts, scheduled_job_id(schedule_id, fire))
    failed = ask(client)["id"]
    end(parts, failed, state=State.FAILED, error="no")
    _age(parts, LAG + timedelta(seconds=60))
    for _ in range(2):
        text = counted.scrape(parts).decode()
        assert 'cronq_jobs_ended_total{outcome="COMPLETED",task="demo.work"} 1.0' in text
        assert 'cronq_jobs_ended_total{outcome="FAILED",task="demo.work"} 1.0' in text
        assert 'cronq_attempts_total{kind="error",outcome="FAILED"} 1.0' in text
        assert "cronq_start_lateness_seconds_count 1.0" in text
        assert "cronq_dead_letters 1.0" in text
        assert "cronq_leader 0.0" in text
    assert "cronq_dead_letters 1.0" in client.get("/metrics").text


def _age(parts: Cronq, by: timedelta) -> None:
    """Move every job and attempt into the past."""
    from sqlalchemy import select, update  # noqa: PLC0415

    from cronq.store.tables import attempt, job  # noqa: PLC0415

    with parts.database.begin() as connection:
        for table, names in ((job, ("updated_at", "finished_at")), (attempt, ("ended_at",))):
            for row in connection.execute(select(table)).mappings().all():
                moved = {name: row[name] - by for name in names if row[name] is not None}
                key = table.c.id == row["id"] if table is job else table.c.token == row["token"]
                connection.execute(update(table).where(key).values(moved))


def test_every_page_answers_and_asks_nobody_else(client: TestClient, parts: Cronq) -> None:
    declare(parts, "with/slash & <b>")
    job_id = ask(client, kwargs={"x": "<script>alert(1)</script>"})["id"]
    end(parts, job_id, state=State.FAILED, error="<img src=x>")
    paths = ["/", "/schedules", "/schedules/with%2Fslash%20%26%20%3Cb%3E", "/jobs", f"/jobs/{job_id}"]
    for path in [*paths, "/dead", "/docs", "/login", "/schedules?q=with", "/jobs?state=FAILED"]:
        answer = client.get(path, headers=PAGE)
        assert answer.status_code == 200, path
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert not re.search(r"""(src|href)=["'](https?:)?//""", answer.text)
        assert "<script>alert" not in answer.text
        assert "<img src=x>" not in answer.text
        assert not re.search(r"<[^>]+\sstyle=|<[^>]+\son\w+=", answer.text)
    for name in ("cronq.js", "cronq.css", "icon.svg"):
        assert client.get(f"/static/{name}").status_code == 200


def test_the_buttons_work_without_a_script(client: TestClient, parts: Cronq) -> None:
    declare(parts, "hourly")
    back = client.post("/act/pause", data={"name": "hourly", "note": "why not", "next": "/schedules?q=h"})
    assert (back.status_code, back.headers["location"]) == (303, "/schedules?q=h&said=paused")
    page = client.get(back.headers["location"], headers=PAGE).text
    assert "why not" in page
    assert "Paused." in page
    client.post("/act/resume", data={"name": "hourly"})
    ran = client.post("/act/run", data={"name": "hourly"})
    job_id = ran.headers["location"].split("?")[0].rsplit("/", 1)[1]
    assert client.post("/act/cancel", data={"id": job_id}).status_code == 303
    assert client.get(f"/api/jobs/{job_id}").json()["status"] == "CANCELLED"
    assert client.post("/act/nonsense", data={}).status_code == 404


def test_leader_queues_and_overview_answer_without_a_beat(client: TestClient, parts: Cronq) -> None:
    ask(client)
    assert client.get("/api/leader").json()["holder"] is None
    assert client.get("/api/queues").json() == {"items": []}
    summary = client.get("/api/overview").json()
    assert summary["unfinished"] == {"SCHEDULED": 1}
    assert summary["schedules"] == {"total": 0, "paused": 0, "faulty": 0}
    assert "Nobody leads" in client.get("/", headers=PAGE).text
