"""`/api/backfills`: run past fire times of a schedule again, at a pace of their own."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from cronq.api.asked import BackfillIn, Name
from cronq.api.gate import Caller, caller_of
from cronq.api.models import Backfill, Backfills
from cronq.api.reply import parts_of, problems, reply
from cronq.app import Cronq
from cronq.coordination.notices import send_notice
from cronq.store import backfills as store
from cronq.store.backfills import BackfillRange, BackfillState

router = APIRouter(prefix="/api", tags=["backfills"])


@router.post("/schedules/{name:path}/backfill", status_code=202, responses=problems(404, 409, 422))
def start_backfill(request: Request, name: str, wanted: BackfillIn) -> Response:
    """Run the fire times of a range that were missed, skipped, cancelled or failed; or say what would run."""
    parts = parts_of(request)
    what = wanted.range()
    if wanted.dry_run:
        seen = store.preview(parts.database, name, what)
        return reply({"fires": seen.fires, "runs": seen.runs, "first": list(seen.first)})
    made = begin(parts, name, what, caller_of(request))
    return reply(made, 202, {"Location": f"/api/backfills/{made['id']}"})


@router.get("/backfills", response_model=Backfills, responses=problems(422))
def list_backfills(
    request: Request, schedule: Name | None = None, limit: Annotated[int, Query(ge=1, le=500)] = 50
) -> Response:
    """List backfills, the newest first."""
    rows = store.list_backfills(parts_of(request).database, schedule_name=schedule, limit=limit)
    return reply({"items": [dict(row) for row in rows]})


@router.get("/backfills/{backfill_id}", response_model=Backfill, responses=problems(404))
def show_backfill(request: Request, backfill_id: str) -> Response:
    """Show one backfill, and how many of its jobs stand in each state."""
    return reply(store.get_backfill(parts_of(request).database, backfill_id))


@router.post("/backfills/{backfill_id}/pause", response_model=Backfill, responses=problems(404, 409))
def pause_backfill(request: Request, backfill_id: str) -> Response:
    """Let it start nothing more; what it started goes on."""
    return _set(request, backfill_id, BackfillState.PAUSED)


@router.post("/backfills/{backfill_id}/resume", response_model=Backfill, responses=problems(404, 409))
def resume_backfill(request: Request, backfill_id: str) -> Response:
    """Go on."""
    return _set(request, backfill_id, BackfillState.RUNNING)


@router.post("/backfills/{backfill_id}/cancel", response_model=Backfill, responses=problems(404, 409))
def cancel_backfill(request: Request, backfill_id: str) -> Response:
    """End it; its jobs that have not started never will."""
    return _set(request, backfill_id, BackfillState.CANCELLED)


def begin(parts: Cronq, name: str, wanted: BackfillRange, caller: Caller) -> dict[str, Any]:
    """Start a backfill for `caller`, and tell the leader; return its row."""
    made = store.start(parts.database, name, wanted, actor=f"api {caller.name}")
    _tell(parts)
    return made


def _set(request: Request, backfill_id: str, wanted: BackfillState) -> Response:
    parts = parts_of(request)
    changed = store.set_state(parts.database, backfill_id, wanted)
    _tell(parts)
    return reply(changed)


def _tell(parts: Cronq) -> None:
    send_notice(parts.redis, parts.settings.key_prefix, "backfill")
