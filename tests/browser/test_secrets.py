"""No token, no password of an address and no secret argument stands on a page or in a log line."""

import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from cronq.store.dead_messages import DeadMessage, record_message
from tests.support.processes import Processes
from tests.support.servers import RedisServer

from .past import fill_past
from .site import Site, running_site

URL_PASSWORD = "s3cr3t-p4ss"
"""It stands in an error, in a log line of a task, and in an argument called `api_key`."""
ARGUMENT = "hunter2-secret"
"""It is the argument called `password`."""
REDIS_PASSWORD = "r3dis-p4ss"


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Site]:
    """An installation whose Redis asks for a password, on its own, with one of everything in it."""
    with RedisServer() as redis:
        redis.client().config_set("requirepass", REDIS_PASSWORD)
        url = f"redis://:{REDIS_PASSWORD}@127.0.0.1:{redis.port}"
        with running_site(tmp_path, f"sqlite:///{tmp_path / 'cronq.db'}", f"{url}/1", f"{url}/2") as site:
            yield site


def pages(site: Site, job_id: str, message_id: str) -> list[str]:
    paths = [
        "/",
        "/schedules",
        "/schedules/import-rates",
        "/edit?schedule=import-rates",
        "/jobs",
        "/jobs?q=rates",
        f"/jobs/{job_id}",
        "/dead",
        f"/dead/{message_id}",
        "/dead/all/retry",
        "/day",
        "/docs",
        f"/api/jobs/{job_id}",
        f"/api/jobs/{job_id}/log",
        f"/api/jobs/{job_id}/attempts",
        "/api/dead",
        "/api/schedules",
        "/metrics",
        "/readyz",
        "/openapi.json",
    ]
    return [site.url + path for path in paths]


def test_no_secret_stands_on_a_page_or_in_a_log_line(
    guarded: Site, processes: Processes, tmp_path: Path
) -> None:
    site = guarded
    fill_past(site.database)
    site.allow_steps(10)
    job_id = site.fail()
    logged = site.ask("demo.steps")
    site.wait_for_state(logged, "COMPLETED")
    headers = {"authorization": f"Bearer {ARGUMENT}"}
    odd = DeadMessage(kind="malformed", error=f"redis://:{URL_PASSWORD}@x/0", body=b"{", headers=headers)
    message_id = record_message(site.database, odd)
    code, token = processes.run("token", *cronq("token", "create", "ann", "--role", "editor"), env=site.env)
    assert code == 0, token
    token = token.split()[-1]

    signed_in = {"Authorization": f"Bearer {token}"}
    shown = "".join(
        httpx.get(url, headers=signed_in | {"Accept": accept}).text
        for url in pages(site, job_id, message_id) + pages(site, logged, message_id)
        for accept in ("text/html", "*/*")
    )
    assert "***@rates.example" in shown
    listed = [["check", "--list"], ["token", "list"], ["jobs", "show", job_id], ["status"], ["dead", "list"]]
    for number, words in enumerate(listed):
        shown += processes.run(f"shell-{number}", *cronq(*words), env=site.env)[1]
    httpx.get(f"{site.url}/jobs?token={token}")
    logs = "".join(path.read_text() for path in tmp_path.glob("*.log") if path.name != "token.log")
    assert "term" in logs  # the beat and the worker did write
    for secret in (URL_PASSWORD, ARGUMENT, REDIS_PASSWORD, token, token.rsplit("_", 1)[-1]):
        assert secret not in shown
        assert secret not in logs


def cronq(*words: str) -> list[str]:
    return [sys.executable, "-m", "cronq", *words]
