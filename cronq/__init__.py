"""Distributed cron for Celery: every fire time ends in exactly one recorded outcome."""

from typing import TYPE_CHECKING

from cronq import progress
from cronq.context import JobContext, current_job
from cronq.declaration import at, cron, delay, every, rrule
from cronq.errors import Cancelled, Permanent

if TYPE_CHECKING:
    from cronq.app import configure
    from cronq.demand import enqueue

__all__ = [
    "Cancelled",
    "JobContext",
    "Permanent",
    "at",
    "configure",
    "cron",
    "current_job",
    "delay",
    "enqueue",
    "every",
    "progress",
    "rrule",
]


def __getattr__(name: str) -> object:
    # These two need the stores; a module that only declares schedules does not.
    if name == "configure":
        from cronq.app import configure  # noqa: PLC0415

        return configure
    if name == "enqueue":
        from cronq.demand import enqueue  # noqa: PLC0415

        return enqueue
    raise AttributeError(f"module 'cronq' has no attribute {name!r}")
