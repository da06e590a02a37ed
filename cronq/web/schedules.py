"""The pages of schedules: all of them, and one with what became of each of its fire times."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, Final
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import Response
from pydantic import AwareDatetime

from cronq.store import backfills, history, overview
from cronq.store.database import Database
from cronq.store.fires import Fire, around, fires, latest_fires, next_fires
from cronq.store.schedules import StoredSchedule, get_schedule
from cronq.telemetry.masking import STARS, without_secrets
from cronq.timing import InvalidTiming
from cronq.timing.bounds import tz_of
from cronq.timing.explain import explain
from cronq.timing.moments import moment_on
from cronq.views import job_fields, schedule_fields
from cronq.web import calendar, punctuality
from cronq.web.format import zone_of
from cronq.web.render import page, parts_of
from cronq.why import why

PER_PAGE: Final = 50
SPARK: Final = 20
CHARTED: Final = 100
BACKFILLS: Final = 5
FIRST_YEAR, LAST_YEAR = 1970, 2200

router = APIRouter(include_in_schema=False)


@router.get("/schedules")
def schedules(request: Request, q: str = "", only: str | None = None, after: str = "") -> Response:
    """List schedules."""
    parts = parts_of(request)
    found = overview.find_schedules(parts.database, text=q, only=only, after=after, limit=PER_PAGE + 1)
    shown = found[:PER_PAGE]
    recent = history.recent_jobs(parts.database, shown, SPARK)
    at = parts.database.clock()
    more = None
    if len(found) > PER_PAGE:
        more = "?" + urlencode({"q": q, "after": shown[-1].name} | ({} if only is None else {"only": only}))
    items = [
        described(each)
        | {
            "recent": recent[each.id],
            "took": punctuality.typical(map(punctuality.took, recent[each.id])),
            "late": punctuality.typical(map(punctuality.late, recent[each.id])),
            "next": _next(each, at),
        }
        for each in shown
    ]
    return page(
        request,
        "schedules.html",
        items=items,
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
    at: str = "",
) -> Response:
    """Show one schedule: what it means, what comes, what became of each fire time, and why."""
    parts = parts_of(request)
    stored = get_schedule(parts.database, name)
    now = parts.database.clock()
    if since is None:
        past, more = latest_fires(parts.database, stored, 20), None
    else:
        if not FIRST_YEAR <= since.year < LAST_YEAR:
            raise HTTPException(404)
        past, more = fires(parts.database, stored, since, since + timedelta(days=31), limit=100)
    timing = stored.timing
    filled = calendar.empty_calendar(timing.daily_bound(), zone_of(tz_of(timing)), now)
    counted = history.outcomes(parts.database, stored, filled.start, now, limit=calendar.MOST_JOBS)
    recent = history.recent_jobs(parts.database, [stored], CHARTED)[stored.id]
    return page(
        request,
        "schedule.html",
        schedule=described(stored),
        coming=next_fires(stored, now, 10),
        fires=[_fire(each) for each in past],
        since=since,
        more=more,
        recent=recent,
        legs=punctuality.legs(recent),
        drift=punctuality.drift(recent[::-1]),
        calendar=calendar.fill(filled, counted),
        versions=with_changes(history.versions(parts.database, stored.id, limit=11)),
        backfills=_backfills(parts.database, name),
        answer=_answer(request, stored, at, now) if at else None,
        at=at,
    )


def described(stored: StoredSchedule) -> dict[str, Any]:
    """Return a schedule as the pages show it."""
    timing = stored.timing
    expression = stored.definition.timing.get("expression")
    return schedule_fields(stored) | {
        "meaning": explain(timing),
        "zone": tz_of(timing),
        "expression": " · ".join(expression) if isinstance(expression, list) else expression,
    }


def _backfills(database: Database, name: str) -> list[dict[str, Any]]:
    """Return the last backfills of a schedule, the newest first."""
    rows = backfills.list_backfills(database, schedule_name=name, limit=BACKFILLS)
    return [backfills.get_backfill(database, row["id"]) for row in rows]


def _next(stored: StoredSchedule, at: datetime) -> datetime | None:
    if stored.paused_at is not None or stored.retired_at is not None or stored.fault is not None:
        return None
    return next(iter(next_fires(stored, at, 1)), None)


def _answer(request: Request, stored: StoredSchedule, text: str, now: datetime) -> dict[str, Any]:
    """Return what became of the fire times in the minute that `text` names on the schedule's own clocks."""
    zone = ZoneInfo(tz_of(stored.timing))
    try:
        moment = moment_on(zone, text, now)
        if not FIRST_YEAR <= moment.year < LAST_YEAR:
            raise HTTPException(404)
        found = why(parts_of(request), stored, moment)
    except InvalidTiming as error:
        return {"problem": str(error)}
    before, after = around(stored, moment)
    return {
        "problem": None,
        "moment": moment,
        "fires": [_fire(each) for each in found],
        "before": before,
        "after": after,
    }


def _fire(fire: Fire) -> dict[str, Any]:
    job = None if fire.job is None else job_fields(fire.job)
    state = "SKIPPED" if fire.disposition == "skipped" else fire.state
    row = None if fire.job is None else history.of_batch(fire.job, fire.batch)
    late, took = (None, None) if row is None else (punctuality.late(row), punctuality.took(row))
    return {"fire": fire, "job": job, "state": state, "late": late, "took": took}


def with_changes(rows: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the versions, newest first, each with what it changed; the oldest only if it is the first."""
    found = []
    for place, row in enumerate(rows):
        before = rows[place + 1].definition if place + 1 < len(rows) else None
        if before is None and row.version > 1:
            break
        changes = [] if before is None else _shown_differences(before, row.definition)
        found.append({"version": row.version, "actor": row.actor, "at": row.at, "changes": changes})
    return found


def _shown_differences(before: dict[str, Any], after: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    """Return the differences without secrets; of a secret that differs, that it does."""
    shown = differences(without_secrets(before), without_secrets(after))
    told = {what for what, _old, _new in shown}
    hidden = [what for what, _old, _new in differences(before, after) if what not in told]
    return shown + [(what, STARS, STARS) for what in hidden]


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    """Return (what, old, new) of each part of a definition that differs; a part of a part as `a.b`."""
    found: list[tuple[str, Any, Any]] = []
    for name in [*after, *(name for name in before if name not in after)]:
        old, new = before.get(name), after.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            found += [(f"{name}.{inner}", *pair) for inner, *pair in differences(old, new)]
        elif old != new:
            found.append((name, old, new))
    return found
