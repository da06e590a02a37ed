"""Subscription billing: renewals and ended trials are charged through a payment service, each exactly once.

Twice equals once at every step: the job's dedup key is the subscription and the period, so is the payment's
idempotency key, and so is the key of the row that says what was charged.
"""

import json
import os
import sqlite3
import urllib.error
import urllib.request
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta

from celery import shared_task

from cronq import Permanent, enqueue, progress
from cronq.retry import Exponential, Policy
from tasks.databases import transaction

ANSWER_S = 2.0
DECLINED = 402
PERIOD = timedelta(minutes=float(os.environ.get("BILLING_PERIOD_MINUTES", "43200")))
SCHEMA = """
CREATE TABLE IF NOT EXISTS subscription (
  id TEXT PRIMARY KEY, amount_cents INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('trial', 'active', 'past_due')),
  renews_at TEXT NOT NULL, -- the start of the period to be charged next; of a trial: its end
  asked_for TEXT           -- the newest period that there is a job for
);
CREATE TABLE IF NOT EXISTS charge (
  subscription TEXT NOT NULL, period TEXT NOT NULL, payment TEXT NOT NULL, amount_cents INTEGER NOT NULL,
  PRIMARY KEY (subscription, period)
);
CREATE INDEX IF NOT EXISTS subscription_due ON subscription (renews_at) WHERE state <> 'past_due';
"""


def open_billing() -> AbstractContextManager[sqlite3.Connection]:
    """Lend the billing database; what was done to it is committed at the end, all or nothing."""
    return transaction("BILLING_PATH", "billing.sqlite", SCHEMA)


@shared_task(name="tasks.bill_due")  # type: ignore[untyped-decorator]
def bill_due() -> dict[str, int]:
    """Ask for a charge of each subscription whose period begins, or whose trial is over."""
    now = datetime.now(UTC).isoformat()
    with open_billing() as billing:
        due = billing.execute(
            "SELECT id, renews_at FROM subscription WHERE state <> 'past_due' AND renews_at <= ? "
            "AND asked_for IS NOT renews_at ORDER BY renews_at",
            (now,),
        ).fetchall()
    for subscription, period in progress.track(due, step="ask for charges"):
        enqueue("tasks.charge", subscription, period, dedup_key=f"charge {subscription} {period}")
        with open_billing() as billing:
            billing.execute("UPDATE subscription SET asked_for = ? WHERE id = ?", (period, subscription))
    return {"asked": len(due)}


@shared_task(
    name="tasks.charge", cronq_retry=[Policy(attempts=100, max_age="3d", wait=Exponential(longest_s=60))]
)  # type: ignore[untyped-decorator]
def charge(subscription: str, period: str) -> dict[str, str]:
    """Charge one subscription for one period, unless that has been done."""
    with open_billing() as billing:
        amount_cents = billing.execute(
            "SELECT amount_cents FROM subscription WHERE id = ?", (subscription,)
        ).fetchone()[0]
        done = billing.execute(
            "SELECT payment FROM charge WHERE subscription = ? AND period = ?", (subscription, period)
        ).fetchone()
    payment = done[0] if done else _pay(subscription, period, amount_cents)
    following = (datetime.fromisoformat(period) + PERIOD).isoformat()
    with open_billing() as billing:
        billing.execute(
            "INSERT INTO charge VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
            (subscription, period, payment, amount_cents),
        )
        billing.execute(
            "UPDATE subscription SET state = 'active', renews_at = ? WHERE id = ? AND renews_at = ?",
            (following, subscription, period),
        )
    return {"subscription": subscription, "period": period, "payment": payment}


def _pay(subscription: str, period: str, amount_cents: int) -> str:
    """Return the payment's id; the service answers a key that it knows with the payment that it made."""
    request = urllib.request.Request(  # noqa: S310 - the operator's own address
        os.environ.get("PAYMENTS_URL", "http://127.0.0.1:8790") + "/payments",
        data=json.dumps({"account": subscription, "amount_cents": amount_cents}).encode(),
        headers={"Content-Type": "application/json", "Idempotency-Key": f"{subscription} {period}"},
    )
    try:
        with urllib.request.urlopen(request, timeout=ANSWER_S) as answer:  # noqa: S310 - as above
            return str(json.load(answer)["id"])
    except urllib.error.HTTPError as error:
        if error.code != DECLINED:
            raise
        with open_billing() as billing:
            billing.execute("UPDATE subscription SET state = 'past_due' WHERE id = ?", (subscription,))
        raise Permanent(f"the payment for {subscription} was declined") from error
