"""`/api/versions` and `/api/calendars`: how a schedule was declared before, and what it leaves out."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from cronq.api.asked import Name
from cronq.api.models import Calendars, Versions
from cronq.api.reply import parts_of, problems, reply
from cronq.store.history import versions
from cronq.store.schedules import get_schedule, list_schedules
from cronq.telemetry.masking import without_secrets

router = APIRouter(prefix="/api", tags=["schedules"])


@router.get("/versions", response_model=Versions, responses=problems(404, 422))
def list_versions(
    request: Request, schedule: Name, limit: Annotated[int, Query(ge=1, le=200)] = 50
) -> Response:
    """List how a schedule was declared, the newest first, by whom, and what each version changed."""
    database = parts_of(request).database
    rows = versions(database, get_schedule(database, schedule).id, limit=limit + 1)
    declared = [without_secrets(row.definition) for row in rows]
    before = [*declared[1:], None][: len(rows)]
    items = [
        {
            "version": row.version,
            "at": row.at,
            "actor": row.actor,
            "definition": now,
            "changes": [] if earlier is None else list(changes(earlier, now)),
        }
        for row, now, earlier in zip(rows, declared, before, strict=True)
    ]
    return reply({"schedule": schedule, "items": items[:limit]})


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield each field of a declaration that differs."""
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            yield {"field": name, "before": before.get(name), "after": after.get(name)}


@router.get("/calendars", response_model=Calendars)
def list_calendars(request: Request) -> Response:
    """List the calendars that schedules leave fire times out by, and which schedules those are."""
    found: dict[str, dict[str, Any]] = {}
    for stored in list_schedules(parts_of(request).database):
        for calendar in () if stored.unreadable else calendars_of(stored.definition.timing):
            # Two schedules may mean different days by one name: both are shown.
            key = repr(sorted(calendar.items()))
            entry = found.setdefault(key, {"name": calendar["name"], "calendar": calendar, "schedules": []})
            entry["schedules"].append(stored.name)
    return reply({"items": sorted(found.values(), key=lambda each: str(each["name"]))})


def calendars_of(timing: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the calendars inside a timing's data."""
    if "calendar" in timing:
        yield timing["calendar"]
    if isinstance(timing.get("of"), Mapping):
        yield from calendars_of(timing["of"])
