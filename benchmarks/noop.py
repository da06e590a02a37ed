"""The job that does nothing, and the Celery settings that all sides share."""

import os
from collections.abc import Callable
from typing import Any

import redis
from celery import Celery

TASK = "bench.noop"
STARTS = "bench:starts"
"""The Redis list in which a body that was asked to notes when it started."""


def settings() -> dict[str, Any]:
    """Return the Celery settings of every beat and worker that is measured."""
    return {
        "broker_connection_retry_on_startup": True,
        "enable_utc": True,
        "task_acks_late": True,
        "task_default_queue": os.environ["BENCH_QUEUE"],
        "task_ignore_result": True,
        "timezone": "UTC",
        "worker_enable_remote_control": False,
        "worker_prefetch_multiplier": int(os.environ.get("BENCH_PREFETCH", "4")),
        "worker_send_task_events": "BENCH_EVENTS" in os.environ,
    }


def add_noop(app: Celery, clock: Callable[[], float]) -> None:
    """Give `app` the task."""
    notes = redis.Redis.from_url(os.environ["CRONQ_REDIS_URL"].rpartition("/")[0] + "/2")

    @app.task(name=TASK, bind=True, acks_late=True)
    def noop(self: Any, tenant: str = "", note: int = 0) -> None:  # noqa: ANN401, ARG001
        if note:
            started_at = clock()
            notes.rpush(STARTS, f"{self.request.id} {started_at!r}")
