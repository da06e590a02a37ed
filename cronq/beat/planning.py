"""Planning ahead: one batch of schedules at a time, each batch one transaction that the term fences."""

import time
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from cronq.beat.pace import Pace
from cronq.beat.planner import CatchUpSpread, Plan, plan
from cronq.clock import StoreClock
from cronq.errors import ScheduleRefused
from cronq.failpoints import failpoint
from cronq.job import State
from cronq.settings import Settings
from cronq.store import agenda as store
from cronq.store.agenda import DueJob
from cronq.store.ahead import known_before
from cronq.store.database import Database
from cronq.store.schedules import StoredSchedule, mark_fault
from cronq.store.terms import Term, hold_term
from cronq.telemetry.log import get_logger

SCHEDULES: Final = 500
"""That one batch plans at the most."""
JOBS: Final = 1000
"""That one batch stores, catching up left aside: far fewer than would take as long as a statement may."""
SCHEDULE_S: Final = 300e-6
"""What one schedule costs, about, until it is known."""
SHORT_HORIZON: Final = timedelta(seconds=5)
CATCH_UP_PER_S: Final = 20.0

log = get_logger(__name__)


@dataclass(slots=True)
class Planning:
    """What this leader plans, and when it looks for schedules again."""

    settings: Settings
    database: Database
    clock: StoreClock
    shard: int
    next_at: datetime | None = None  #: when fire times may have come within the horizon; None: not leading
    _pace: Pace = field(default_factory=lambda: Pace(SCHEDULE_S, SCHEDULES))
    _spread: CatchUpSpread = field(default_factory=lambda: CatchUpSpread(CATCH_UP_PER_S))

    def look_again(self) -> None:
        """Look at the schedules at the next step: something about them changed."""
        self.next_at = self.clock.now()

    def horizon(self) -> datetime:
        """Return the instant up to which fire times are planned."""
        return self.clock.now() + timedelta(seconds=self.settings.horizon_s)

    def step(self, term: Term, *, enough: bool, within_s: float) -> list[DueJob]:
        """Plan one batch, if there is something to plan; return its jobs that are to run.

        enough: so much waits in memory that only what is due soon is planned. within_s: seconds that the
        batch should not take longer than. Raises `NotLeader`.
        """
        now = self.clock.now()
        if self.next_at is None or now < self.next_at:
            return []
        until = now + SHORT_HORIZON if enough else self.horizon()
        failpoint("before_plan")
        planned, more = self._plan_batch(term, now, until, self._pace.count(within_s))
        failpoint("after_plan")
        self.next_at = now if more else now + min(until - now, SHORT_HORIZON) / 4
        return [job for job in planned if job.state is State.SCHEDULED and job.held_at is None]

    def _plan_batch(
        self, term: Term, now: datetime, until: datetime, count: int
    ) -> tuple[list[DueJob], bool]:
        """Plan at most `count` schedules, the furthest behind first; tell whether there may be more."""
        began = time.monotonic()
        # A slice of the horizon at a time: what is due first is planned first, and a schedule that is due
        # each second is read and moved on once for several fire times.
        ahead = min(SHORT_HORIZON, (until - now) / 4)
        planned: list[DueJob] = []
        cursors: list[tuple[str, datetime | None]] = []
        with self.database.begin() as connection:
            hold_term(connection, term)
            due = store.lock_due_schedules(connection, shard=self.shard, until=until - ahead, limit=count)
            for stored in due:
                if len(planned) >= JOBS:
                    break
                upto = min(until, max(now, stored.next_fire_at or now) + ahead)
                try:
                    result = self._plan_one(stored, now, upto, JOBS - len(planned))
                except Exception as error:  # noqa: BLE001 - one bad schedule must not stop the others
                    log.error(  # noqa: TRY400 - the sentence says it; it is the user's schedule, not our fault
                        "schedule.fault",
                        schedule=stored.name,
                        error=str(error),
                        consequence="it is set aside",
                    )
                    mark_fault(self.database, connection, stored.id, str(error))
                else:
                    planned += result.jobs
                    cursors.append((stored.id, result.next_fire_at))
            if store.insert_jobs(self.database, connection, planned, now) < len(planned):
                # A fire time that was planned before stays as it is, and whoever planned it has it in memory.
                known = known_before(connection, [job.id for job in planned], now)
                planned = [job for job in planned if job.id not in known]
            store.advance(connection, cursors, now)
            failpoint("mid_plan")
        self._pace.took(len(cursors), time.monotonic() - began)
        return planned, bool(due)

    def _plan_one(self, stored: StoredSchedule, now: datetime, until: datetime, most: int) -> Plan:
        if (why := stored.unreadable) is not None:
            raise ScheduleRefused(why)
        limit = self.settings.catch_up_limit
        return plan(stored, now=now, until=until, limit=limit, spread=self._spread, most=most)
