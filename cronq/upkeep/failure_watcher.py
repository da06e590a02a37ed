"""Pauses schedules that fail again and again, and says so: a person has to look."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from cronq.errors import ScheduleRefused, first_line
from cronq.store.control import pause
from cronq.store.database import Database
from cronq.store.failures import last_failures, watched_schedules
from cronq.store.schedules import StoredSchedule
from cronq.store.terms import Term
from cronq.telemetry.log import get_logger

OVERLAP: Final = timedelta(seconds=10)
"""How far a look reaches back behind the last one: a settlement commits after the moment it names."""
FIRST_LOOK: Final = timedelta(hours=1)
"""How far the first look of a term reaches back: the leader before may have died first."""

log = get_logger(__name__)


class FailureWatcher:
    """Within a second of the last failure; what is published by then still runs.

    dropped: called with the id of a schedule whose planned jobs were taken back.
    """

    def __init__(self, database: Database, dropped: Callable[[str], None]) -> None:
        self._database, self._dropped = database, dropped
        self._term: Term | None = None
        self._seen_until: datetime | None = None

    def run(self, term: Term) -> None:
        """Look once."""
        now = self._database.clock()
        last = self._seen_until if term == self._term else None
        since = now - FIRST_LOOK if last is None else last - OVERLAP
        for found in watched_schedules(self._database, since):
            self._judge(found)
        self._term, self._seen_until = term, now

    def _judge(self, found: StoredSchedule) -> None:
        count = found.definition.pause_after
        assert count is not None
        failed = last_failures(self._database, found, count)
        if not failed:
            return
        what = "its last job" if count == 1 else f"its last {count} jobs"
        last = (failed[0]["error"] or "").strip().rsplit("\n", 1)[-1]
        note = f"{what} failed; the last one ({failed[0]['id']}) with: {first_line(last)}"
        try:
            pause(self._database, found.name, note=note)
        except ScheduleRefused:
            return  # somebody was faster
        self._dropped(found.id)
        log.error(
            "schedule.paused", schedule=found.name, why=note,
            consequence=f"it does not run until somebody calls: cronq schedules resume {found.name}",
        )  # fmt: skip
