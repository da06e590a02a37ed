"""`/api/jobs`: ask for jobs, find them, follow them, stop them, send them back."""

import asyncio
from datetime import datetime
from typing import Annotated, Final

from anyio import to_thread
from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import Response

from cronq.api.asked import BulkIn, JobIn, JobsQuery
from cronq.api.events import read_job, stream_job
from cronq.api.models import Attempts, BulkOut, Job, JobPage, Log
from cronq.api.problems import Problem
from cronq.api.reply import cursor_of, etag_of, matches, parts_of, problems, read_cursor, reply
from cronq.app import Cronq
from cronq.coordination.notices import send_notice
from cronq.coordination.redis_client import RedisError
from cronq.demand import submit
from cronq.errors import JobRefused
from cronq.job import ENDS, State
from cronq.store import bulk
from cronq.store import jobs as store
from cronq.store.search import search_jobs
from cronq.timing import duration
from cronq.views import attempt_fields, job_fields, live_progress

LONGEST_WAIT_S: Final = 60.0
LONGEST_DELAY_S: Final = 10 * 366 * 86400
ASK_AGAIN_S: Final = "1"
SAME: Final = ("args", "kwargs", "needs", "priority", "max_attempts", "tenant", "callback_url")
"""What has to be the same for a key to be the same job. When it is due is not: `run_in` counts from now."""

router = APIRouter(prefix="/api/jobs", tags=["jobs"])


@router.post("", status_code=202, response_model=Job, responses=problems(422))
def create_job(
    request: Request,
    wanted: JobIn,
    idempotency_key: Annotated[str | None, Header(max_length=255, description="the dedup key")] = None,
) -> Response:
    """Ask for one job. The same `Idempotency-Key` is the same job; with other content it is refused."""
    parts = parts_of(request)
    key = idempotency_key or wanted.dedup_key
    if idempotency_key and wanted.dedup_key and idempotency_key != wanted.dedup_key:
        raise JobRefused("Idempotency-Key and dedup_key differ; give one of them")
    kwargs = wanted.kwargs if wanted.input is None else wanted.input
    job_id, new = submit(
        parts,
        wanted.type,
        wanted.args,
        kwargs,
        due=_due(wanted),
        queue=wanted.queue,
        needs=wanted.needs,
        priority=wanted.priority,
        max_attempts=wanted.max_attempts,
        dedup_key=key,
        tenant=wanted.tenant,
        callback_url=wanted.callback_url,
    )
    row = store.get_job(parts.database, job_id)
    asked = wanted.model_dump(include=set(SAME)) | {"kwargs": kwargs, "task": wanted.type}
    differs = wanted.needs is None and row["queue"] != wanted.queue  # else it is decided when it is sent
    if not new and (differs or any(row[name] != asked[name] for name in ("task", *SAME))):
        raise JobRefused(f"the key {key!r} belongs to job {job_id}, which is another one; choose a new key")
    headers = {"Location": f"/api/jobs/{job_id}"} | ({} if new else {"Idempotency-Replayed": "true"})
    return reply(job_fields(row), 202, headers)


@router.get("", response_model=JobPage, responses=problems(400, 422))
def list_jobs(request: Request, wanted: Annotated[JobsQuery, Query()]) -> Response:
    """List jobs, the newest planned first. Go on while there is a `next_cursor`: a page may be short."""
    parts = parts_of(request)
    asked = wanted.filter(read_cursor(wanted.cursor))
    rows, more = search_jobs(parts.database, asked, limit=wanted.limit)
    live = live_progress(parts, rows)
    items = [job_fields(row, live.get(row["id"])) for row in rows]
    return reply({"items": items, "next_cursor": None if more is None else cursor_of(*more)})


@router.post("/cancel", response_model=BulkOut, responses=problems(422))
def cancel_jobs(request: Request, wanted: BulkIn) -> Response:
    """Stop all jobs that fit, or with `dry_run`, the default, say how many there are."""
    database, which = parts_of(request).database, wanted.filter.filter()
    matching = bulk.count_stoppable(database, which)
    changed = 0 if wanted.dry_run else bulk.stop_jobs(database, which)
    return reply({"dry_run": wanted.dry_run, "matching": matching, "changed": changed})


