"""The page that asks for a backfill: first what it would run, then a button that starts it."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final
from urllib.parse import quote
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Depends, Request
from fastapi.responses import RedirectResponse, Response
from pydantic import ValidationError

from cronq.api.asked import BackfillIn
from cronq.api.backfills import begin
from cronq.api.form import NO_FIELD, complaints
from cronq.api.gate import require_role
from cronq.errors import BackfillRefused
from cronq.store.backfills import BackfillRange, Preview, preview
from cronq.store.control import require_readable
from cronq.store.database import Database
from cronq.store.schedules import StoredSchedule, get_schedule
from cronq.store.tokens import Role
from cronq.timing import InvalidTiming, timing_from
from cronq.timing.bounds import tz_of
from cronq.timing.moments import moment_on
from cronq.web.actions import form_of
from cronq.web.render import page, parts_of

FIELDS: Final = ("start", "end", "concurrency", "order", "again")

router = APIRouter(include_in_schema=False)


@router.get("/backfill")
def look(request: Request, schedule: str) -> Response:
    """Show the form, and what a backfill of the given range would run."""
    require_role(request, Role.OPERATOR)
    database = parts_of(request).database
    stored = _schedule(database, schedule)
    given = {name: request.query_params.get(name, "") for name in FIELDS}
    if not given["start"]:
        until = database.clock().astimezone(_zone_of(stored))
        return _shown(request, stored, {**given, "end": f"{until:%Y-%m-%dT%H:%M}", "concurrency": "1"})
    wanted, wrong = _read(stored, given, database.clock())
    seen = None
    if wanted is not None:
        try:
            seen = preview(database, schedule, wanted)
        except BackfillRefused as error:
            wrong = {NO_FIELD: str(error)}
    return _shown(request, stored, given, wrong=wrong, seen=seen)


@router.post("/backfill")
def start(request: Request, given: Annotated[dict[str, str], Depends(form_of)]) -> Response:
    """Start it, and go to the schedule's page, where it is followed."""
    caller = require_role(request, Role.OPERATOR)
    parts = parts_of(request)
    stored = _schedule(parts.database, given.get("schedule", ""))
    wanted, wrong = _read(stored, given, parts.database.clock())
    if wanted is not None:
        try:
            begin(parts, stored.name, wanted, caller)
        except BackfillRefused as error:
            wrong = {NO_FIELD: str(error)}
        else:
            address = f"/schedules/{quote(stored.name, safe='')}?said=backfill_started#backfills"
            return RedirectResponse(address, status_code=303)
    return _shown(request, stored, given, wrong=wrong)


def _schedule(database: Database, name: str) -> StoredSchedule:
    stored = get_schedule(database, name)
    require_readable(stored)
    return stored


def _zone_of(stored: StoredSchedule) -> ZoneInfo:
    return ZoneInfo(tz_of(timing_from(stored.definition.timing)))


def _read(
    stored: StoredSchedule, given: Mapping[str, str], now: datetime
) -> tuple[BackfillRange | None, dict[str, str]]:
    """Return the range that the form names on the schedule's clocks, or what is wrong with which field."""
    asked: dict[str, Any] = {
        "concurrency": given.get("concurrency", ""),
        "newest_first": given.get("order") == "newest",
        "again": bool(given.get("again")),
    }
    wrong = {}
    for name in ("start", "end"):
        try:
            asked[name] = moment_on(_zone_of(stored), given.get(name, ""), now)
        except InvalidTiming as error:
            wrong[name] = f"{error.problem}; {error.suggestion}"
    try:
        return BackfillIn.model_validate(asked).range(), {}
    except ValidationError as error:
        return None, complaints(error) | wrong


def _shown(
    request: Request,
    stored: StoredSchedule,
    given: Mapping[str, str],
    *,
    wrong: Mapping[str, str] | None = None,
    seen: Preview | None = None,
) -> Response:
    return page(
        request,
        "backfill.html",
        status=422 if wrong else 200,
        schedule=stored.name,
        zone=_zone_of(stored).key,
        given={name: given.get(name, "") for name in FIELDS},
        wrong=wrong or {},
        seen=seen,
    )
