"""Server-Sent Events: a client that comes back with its last event's id misses no change.

An event shows a job as it stands, so that a late one replaces those before it; one may come twice.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from anyio import to_thread
from fastapi import APIRouter, Request
from fastapi.responses import Response, StreamingResponse

from cronq.api.feed import Feed, Watcher, job_event, moment_of, read_changes
from cronq.api.problems import Problem
from cronq.api.reply import parts_of, problems
from cronq.app import Cronq
from cronq.store.changes import OVERLAP_S
from cronq.views import live_progress

_HELLO: Final = b"retry: 2000\n\n"
_HEADERS: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}

router = APIRouter(prefix="/api", tags=["events"])


@router.get("/events", responses={200: {"content": {"text/event-stream": {}}}, **problems(400)})
async def all_events(request: Request) -> Response:
    """Follow all jobs: `job` after each change, `progress` between. `Last-Event-ID` goes on where it was."""
    last = request.headers.get("last-event-id")
    try:
        since = None if not last else moment_of(last)
    except ValueError:
        raise Problem(400, "event-id", f"Last-Event-ID {last} is not one of ours; leave it out") from None
    return _respond(_all(request.app.state.feed, parts_of(request), since))


def stream_job(request: Request, job_id: str, read: Callable[[], dict[str, Any]]) -> Response:
    """Answer with one job's events, beginning with how it stands, until it ends."""
    return _respond(_one(request.app.state.feed, job_id, read))


def _respond(frames: AsyncIterator[bytes]) -> Response:
    return StreamingResponse(frames, media_type="text/event-stream", headers=_HEADERS)


async def _one(feed: Feed, job_id: str, read: Callable[[], dict[str, Any]]) -> AsyncIterator[bytes]:
    with feed.watch(job_id) as watcher:
        # Read after the watch began: no change falls between the two.
        now = job_event(await to_thread.run_sync(read))
        yield _HELLO + now.frame
        if not now.ends:
            async for frame in _follow(watcher, until_end=True, shown=now.data):
                yield frame


async def _all(feed: Feed, parts: Cronq, since: datetime | None) -> AsyncIterator[bytes]:
    with ExitStack() as stack:
        watcher = stack.enter_context(feed.watch())
        yield _HELLO
        if since is not None:
            async for frame in _missed(parts, since):
                yield frame
        async for frame in _follow(watcher, until_end=False):
            yield frame


async def _missed(parts: Cronq, since: datetime) -> AsyncIterator[bytes]:
    back = since - timedelta(seconds=OVERLAP_S)
    batches = read_changes(parts.database, back, {}, partial(live_progress, parts))
    while True:
        batch = await to_thread.run_sync(next, batches, None)
        if batch is None:
            return
        for event in batch[0]:
            yield event.frame


async def _follow(watcher: Watcher, *, until_end: bool, shown: str | None = None) -> AsyncIterator[bytes]:
    while events := await watcher.take():
        frames = b"".join(event.frame for event in events if event.data != shown)
        if frames:
            yield frames
        if until_end and any(event.ends for event in events):
            return
