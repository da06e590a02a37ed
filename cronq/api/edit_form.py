"""The page on which a schedule is changed or made: first when it would run, then a button that saves it.

Looking is sent as saving is: what is typed may be a secret, which must stand in no address and no log.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final
from urllib.parse import quote

from fastapi import APIRouter, Depends, Request
from fastapi.responses import RedirectResponse, Response
from pydantic import ValidationError

from cronq.api.asked import ScheduleIn
from cronq.api.declared import declared
from cronq.api.form import NO_FIELD, complaints
from cronq.api.gate import require_role
from cronq.api.merged_texts import merged
from cronq.api.problems import Problem
from cronq.api.schedule_texts import FIELDS, KEPT, KINDS, POLICY, asked_of, read, said, texts_of
from cronq.api.schedules import tell_leader
from cronq.app import Cronq
from cronq.errors import JobRefused, ScheduleRefused, VersionConflict
from cronq.schedule import Schedule
from cronq.store import control, history
from cronq.store.database import Database
from cronq.store.definitions import from_data
from cronq.store.schedules import StoredSchedule, get_schedule
from cronq.store.tokens import Role
from cronq.store.values import BadValue
from cronq.timing import Delay, InvalidTiming, timing_from
from cronq.timing.bounds import tz_of
from cronq.timing.explain import explain
from cronq.timing.preview import upcoming
from cronq.web.actions import form_of
from cronq.web.render import page, parts_of
from cronq.web.schedules import with_changes

FIRES: Final = 5
MOST_VERSIONS: Final = 50
LONGEST_VERSION: Final = 10
DETAILS: Final = (*POLICY, "dst")
"""The fields that stay folded away unless one of them is wrong."""
STAND_INS: Final[Mapping[str, tuple[set[str], dict[str, Any]]]] = {
    "task": (set(), {"task": "unknown"}),
    "kind": ({*KINDS, "tz", "dst"}, {"every": 86400}),
    "when": ({*KINDS, "tz", "dst"}, {"every": 86400}),
}
"""What cannot be left out: what goes with it, and what stands there while the rest is looked at."""

ORDER: Final = {name: place for place, name in enumerate(("name", *FIELDS))}

router = APIRouter(include_in_schema=False)


@router.get("/edit")
def look(request: Request, schedule: str = "") -> Response:
    """Show the form: with what the schedule is now, or empty for a new one."""
    require_role(request, Role.EDITOR)
    stored = _stored(parts_of(request).database, schedule)
    if stored is None:
        return _shown(request, None, {"kind": "cron"}, version=0)
    if stored.retired_at is not None:
        raise ScheduleRefused(f"schedule {schedule!r} is retired: nothing declares it any more")
    return _shown(request, stored, texts_of(stored.definition), version=stored.version)


@router.post("/edit")
def send(
    request: Request, given: Annotated[dict[str, str], Depends(form_of)], schedule: str = ""
) -> Response:
    """Say when it would run, or save it and go to its page."""
    caller = require_role(request, Role.EDITOR)
    parts = parts_of(request)
    stored = _stored(parts.database, schedule)
    version = version_in(given)
    wanted, wrong = _checked(parts, given, stored)
    if wanted is None or given.get("do") != "save":
        seen = None if wanted is None else _preview(wanted, parts.database.clock())
        return _shown(request, stored, given, version=version, wrong=wrong, seen=seen)
    try:
        written, _new = control.write(parts.database, wanted, actor=f"api {caller.name}", version=version)
    except VersionConflict as conflict:
        return _changed_meanwhile(request, given, wanted.name, conflict, edited=stored is not None)
    except ScheduleRefused as error:
        wrong = {"name" if stored is None else NO_FIELD: str(error)}
    except JobRefused as error:
        wrong = _refusals(error)
    except BadValue:
        wrong = {NO_FIELD: "a value in it cannot be stored; look for zero bytes and huge numbers"}
    else:
        tell_leader(parts, written)
        address = f"/schedules/{quote(written.name, safe='')}?said=schedule_saved"
        return RedirectResponse(address, status_code=303)
    return _shown(request, stored, given, version=version, wrong=wrong)


def version_in(given: Mapping[str, str]) -> int:
    """Return the version that the form was filled from; 0: none was there."""
    text = given.get("version", "")
    return int(text) if text.isdecimal() and len(text) < LONGEST_VERSION else 0


def _stored(database: Database, name: str) -> StoredSchedule | None:
    """Return the schedule that is edited; None: a new one is made. Raises what keeps it from being edited."""
    if not name:
        return None
    stored = get_schedule(database, name)
    control.require_ours(stored)
    control.require_readable(stored)
    return stored


def _checked(
    parts: Cronq, given: Mapping[str, str], stored: StoredSchedule | None
) -> tuple[Schedule | None, dict[str, str]]:
    """Return the schedule that a form asks for, or all that is wrong with it.

    What is refused is left out, and the rest is asked for again.
    """
    name = given.get("name", "").strip() if stored is None else stored.name
    before = None if stored is None else stored.definition
    asked, wrong = read(given, before, parts.database.clock())
    while True:
        try:
            found = declared(parts, name, ScheduleIn.model_validate(_without(wrong, asked)))
        except (ValidationError, InvalidTiming, JobRefused, Problem) as error:
            more = _refusals(error)
            if more.keys() <= wrong.keys():
                return None, wrong
            wrong = more | wrong
        else:
            return (None if wrong else found), wrong


def _without(wrong: Mapping[str, str], asked: Mapping[str, Any]) -> dict[str, Any]:
    left = {name: value for name, value in asked.items() if name not in wrong}
    for name in wrong.keys() & STAND_INS.keys():
        dropped, stand_in = STAND_INS[name]
        left = {each: value for each, value in left.items() if each not in dropped} | stand_in
    return left


def _refusals(error: Exception) -> dict[str, str]:
    """Return what is wrong with which field."""
    if isinstance(error, ValidationError):
        return {"when" if name in KINDS else name: why for name, why in complaints(error).items()}
    if isinstance(error, InvalidTiming):
        return {error.field if error.field in ("tz", "dst") else "when": said(error)}
    field = error.field if isinstance(error, JobRefused) else None
    return {field or NO_FIELD: str(error)}


def _preview(wanted: Schedule, now: datetime) -> dict[str, Any]:
    """Return when it would run, in words and as the next fire times."""
    timing = timing_from(wanted.timing)
    return {
        "meaning": explain(timing),
        "zone": tz_of(timing),
        "fires": list(upcoming(timing, now, FIRES)),
        "follows": isinstance(timing, Delay),
    }


def _changed_meanwhile(
    request: Request, given: Mapping[str, str], name: str, conflict: VersionConflict, *, edited: bool
) -> Response:
    """Show what somebody else did, and the form with what was typed on top of that."""
    if not edited:
        return _shown(request, None, given, version=0, wrong={"name": str(conflict)})
    database = parts_of(request).database
    count = min(max(conflict.found - conflict.seen, 0), MOST_VERSIONS)
    stored = get_schedule(database, name)
    rows = history.versions(database, stored.id, limit=count + 1)
    both: list[str] = []
    if conflict.found:
        base = next((_texts(row.definition) for row in rows if row.version == conflict.seen), {})
        given, both = merged(given, base, texts_of(stored.definition))
    return _shown(
        request,
        stored,
        given,
        version=conflict.found,
        status=409,
        meanwhile={"deleted": conflict.found == 0, "versions": with_changes(rows)[:count], "both": both},
    )


def _texts(definition: dict[str, Any]) -> dict[str, str]:
    """Return what the form was filled with for an earlier version; nothing if it cannot hold that."""
    try:
        return texts_of(from_data(definition))
    except Exception:  # noqa: BLE001 - `from_data` raises any; then each field counts as typed
        return {}


def _shown(
    request: Request,
    stored: StoredSchedule | None,
    given: Mapping[str, str],
    *,
    version: int,
    wrong: Mapping[str, str] | None = None,
    seen: Mapping[str, Any] | None = None,
    meanwhile: Mapping[str, Any] | None = None,
    status: int | None = None,
) -> Response:
    kept = {} if stored is None else asked_of(stored.definition)
    wrong = dict(sorted((wrong or {}).items(), key=lambda each: ORDER.get(each[0], -1)))
    return page(
        request,
        "edit.html",
        status=status or (422 if wrong else 200),
        schedule=None if stored is None else stored.name,
        paused=stored is not None and stored.paused_at is not None,
        kept={name: kept[name] for name in KEPT if name in kept},
        given={name: given.get(name, "") for name in ORDER},
        version=version,
        details=DETAILS,
        wrong=wrong,
        unfolded=not {*wrong, *(meanwhile or {}).get("both", ())}.isdisjoint(DETAILS),
        seen=seen,
        meanwhile=meanwhile,
    )
