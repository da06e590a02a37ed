"""Publishing at the due instant: what waits, what the overlap policy says, what the broker took."""

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Final

from cronq.beat.agenda import Agenda
from cronq.beat.overlap import OverlapGate, Verdict
from cronq.beat.pace import Pace
from cronq.beat.waiting_room import WaitingRoom
from cronq.clock import StoreClock
from cronq.delivery.failure import PublishFailed
from cronq.delivery.publisher import Publisher
from cronq.failpoints import failpoint
from cronq.retry import Kind
from cronq.schedule import Overlap
from cronq.store import agenda as store
from cronq.store.agenda import DueJob
from cronq.store.attempts import bury
from cronq.store.busy import buffers_of, busy_schedules, untouched_schedules
from cronq.store.database import Database
from cronq.store.jobs import request_cancel_of_schedules
from cronq.telemetry.log import get_logger

MARK_BATCH: Final = 2000
MARK_S: Final = 40e-6
RENDER_BATCH: Final = 1000
RENDER_S: Final = 80e-6
"""What one job costs to mark, and to write the message of, about, until it is known."""
LOOK_AHEAD: Final = 1000
"""Jobs due next whose schedules are looked up just before."""
PAUSE_S: Final = 0.5
"""Seconds after which a broker that failed is tried again."""

log = get_logger(__name__)


