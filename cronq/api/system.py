"""Leader, workers, queues, and whether this process and what it needs are well."""

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import Response

from cronq.api.reply import parts_of, reply
from cronq.app import Cronq
from cronq.coordination.redis_client import RedisError
from cronq.errors import first_line
from cronq.queues import unserved_fields
from cronq.settings import hide_password
from cronq.store import overview
from cronq.store.schema import require_schema
from cronq.views import leader_fields, limit_fields

HOUR: Final = timedelta(hours=1)
BROKER_PATIENCE_S: Final = 2.0

router = APIRouter()


@router.get("/api/leader", tags=["system"])
def leader(request: Request) -> Response:
    """Say who leads since when in which term, and which beats are alive with which clocks."""
    return reply(leader_fields(parts_of(request)))


@router.get("/api/queues", tags=["system"])
def queues(request: Request) -> Response:
    """List what waits for a worker, by queue and task; queue null: wherever Celery routes the task.

    unserved: what no live worker can take; null: Redis does not say who is alive.
    """
    parts = parts_of(request)
    found = overview.queues(parts.database)
    return reply(
        {
            "items": [
                {"queue": each.queue, "task": each.task, "pending": each.pending, "oldest": each.oldest}
                for each in found
            ],
            "unserved": unserved_fields(parts),
        }
    )


@router.get("/api/workers", tags=["system"])
def workers(request: Request) -> Response:
    """List the workers whose event loop turns; without Redis those with jobs.

    running: how many jobs each runs, of `slots` at a time, from which `queues`.
    """
    parts = parts_of(request)
    running = overview.running_by_worker(parts.database)
    try:
        heard = {str(note["holder"]): note for note in parts.workers.read()}
    except RedisError:
        heard = {}
    items = [
        {
            "name": name,
            "host": heard.get(name, {}).get("host"),
            "pid": heard.get(name, {}).get("pid"),
            "queues": heard.get(name, {}).get("queues"),
            "slots": heard.get(name, {}).get("slots"),
            "running": running.get(name, 0),
            "heard_from": name in heard,
        }
        for name in sorted({*heard, *running})
    ]
    return reply({"items": items})


@router.get("/api/limits", tags=["system"])
def limits(request: Request) -> Response:
    """List the declared limits and tiers, and how many due jobs wait for room under each."""
    return reply({"items": limit_fields(parts_of(request))})


@router.get("/api/overview", tags=["system"])
def summary(request: Request) -> Response:
    """Count what goes on, what ended within the last hour, and what is overdue."""
    database = parts_of(request).database
    return reply(
        {
            "unfinished": overview.count_unfinished(database),
            "ended_last_hour": overview.count_ended(database, HOUR),
            "dead_letters": overview.count_dead(database),
            "schedules": overview.count_schedules(database),
            "overdue_jobs": len(overview.overdue_jobs(database, 1000)),
            "overdue_schedules": len(overview.overdue_schedules(database, 1000)),
        }
    )


@router.get("/healthz", tags=["health"])
@router.get("/livez", tags=["health"], include_in_schema=False)
async def alive() -> Response:
    """Say that this process is alive; it says nothing about what it needs."""
    return reply({"status": "ok"})


@router.get("/readyz", tags=["health"], responses={503: {"description": "something does not answer"}})
def ready(request: Request) -> Response:
    """Say whether the database, Redis and the broker answer. That nobody leads is told, not judged."""
    parts = parts_of(request)
    checks = {
        "database": _timed(lambda: require_schema(parts.database)),
        "redis": _timed(parts.redis.ping),
        "broker": _timed(lambda: _ask_broker(parts)),
    }
    well = all(check["ok"] for check in checks.values())
    facts: dict[str, Any] = {"status": "ok" if well else "unavailable", "checks": checks}
    if checks["database"]["ok"]:
        # Anybody may ask this: who it is, and on which host, is told by /api/leader.
        facts["leader"] = leader_fields(parts)["holder"] is not None
    return reply(facts, 200 if well else 503)


def _timed(question: Callable[[], object]) -> dict[str, Any]:
    started = time.perf_counter()
    error = None
    try:
        question()
    except Exception as trouble:  # noqa: BLE001 - whatever it is, it is not ready
        error = hide_password(first_line(trouble))
    took = round((time.perf_counter() - started) * 1000, 1)
    return {"ok": error is None, "ms": took} | ({} if error is None else {"error": error})


def _ask_broker(parts: Cronq) -> None:
    with parts.app.connection_for_write(connect_timeout=BROKER_PATIENCE_S) as connection:
        connection.ensure_connection(max_retries=1, timeout=BROKER_PATIENCE_S)
