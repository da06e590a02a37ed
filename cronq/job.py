"""A job: one piece of work, its states, and who may move it from one to the next. Standard library only."""

import time
import uuid
from datetime import UTC, datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from cronq.schedule import NAMESPACE


class State(StrEnum):
    """Where a job stands."""

    SCHEDULED = "SCHEDULED"  #: decided; its message goes out at its due time
    PENDING = "PENDING"  #: its message is on the broker
    RUNNING = "RUNNING"  #: a worker holds its lease
    RETRYING = "RETRYING"  #: an attempt failed; the next one has a due time
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    TIMED_OUT = "TIMED_OUT"
    SKIPPED = "SKIPPED"  #: decided not to run, with a reason
    CANCELLED = "CANCELLED"


ENDS: Final = frozenset({State.COMPLETED, State.FAILED, State.TIMED_OUT, State.SKIPPED, State.CANCELLED})
"""States that never change, except that an operator may send a dead letter back."""

ACTIVE: Final = frozenset({State.PENDING, State.RUNNING, State.RETRYING})
"""States in which the overlap policies count a job as still going on."""

TRANSITIONS: Final = MappingProxyType(
    {
        State.SCHEDULED: {State.PENDING, State.RUNNING, State.SKIPPED, State.CANCELLED, State.FAILED},
        State.PENDING: {State.RUNNING, State.SCHEDULED, State.CANCELLED, State.FAILED},
        State.RUNNING: {
            State.COMPLETED,
            State.FAILED,
            State.TIMED_OUT,
            State.RETRYING,
            State.CANCELLED,
        },
        State.RETRYING: {State.RUNNING, State.CANCELLED, State.FAILED},
        State.FAILED: {State.SCHEDULED},
        State.TIMED_OUT: {State.SCHEDULED},
    }
)
"""What may follow what. `FAILED` straight from waiting: no worker knows the task. `SCHEDULED` after an end:
an operator sent a dead letter back. `SCHEDULED` after `PENDING`: its batch was paused, or a limit had no room
for it when it was claimed."""


class Outcome(StrEnum):
    """How one attempt ended."""

    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    TIMED_OUT = "TIMED_OUT"
    CANCELLED = "CANCELLED"
    LOST = "LOST"  #: its worker went silent and the lease ran out
    HANDED_BACK = "HANDED_BACK"  #: its worker shut down; this attempt is not counted


TELLING: Final = "cronq.webhook"
"""The task that tells a receiver of an end."""


class Trigger(StrEnum):
    """What asked for the job."""

    SCHEDULE = "schedule"
    CATCH_UP = "catch_up"
    BACKFILL = "backfill"
    MANUAL = "manual"  #: "run now" of a schedule
    DEMAND = "demand"  #: `cronq.enqueue` or `POST /api/jobs`
    WEBHOOK = "webhook"  #: the end of a job or batch that has a `callback_url`
    BATCH_END = "batch_end"  #: all items of a batch are at an end


def scheduled_job_id(schedule_id: str, fire_time: datetime, item: str = "") -> str:
    """Return the id of the job of `schedule_id` at `fire_time`: the dedup id and the Celery task id.

    The same three values give the same id in every process and for ever, so that a fire time which two
    beats plan, or one beat plans twice, is one job.
    """
    moment = fire_time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return str(uuid.uuid5(NAMESPACE, f"{schedule_id} {moment} {item}"))


def item_job_id(schedule_id: str, fire_time: datetime | None, batch_id: str, item: str) -> str:
    """Return the id of the job of one item of a batch; `fire_time` None: it was asked for by hand."""
    if fire_time is None:
        return str(uuid.uuid5(NAMESPACE, f"{batch_id} {item}"))
    return scheduled_job_id(schedule_id, fire_time, item)


def batch_end_job_id(batch_id: str) -> str:
    """Return the id of the one job that is asked for when a batch ends."""
    return str(uuid.uuid5(NAMESPACE, f"end of {batch_id}"))


def demanded_job_id(dedup_key: str | None) -> str:
    """Return the id of an on-demand job: one per `dedup_key`, or a time-ordered uuid7 without a key."""
    if dedup_key is not None:
        return str(uuid.uuid5(NAMESPACE, f"dedup {dedup_key}"))
    return str(uuid7())


def uuid7() -> uuid.UUID:
    """Return a time-ordered UUID, version 7 of RFC 9562 §5.7 (in the standard library from 3.14 on)."""
    milliseconds = time.time_ns() // 1_000_000
    random = uuid.uuid4().int
    return uuid.UUID(
        int=(milliseconds & (1 << 48) - 1) << 80
        | 0x7 << 76
        | (random >> 62 & 0xFFF) << 64
        | 0b10 << 62
        | random & (1 << 62) - 1
    )
