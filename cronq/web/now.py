"""The first page: what runs, who leads and who works, what waits, what failed, what is overdue."""

from collections import Counter
from datetime import timedelta
from typing import Any, Final
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import Response

from cronq.app import Cronq
from cronq.coordination.redis_client import RedisError
from cronq.queues import unserved_fields, unserved_sentence
from cronq.store import overview
from cronq.views import job_fields, last_line, leader_fields, limit_fields, live_progress
from cronq.web.render import page, parts_of

HOUR: Final = timedelta(hours=1)
SHOWN: Final = 50
LOOKED_AT: Final = 100

router = APIRouter(include_in_schema=False)


@router.get("/")
def now(request: Request) -> Response:
    """Show how everything stands."""
    parts = parts_of(request)
    database = parts.database
    running = overview.running_jobs(database, SHOWN)
    live = live_progress(parts, list(running))
    return page(
        request,
        "now.html",
        leader=leader_fields(parts),
        running=[job_fields(row, live.get(row["id"])) for row in running],
        unfinished=overview.count_unfinished(database),
        ended=overview.count_ended(database, HOUR),
        failures=_failures(parts),
        queues=overview.queues(database)[:12],
        late_jobs=[job_fields(row) for row in overview.overdue_jobs(database, 20)],
        unserved=[unserved_sentence(facts) for facts in unserved_fields(parts) or ()],
        spared=[limit for limit in limit_fields(parts) if limit.get("breaker", {}).get("room") is not None],
        late_schedules=overview.overdue_schedules(database, 20),
        upcoming=_upcoming(parts),
        workers=_workers(parts, overview.running_by_worker(database)),
        schedules=overview.count_schedules(database),
    )


def _failures(parts: Cronq) -> list[tuple[dict[str, Any], int]]:
    """Return the newest failure of each kind within the hour, and how often it came."""
    kinds: dict[tuple[Any, ...], tuple[dict[str, Any], int]] = {}
    for row in overview.dead_letters(parts.database, limit=200, since=HOUR):
        job = job_fields(row)
        kind = (job["schedule"] or job["type"], job["tenant"], last_line(job["error"]))
        newest, count = kinds.get(kind, (job, 0))
        kinds[kind] = (newest, count + 1)
    return list(kinds.values())[:8]


def _upcoming(parts: Cronq, count: int = 8) -> list[dict[str, Any]]:
    """Return what comes next of each schedule: the jobs that are planned, then the fire times beyond."""
    coming = [
        {"at": row["due_at"], "name": row["schedule_name"] or row["task"], "address": f"/jobs/{row['id']}"}
        for row in overview.planned_jobs(parts.database, LOOKED_AT)
    ]
    coming += [
        {"at": each.next_fire_at, "name": each.name, "address": f"/schedules/{quote(each.name)}"}
        for each in overview.upcoming_schedules(parts.database, count)
    ]
    coming.sort(key=lambda each: each["at"])
    first: dict[str, dict[str, Any]] = {}
    for each in coming:
        first.setdefault(each["name"], each)
    return list(first.values())[:count]


def _workers(parts: Cronq, running: Counter[str]) -> list[dict[str, Any]] | None:
    """Return the workers that are alive, with how many jobs each runs; None: Redis does not say."""
    try:
        return [each | {"running": running[each["holder"]]} for each in parts.workers.read()]
    except RedisError:
        return None