@dataclass(slots=True)
class Publishing:
    """The jobs of one leader, from the agenda to the mark in SQL that the broker has them."""

    database: Database
    publisher: Publisher
    clock: StoreClock
    offers: Callable[[], Mapping[str, int] | None] = lambda: None  #: as `WaitingRoom` asks
    agenda: Agenda = field(default_factory=Agenda)
    gate: OverlapGate = field(default_factory=OverlapGate)
    waiting_room: WaitingRoom = field(init=False)
    again_at: float = 0.0  #: the monotonic time before which a broker that failed is left alone
    away_since: float | None = None  #: the monotonic time since which the broker fails; None: it does not
    _missed_queue: str = ""  # of a job that it did not take
    _mark_pace: Pace = field(default_factory=lambda: Pace(MARK_S, MARK_BATCH))
    _render_pace: Pace = field(default_factory=lambda: Pace(RENDER_S, RENDER_BATCH))
    _looked_ahead: datetime | None = None  # the due instant whose schedules were looked up
    _unmarked: dict[str, DueJob] = field(default_factory=dict)  # published, and SQL does not say so yet
    _on_the_way: set[str] = field(default_factory=set)  # the schedules of those

    def __post_init__(self) -> None:
        self.waiting_room = WaitingRoom(self.database, self.publisher, self.offers)

    def begin(self) -> None:
        """Start a term with what SQL says is going on."""
        self.forget()
        self.gate.reset(busy_schedules(self.database))
        self.waiting_room.begin()

    def forget(self) -> None:
        """Forget everything: another beat leads, or this one starts anew. SQL has it all."""
        self._unmarked.clear()
        self._on_the_way.clear()
        self.agenda.clear()
        self.gate.reset(())
        self.waiting_room.forget()

    def drop_schedule(self, schedule_id: str) -> None:
        """Forget what waits of one schedule: it was edited, and SQL says what is due now."""
        self.agenda.drop_schedule(schedule_id)
        self.gate.drop_schedule(schedule_id)

    def add_unknown(self, found: list[DueJob]) -> None:
        """Take up those of `found` that neither wait here already nor were sent as they stand."""
        known = (self.agenda, self.gate.holds(), self.waiting_room.admission)
        self.agenda.add(
            job for job in found if not self._is_sent(job) and not any(job.id in place for place in known)
        )

    def _is_sent(self, job: DueJob) -> bool:
        sent = self._unmarked.get(job.id)
        # Another attempt may be due before SQL knows that the last one's message went out.
        return sent is not None and sent.attempts == job.attempts

    @property
    def unmarked(self) -> int:
        """How many jobs were sent whose rows do not say so yet."""
        return len(self._unmarked)

    def seconds_to_due(self) -> float | None:
        """Return the seconds until the earliest job is due and may be sent, 0 if it is; None: none waits."""
        due = self.agenda.next_due()
        if due is None:
            return None
        return max(0.0, (due - self.clock.now()).total_seconds(), self.again_at - time.monotonic())

    def is_back(self, after_s: float) -> bool:
        """Tell whether the broker answers, after it failed for `after_s` seconds or longer."""
        away_s = 0.0 if self.away_since is None else time.monotonic() - self.away_since
        return away_s >= after_s and self._answers()

    def _answers(self) -> bool:
        """Tell whether the broker answers; ask for the queue of a job that it did not take."""
        if time.monotonic() < self.again_at:
            return False
        try:
            self.publisher.depth(self._missed_queue)
        except self.publisher.outages:
            self.publisher.close()
            self.again_at = time.monotonic() + PAUSE_S
            return False
        return True

    def publish_due(self, leads: Callable[[], bool]) -> None:
        """Send everything that is due, in batches; stop at the first that the broker does not take.

        leads: asked before each batch is sent. What is not, because this beat leads no more, is the next
        leader's.
        """
        if time.monotonic() < self.again_at:
            return
        if self.away_since is not None and not self._answers():
            return  # nothing is decided about overlap before it can be sent
        # A full collection over a hundred thousand waiting jobs takes longer than sending them.
        gc.disable()
        try:
            while batch := self.agenda.pop_due(self.clock.now(), self.publisher.batch):
                try:
                    passed = self.waiting_room.sort(self._pass_gate(batch))
                except Exception:
                    # SQL did not say who may pass: none was sent, and all are still due when it answers.
                    self.add_unknown(batch)
                    raise
                if not leads() or not self._send(passed):
                    return
            if leads():
                self._send(self.waiting_room.release())
        finally:
            gc.enable()

    def look_ahead(self) -> None:
        """Look up the schedules of the next jobs just before these are due, so that most need not be then."""
        due = self.agenda.next_due()
        if due is not None and due != self._looked_ahead:
            self._looked_ahead = due
            if doubtful := self.gate.doubtful(self.agenda.next_jobs(LOOK_AHEAD)):
                self._refresh_gate(doubtful)

    def mark_published(self, within_s: float) -> bool:
        """Write down in SQL a batch of what the broker took; tell whether there is more."""
        if self._unmarked:
            failpoint("before_mark")
            began = time.monotonic()
            marked = list(islice(self._unmarked.values(), self._mark_pace.count(within_s)))
            store.mark_published(self.database, marked)
            self._mark_pace.took(len(marked), time.monotonic() - began)
            for job in marked:
                self._on_the_way.discard(job.schedule_id or "")
                del self._unmarked[job.id]
        return bool(self._unmarked)

    def look_for_room(self) -> bool:
        """Look after the jobs that wait for room; tell whether some may go out now."""
        return self.waiting_room.step(self._unmarked) and time.monotonic() >= self.again_at

    def seconds_to_room(self) -> float | None:
        """Return the seconds until a job that waits for room may go out; None: nothing says when."""
        wait = self.waiting_room.seconds_to_wait()
        return None if wait is None else max(wait, self.again_at - time.monotonic())

    def ended(self, job_id: str) -> None:
        """Note that a job is at an end, or at the end of an attempt: there may be room for another."""
        self.waiting_room.admission.ended(job_id)

    def release_held(self, schedules: list[str]) -> None:
        """Put back on the agenda the next job of each of `schedules` whose previous one has ended."""
        if schedules:
            self._refresh_gate(schedules)
            self.agenda.add(self.gate.release())

    def render_ahead(self, within_s: float) -> bool:
        """Write messages of jobs that are due soon; tell whether there are more to write."""
        count = self._render_pace.count(within_s)
        batch = self.agenda.pop_unrendered(count)
        began = time.monotonic()
        try:
            self.publisher.render_rest(batch)
        except Exception as error:  # noqa: BLE001 - publishing meets the same fault, and deals with it
            self.publisher.close()
            log.warning_once(
                "render.failed", error=str(error), consequence="it is done when the jobs are due"
            )
            return False
        self._render_pace.took(len(batch), time.monotonic() - began)
        return len(batch) == count

    def _bury_oversized(self) -> set[str]:
        oversized = self.publisher.take_oversized()
        for job_id, error in oversized.items():
            bury(self.database, job_id, kind=Kind.OVERSIZED, error=error)
            log.error("job.buried", job=job_id, error=error, consequence="see: cronq dead show")
        return set(oversized)

    def _pass_gate(self, batch: list[DueJob]) -> list[DueJob]:
        doubtful, buffers = self.gate.doubtful(batch), {}
        if doubtful:
            self._refresh_gate(doubtful)
            queued = {job.schedule_id for job in batch if job.overlap is Overlap.QUEUE}
            buffers = buffers_of(self.database, [i for i in doubtful if i in queued and i in self.gate])
        verdict = self.gate.decide(batch, buffers)
        self._carry_out(verdict)
        return verdict.go

    def _refresh_gate(self, schedules: list[str]) -> None:
        """Ask SQL which of `schedules` are busy; it does not know yet of what went out a moment ago."""
        busy = busy_schedules(self.database, schedules)
        busy |= self.waiting_room.admission.unmarked_schedules().intersection(schedules)
        if on_the_way := self._on_the_way.intersection(schedules) - busy:
            # Not marked yet; a worker may be done with it all the same.
            sent = [job.id for job in self._unmarked.values() if job.schedule_id in on_the_way]
            busy |= untouched_schedules(self.database, sent)
        self.gate.refresh(schedules, busy)

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
            buried = self._bury_oversized()
        except PublishFailed as error:
            self.waiting_room.give_back(batch)
            self.agenda.add(batch)
            self.again_at = time.monotonic() + PAUSE_S
            self.away_since = self.away_since or time.monotonic()
            self._missed_queue = self.publisher.queue_of(batch[0].task, batch[0].queue)
            log.warning_once(
                "publish.failed",
                error=str(error),
                jobs=len(batch),
                consequence="they are sent again until confirmed",
            )
            return False
        self.away_since = None
        failpoint("after_publish_before_mark")
        refused = {job.id for job in batch} - set(confirmed) - buried
        sent = [job for job in batch if job.id not in refused and job.id not in buried]
        if refused:
            self.waiting_room.give_back([job for job in batch if job.id in refused])
        self._unmarked.update((job.id, job) for job in sent)
        self._on_the_way.update(job.schedule_id for job in sent if job.schedule_id is not None)
        for job in batch:
            if job.id in refused:
                log.error(
                    "publish.unroutable", job=job.id, task=job.task, queue=job.queue,
                    consequence="it is tried again; is a worker of this queue running?",
                )  # fmt: skip
        return True
