"""One attempt to tell a receiver that a job, or a batch, ended."""

import json
from collections.abc import Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Any, Final

from cronq.errors import Permanent
from cronq.settings import Settings
from cronq.store.batches import get_batch
from cronq.store.database import Database
from cronq.store.jobs import get_job
from cronq.telemetry.masking import without_secrets
from cronq.webhooks.post import NotDelivered, post
from cronq.webhooks.signature import signed_headers

MINUTE, HOUR = 60.0, 3600.0
WAITS_S: Final = (5.0, 30.0, 2 * MINUTE, 10 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 10 * HOUR)
"""Seconds from one attempt to the next: a receiver may be away for a day."""
_TOLD: Final = (
    "id", "schedule_name", "fire_time", "trigger", "tenant", "attempts", "started_at", "finished_at"
)  # fmt: skip


def deliver_job(database: Database, settings: Settings, *, webhook_id: str, job_id: str, status: str) -> int:
    """Tell the receiver of `job_id` that it ended as `status`; return what it answered.

    Raises `NotDelivered` if another attempt may help, `Permanent` if it cannot.
    """
    job = get_job(database, job_id)
    return _deliver(database, settings, webhook_id, str(job["callback_url"]), message(job, status))


def deliver_batch(database: Database, settings: Settings, *, webhook_id: str, told: Mapping[str, Any]) -> int:
    """Tell the receiver of a batch how its items ended (`told`); the same otherwise."""
    batch = get_batch(database, told["batch_id"])
    return _deliver(database, settings, webhook_id, str(batch.callback_url), batch_message(told))


def _deliver(
    database: Database, settings: Settings, webhook_id: str, url: str, content: Mapping[str, Any]
) -> int:
    if settings.webhook_secret is None:
        raise NotDelivered("CRONQ_WEBHOOK_SECRET is not set on this worker; nothing was sent")
    body = json.dumps(content, default=datetime.isoformat).encode()
    headers = signed_headers(settings.webhook_secrets, webhook_id, database.clock(), body)
    headers |= {"Content-Type": "application/json", "User-Agent": "cronq"}
    answered = post(url, body, headers, settings.webhook_networks)
    if answered == HTTPStatus.GONE:
        raise Permanent("the receiver answered 410 Gone: it wants no more of these")
    if not HTTPStatus.OK <= answered < HTTPStatus.MULTIPLE_CHOICES:
        moved = "; redirects are not followed" if answered < HTTPStatus.BAD_REQUEST else ""
        raise NotDelivered(f"the receiver answered {answered}, not 2xx{moved}")
    return answered


def message(job: Mapping[Any, Any], status: str) -> dict[str, Any]:
    """Return what a receiver is told: how the job ended, and the job without its arguments."""
    facts = {name: job[name] for name in _TOLD}
    facts |= {"type": job["task"], "status": status, "schedule": facts.pop("schedule_name")}
    facts |= {name: without_secrets(job[name]) for name in ("result", "error")}
    return {
        "type": f"job.{status.lower()}",
        "timestamp": job["finished_at"] or job["updated_at"],
        "data": facts,
    }


def batch_message(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a receiver is told of a batch: how many of its items ended how."""
    return {
        "type": f"batch.{told['status']}",
        "timestamp": told["ended_at"],
        "data": {"id": told["batch_id"], "type": told["task"]}
        | {name: value for name, value in told.items() if name not in ("batch_id", "task", "ended_at")},
    }


def wait_s(attempt: int, max_attempts: int) -> float:
    """Return the seconds to wait after attempt number `attempt` of `max_attempts`."""
    before = len(WAITS_S) - (max_attempts - attempt)  # attempts of this round; an operator may begin another
    return WAITS_S[min(max(before, 0), len(WAITS_S) - 1)]
