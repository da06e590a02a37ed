"""The pages: each asks for what it shows and no more, so that they stay fast however much is stored."""

from datetime import datetime, timedelta
from typing import Annotated, Any, Final
from urllib.parse import quote, urlencode

from fastapi import APIRouter, FastAPI, HTTPException, Query, Request
from fastapi.responses import Response
from pydantic import AwareDatetime
from starlette.staticfiles import StaticFiles

from cronq.app import Cronq
from cronq.coordination.redis_client import RedisError
from cronq.job import State
from cronq.store import overview
from cronq.store.fires import Fire, fires, latest_fires, next_fires, recent_jobs
from cronq.store.jobs import JobFilter, attempts_of, get_job, list_jobs
from cronq.store.schedules import StoredSchedule, get_schedule
from cronq.timing import timing_from
from cronq.timing.bounds import tz_of
from cronq.timing.explain import explain
from cronq.views import attempt_fields, job_fields, leader_fields, live_progress, schedule_fields
from cronq.web import actions, sign_in
from cronq.web.format import last_line
from cronq.web.render import HERE, page, parts_of

HOUR: Final = timedelta(hours=1)
PER_PAGE: Final = 50
SPARK: Final = 20

router = APIRouter(include_in_schema=False)


def install_pages(app: FastAPI) -> None:
    """Add the pages, their actions and their files to `app`."""
    for each in (router, actions.router, sign_in.router):
        app.include_router(each)
    app.mount("/static", StaticFiles(directory=HERE / "static"), name="static")


@router.get("/")
def now(request: Request) -> Response:
    """Show how everything stands."""
    parts = parts_of(request)
    database = parts.database
    running = overview.running_jobs(database, 50)
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
        late_schedules=overview.overdue_schedules(database, 20),
        upcoming=_upcoming(parts),
        schedules=overview.count_schedules(database),
    )


@router.get("/schedules")
def schedules(request: Request, q: str = "", only: str | None = None, after: str = "") -> Response:
    """List schedules."""
    parts = parts_of(request)
    found = overview.find_schedules(parts.database, text=q, only=only, after=after, limit=PER_PAGE + 1)
    shown = found[:PER_PAGE]
    recent = recent_jobs(parts.database, [each.id for each in shown], SPARK)
    at = parts.database.clock()
    more = None
    if len(found) > PER_PAGE:
        more = "?" + urlencode({"q": q, "after": shown[-1].name} | ({} if only is None else {"only": only}))
    return page(
        request,
        "schedules.html",
        items=[_schedule(each) | {"recent": recent[each.id], "next": _next(each, at)} for each in shown],
        counts=overview.count_schedules(parts.database),
        q=q,
        only=only,
        more=more,
    )


@router.get("/schedules/{name:path}")
def one_schedule(
    request: Request,
    name: str,
    since: Annotated[AwareDatetime | None, Query(alias="from")] = None,
) -> Response:
    """Show one schedule: what it means, what comes, what became of each fire time."""
    parts = parts_of(request)
    stored = get_schedule(parts.database, name)
    at = parts.database.clock()
    more = None
    if since is None:
        past = latest_fires(parts.database, stored, 30)
    else:
        if not 1970 <= since.year < 2200:  # noqa: PLR2004 - what the API takes as well
            raise HTTPException(404)
        past, more = fires(parts.database, stored, since, since + timedelta(days=31), limit=100)
    return page(
        request,
        "schedule.html",
        schedule=_schedule(stored),
        coming=next_fires(stored, at, 10),
        fires=[_fire(each) for each in past],
        since=since,
        more=more,
        recent=recent_jobs(parts.database, [stored.id], 60)[stored.id],
    )


@router.get("/jobs")
def jobs(
    request: Request,
    *,
    state: str = "",
    schedule: str = "",
    task: str = "",
    tenant: str = "",
    cursor: str = "",
) -> Response:
    """List jobs."""
    parts = parts_of(request)
    wanted = JobFilter(
        state=State(state) if state in State.__members__ else None,
        schedule=schedule or None,
        task=task or None,
        tenant=tenant or None,
        before=_cursor(cursor),
    )
    rows = list_jobs(parts.database, wanted, limit=PER_PAGE + 1)
    shown = rows[:PER_PAGE]
    live = live_progress(parts, list(shown))
    more = None
    given = {"state": state, "schedule": schedule, "task": task, "tenant": tenant}
    if len(rows) > PER_PAGE:
        last = shown[-1]
        more = "?" + urlencode(
            {name: value for name, value in given.items() if value}
            | {"cursor": f"{last['planned_at'].isoformat()}~{last['id']}"}
        )
    items = [job_fields(row, live.get(row["id"])) for row in shown]
    return page(request, "jobs.html", items=items, given=given, states=list(State), more=more, cursor=cursor)


