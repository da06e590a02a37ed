"""Billing as it is deployed: the service fails and answers late; a worker and the leader are killed."""

import json
import os
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cronq.store.database import Database
from cronq.store.terms import read_term
from tasks.billing import open_billing
from tests.support.processes import Process, Processes, wait_for
from tests.support.server import free_port

DUE = 60
RATE = 20


@pytest.fixture
def env(deployment_env: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setenv("BILLING_PATH", str(tmp_path / "billing.sqlite"))
    return {
        **deployment_env,
        "BILLING_PATH": os.environ["BILLING_PATH"],
        "PAYMENTS_URL": f"http://127.0.0.1:{free_port()}",
        "BILL_EVERY": "2s",
    }


def subscribe() -> None:
    """Sixty periods and trials that are over, two customers without money, and ten that are not due."""
    now = datetime.now(UTC)
    rows = [(f"sub-{n}", "trial" if n % 6 == 0 else "active", now - timedelta(minutes=n)) for n in range(DUE)]
    rows += [(f"sub-{n}-poor", "active", now - timedelta(hours=1)) for n in (1, 2)]
    rows += [(f"sub-{n}-later", "active", now + timedelta(days=n)) for n in range(1, 11)]
    with open_billing() as billing:
        billing.executemany(
            "INSERT INTO subscription (id, amount_cents, state, renews_at) VALUES (?, 990, ?, ?)",
            [(name, state, at.isoformat()) for name, state, at in rows],
        )


def counts() -> Counter[tuple[str, bool]]:
    """How many subscriptions are in which state, and whether their next period lies ahead."""
    now = datetime.now(UTC).isoformat()
    with open_billing() as billing:
        return Counter(billing.execute("SELECT state, renews_at > ? FROM subscription", (now,)).fetchall())


def journal(folder: Path, what: str) -> list[dict[str, Any]]:
    path = folder / "payments.jsonl"
    notes = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [note for note in notes if note["what"] == what]


def serve(processes: Processes, env: dict[str, str], folder: Path, name: str) -> Process:
    port = env["PAYMENTS_URL"].rpartition(":")[2]
    module, rate = "tasks.payment_service", str(RATE)
    return processes.python(
        name, "-m", module, "--port", port, "--rate", rate, "--journal", folder / "payments.jsonl", env=env
    )


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("broker_url", "database_url"), [("redis", "sqlite"), ("rabbitmq", "postgresql")], indirect=True
)
def test_each_period_is_charged_once_whoever_is_killed_and_the_service_s_rate_is_respected(
    processes: Processes, env: dict[str, str], tmp_path: Path
) -> None:
    subscribe()
    service = serve(processes, env, tmp_path, "service")
    upgraded = processes.run("upgrade", sys.executable, "-m", "cronq", "db", "upgrade", env=env)
    assert upgraded[0] == 0, upgraded[1]
    beats = [processes.beat(f"beat-{n}", "beat.app", "-S", "cronq", env=env) for n in (1, 2)]
    workers = [processes.worker(f"worker-{n}", "workers.app", "-c", "3", env=env) for n in (1, 2)]
    database = Database(env["CRONQ_DATABASE_URL"])

    wait_for(lambda: len(journal(tmp_path, "payment")) > 5, 60, "first payments")
    workers[0].kill()
    term = read_term(database, 0)
    next(beat for beat in beats if term is not None and beat.pid == term.pid).kill()
    wait_for(lambda: len(journal(tmp_path, "payment")) > 20, 60, "more payments")
    service.kill()
    processes.worker("worker-3", "workers.app", "-c", "3", env=env)
    serve(processes, env, tmp_path, "service again")
    wait_for(lambda: counts()["active", 1] == DUE + 10, 120, "every period to be charged")
    wait_for(lambda: counts()["past_due", 0] == 2, 30, "the declined ones to be past due")
    database.dispose()

    payments = Counter(note["key"] for note in journal(tmp_path, "payment"))
    assert len(payments) == DUE
    assert set(payments.values()) == {1}
    with open_billing() as billing:
        charged = billing.execute("SELECT subscription || ' ' || period FROM charge").fetchall()
    assert {row[0] for row in charged} == set(payments)
    assert len(charged) == DUE
    assert journal(tmp_path, "refused") == [], "more requests than the service allows"
