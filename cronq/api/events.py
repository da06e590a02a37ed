"""Server-Sent Events and a WebSocket: a client that comes back with its last event's id misses no change.

An event shows a job as it stands, so that a late one replaces those before it; one may come twice.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Any, Final

import anyio
from anyio import to_thread
from fastapi import APIRouter, Query, Request, WebSocket
from fastapi.responses import Response, StreamingResponse

from cronq.api.feed import PING, Event, Feed, Watcher, job_event, moment_of, read_changes
from cronq.api.problems import Problem, problem_of, problem_response
from cronq.api.reply import parts_of, problems
from cronq.app import Cronq
from cronq.errors import UnknownJob
from cronq.store.changes import OVERLAP_S
from cronq.store.jobs import get_job
from cronq.views import job_fields, live_progress

_HELLO: Final = b"retry: 2000\n\n"
_HEADERS: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
DONE: Final = 1000  #: the job has ended
COME_BACK: Final = 1012  #: this process ends, or the client was too slow

router = APIRouter(prefix="/api", tags=["events"])
Told = AsyncGenerator[list[Event], None]


@router.get("/events", responses={200: {"content": {"text/event-stream": {}}}, **problems(400)})
async def all_events(request: Request) -> Response:
    """Follow all jobs: `job` after each change, `progress` between. `Last-Event-ID` goes on where it was."""
    since = _since(request.headers.get("last-event-id"))
    return _respond(_all(request.app.state.feed, parts_of(request), since))


def stream_job(request: Request, job_id: str, read: Callable[[], dict[str, Any]]) -> Response:
    """Answer with one job's events, beginning with how it stands, until it ends."""
    return _respond(_one(request.app.state.feed, read, job_id))


@router.websocket("/ws")
async def socket(
    ws: WebSocket,
    job: Annotated[str | None, Query(max_length=36)] = None,
    after: Annotated[str | None, Query(max_length=32)] = None,
) -> None:
    """Tell the same by WebSocket: of one `job` until it ends, or of all, going on `after` an event's id."""
    parts, feed = ws.app.state.parts, ws.app.state.feed
    try:
        if job is not None:
            await to_thread.run_sync(get_job, parts.database, job)  # or it is unknown
        told = (
            _all(feed, parts, _since(after))
            if job is None
            else _one(feed, partial(read_job, parts, job), job)
        )
    except (Problem, UnknownJob) as error:
        problem = problem_of(error)
        assert problem is not None
        await ws.send_denial_response(problem_response(problem, ws.url.path))
        return
    await ws.accept()
    async with aclosing(told), anyio.create_task_group() as group:
        group.start_soon(_wait_until_gone, ws, group.cancel_scope)
        ended = False
        async for events in told:
            for event in events:
                if event is not PING:  # the protocol has its own
                    await ws.send_text(event.message)
            ended = events[-1].ends
        await ws.close(DONE if ended and job is not None else COME_BACK)
        group.cancel_scope.cancel()


async def _wait_until_gone(ws: WebSocket, scope: anyio.CancelScope) -> None:
    while (await ws.receive())["type"] != "websocket.disconnect":
        pass
    scope.cancel()


def read_job(parts: Cronq, job_id: str) -> dict[str, Any]:
    """Return one job with its live progress."""
    row = get_job(parts.database, job_id)
    return job_fields(row, live_progress(parts, [row]).get(job_id))


def _since(last: str | None) -> datetime | None:
    try:
        return None if not last else moment_of(last)
    except ValueError:
        raise Problem(400, "event-id", f"the event id {last} is not one of ours; leave it out") from None


def _respond(told: Told) -> Response:
    return StreamingResponse(_frames(told), media_type="text/event-stream", headers=_HEADERS)


async def _frames(told: Told) -> AsyncIterator[bytes]:
    yield _HELLO
    async for events in told:
        yield b"".join(event.frame for event in events)


async def _one(feed: Feed, read: Callable[[], dict[str, Any]], job_id: str) -> Told:
    with feed.watch(job_id) as watcher:
        # Read after the watch began: no change falls between the two.
        now = job_event(await to_thread.run_sync(read))
        yield [now]
        if not now.ends:
            async for events in _follow(watcher):
                if fresh := [event for event in events if event.data != now.data]:
                    yield fresh
                if any(event.ends for event in events):
                    return


async def _all(feed: Feed, parts: Cronq, since: datetime | None) -> Told:
    with feed.watch() as watcher:
        if since is not None:
            async for missed in _missed(parts, since):
                yield missed
        async for events in _follow(watcher):
            yield events


async def _missed(parts: Cronq, since: datetime) -> Told:
    back = since - timedelta(seconds=OVERLAP_S)
    batches = read_changes(parts.database, back, {}, partial(live_progress, parts))
    while True:
        batch = await to_thread.run_sync(next, batches, None)
        if batch is None:
            return
        if batch[0]:
            yield batch[0]


async def _follow(watcher: Watcher) -> Told:
    while events := await watcher.take():
        yield events
