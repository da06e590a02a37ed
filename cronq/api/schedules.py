"""`/api/schedules` and `/api/fires`: what is due, what became of it, and who may change it."""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import Response

from cronq.api.asked import Instant, Note, ScheduleIn
from cronq.api.declared import declared
from cronq.api.gate import require_role
from cronq.api.models import Fires
from cronq.api.problems import Problem
from cronq.api.reply import parts_of, problems, reply, version_of
from cronq.app import Cronq
from cronq.coordination.notices import send_notice
from cronq.store import control
from cronq.store.fires import fires, latest_fires, next_fires
from cronq.store.history import outcomes
from cronq.store.overview import find_schedules
from cronq.store.schedules import StoredSchedule, get_schedule
from cronq.store.tokens import Role
from cronq.timing.explain import explain
from cronq.views import fire_fields, schedule_fields
from cronq.web.punctuality import late, within

SHOWN = 10
MOST_FIRES = 500
MEASURED = timedelta(days=7)
"""How far back the lateness of starts is measured."""


class Only(StrEnum):
    """Which schedules to list."""

    PAUSED = "paused"
    FAULTY = "faulty"
    RETIRED = "retired"


router = APIRouter(prefix="/api", tags=["schedules"])


@router.get("/schedules", responses=problems(422))
def all_schedules(
    request: Request,
    *,
    q: Annotated[str, Query(max_length=255, description="what the name or the task has in it")] = "",
    only: Only | None = None,
    cursor: Annotated[str, Query(max_length=255, description="the last name seen")] = "",
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> Response:
    """List schedules by name; `only=retired` lists those that nothing declares any more."""
    database = parts_of(request).database
    found = find_schedules(
        database, text=q, only=None if only is None else only.value, after=cursor, limit=limit + 1
    )
    more = found[limit - 1].name if len(found) > limit else None
    return reply({"items": [_fields(each) for each in found[:limit]], "next_cursor": more})


@router.get("/schedules/{name:path}", responses=problems(404))
def show_schedule(request: Request, name: str) -> Response:
    """Show one schedule with its next and its last ten fire times. Its version is the ETag."""
    parts = parts_of(request)
    return _shown(parts, get_schedule(parts.database, name))


@router.put("/schedules/{name:path}", responses=problems(404, 409, 412, 422))
def write_schedule(request: Request, name: str, wanted: ScheduleIn) -> Response:
    """Create or replace a schedule; `If-Match` with its version makes sure that nobody else changed it."""
    caller = require_role(request, Role.EDITOR)
    parts = parts_of(request)
    stored, new = control.write(
        parts.database,
        declared(parts, name, wanted),
        actor=f"api {caller.name}",
        version=version_of(request),
    )
    tell_leader(parts, stored)
    return _shown(parts, stored, 201 if new else 200)


@router.delete("/schedules/{name:path}", status_code=204, responses=problems(404, 409, 412))
def delete_schedule(request: Request, name: str) -> Response:
    """Stop planning a schedule that was made through the API; its history stays."""
    require_role(request, Role.EDITOR)
    parts = parts_of(request)
    tell_leader(parts, control.delete(parts.database, name, version=version_of(request)))
    return Response(status_code=204)


@router.post("/schedules/{name:path}/pause", responses=problems(404, 409, 412))
def pause_schedule(request: Request, name: str, note: Note | None = None) -> Response:
    """Let no further fire time become a job; each is recorded as skipped because of the pause."""
    parts = parts_of(request)
    text = None if note is None else note.note
    stored = control.pause(parts.database, name, note=text, version=version_of(request))
    tell_leader(parts, stored)
    return _shown(parts, stored)


@router.post("/schedules/{name:path}/resume", responses=problems(404, 409, 412))
def resume_schedule(request: Request, name: str) -> Response:
    """Go on with the next fire time."""
    parts = parts_of(request)
    stored = control.resume(
        parts.database, name, limit=parts.settings.catch_up_limit, version=version_of(request)
    )
    tell_leader(parts, stored)
    return _shown(parts, stored)


@router.post("/schedules/{name:path}/trigger", status_code=202, responses=problems(404, 409))
def trigger_schedule(
    request: Request, name: str, idempotency_key: Annotated[str | None, Header(max_length=255)] = None
) -> Response:
    """Ask for one job of the schedule now. The overlap policy holds for it too."""
    parts = parts_of(request)
    job_id, new = control.trigger(parts.database, name, dedup_key=idempotency_key)
    send_notice(parts.redis, parts.settings.key_prefix, "job", job_id=job_id)
    headers = {"Location": f"/api/jobs/{job_id}"} | ({} if new else {"Idempotency-Replayed": "true"})
    return reply({"id": job_id, "schedule": name}, 202, headers)


@router.get("/fires", response_model=Fires, responses=problems(404, 422))
def list_fires(
    request: Request,
    schedule: str,
    since: Annotated[Instant | None, Query(alias="from")] = None,
    until: Annotated[Instant | None, Query(alias="to")] = None,
    limit: Annotated[int, Query(ge=1, le=MOST_FIRES)] = 100,
) -> Response:
    """Say what became of each fire time in [from, to), by default the last hour, and why it did not run."""
    parts = parts_of(request)
    stored = get_schedule(parts.database, schedule)
    end = until or parts.database.clock()
    start = since or end - timedelta(hours=1)
    if end <= start:
        raise Problem(422, "range", "`to` must be later than `from`")
    found, more = fires(parts.database, stored, start, end, limit=limit)
    return reply({"schedule": schedule, "items": [fire_fields(each) for each in found], "next_from": more})


def tell_leader(parts: Cronq, stored: StoredSchedule) -> None:
    """Let the leader know of a change at once."""
    send_notice(parts.redis, parts.settings.key_prefix, "schedule", schedule_id=stored.id)


def _fields(stored: StoredSchedule) -> dict[str, Any]:
    return schedule_fields(stored) | {"meaning": explain(stored.timing)}


def _shown(parts: Cronq, stored: StoredSchedule, status: int = 200) -> Response:
    now: datetime = parts.database.clock()
    fields = _fields(stored) | {
        "start_late_s": _lateness(parts, stored, now),
        "next_fires": next_fires(stored, now, SHOWN),
        "last_fires": [fire_fields(each) for each in latest_fires(parts.database, stored, SHOWN)],
    }
    return reply(fields, status, {"ETag": f'"{stored.version}"', "Cache-Control": "no-cache"})


def _lateness(parts: Cronq, stored: StoredSchedule, now: datetime) -> dict[str, Any]:
    """Return by how many seconds the last jobs' attempts started after they were due."""
    rows = outcomes(parts.database, stored, now - MEASURED, now, limit=MOST_FIRES)
    found = sorted(each for each in map(late, rows) if each is not None)
    shares = {"p50": 0.5, "p99": 0.99}
    return {"jobs": len(found)} | {
        name: within(found, share) if found else None for name, share in shares.items()
    }
