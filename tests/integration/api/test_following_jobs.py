"""Following jobs: by polling, by waiting, by events; nobody misses a change."""

import asyncio
import json
import threading
from datetime import timedelta
from typing import Any

import httpx
from fastapi.testclient import TestClient

from cronq.app import Cronq
from cronq.job import Outcome, State
from cronq.progress.reporter import Report
from cronq.store.attempts import Settlement, settle

from .steps import PAGE, ask, end, events, start


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
