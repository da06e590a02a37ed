"""The pages of jobs: those that fit a filter, and one with its way, its attempts and its log."""

from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import Response

from cronq.coordination.redis_client import RedisError
from cronq.job import State
from cronq.store.bulk import count_sendable, count_stoppable
from cronq.store.jobs import JobFilter, attempts_of, get_job
from cronq.store.search import search_jobs
from cronq.timing import InvalidTiming, duration
from cronq.views import attempt_fields, job_fields, live_progress
from cronq.web.render import page, parts_of

PER_PAGE: Final = 50
FILTERS: Final = ("q", "state", "schedule", "task", "tenant", "queue", "within")
WITHIN: Final = {"": "any time", "1h": "the last hour", "1d": "the last day", "7d": "the last week"}

router = APIRouter(include_in_schema=False)


@router.get("/jobs")
def jobs(request: Request, cursor: str = "") -> Response:
    """List the jobs that fit."""
    parts = parts_of(request)
    given = filters_of(dict(request.query_params))
    wanted = job_filter(given, parts.database.clock(), before=cursor_of(cursor))
    rows, edge = search_jobs(parts.database, wanted, limit=PER_PAGE)
    live = live_progress(parts, rows)
    query = {name: value for name, value in given.items() if value}
    more = None
    if edge is not None:
        more = "?" + urlencode(query | {"cursor": f"{edge[0].isoformat()}~{edge[1]}"})
    return page(
        request,
        "jobs.html",
        items=[job_fields(row, live.get(row["id"])) | {"dead": row["dead_at"]} for row in rows],
        given=given,
        query=urlencode(query),
        states=list(State),
        withins=WITHIN,
        more=more,
        cursor=cursor,
    )


@router.get("/jobs/all/{what}")
def all_jobs(request: Request, what: str) -> Response:
    """Ask whether all the jobs that fit are really meant."""
    database = parts_of(request).database
    given = filters_of(dict(request.query_params))
    query = {name: value for name, value in given.items() if value}
    count = {"cancel": count_stoppable, "retry": count_sendable}.get(what)
    if count is None:
        raise HTTPException(404)
    return page(
        request,
        "confirm.html",
        action=f"{what}_jobs",
        label={"cancel": "Cancel", "retry": "Retry"}[what],
        count=count(database, job_filter(given, database.clock())),
        what="job",
        given=query,
        back="/jobs?" + urlencode(query),
    )


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


def filters_of(given: dict[str, str]) -> dict[str, str]:
    """Return the filters that a form or an address gives; an empty one is none."""
    return {name: given.get(name, "").strip() for name in FILTERS}


def job_filter(
    given: dict[str, str], now: datetime, *, before: tuple[datetime, str] | None = None
) -> JobFilter:
    """Return what `filters_of` means; what is no state or no length of time filters nothing."""
    since = None
    if given["within"]:
        try:
            since = now - min(duration(given["within"]), timedelta(days=36500))
        except (InvalidTiming, OverflowError):
            since = None
    return JobFilter(
        state=State(given["state"]) if given["state"] in State.__members__ else None,
        schedule=given["schedule"] or None,
        task=given["task"] or None,
        tenant=given["tenant"] or None,
        queue=given["queue"] or None,
        text=given["q"] or None,
        since=since,
        before=before,
    )


def cursor_of(text: str) -> tuple[datetime, str] | None:
    """Return (instant, id) of `2026-…~id`, or None."""
    moment, _, job_id = text.partition("~")
    try:
        at = datetime.fromisoformat(moment)
    except ValueError:
        return None
    return (at, job_id) if job_id and at.tzinfo is not None else None


def _way(row: Any) -> list[tuple[str, Any, Any]]:  # noqa: ANN401 - a row of the job table
    """Return (what, when, after how long) of each step that was taken, in order."""
    steps = [("planned", row["planned_at"]), ("due", row["due_at"]), ("published", row["published_at"])]
    steps += [("started", row["started_at"]), ("ended", row["finished_at"])]
    way, before = [], None
    for what, when in steps:
        way.append((what, when, None if before is None or when is None else when - before))
        before = when or before
    return way


def _log(request: Request, job_id: str) -> list[str]:
    try:
        return parts_of(request).board.read_log(job_id)
    except RedisError:
        return []
