"""Server-Sent Events and a WebSocket: a client that comes back with its last event's id misses no change.

An event shows a job as it stands, so that a late one replaces those before it; one may come twice.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Any, Final

import anyio
from anyio import to_thread
from fastapi import APIRouter, Query, Request, WebSocket
from fastapi.responses import Response, StreamingResponse
from starlette.types import Send
from starlette.websockets import WebSocketDisconnect

from cronq.api.feed import PING, Event, Feed, job_event, moment_of, read_changes
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
Tell = Callable[[list[Event]], Awaitable[None]]
Follow = Callable[[Tell], Awaitable[bool]]
"""Tells of events until there are no more; returns whether what was followed has come to its end."""


@router.get("/events", responses={200: {"content": {"text/event-stream": {}}}, **problems(400)})
async def all_events(request: Request) -> Response:
    """Follow all jobs: `job` after each change, `progress` between. `Last-Event-ID` goes on where it was."""
    since = _since(request.headers.get("last-event-id"))
    return _Stream(partial(_all, request.app.state.feed, parts_of(request), since))


def stream_job(request: Request, job_id: str, read: Callable[[], dict[str, Any]]) -> Response:
    """Answer with one job's events, beginning with how it stands, until it ends."""
    return _Stream(partial(_one, request.app.state.feed, read, job_id))


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
        follow: Follow = (
            partial(_all, feed, parts, _since(after))
            if job is None
            else partial(_one, feed, partial(read_job, parts, job), job)
        )
    except (Problem, UnknownJob) as error:
        problem = problem_of(error)
        assert problem is not None
        await ws.send_denial_response(problem_response(problem, ws.url.path))
        return
    await ws.accept()

    async def tell(events: list[Event]) -> None:
        for event in events:
            if event is not PING:  # the protocol has its own
                await ws.send_text(event.message)

    async with anyio.create_task_group() as group:
        group.start_soon(_wait_until_gone, ws, group.cancel_scope)
        with suppress(WebSocketDisconnect):  # it went while it was told something
            ended = await follow(tell)
            await ws.close(DONE if ended else COME_BACK)
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
    """Return the moment whose changes the client may have missed: some commit late."""
    try:
        return None if not last else moment_of(last) - timedelta(seconds=OVERLAP_S)
    except (ValueError, OverflowError):
        raise Problem(400, "event-id", f"the event id {last} is not one of ours; leave it out") from None


class _Stream(StreamingResponse):
    """Server-Sent Events, sent from where they are told: no generators for each client between."""

    def __init__(self, follow: Follow) -> None:
        super().__init__((), media_type="text/event-stream", headers=_HEADERS)
        self._follow = follow

    async def stream_response(self, send: Send) -> None:
        """Send what there is to tell, and the end when it is over."""

        async def tell(events: list[Event]) -> None:
            body = b"".join([event.frame for event in events])
            await send({"type": "http.response.body", "body": body, "more_body": True})

        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": _HELLO, "more_body": True})
        await self._follow(tell)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _one(feed: Feed, read: Callable[[], dict[str, Any]], job_id: str, tell: Tell) -> bool:
    with feed.watch(job_id) as watcher:
        # Read after the watch began: no change falls between the two.
        now = job_event(await to_thread.run_sync(read))
        await tell([now])
        if now.ends:
            return True
        while events := await watcher.take():
            if fresh := [event for event in events if event.data != now.data]:
                await tell(fresh)
            if any(event.ends for event in events):
                return True
    return False


async def _all(feed: Feed, parts: Cronq, since: datetime | None, tell: Tell) -> bool:
    with feed.watch() as watcher:
        if since is not None:
            await _tell_missed(parts, since, tell)
        while events := await watcher.take():
            await tell(events)
    return False


async def _tell_missed(parts: Cronq, since: datetime, tell: Tell) -> None:
    batches = read_changes(parts.database, since, {}, partial(live_progress, parts))
    while (batch := await to_thread.run_sync(next, batches, None)) is not None:
        if batch[0]:
            await tell(batch[0])
