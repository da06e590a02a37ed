"""The beat's main loop: lead, plan ahead, publish at the due instant, look after the rest."""

import gc
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from queue import Empty, SimpleQueue
from typing import Any, Final

from cronq.beat.agenda import Agenda
from cronq.beat.overlap import OverlapGate, Verdict
from cronq.beat.planner import CatchUpSpread, Plan, plan
from cronq.clock import Sighting, StoreClock
from cronq.coordination.leadership import Leadership
from cronq.delivery.failure import PublishFailed
from cronq.delivery.publisher import Publisher
from cronq.errors import NotLeader
from cronq.failpoints import failpoint
from cronq.schedule import Overlap
from cronq.settings import Settings
from cronq.store import agenda as store
from cronq.store.agenda import DueJob
from cronq.store.database import Database, is_outage
from cronq.store.jobs import request_cancel_of_schedules
from cronq.store.schedules import StoredSchedule, mark_fault
from cronq.store.terms import Term, hold_term
from cronq.telemetry.log import get_logger

STANDBY_S: Final = 0.5
PLAN_BATCH: Final = 500
MARK_BATCH: Final = 2000
RENDER_BATCH: Final = 200
AGENDA_ENOUGH: Final = 200_000
"""Jobs planned ahead beyond which only what is due within `SHORT_HORIZON` is planned: memory is bounded."""
SHORT_HORIZON: Final = timedelta(seconds=5)
OVERDUE: Final = timedelta(seconds=5)
LOOK_LIMIT: Final = 5000
OUTAGE_PAUSE_S: Final = 0.5
CATCH_UP_PER_S: Final = 20.0
STILL_S: Final = 0.05
"""Seconds before a due instant in which nothing else is begun: one batch of planning takes as long."""
CHORES_PUT_OFF_S: Final = 0.5
"""Seconds for which planning and the rest may be put off that way."""

log = get_logger(__name__)


@dataclass(slots=True)
class Upkeep:
    """One service that runs while this beat leads: what it does, and how often."""

    name: str
    every_s: float
    run: Callable[[Term], None]
    next_at: float = 0.0


