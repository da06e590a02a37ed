"""`/api/dead`: jobs that failed for good, messages that nobody could run; send them back, or discard them."""

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from cronq.api.asked import DeadBulkIn, DeadsQuery
from cronq.api.models import BulkOut, DeadPage
from cronq.api.reply import cursor_of, parts_of, problems, read_cursor, reply
from cronq.coordination.notices import send_notice
from cronq.store import dead as store
from cronq.store.database import Database
from cronq.store.dead import DeadFilter
from cronq.views import dead_fields

router = APIRouter(prefix="/api/dead", tags=["dead letters"])


@router.get("", response_model=DeadPage, responses=problems(400, 422))
def list_dead(request: Request, wanted: Annotated[DeadsQuery, Query()]) -> Response:
    """List the dead letters, the newest first: jobs, and messages that were none."""
    letters = store.list_dead(
        parts_of(request).database,
        wanted.filter(),
        limit=wanted.limit + 1,
        before=read_cursor(wanted.cursor),
    )
    last = letters[wanted.limit - 1] if len(letters) > wanted.limit else None
    return reply(
        {
            "items": [dead_fields(letter) for letter in letters[: wanted.limit]],
            "next_cursor": None if last is None else cursor_of(last.dead_at, last.id),
        }
    )


@router.post("/retry", response_model=BulkOut, responses=problems(422))
def retry_dead(request: Request, wanted: DeadBulkIn) -> Response:
    """Send all dead letters that fit back, or with `dry_run`, the default, say how many there are."""
    return _all(request, wanted, store.retry_dead_letters)


@router.post("/discard", response_model=BulkOut, responses=problems(422))
def discard_dead(request: Request, wanted: DeadBulkIn) -> Response:
    """Take all dead letters that fit off the list, or with `dry_run` say how many there are."""
    return _all(request, wanted, store.discard_dead_letters)


@router.post("/{dead_id}/retry", status_code=202, responses=problems(404, 422))
def retry_one(request: Request, dead_id: str) -> Response:
    """Send one back: a job under its own id, a message to the queue it came from."""
    parts = parts_of(request)
    store.retry_dead_letter(parts.database, dead_id)
    send_notice(parts.redis, parts.settings.key_prefix, "job", job_id=dead_id)
    return reply({"id": dead_id}, 202)


@router.post("/{dead_id}/discard", status_code=204, responses=problems(404))
def discard_one(request: Request, dead_id: str) -> Response:
    """Take one off the list; a job stays as it failed."""
    store.discard_dead_letter(parts_of(request).database, dead_id)
    return Response(status_code=204)


def _all(request: Request, wanted: DeadBulkIn, act: Callable[[Database, DeadFilter], list[Any]]) -> Response:
    database, which = parts_of(request).database, wanted.filter.filter()
    matching = store.count_dead_letters(database, which)
    changed = 0 if wanted.dry_run else len(act(database, which))
    return reply({"dry_run": wanted.dry_run, "matching": matching, "changed": changed})
