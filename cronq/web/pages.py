"""The pages: each asks for what it shows and no more, so that they stay fast however much is stored."""

from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import Response
from starlette.staticfiles import StaticFiles

from cronq.coordination.redis_client import RedisError
from cronq.job import State
from cronq.store import overview
from cronq.store.jobs import JobFilter, attempts_of, get_job, list_jobs
from cronq.views import attempt_fields, job_fields, live_progress
from cronq.web import actions, day, now, schedules, sign_in
from cronq.web.render import HERE, page, parts_of

HOUR: Final = timedelta(hours=1)
PER_PAGE: Final = 50

router = APIRouter(include_in_schema=False)


def install_pages(app: FastAPI) -> None:
    """Add the pages, their actions and their files to `app`."""
    for each in (router, now.router, day.router, schedules.router, actions.router, sign_in.router):
        app.include_router(each)
    app.mount("/static", StaticFiles(directory=HERE / "static"), name="static")


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
