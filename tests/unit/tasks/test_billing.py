import json
import threading
import urllib.error
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from cronq import Permanent
from cronq.retry import Kind, classify
from tasks import billing, payment_service
from tasks.billing import bill_due, charge, open_billing

NOW = datetime.now(UTC)


@pytest.fixture(autouse=True)
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[payment_service.Ledger]:
    ledger = payment_service.Ledger(tmp_path / "payments.jsonl", rate=5)
    monkeypatch.setattr(payment_service, "LATE_S", 0.3)
    monkeypatch.setattr(billing, "ANSWER_S", 0.1)
    monkeypatch.setattr(payment_service.Handler, "ledger", ledger, raising=False)
    server = ThreadingHTTPServer(("127.0.0.1", 0), payment_service.Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setenv("PAYMENTS_URL", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("BILLING_PATH", str(tmp_path / "billing.sqlite"))
    yield ledger
    server.shutdown()
    server.server_close()
    thread.join()


def subscribe(name: str, due: timedelta = -timedelta(hours=1), state: str = "active") -> str:
    period = (NOW + due).isoformat()
    with open_billing() as database:
        database.execute(
            "INSERT INTO subscription (id, amount_cents, state, renews_at) VALUES (?, 990, ?, ?)",
            (name, state, period),
        )
    return period


def row(name: str) -> tuple[Any, ...]:
    with open_billing() as database:
        found: tuple[Any, ...] = database.execute(
            "SELECT state, renews_at FROM subscription WHERE id = ?", (name,)
        ).fetchone()
        return found


def name_with(trouble: str | None, ledger: payment_service.Ledger) -> str:
    """Find a subscription that the service has this trouble with."""
    return next(
        name
        for n in range(1000)
        if ledger.trouble(key := f"{(name := f's{n}')} {when(name)}") == trouble and key
    )


def when(_name: str) -> str:
    return (NOW - timedelta(hours=1)).isoformat()


def payments(folder: Path) -> int:
    return sum('"payment"' in line for line in (folder / "payments.jsonl").read_text().splitlines())


def test_a_charged_subscription_is_active_and_its_next_period_lies_ahead(tmp_path: Path) -> None:
    period = subscribe("s-trial", state="trial")
    for _ in range(3):  # whatever trouble there is, it is the first request's
        try:
            charge("s-trial", period)
        except (OSError, urllib.error.HTTPError):
            continue
    assert row("s-trial") == ("active", (datetime.fromisoformat(period) + billing.PERIOD).isoformat())
    assert payments(tmp_path) == 1


@pytest.mark.parametrize(
    ("trouble", "kind"), [("before", Kind.NETWORK), ("after", Kind.ERROR), ("late", Kind.TIMEOUT)]
)
def test_whatever_goes_wrong_the_next_attempt_charges_once(
    trouble: str, kind: Kind, service: payment_service.Ledger, tmp_path: Path
) -> None:
    name = name_with(trouble, service)
    service._tries.clear()
    period = subscribe(name)
    with pytest.raises((OSError, urllib.error.HTTPError)) as caught:
        charge(name, period)
    assert classify(caught.value) is kind
    assert row(name) == ("active", period)
    first, second = charge(name, period), charge(name, period)
    assert first == second
    assert payments(tmp_path) == 1


def test_a_declined_payment_is_not_tried_again(tmp_path: Path) -> None:
    period = subscribe("s-poor")
    with pytest.raises(Permanent):
        charge("s-poor", period)
    assert row("s-poor") == ("past_due", period)
    assert bill_due() == {"asked": 0}


def test_a_refusal_for_the_rate_is_no_fault_of_the_service(service: payment_service.Ledger) -> None:
    for n in range(5):
        service.admit(f"k{n}")
    period = subscribe("s9")
    with pytest.raises(urllib.error.HTTPError) as caught:
        charge("s9", period)
    assert classify(caught.value) is Kind.RATE_LIMITED


def test_each_due_period_is_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Any, ...]] = []
    monkeypatch.setattr(billing, "enqueue", lambda *args, **options: asked.append((*args, options)))
    period = subscribe("a")
    subscribe("later", timedelta(days=1))
    assert bill_due() == {"asked": 1}
    assert bill_due() == {"asked": 0}
    assert asked == [("tasks.charge", "a", period, {"dedup_key": f"charge a {period}"})]


def test_payments_outlive_the_service(tmp_path: Path, service: payment_service.Ledger) -> None:
    payment = service.pay("k")
    again = payment_service.Ledger(tmp_path / "payments.jsonl", rate=5)
    assert again.pay("k") == payment
    assert json.loads((tmp_path / "payments.jsonl").read_text())["key"] == "k"
