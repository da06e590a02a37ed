"""Are the services well? Looks at each once a minute, and tells a person when one stays away.

Each look is a row under the service and the fire time, so that looking twice is looking once; an alert is a
row under the service and the look at which the trouble began, so that it is sent once however long it lasts.
"""

import json
import os
import sqlite3
import time
import urllib.request
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta

from celery import shared_task

from cronq import current_job
from tasks.databases import transaction

ANSWER_S = 3.0
SUSTAINED = 3
"""Looks in a row that have to fail before anybody is woken."""
KEEP = timedelta(days=7)
SCHEMA = """
CREATE TABLE IF NOT EXISTS look (
  service TEXT NOT NULL, at TEXT NOT NULL, error TEXT, took_ms REAL NOT NULL, PRIMARY KEY (service, at)
);
CREATE TABLE IF NOT EXISTS alert (
  service TEXT NOT NULL, since TEXT NOT NULL, sent_at TEXT, over_at TEXT, PRIMARY KEY (service, since)
);
"""


def open_health() -> AbstractContextManager[sqlite3.Connection]:
    """Lend the database of looks; what was done to it is committed at the end, all or nothing."""
    return transaction("HEALTH_PATH", "health.sqlite", SCHEMA)


@shared_task(name="tasks.check_service")  # type: ignore[untyped-decorator]
def check_service(service: str, url: str) -> dict[str, str | float | None]:
    """Look at one service; alert after three failures in a row, and note when it is back."""
    job = current_job()
    moment = datetime.now(UTC) if job is None or job.fire_time is None else job.fire_time
    at = moment.astimezone(UTC).isoformat()
    error, took_ms = _look(url)
    with open_health() as health:
        health.execute(
            "INSERT INTO look VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET error = excluded.error",
            (service, at, error, took_ms),
        )
        if error is None:
            health.execute(
                "UPDATE alert SET over_at = ? WHERE service = ? AND over_at IS NULL", (at, service)
            )
        elif (since := _failing_since(health, service)) is not None:
            health.execute(
                "INSERT INTO alert (service, since) VALUES (?, ?) ON CONFLICT DO NOTHING", (service, since)
            )
        health.execute("DELETE FROM look WHERE at < ?", ((moment - KEEP).isoformat(),))
    _send_alerts(service, error)
    return {"service": service, "error": error, "took_ms": took_ms}


def _look(url: str) -> tuple[str | None, float]:
    started = time.perf_counter()
    error = None
    try:
        with urllib.request.urlopen(url, timeout=ANSWER_S) as answer:  # noqa: S310 - the operator's own address
            answer.read(1)
    except OSError as trouble:
        error = str(trouble)
    return error, round((time.perf_counter() - started) * 1000, 1)


def _failing_since(health: sqlite3.Connection, service: str) -> str | None:
    """Return the first of the failures in a row up to the newest look, if they are enough."""
    failures = health.execute(
        "SELECT count(*), min(at) FROM look WHERE service = ? AND at > coalesce("
        "(SELECT max(at) FROM look WHERE service = ? AND error IS NULL), '')",
        (service, service),
    ).fetchone()
    return str(failures[1]) if failures[0] >= SUSTAINED else None


def _send_alerts(service: str, error: str | None) -> None:
    """Tell the receiver what it has not been told; one that does not answer is told at the next look."""
    receiver = os.environ.get("ALERT_URL")
    with open_health() as health:
        unsent = health.execute(
            "SELECT since FROM alert WHERE service = ? AND sent_at IS NULL", (service,)
        ).fetchall()
    for (since,) in unsent:
        if receiver is not None:
            body = json.dumps({"service": service, "down_since": since, "error": error}).encode()
            request = urllib.request.Request(  # noqa: S310 - the operator's own address
                receiver, data=body, headers={"Content-Type": "application/json"}
            )
            with urllib.request.urlopen(request, timeout=ANSWER_S):  # noqa: S310 - as above
                pass
        with open_health() as health:
            health.execute(
                "UPDATE alert SET sent_at = ? WHERE service = ? AND since = ?",
                (datetime.now(UTC).isoformat(), service, since),
            )
