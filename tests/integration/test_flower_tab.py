"""Flower shows cronq's schedules in a tab of its own, without being changed itself."""

import os
import re
import urllib.request
from pathlib import Path

import httpx
import pytest

from cronq.declaration import cron
from cronq.store import control
from cronq.store.database import Database
from cronq.store.schema import upgrade
from tests.support.processes import Processes, wait_for
from tests.support.server import free_port

APP = "tests.e2e.progress_app"


@pytest.fixture
def env(tmp_path: Path, redis_url: str) -> dict[str, str]:
    return {
        **os.environ,
        "CRONQ_DATABASE_URL": f"sqlite:///{tmp_path / 'cronq.db'}",
        "CRONQ_REDIS_URL": redis_url,
        "CRONQ_BROKER_URL": redis_url,
        "CRONQ_API_URL": "http://127.0.0.1:8787",
        "FLOWER_UNAUTHENTICATED_API": "true",
        "DUE_AT": "2099-01-01T00:00:00+00:00",
        "GATE": str(tmp_path / "gate"),
    }


def flower(processes: Processes, env: dict[str, str], *options: str) -> str:
    url = f"http://127.0.0.1:{free_port()}"
    port = url.rpartition(":")[2]
    processes.celery("flower", APP, "flower", f"--port={port}", "--address=127.0.0.1", *options, env=env)
    wait_for(lambda: urllib.request.urlopen(f"{url}/healthcheck", timeout=5), 30, "Flower", ignoring=OSError)
    return url


def test_the_tab_lists_schedules_with_links_to_their_pages(processes: Processes, env: dict[str, str]) -> None:
    database = Database(env["CRONQ_DATABASE_URL"])
    upgrade(database)
    nightly = cron("30 2 * * *", tz="Europe/Berlin", tenant="acme").schedule(
        name="nightly/<b>", task="shop.t"
    )
    control.write(database, nightly, actor="test")
    control.pause(database, "nightly/<b>", note="the disk is full")
    database.dispose()

    url = flower(processes, env)
    workers, tab = httpx.get(f"{url}/workers").text, httpx.get(f"{url}/schedules").text
    assert re.search(r'href="/schedules">Schedules</a>', workers)
    assert 'href="http://127.0.0.1:8787/schedules/nightly/%3Cb%3E">nightly/&lt;b&gt;</a>' in tab
    assert "At 02:30 every day" in tab
    assert "paused: the disk is full" in tab
    assert "None fits" in httpx.get(f"{url}/schedules?q=hourly").text


def test_without_cronqs_tables_flower_says_so_and_works(processes: Processes, env: dict[str, str]) -> None:
    url = flower(processes, env)
    assert "cronq db upgrade" in httpx.get(f"{url}/schedules").text
    assert httpx.get(f"{url}/tasks").status_code == 200


def test_flowers_own_sign_in_holds_for_the_tab(processes: Processes, env: dict[str, str]) -> None:
    url = flower(processes, env, "--basic-auth=ann:secret")
    assert httpx.get(f"{url}/schedules").status_code == 401
    assert httpx.get(f"{url}/schedules", auth=("ann", "secret")).status_code == 200
