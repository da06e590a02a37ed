"""The pages of batches: all of them, and one that opens to its items."""

from datetime import datetime
from typing import Final
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import Response

from cronq.job import State
from cronq.store import batches as store
from cronq.views import batch_fields, job_fields, live_progress
from cronq.web.render import page, parts_of

PER_PAGE: Final = 50

router = APIRouter(include_in_schema=False)


@router.get("/batches")
def batches(request: Request, schedule: str = "", cursor: str = "") -> Response:
    """List batches."""
    parts = parts_of(request)
    moment, _, last = cursor.partition("~")
    before = (datetime.fromisoformat(moment), last) if last else None
    found = store.list_batches(parts.database, schedule=schedule or None, before=before, limit=PER_PAGE + 1)
    shown, more = found[:PER_PAGE], None
    if len(found) > PER_PAGE:
        more = "?" + urlencode({"cursor": f"{shown[-1].created_at.isoformat()}~{shown[-1].id}"})
    return page(
        request,
        "batches.html",
        items=[batch_fields(parts.database, each) for each in shown],
        schedule=schedule,
        more=more,
    )


@router.get("/batches/{batch_id}")
def one_batch(request: Request, batch_id: str, state: str = "", after: str = "") -> Response:
    """Show one batch, and its items."""
    parts = parts_of(request)
    wanted = State(state) if state in State.__members__ else None
    found = store.get_batch(parts.database, batch_id)
    rows = store.list_items(parts.database, batch_id, state=wanted, after=after, limit=PER_PAGE + 1)
    shown, more = rows[:PER_PAGE], None
    if len(rows) > PER_PAGE:
        more = "?" + urlencode({"state": state, "after": shown[-1]["item"]})
    live = live_progress(parts, list(shown))
    return page(
        request,
        "batch.html",
        batch=batch_fields(parts.database, found),
        items=[job_fields(row, live.get(row["id"])) for row in shown],
        state=state,
        states=list(State),
        after=after,
        more=more,
    )