@router.get("/jobs/{job_id}")
def one_job(request: Request, job_id: str) -> Response:
    """Show one job: its way, its attempts, its log."""
    parts = parts_of(request)
    row = get_job(parts.database, job_id)
    flower = parts.settings.flower_url
    return page(
        request,
        "job.html",
        job=job_fields(row, live_progress(parts, [row]).get(job_id)),
        dead=row["dead_at"],
        way=_way(row),
        attempts=[attempt_fields(each) for each in attempts_of(parts.database, job_id)],
        log=_log(request, job_id),
        flower=None if flower is None else f"{flower.rstrip('/')}/task/{job_id}",
    )


@router.get("/dead")
def dead(request: Request, cursor: str = "") -> Response:
    """List dead letters."""
    database = parts_of(request).database
    rows = overview.dead_letters(database, limit=PER_PAGE + 1, before=_cursor(cursor))
    more = None
    if len(rows) > PER_PAGE:
        last = rows[PER_PAGE - 1]
        more = "?" + urlencode({"cursor": f"{last['dead_at'].isoformat()}~{last['id']}"})
    items = [job_fields(row) for row in rows[:PER_PAGE]]
    return page(request, "dead.html", items=items, count=overview.count_dead(database), more=more)


@router.get("/docs")
def docs(request: Request) -> Response:
    """List the API's routes."""
    described = request.app.openapi()
    groups: dict[str, list[dict[str, Any]]] = {}
    for path, methods in described["paths"].items():
        for method, route in methods.items():
            group = groups.setdefault((route.get("tags") or ["other"])[0], [])
            group.append({"method": method.upper(), "path": path, "parameters": []} | route)
    return page(request, "docs.html", groups=groups)


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
    """Return what comes next: the jobs that are planned, then the fire times beyond."""
    coming = [
        {"at": row["due_at"], "name": row["schedule_name"] or row["task"], "address": f"/jobs/{row['id']}"}
        for row in overview.planned_jobs(parts.database, count)
    ]
    coming += [
        {"at": each.next_fire_at, "name": each.name, "address": f"/schedules/{quote(each.name)}"}
        for each in overview.upcoming_schedules(parts.database, count)
    ]
    return sorted(coming, key=lambda each: each["at"])[:count]


def _schedule(stored: StoredSchedule) -> dict[str, Any]:
    timing = timing_from(stored.definition.timing)
    expression = stored.definition.timing.get("expression")
    return schedule_fields(stored) | {
        "meaning": explain(timing),
        "zone": tz_of(timing),
        "expression": " · ".join(expression) if isinstance(expression, list) else expression,
    }


def _next(stored: StoredSchedule, at: Any) -> Any:  # noqa: ANN401 - instants
    if stored.paused_at is not None or stored.retired_at is not None or stored.fault is not None:
        return None
    return next(iter(next_fires(stored, at, 1)), None)


def _fire(fire: Fire) -> dict[str, Any]:
    job = None if fire.job is None else job_fields(fire.job)
    state = fire.disposition
    if fire.disposition == "skipped":
        state = "SKIPPED"
    elif job is not None:
        state = job["status"]
    late = took = None
    if job is not None and job["started_at"] is not None:
        late = job["started_at"] - fire.fire_time
        took = None if job["finished_at"] is None else job["finished_at"] - job["started_at"]
    return {"fire": fire, "job": job, "state": state, "late": late, "took": took}


def _way(row: Any) -> list[tuple[str, Any, Any]]:  # noqa: ANN401 - a row of the job table
    """Return (what, when, after how long) of each step that was taken, in order."""
    steps = [("planned", row["planned_at"]), ("due", row["due_at"]), ("published", row["published_at"])]
    steps += [("started", row["started_at"]), ("ended", row["finished_at"])]
    way, before = [], None
    for what, when in steps:
        way.append((what, when, None if before is None or when is None else when - before))
        before = when or before
    return way


def _cursor(text: str) -> Any:  # noqa: ANN401 - (instant, id)
    moment, _, job_id = text.partition("~")
    try:
        return (datetime.fromisoformat(moment), job_id) if job_id else None
    except ValueError:
        return None


def _log(request: Request, job_id: str) -> list[str]:
    try:
        return parts_of(request).board.read_log(job_id)
    except RedisError:
        return []
