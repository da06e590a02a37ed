"""Tells watchers of every change: each change that is committed reaches each of them, however they came.

SQL decides: one thread looks at what changed, once for all watchers of this process: at the jobs that are
watched, or, if somebody watches all, at whatever changed since it last looked. Redis is fast: live progress
is passed on as it is reported. While nobody watches, nothing is read.
"""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from cronq.job import ENDS, State
from cronq.store.changes import OVERLAP_S, Change, change_of, changed_ids, changes_of, read_jobs
from cronq.store.database import Database, is_outage
from cronq.telemetry.log import get_logger
from cronq.views import job_fields, to_json

LOOK_S: Final = 0.05
NEAR: Final = timedelta(seconds=1)  #: how far each look goes back
SWEEP_S: Final = 2.0  #: seconds between looks that go back as far as a commit may be late
OVERLAP: Final = timedelta(seconds=OVERLAP_S)
BACKLOG: Final = 1000
MOST_BY_ID: Final = 200  #: watched jobs that are looked at one by one, whatever goes on beside them
OUTAGE_PAUSE_S: Final = 0.5
PING_S: Final = 15.0

Live = Callable[[list[Any]], dict[str, dict[str, Any]]]
"""Reads the live progress of jobs' rows."""

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Event:
    """One thing to tell."""

    kind: str  #: `job`: how it stands after a change; `progress`: how far a running one is; `ping`
    job_id: str
    data: str  #: JSON
    id: str | None = None  #: where to go on from after a lost connection
    ends: bool = False
    # As it goes over the wire, made once for all watchers: of Server-Sent Events, and of a WebSocket.
    frame: bytes = field(init=False, repr=False)
    message: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        identity = "" if self.id is None else f"id: {self.id}\n"
        text = f"event: {self.kind}\n{identity}data: {self.data}\n\n"
        if self.kind == "ping":
            text = ": still here\n\n"
        object.__setattr__(self, "frame", text.encode())
        shown_id = "null" if self.id is None else f'"{self.id}"'
        told = f'{{"event": "{self.kind}", "id": {shown_id}, "data": {self.data or "null"}}}'
        object.__setattr__(self, "message", told)


PING: Final = Event("ping", "", "")
"""Says nothing, so that a proxy, or a client's network, does not take the silence for the end."""


