"""The page: every one answers, needs no script and asks nobody else."""

import re

from fastapi.testclient import TestClient

from cronq.app import Cronq
from cronq.job import State

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
