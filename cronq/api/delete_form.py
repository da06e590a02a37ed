"""The page that asks whether a schedule is really to be deleted, and does so."""

from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Depends, Request
from fastapi.responses import RedirectResponse, Response

from cronq.api.edit_form import version_in
from cronq.api.gate import require_role
from cronq.api.schedules import tell_leader
from cronq.errors import ScheduleRefused
from cronq.store import control
from cronq.store.schedules import get_schedule
from cronq.store.tokens import Role
from cronq.web.actions import form_of
from cronq.web.render import page, parts_of
from cronq.web.schedules import described

router = APIRouter(include_in_schema=False)


@router.get("/delete")
def look(request: Request, schedule: str) -> Response:
    """Ask whether it is really meant."""
    require_role(request, Role.EDITOR)
    stored = get_schedule(parts_of(request).database, schedule)
    control.require_ours(stored)
    if stored.retired_at is not None:
        raise ScheduleRefused(f"schedule {schedule!r} is retired: nothing declares it any more")
    return page(request, "delete.html", schedule=described(stored))


@router.post("/delete")
def send(request: Request, given: Annotated[dict[str, str], Depends(form_of)], schedule: str) -> Response:
    """Delete it as it was looked at, and go to its page: its history stays."""
    require_role(request, Role.EDITOR)
    parts = parts_of(request)
    tell_leader(parts, control.delete(parts.database, schedule, version=version_in(given)))
    return RedirectResponse(f"/schedules/{quote(schedule, safe='')}?said=schedule_deleted", status_code=303)