class Watcher:
    """One client's events. What came since it last looked is handed over together: catching up is cheap."""

    __slots__ = ("_events", "_waiter", "job_id", "over")

    def __init__(self, job_id: str | None) -> None:
        self.job_id = job_id
        self.over = False  #: nothing more comes: this process ends, or the client was too slow
        self._events: list[Event] = []
        self._waiter: asyncio.Future[None] | None = None

    def put(self, event: Event) -> None:
        """Add an event; a client that does not read is let go, and finds the rest by its last event's id."""
        if len(self._events) >= BACKLOG:
            self.end()
        if not self.over:
            self._events.append(event)
            self._wake()

    def end(self) -> None:
        """Let it go."""
        self.over = True
        self._events.clear()
        self._wake()

    async def take(self) -> list[Event]:
        """Return what came since the last time, waiting for it; nothing when it is over."""
        # A future of its own: a queue and a time-out for each client cost more than sending it the event.
        while not self._events and not self.over:
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        events, self._events = self._events, []
        return events

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Feed:
    """The watchers of this process, and the thread that looks for them."""

    def __init__(self, database: Database, live: Live) -> None:
        self._database, self._live = database, live
        self._watchers: dict[str | None, set[Watcher]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wanted, self._stopping = threading.Event(), threading.Event()
        self._seen: dict[str, Change] = {}
        self._swept = 0.0
        self._thread = threading.Thread(target=self._run, name="cronq-feed", daemon=True)

    def start(self) -> None:
        """Begin; called in the event loop that the watchers live in."""
        self._loop = asyncio.get_running_loop()
        self._loop.call_later(PING_S, self._ping)
        self._thread.start()

    def stop(self) -> None:
        """End every stream; safe in a signal handler."""
        self._stopping.set()
        self._wanted.set()
        self._in_loop(self._end_all)

    @property
    def stopping(self) -> bool:
        """Whether this process is about to end."""
        return self._stopping.is_set()

    @contextmanager
    def watch(self, job_id: str | None = None) -> Iterator[Watcher]:
        """Watch one job, or all. What changes from now on is put into the watcher's queue."""
        watcher = Watcher(job_id)
        self._watchers.setdefault(job_id, set()).add(watcher)
        self._wanted.set()
        try:
            yield watcher
        finally:
            group = self._watchers[job_id]
            group.discard(watcher)
            if not group:
                del self._watchers[job_id]
            if not self._watchers and not self.stopping:
                self._wanted.clear()

    def progress(self, text: str) -> None:
        """Pass a progress report on; from any thread."""
        if self._watchers:
            try:
                job_id = json.loads(text)["job_id"]
            except (ValueError, KeyError, TypeError):
                return
            self._in_loop(lambda: self._deliver([Event("progress", job_id, text)]))

    # -- in the loop ---------------------------------------------------------------------------------------

    def _in_loop(self, call: Callable[[], None]) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call)

    def _deliver(self, events: list[Event]) -> None:
        for event in events:
            for key in (event.job_id, None):
                for watcher in self._watchers.get(key, ()):
                    watcher.put(event)

    def _end_all(self) -> None:
        for watcher in self._all():
            watcher.end()

    def _ping(self) -> None:
        for watcher in self._all():
            watcher.put(PING)
        if self._loop is not None and not self.stopping:
            self._loop.call_later(PING_S, self._ping)

    def _all(self) -> list[Watcher]:
        return [watcher for group in self._watchers.values() for watcher in group]

    # -- in the thread -------------------------------------------------------------------------------------

    def _run(self) -> None:
        newest: datetime | None = None
        while not self._stopping.is_set():
            if not self._wanted.is_set():
                newest, self._seen = None, {}
                self._wanted.wait()
                continue
            try:
                watched = list(self._watchers)  # in one step: the loop may change it meanwhile
                ids = [each for each in watched if each is not None]
                if len(ids) < len(watched) or len(ids) > MOST_BY_ID:
                    newest = self._look(newest)
                else:
                    newest = None
                    self._look_at(ids)
            except Exception as error:
                if not is_outage(error):
                    log.exception("feed.look_failed", consequence="it looks again; no change is missed")
                self._stopping.wait(OUTAGE_PAUSE_S)
            self._stopping.wait(LOOK_S)

    def _look_at(self, ids: list[str]) -> None:
        events = fresh_events(self._database, changes_of(self._database, ids), self._seen, self._live)
        if events:
            self._in_loop(lambda: self._deliver(events))
        if len(self._seen) > BACKLOG:
            self._seen = {job_id: self._seen[job_id] for job_id in ids if job_id in self._seen}

    def _look(self, newest: datetime | None) -> datetime:
        if newest is None:
            # Those who came first subscribed before this instant, and have read what was before it.
            newest = self._database.clock() - OVERLAP
        sweep = time.monotonic() - self._swept > SWEEP_S
        self._swept = time.monotonic() if sweep else self._swept
        since = newest - (OVERLAP if sweep else NEAR)
        for events, latest in read_changes(self._database, since, self._seen, self._live):
            newest = max(newest, latest)
            self._in_loop(lambda events=events: self._deliver(events))  # type: ignore[misc]
        oldest = newest - 2 * OVERLAP
        if len(self._seen) > BACKLOG:
            self._seen = {job_id: change for job_id, change in self._seen.items() if change.at >= oldest}
        return newest


def read_changes(
    database: Database, since: datetime, seen: dict[str, Change], live: Live
) -> Iterator[tuple[list[Event], datetime]]:
    """Yield what changed after `since` and is not in `seen`, in batches with the latest change's time."""
    after_id = ""
    while True:
        changed = changed_ids(database, since, after_id=after_id, limit=BACKLOG)
        if changed:
            yield fresh_events(database, changed, seen, live), changed[-1].at
        if len(changed) < BACKLOG:
            return
        after_id, since = changed[-1].id, changed[-1].at


def fresh_events(
    database: Database, changed: list[Change], seen: dict[str, Change], live: Live
) -> list[Event]:
    """Return what to tell of those of the `changed` jobs that are not `seen` as they are, and note them."""
    fresh = [change.id for change in changed if seen.get(change.id) != change]
    if not fresh:
        return []
    rows = read_jobs(database, fresh)
    # What is noted is what is told: a row may have changed between the two reads.
    seen.update((row["id"], change_of(row)) for row in rows)
    progress = live(rows)
    return [job_event(job_fields(row, progress.get(row["id"]))) for row in rows]


def job_event(fields: dict[str, Any]) -> Event:
    """Return the event that tells how a job stands."""
    ends = State(fields["status"]) in ENDS
    return Event("job", fields["id"], to_json(fields), id=event_id(fields["updated_at"]), ends=ends)


def event_id(moment: datetime) -> str:
    """Return the id of an event at `moment`: its microseconds since 1970."""
    return str((moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1))


def moment_of(event_id: str) -> datetime:
    """Return the moment of an event's id; raise ValueError for anything else."""
    try:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=int(event_id))
    except OverflowError as error:
        raise ValueError(event_id) from error