@router.post("/retry", response_model=BulkOut, responses=problems(422))
def retry_jobs(request: Request, wanted: BulkIn) -> Response:
    """Send all failed and timed-out jobs that fit back, or with `dry_run` say how many there are."""
    database, which = parts_of(request).database, wanted.filter.filter()
    matching = bulk.count_sendable(database, which)
    changed = 0 if wanted.dry_run else bulk.send_jobs_back(database, which)
    return reply({"dry_run": wanted.dry_run, "matching": matching, "changed": changed})


@router.get("/{job_id}", response_model=Job, responses={304: {"description": "unchanged"}, **problems(404)})
async def show_job(
    request: Request,
    job_id: str,
    wait: Annotated[float, Query(ge=0, le=LONGEST_WAIT_S, description="seconds to wait for a change")] = 0.0,
) -> Response:
    """Show one job. With `wait` the answer comes when the job changes, at its end, or when the time is up."""
    parts = parts_of(request)
    with request.app.state.feed.watch(job_id) as watcher:
        fields = await to_thread.run_sync(read_job, parts, job_id)
        etag = first = etag_of(fields)
        until = asyncio.get_running_loop().time() + wait
        seen = request.headers.get("if-none-match")
        while State(fields["status"]) not in ENDS and (matches(request, etag) if seen else etag == first):
            try:
                async with asyncio.timeout_at(until):
                    events = await watcher.take()
            except TimeoutError:
                break
            if not events:
                break
            fields = await to_thread.run_sync(read_job, parts, job_id)
            etag = etag_of(fields)
    headers = {"ETag": etag, "Cache-Control": "no-cache"}
    if State(fields["status"]) not in ENDS:
        headers["Retry-After"] = ASK_AGAIN_S
    if matches(request, etag):
        return Response(status_code=304, headers=headers)
    return reply(fields, headers=headers)


@router.get("/{job_id}/events", responses={200: {"content": {"text/event-stream": {}}}, **problems(404)})
async def job_events(request: Request, job_id: str) -> Response:
    """Follow one job by Server-Sent Events: `job` as it stands and after each change, `progress` between."""
    fields = await to_thread.run_sync(read_job, parts_of(request), job_id)
    return stream_job(request, job_id, lambda: read_job(parts_of(request), fields["id"]))


@router.get("/{job_id}/attempts", response_model=Attempts, responses=problems(404))
def list_attempts(request: Request, job_id: str) -> Response:
    """List the finished attempts of a job, oldest first."""
    database = parts_of(request).database
    store.get_job(database, job_id)
    return reply({"items": [attempt_fields(row) for row in store.attempts_of(database, job_id)]})


@router.get("/{job_id}/log", response_model=Log, responses=problems(404))
def read_log(request: Request, job_id: str) -> Response:
    """Return the last lines that a job logged."""
    parts = parts_of(request)
    store.get_job(parts.database, job_id)
    return reply({"lines": log_lines(parts, job_id)})


@router.post("/{job_id}/cancel", status_code=202, response_model=Job, responses=problems(404, 409))
def cancel_job(request: Request, job_id: str) -> Response:
    """Stop a job: one that waits never starts, one that runs learns it at its next progress report."""
    parts = parts_of(request)
    state = store.request_cancel(parts.database, job_id)
    if state in ENDS and state is not State.CANCELLED:
        raise Problem(409, "job-over", f"Job {job_id} is over already: {state}")
    return reply(read_job(parts, job_id), 202)


@router.post("/{job_id}/retry", status_code=202, response_model=Job, responses=problems(404, 409))
def retry_job(request: Request, job_id: str) -> Response:
    """Send a failed or timed-out job back: the same id, its history kept, one more round of attempts."""
    parts = parts_of(request)
    send_back(parts, job_id)
    return reply(read_job(parts, job_id), 202)


def send_back(parts: Cronq, job_id: str) -> None:
    """Do so, and tell the leader."""
    try:
        store.retry_dead(parts.database, job_id)
    except JobRefused as error:
        raise Problem(409, "job-not-dead", str(error)) from error
    send_notice(parts.redis, parts.settings.key_prefix, "job", job_id=job_id)


def log_lines(parts: Cronq, job_id: str) -> list[str]:
    """Return a job's log; without Redis there is none."""
    try:
        return parts.board.read_log(job_id)
    except RedisError:
        return []


def _due(wanted: JobIn) -> datetime | float:
    if wanted.run_at is not None:
        return wanted.run_at
    given = wanted.run_in or 0.0
    seconds = duration(given).total_seconds() if isinstance(given, str) else given
    if not 0 <= seconds <= LONGEST_DELAY_S:
        raise JobRefused(f"run_in {given} is not between now and ten years from now")
    return seconds
