"""The page: every one answers, needs no script and asks nobody else."""

import re

import pytest
from fastapi.testclient import TestClient

from cronq.app import Cronq
from cronq.job import State, Trigger
from cronq.schedule import Reason
from cronq.store import control
from cronq.store.agenda import insert_jobs
from cronq.store.fires import latest_fires
from cronq.store.scheduled import job_of
from cronq.store.schedules import get_schedule
from cronq.store.tokens import Role, create_token
from cronq.web.render import COOKIE
from tests.browser.past import fill_past
from tests.support.processes import wait_for

from .steps import PAGE, ask, declare, end


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


def test_a_schedules_page_tells_its_past_on_both_databases(client: TestClient, parts: Cronq) -> None:
    fill_past(parts.database)
    page = client.get("/schedules/import-rates?at=02:31", headers=PAGE).text
    assert "It is not due at" in page
    assert re.search(r'class="cell failed \w+" href="[^"]+" title="\w+ \d+ \w+: \d+ completed', page)
    assert "half within" in page
    assert "Drift:" in page
    edited = client.get("/schedules/daily-report:acme", headers=PAGE).text
    assert re.search(r"timing\.expression</code>: <del>&#34;30 5 \* \* \*", edited)
    assert "Paused: the tax rates are being changed" in client.get("/schedules", headers=PAGE).text


def test_a_fire_time_that_was_made_up_for_says_so(client: TestClient, parts: Cronq) -> None:
    fill_past(parts.database)
    stored = get_schedule(parts.database, "sync-crm")
    skipped = next(f for f in latest_fires(parts.database, stored, 200) if f.reason == Reason.OVERLAP)
    again = job_of(stored, skipped.fire_time, due_at=skipped.fire_time, trigger=Trigger.BACKFILL, item="b")
    with parts.database.begin() as connection:
        insert_jobs(parts.database, connection, [again], skipped.fire_time)
    page = client.get(
        "/schedules/sync-crm", params={"from": skipped.fire_time.isoformat()}, headers=PAGE
    ).text
    assert f'href="/jobs/{again.id}">backfilled</a>' in page


def test_all_that_fit_are_asked_for_first_and_then_done(client: TestClient, parts: Cronq) -> None:
    ids = [ask(client, tenant="acme")["id"] for _ in range(3)]
    other = ask(client, tenant="globex")["id"]
    question = client.get("/jobs/all/cancel?tenant=acme", headers=PAGE).text
    assert "Cancel 3 jobs?" in question
    assert client.get(f"/api/jobs/{ids[0]}").json()["status"] == "SCHEDULED"
    back = client.post("/act/cancel_jobs", data={"tenant": "acme", "next": "/jobs?tenant=acme"})
    assert back.headers["location"] == "/jobs?tenant=acme&said=cancel_jobs&count=3"
    assert "Told to stop: 3." in client.get(back.headers["location"], headers=PAGE).text
    assert {client.get(f"/api/jobs/{each}").json()["status"] for each in ids} == {"CANCELLED"}
    assert client.get(f"/api/jobs/{other}").json()["status"] == "SCHEDULED"


def test_only_what_is_ticked_and_can_be_sent_back_is(client: TestClient, parts: Cronq) -> None:
    dead, waiting = ask(client)["id"], ask(client)["id"]
    end(parts, dead, state=State.FAILED, error="gone")
    back = client.post("/act/retry_ticked", data={"id": [dead, waiting, "nobody"], "next": "/jobs"})
    assert back.headers["location"].endswith("count=1")
    assert client.get(f"/api/jobs/{dead}").json()["status"] == "SCHEDULED"


@pytest.mark.parametrize(
    "path",
    [
        "/jobs?within=nonsense",
        "/jobs?within=999999999999d",
        "/jobs?state=NONE&cursor=x~y&q=%25_%5C",
        "/jobs?cursor=2026-11-21T00:00:00~x",
        "/dead?kind=none&cursor=~",
        "/schedules/hourly?at=nonsense",
        "/schedules/hourly?at=0001-01-01T00:00",
        "/schedules/hourly?from=2026-11-21T00:00:00Z",
        "/jobs?said=cancel_jobs&count=%7B0%7D",
    ],
)
def test_an_odd_address_is_no_fault(client: TestClient, parts: Cronq, path: str) -> None:
    declare(parts, "hourly")
    assert client.get(path, headers=PAGE).status_code in (200, 404)


def test_a_viewer_is_shown_no_buttons_and_may_press_none(client: TestClient, parts: Cronq) -> None:
    declare(parts, "hourly")
    ask(client)
    token = create_token(parts.database, "eve", Role.VIEWER)
    client.cookies.set(COOKIE, token)
    for path in ("/schedules", "/schedules/hourly", "/jobs", "/dead"):
        assert "/act/" not in client.get(path, headers=PAGE).text
    assert client.post("/act/cancel_jobs", data={}).status_code == 403


def test_the_coming_day_is_counted_beside_the_request(client: TestClient, parts: Cronq) -> None:
    declare(parts, "hourly")
    page = wait_for(
        lambda: (text := client.get("/day", headers=PAGE).text) and "in all" in text and text, 10, "it"
    )
    assert "24 jobs in all, at most 1 in one minute" in page


def test_the_day_is_counted_anew_when_a_schedule_has_changed(
    client: TestClient, parts: Cronq, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cronq.web.day.KEPT_S", 0.0)
    declare(parts, "hourly")

    def shows(count: int) -> bool:
        return f"{count} jobs in all" in client.get("/day", headers=PAGE).text

    wait_for(lambda: shows(24), 10, "the first count")
    declare(parts, "another")
    wait_for(lambda: shows(48), 10, "the second count")
    control.pause(parts.database, "hourly", note=None)
    wait_for(lambda: shows(24), 10, "the third count")