@dataclass(slots=True)
class BeatLoop:
    """Everything one beat does, in one thread, one step at a time."""

    settings: Settings
    database: Database
    leadership: Leadership
    publisher: Publisher
    clock: StoreClock
    sight: Callable[[], Sighting]
    begin_term: Callable[[Term], None]
    shard: int = 0
    upkeep: list[Upkeep] = field(default_factory=list)
    agenda: Agenda = field(default_factory=Agenda)
    gate: OverlapGate = field(default_factory=OverlapGate)
    wake: threading.Event = field(default_factory=threading.Event)
    notices: "SimpleQueue[dict[str, Any]]" = field(default_factory=SimpleQueue)
    _term: Term | None = None
    _spread: CatchUpSpread = field(default_factory=lambda: CatchUpSpread(CATCH_UP_PER_S))
    _unmarked: dict[str, DueJob] = field(default_factory=dict)  # published, and SQL does not say so yet
    _on_the_way: set[str] = field(default_factory=set)  # the schedules of those
    _next_plan: datetime | None = None
    _next_look: float = 0.0
    _next_overdue_look: float = 0.0
    _next_clock: float = 0.0
    _publish_again_at: float = 0.0
    _chores_by: float = 0.0

    def notice(self, what: dict[str, Any]) -> None:
        """Take a change notice; from any thread."""
        self.notices.put(what)
        self.wake.set()

    def run_once(self, longest_s: float = STANDBY_S) -> None:
        """Do what is due, then wait for the next due instant, a notice, or at most `longest_s` seconds."""
        wait = min(longest_s, self.step())
        if wait > 0 and self.wake.wait(wait):
            self.wake.clear()

    def step(self) -> float:
        """Do what is due now; return the seconds until there is something to do."""
        self.leadership.moved()
        try:
            term = self.leadership.current()
            if term is None:
                self._read_clocks()
                self._stand_by()
                return STANDBY_S
            if term != self._term:
                self._read_clocks()
                self._begin(term)
            return self._lead(term)
        except NotLeader as error:
            if self._term is not None:
                self.leadership.step_down(self._term)
            log.warning("beat.fenced", error=str(error), consequence="this beat stands by")
            self._stand_by()
            return 0.0
        except Exception as error:
            if not is_outage(error):
                log.exception("beat.step_failed", consequence="nothing is lost; the beat tries again")
            else:
                log.warning_once(
                    "beat.database_away", error=str(error).split("\n")[0], consequence="waiting for it"
                )
            return OUTAGE_PAUSE_S

    def _lead(self, term: Term) -> float:
        self._take_notices()
        self._publish_due()
        if (until_due := self._seconds_to_due()) is not None and self._keeps_still(until_due):
            return until_due
        self._read_clocks()
        self._mark_published()
        self._plan(term)
        self._look_after(term)
        if self._render_ahead() or self._unmarked:
            return 0.0
        return self._seconds_to_wait()

    def _seconds_to_due(self) -> float | None:
        due = self.agenda.next_due()
        return None if due is None else max(0.0, (due - self.clock.now()).total_seconds())

    def _keeps_still(self, until_due: float) -> bool:
        """Tell whether all else waits, because a job is due before it could be done; never for long."""
        now = time.monotonic()
        # Zero: it could not be sent.
        if 0 < until_due <= STILL_S and now < self._chores_by:
            return True
        self._chores_by = now + CHORES_PUT_OFF_S
        return False

    # -- taking over ---------------------------------------------------------------------------------------

    def _begin(self, term: Term) -> None:
        self._forget()
        self.begin_term(term)
        self.gate.reset(store.busy_schedules(self.database))
        self._next_plan, self._next_look = self.clock.now(), 0.0
        self._term = term
        self.agenda.add(store.waiting_jobs(self.database, until=self._horizon(), limit=AGENDA_ENOUGH))

    def _stand_by(self) -> None:
        if self._term is not None:
            self._forget()

    def _forget(self) -> None:
        self._term = None
        self._unmarked.clear()
        self._on_the_way.clear()
        self.agenda.clear()
        self.gate.reset(())

    def _read_clocks(self) -> None:
        if time.monotonic() >= self._next_clock:
            self._next_clock = time.monotonic() + self.settings.lock_s / 2
            trouble = self.clock.observe(self.sight())
            if trouble is not None:
                log.warning_once("clock.trouble", what=trouble, consequence="no fire time is doubled or lost")

    # -- notices -------------------------------------------------------------------------------------------

    def _take_notices(self) -> None:
        fresh: list[str] = []
        while True:
            try:
                notice = self.notices.get_nowait()
            except Empty:
                break
            match notice.get("kind"):
                case "job":
                    fresh.append(notice["job_id"])
                case "ended":
                    self._release_held([notice["schedule_id"]])
                    for service in self.upkeep:
                        if service.name == "delay_planner":
                            service.next_at = 0.0
                case "schedule":
                    self.agenda.drop_schedule(notice["schedule_id"])
                    self.gate.drop_schedule(notice["schedule_id"])
                    self._next_plan, self._next_look = self.clock.now(), 0.0
                case _:
                    self._next_plan, self._next_look = self.clock.now(), 0.0
        if fresh:
            self.agenda.add(store.read_waiting(self.database, fresh))

    # -- publishing ----------------------------------------------------------------------------------------

    def _publish_due(self) -> None:
        if time.monotonic() < self._publish_again_at:
            return
        # A full collection over a hundred thousand waiting jobs takes longer than sending them.
        gc.disable()
        try:
            while batch := self.agenda.pop_due(self.clock.now(), self.publisher.batch):
                if not self._send(self._pass_gate(batch)):
                    return
        finally:
            gc.enable()

    def _pass_gate(self, batch: list[DueJob]) -> list[DueJob]:
        doubtful, buffers = self.gate.doubtful(batch), {}
        if doubtful:
            self._refresh_gate(doubtful)
            buffers = store.buffers_of(self.database, [i for i in doubtful if i in self.gate])
        verdict = self.gate.decide(batch, buffers)
        self._carry_out(verdict)
        return verdict.go

    def _refresh_gate(self, schedules: list[str]) -> None:
        """Ask SQL which of `schedules` are busy; it does not know yet of what went out a moment ago."""
        on_the_way = self._on_the_way.intersection(schedules)
        self.gate.refresh(schedules, store.busy_schedules(self.database, schedules) | on_the_way)

    def _carry_out(self, verdict: Verdict) -> None:
        for reason, ids in verdict.skipped.items():
            store.mark_skipped(self.database, ids, reason)
            log.info("fire.skipped", reason=reason, count=len(ids), jobs=",".join(ids[:3]))
        for schedule_id, overlap in verdict.stop_previous.items():
            at_once = overlap is Overlap.TERMINATE_PREVIOUS
            request_cancel_of_schedules(self.database, [schedule_id], at_once=at_once)

    def _send(self, batch: list[DueJob]) -> bool:
        if not batch:
            return True
        failpoint("before_publish")
        try:
            confirmed = self.publisher.publish(batch)
        except PublishFailed as error:
            self.agenda.add(batch)
            self._publish_again_at = time.monotonic() + OUTAGE_PAUSE_S
            log.warning_once(
                "publish.failed",
                error=str(error),
                jobs=len(batch),
                consequence="they are sent again until confirmed",
            )
            return False
        failpoint("after_publish_before_mark")
        refused = {job.id for job in batch} - set(confirmed)
        sent = [job for job in batch if job.id not in refused]
        self._unmarked.update((job.id, job) for job in sent)
        self._on_the_way.update(job.schedule_id for job in sent if job.schedule_id is not None)
        for job in batch:
            if job.id in refused:
                log.error(
                    "publish.unroutable", job=job.id, task=job.task, queue=job.queue,
                    consequence="it is tried again; is a worker of this queue running?",
                )  # fmt: skip
        return True

    def _mark_published(self) -> None:
        if self._unmarked:
            failpoint("before_mark")
            marked = list(islice(self._unmarked.values(), MARK_BATCH))
            store.mark_published(self.database, marked)
            for job in marked:
                self._on_the_way.discard(job.schedule_id or "")
                del self._unmarked[job.id]

    def _release_held(self, schedules: list[str]) -> None:
        if schedules:
            self._refresh_gate(schedules)
            self.agenda.add(self.gate.release())

    # -- planning ------------------------------------------------------------------------------------------

    def _plan(self, term: Term) -> None:
        now = self.clock.now()
        if self._next_plan is None or now < self._next_plan:
            return
        enough = len(self.agenda) >= AGENDA_ENOUGH
        until = now + (SHORT_HORIZON if enough else timedelta(seconds=self.settings.horizon_s))
        failpoint("before_plan")
        planned, more = self._plan_batch(term, now, until)
        failpoint("after_plan")
        self.agenda.add(job for job in planned if job.state == "SCHEDULED")
        self._next_plan = now if more else self._when_to_plan(now)

    def _plan_batch(self, term: Term, now: datetime, until: datetime) -> tuple[list[DueJob], bool]:
        with self.database.begin() as connection:
            hold_term(connection, term)
            due = store.lock_due_schedules(connection, shard=self.shard, until=until, limit=PLAN_BATCH)
            plans: list[tuple[StoredSchedule, Plan]] = []
            for stored in due:
                try:
                    plans.append((stored, self._plan_one(stored, now, until)))
                except Exception as error:  # noqa: BLE001 - one bad schedule must not stop the others
                    log.error(  # noqa: TRY400 - the sentence says it; it is the user's schedule, not our fault
                        "schedule.fault",
                        schedule=stored.name,
                        error=str(error),
                        consequence="it is set aside",
                    )
                    mark_fault(self.database, connection, stored.id, str(error))
            planned = [job for _stored, result in plans for job in result.jobs]
            store.insert_jobs(self.database, connection, planned, now)
            store.advance(
                connection, [(s.id, result.next_fire_at, result.fires_left) for s, result in plans], now
            )
            failpoint("mid_plan")
        return planned, len(due) == PLAN_BATCH

    def _plan_one(self, stored: StoredSchedule, now: datetime, until: datetime) -> Plan:
        return plan(stored, now=now, until=until, limit=self.settings.catch_up_limit, spread=self._spread)

    def _when_to_plan(self, now: datetime) -> datetime:
        """Return when to look for fire times that have come within the horizon."""
        horizon = timedelta(seconds=self.settings.horizon_s)
        return now + min(horizon / 4, SHORT_HORIZON / 4)

    # -- looking after -------------------------------------------------------------------------------------

    def _look_after(self, term: Term) -> None:
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + 1.0
            self._look_for_foreign()
            self._release_held(self.gate.waiting())
        if now >= self._next_overdue_look:
            self._next_overdue_look = now + OVERDUE.total_seconds()
            self._look_for_overdue()
        for service in self.upkeep:
            if now >= service.next_at:
                service.next_at = now + service.every_s
                service.run(term)

    def _look_for_foreign(self) -> None:
        """Find jobs that others stored (retries, on-demand jobs) and whose notice did not arrive."""
        found = store.foreign_jobs(self.database, until=self._horizon(), limit=LOOK_LIMIT)
        self._add_unknown(found)

    def _look_for_overdue(self) -> None:
        """Find what should have gone out and is not in memory, however that came about."""
        overdue = self.clock.now() - OVERDUE
        self._add_unknown(store.waiting_jobs(self.database, until=overdue, limit=LOOK_LIMIT))

    def _add_unknown(self, found: list[DueJob]) -> None:
        held = self.gate.holds()
        self.agenda.add(job for job in found if job.id not in self.agenda and job.id not in held)

    def _horizon(self) -> datetime:
        return self.clock.now() + timedelta(seconds=self.settings.horizon_s)

    def _render_ahead(self) -> bool:
        """Write messages of jobs that are due soon; return whether there are more to write."""
        batch = self.agenda.pop_unrendered(RENDER_BATCH)
        try:
            self.publisher.render_rest(batch)
        except Exception as error:  # noqa: BLE001 - publishing meets the same fault, and deals with it
            self.publisher.close()
            log.warning_once(
                "render.failed", error=str(error), consequence="it is done when the jobs are due"
            )
            return False
        return len(batch) == RENDER_BATCH

    def _seconds_to_wait(self) -> float:
        now = self.clock.now()
        moments = [self.agenda.next_due(), self._next_plan]
        wait = min(
            ((moment - now).total_seconds() for moment in moments if moment is not None), default=STANDBY_S
        )
        return max(0.0, min(wait, self._next_look - time.monotonic()))
