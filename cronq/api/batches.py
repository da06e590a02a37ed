"""`/api/batches`: how far the items of a fan-out are as a whole, and what may be done to all of them."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from cronq.api.reply import cursor_of, parts_of, problems, read_cursor, reply
from cronq.app import Cronq
from cronq.coordination.notices import send_notice
from cronq.job import State
from cronq.store import batches as store
from cronq.store.batches import Batch
from cronq.views import batch_fields, job_fields, live_progress

router = APIRouter(prefix="/api/batches", tags=["batches"])
Limit = Annotated[int, Query(ge=1, le=500)]


@router.get("", responses=problems(400, 422))
def list_batches(
    request: Request,
    *,
    schedule: str | None = None,
    unfinished: Annotated[bool, Query(description="only those that are not at their end")] = False,
    cursor: str | None = None,
    limit: Limit = 50,
) -> Response:
    """List batches, the newest first; `next_cursor` leads to the following ones."""
    parts = parts_of(request)
    found = store.list_batches(
        parts.database,
        schedule=schedule,
        unfinished=unfinished,
        before=read_cursor(cursor),
        limit=limit + 1,
    )
    more = cursor_of(found[limit - 1].created_at, found[limit - 1].id) if len(found) > limit else None
    return reply(
        {"items": [batch_fields(parts.database, each) for each in found[:limit]], "next_cursor": more}
    )


@router.get("/{batch_id}", responses=problems(404))
def show_batch(request: Request, batch_id: str) -> Response:
    """Show one batch: items by state, how many a second come to an end, and when the last one should."""
    parts = parts_of(request)
    return reply(batch_fields(parts.database, store.get_batch(parts.database, batch_id)))


@router.get("/{batch_id}/items", responses=problems(404, 422))
def list_items(
    request: Request,
    batch_id: str,
    *,
    state: State | None = None,
    after: Annotated[str, Query(max_length=255, description="the last item seen")] = "",
    limit: Limit = 50,
) -> Response:
    """List the jobs of a batch by item; `next_after` leads to the following ones."""
    parts = parts_of(request)
    rows = store.list_items(parts.database, batch_id, state=state, after=after, limit=limit + 1)
    more = rows[limit - 1]["item"] if len(rows) > limit else None
    live = live_progress(parts, rows[:limit])
    items = [job_fields(row, live.get(row["id"])) for row in rows[:limit]]
    return reply({"items": items, "next_after": more})


@router.post("/{batch_id}/pause", status_code=202, responses=problems(404, 409))
def pause_batch(request: Request, batch_id: str) -> Response:
    """Let no further item start; those that run go on."""
    parts = parts_of(request)
    return _changed(parts, store.pause_batch(parts.database, batch_id))


@router.post("/{batch_id}/resume", status_code=202, responses=problems(404, 409))
def resume_batch(request: Request, batch_id: str) -> Response:
    """Let a paused batch go on."""
    parts = parts_of(request)
    return _changed(parts, store.resume_batch(parts.database, batch_id))


@router.post("/{batch_id}/cancel", status_code=202, responses=problems(404, 409))
def cancel_batch(request: Request, batch_id: str) -> Response:
    """Stop a batch: items that wait never start, those that run learn it at their next progress report."""
    parts = parts_of(request)
    return _changed(parts, store.cancel_batch(parts.database, batch_id))


@router.post("/{batch_id}/retry", status_code=202, responses=problems(404))
def retry_batch(request: Request, batch_id: str) -> Response:
    """Send the failed and timed-out items back, and only those; `sent_back` says how many there were."""
    parts = parts_of(request)
    sent = store.retry_failed(parts.database, batch_id)
    return _changed(parts, store.get_batch(parts.database, batch_id), sent_back=sent)


def _changed(parts: Cronq, found: Batch, **more: Any) -> Response:  # noqa: ANN401 - JSON values
    send_notice(parts.redis, parts.settings.key_prefix, "batch", batch_id=found.id)
    return reply(batch_fields(parts.database, found) | more, 202)
