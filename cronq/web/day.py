"""The page of the coming day: how many jobs start in each minute, the herds, and who could move.

Counting ten thousand schedules takes longer than anybody wants to wait for a page: it is done beside the
requests, kept for a while, and shown when it is there.
"""

import threading
import time
from datetime import timedelta
from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import Response

from cronq.store.database import Database
from cronq.store.overview import firing_members, state_of_schedules
from cronq.telemetry.log import get_logger
from cronq.timing.load import Load, daily_load
from cronq.web.render import page, parts_of

KEPT_S: Final = 30.0
PATIENCE_S: Final = 0.05
SHOWN: Final = 12

router = APIRouter(include_in_schema=False)
log = get_logger(__name__)


@router.get("/day")
def day(request: Request) -> Response:
    """Show the load of the coming 24 hours."""
    state = request.app.state
    if not hasattr(state, "day"):
        state.day = DayAhead(parts_of(request).database)
    load = state.day.load()
    herds = []
    if load is not None:
        herds = [(load.start + timedelta(minutes=each.minute), each) for each in load.herds[:SHOWN]]
    return page(request, "day.html", load=load, herds=herds, shown=SHOWN)


class DayAhead:
    """The load of the coming 24 hours, counted by at most one thread at a time."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock, self._counted = threading.Lock(), threading.Event()
        self._load: Load | None = None
        self._seen: object = None
        self._until = 0.0

    def load(self) -> Load | None:
        """Return what was counted last, or None while the first count goes on."""
        if time.monotonic() > self._until and self._lock.acquire(blocking=False):
            threading.Thread(target=self._count, name="cronq-day", daemon=True).start()
        self._counted.wait(PATIENCE_S)
        return self._load

    def _count(self) -> None:
        try:
            hour = self._database.clock().replace(minute=0, second=0, microsecond=0)
            seen = (hour, state_of_schedules(self._database))
            if seen != self._seen:
                self._load = daily_load(firing_members(self._database), hour)
                self._seen = seen
            self._counted.set()
        except Exception:
            log.exception("day.count_failed", consequence="the page of the day shows what was counted before")
        finally:
            self._until = time.monotonic() + KEPT_S
            self._lock.release()
