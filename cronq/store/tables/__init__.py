"""The tables. `migrations/` makes them; a test holds the two together."""

from cronq.store.instants import UtcDateTime
from cronq.store.tables.base import metadata
from cronq.store.tables.jobs import (
    ACTIVE_HEAD,
    AT_REST,
    AWAITING,
    BATCH_HEAD,
    FOR_ROOM,
    FOREIGN,
    HEAD,
    PLACED,
    PUBLISHED,
    RUNNING,
    UNCOPIED,
    UNFINISHED_ITEM,
    WAITING,
    attempt,
    dead_message,
    job,
    once,
)
from cronq.store.tables.rules import breaker, leader, limit, token
from cronq.store.tables.schedules import (
    RUNNING_BACKFILL,
    backfill,
    batch,
    deploy,
    schedule,
    schedule_version,
)

__all__ = [
    "ACTIVE_HEAD",
    "AT_REST",
    "AWAITING",
    "BATCH_HEAD",
    "FOREIGN",
    "FOR_ROOM",
    "HEAD",
    "PLACED",
    "PUBLISHED",
    "RUNNING",
    "RUNNING_BACKFILL",
    "UNCOPIED",
    "UNFINISHED_ITEM",
    "WAITING",
    "UtcDateTime",
    "attempt",
    "backfill",
    "batch",
    "breaker",
    "dead_message",
    "deploy",
    "job",
    "leader",
    "limit",
    "metadata",
    "once",
    "schedule",
    "schedule_version",
    "token",
]
