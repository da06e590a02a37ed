"""Finds in SQL what a leader should have in memory and has not: what others stored, and what got lost."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from cronq.beat.planner import LATE_AFTER
from cronq.beat.planning import Planning
from cronq.beat.publishing import Publishing
from cronq.clock import StoreClock
from cronq.store import agenda as store
from cronq.store.agenda import DueJob
from cronq.store.database import Database
from cronq.store.overdue import take_back_overdue
from cronq.store.terms import Term, hold_term
from cronq.telemetry.log import get_logger

AGENDA_ENOUGH: Final = 200_000
"""Jobs planned ahead beyond which only what is due soon is planned: memory is bounded."""
FOREIGN_ENOUGH: Final = 50_000
"""The same for jobs that others stored: a fan-out's items wait in SQL, however many there are."""
UNMARKED_ENOUGH: Final = 10_000
"""Sent jobs whose rows do not say so, beyond which no more of these are fetched: another leader would send
them again."""
OVERDUE: Final = timedelta(seconds=5)
LOOK_S: Final = 1.0
LOOK_LIMIT: Final = 5000

log = get_logger(__name__)


@dataclass(slots=True)
class Lookout:
    """What one leader has to look for, and when it does so next."""

    database: Database
    planning: Planning
    publishing: Publishing
    clock: StoreClock
    _next_look: float = 0.0
    _next_overdue_look: float = 0.0
    _foreign_seen: DueJob | None = None
    _unsure: bool = False

    def doubt(self) -> None:
        """Note that a step failed: what was planned when the answer got lost is in SQL alone."""
        self._unsure, self._next_overdue_look = True, 0.0

    def look_again(self) -> None:
        """Look at schedules and at jobs at the next step: something about them changed."""
        self.planning.look_again()
        self._next_look = 0.0

    def seconds_to_look(self) -> float:
        """Return the seconds until the next look, below 0 if it should have been."""
        return self._next_look - time.monotonic()

    def read_all(self) -> None:
        """Take up all that is planned; what others stored follows in parts, and need not all be in memory."""
        planned = store.planned_jobs(self.database, until=self.planning.horizon(), limit=AGENDA_ENOUGH)
        self.publishing.add_unknown(planned)

    def read_again(self, schedules: Sequence[str]) -> None:
        """Take up what SQL says is planned of schedules that were changed, and plan what is not."""
        for schedule_id in schedules:
            self.publishing.drop_schedule(schedule_id)
        self.look_again()
        # What was planned after the change is known here by now, and was dropped with the rest.
        until = self.planning.horizon()
        self.publishing.add_unknown(store.planned_of(self.database, schedules, until=until))

    def take_back_overdue(self, term: Term) -> list[str]:
        """Leave to the catch-up policy what an outage kept from being sent; return the schedules."""
        now = self.clock.now()
        with self.database.begin() as connection:
            hold_term(connection, term)
            found = take_back_overdue(connection, before=now - LATE_AFTER, now=now)
        if found:
            log.warning("fires.late", schedules=len(found), consequence="their catch-up policies decide")
        return found

    def look_for_foreign(self) -> None:
        """Find jobs that others stored (retries, items, on-demand jobs) and whose notice did not arrive."""
        if self.seconds_to_look() > 0:
            return
        self._next_look = time.monotonic() + LOOK_S
        self.publishing.release_held(self.publishing.gate.waiting())
        if self.publishing.unmarked > UNMARKED_ENOUGH:
            self._next_look = 0.0
            return
        found = store.foreign_jobs(
            self.database, until=self.planning.horizon(), limit=LOOK_LIMIT, after=self._foreign_seen
        )
        self.publishing.add_unknown(found)
        more = len(found) == LOOK_LIMIT and len(self.publishing.agenda) < FOREIGN_ENOUGH
        self._foreign_seen = found[-1] if more else None
        if more:
            self._next_look = 0.0

    def look_for_overdue(self) -> None:
        """Find what should have gone out and is not in memory, however that came about.

        After a step that failed: all that is planned, before it is due.
        """
        if time.monotonic() < self._next_overdue_look:
            return
        self._next_overdue_look = time.monotonic() + OVERDUE.total_seconds()
        until = self.clock.now() - OVERDUE
        self.publishing.add_unknown(store.waiting_jobs(self.database, until=until, limit=LOOK_LIMIT))
        if self._unsure:
            self.read_all()
        self._unsure = False
