"""Says what went wrong: watches every committed change of a row, and looks at the rows at the end.

It knows the rules from docs/guarantees.md, not from the code: it shares nothing with cronq but the names of
states and the table of transitions.
"""

from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from cronq.job import ENDS, TRANSITIONS, State

from .daylight import CRONS, fire_times
from .kernel import Kernel
from .sql import Seen, SqlServer, stamp

if TYPE_CHECKING:
    from .cluster import Cluster

EARLY_S: Final = 0.5
LATE_S: Final = 10.0
SLACK_S: Final = 0.01
SINCE_S: Final = 1.0
"""By how much a beat's clock may differ from the database's when it declares a schedule."""
PLANNED: Final = ("schedule", "catch_up")


@dataclass(slots=True)
class Job:
    """A job's row, as it was committed last. The order of the fields is `JOB_FIELDS`."""

    id: str
    schedule_id: str | None
    fire_time: str | None
    item: str
    trigger: str
    state: str
    reason: str | None
    due_at: str
    attempts: int
    lease_token: str | None
    lease_until: str | None
    worker: str | None
    overlap: str
    exclusive: int
    planned_at: str
    cancel_requested_at: str | None

    @property
    def fire(self) -> tuple[str, str, str] | None:
        return None if self.fire_time is None else (str(self.schedule_id), self.fire_time, self.item)


class Judge:
    """One simulation's record of what happened, and of what must not have."""

    cluster: "Cluster"

    def __init__(self, kernel: Kernel, sql: SqlServer) -> None:
        self.kernel, self.sql = kernel, sql
        self.violations: list[str] = []
        self.jobs: dict[str, Job] = {}
        self.open: set[str] = set()  # the jobs that are not at an end
        self.fires: dict[tuple[str, str, str], str] = {}  # fire → job id
        self.running: dict[str, set[str]] = defaultdict(set)  # schedule → its exclusive running jobs
        self.cursors: dict[str, str | None] = {}
        self.paused: set[str] = set()
        self.first: dict[str, str | None] = {}  # schedule → its first cursor
        self.since: dict[str, datetime] = {}  # schedule → the moment from which it is due
        self.outcomes: dict[str, int] = defaultdict(int)  # job → attempts that are written down
        self.left_running: dict[str, int] = defaultdict(int)
        self.tokens: set[str] = set()
        self.judged: dict[str, datetime] = {}  # schedule → the first fire time that is not judged yet
        self.term = 0
        self.bodies = 0

    def wrong(self, guarantee: str, what: str) -> None:
        who = "-" if self.kernel.current is None else self.kernel.current.name
        self.violations.append(f"{guarantee} at {self.kernel.now - self.kernel.began:.3f} s by {who}: {what}")

    # -- what changes --------------------------------------------------------------------------------------

    def saw(self, seen: list[Seen]) -> None:
        """Take in one committed transaction."""
        self._judge_trust()
        edited = {row[1] for table, verb, row in seen if (table, verb) == ("cronq_job", "DELETE")}
        for table, verb, row in seen:
            if self.cluster.trace is not None:
                self.kernel.note(f"sql.{verb.lower()}", table=table, row=row)
            match table, verb:
                case "cronq_job", "INSERT":
                    self._inserted(Job(*row))
                case "cronq_job", "UPDATE":
                    self._updated(self.jobs[row[0]], Job(*row))
                case "cronq_job", "DELETE":
                    self._deleted(Job(*row))
                case "cronq_attempt", _:
                    self._ended(*row)
                case "cronq_leader", _:
                    self._began_term(row[1])
                case "cronq_schedule", _:
                    self._moved_cursor(*row, edited=row[0] in edited)
                case _:
                    raise AssertionError(table)

    def _inserted(self, job: Job) -> None:
        if job.fire is not None:
            if job.fire in self.fires:
                self.wrong("G1", f"{job.fire} has two rows: {self.fires[job.fire]} and {job.id}")
            self.fires[job.fire] = job.id
            if job.trigger in PLANNED and job.reason != "paused":
                self._require_term("planned", job.id)
        self._note(job)

    def _note(self, job: Job) -> None:
        self.jobs[job.id] = job
        if State(job.state) in ENDS:
            self.open.discard(job.id)
        else:
            self.open.add(job.id)

    def _deleted(self, job: Job) -> None:
        if job.state not in ("SCHEDULED", "SKIPPED"):
            self.wrong("G2", f"job {job.id} was taken back although it is {job.state}")
        del self.jobs[job.id]
        self.open.discard(job.id)
        if job.fire is not None:
            self.fires.pop(job.fire, None)

    def _updated(self, was: Job, job: Job) -> None:
        self._note(job)
        before, after = State(was.state), State(job.state)
        if after is not before:
            if after not in TRANSITIONS.get(before, ()):
                self.wrong("states", f"job {job.id} went from {before} to {after}")
            if before is State.RUNNING:
                self._left_running(was, job)
            if after is State.RUNNING:
                self._claimed(was, job)
            if after is State.PENDING and job.id not in self.cluster.broker.took:
                self.wrong("G4", f"job {job.id} counts as published, and its message never went out")
        elif after is State.RUNNING:
            if job.lease_token != was.lease_token:
                self.wrong("G5", f"job {job.id} changed hands while {was.worker} held its lease")
            if job.lease_until != was.lease_until and self._process() != _process_of(job.worker):
                self.wrong("G5", f"the lease of {job.worker} was renewed by {self._process()}")

    def _claimed(self, was: Job, job: Job) -> None:
        if job.due_at > stamp(self.sql.clock() + EARLY_S + SLACK_S):
            self.wrong("early", f"job {job.id} was claimed {job.due_at=}, at {stamp(self.sql.clock())}")
        if job.attempts != was.attempts + 1 or job.lease_token in self.tokens:
            self.wrong("G5", f"job {job.id} was claimed without a new attempt")
        self.tokens.add(str(job.lease_token))
        if job.exclusive:
            running = self.running[str(job.schedule_id)]
            running.add(job.id)
            if len(running) > 1:
                self.wrong("overlap", f"{len(running)} jobs of {job.schedule_id} run side by side")

    def _left_running(self, was: Job, job: Job) -> None:
        self.left_running[job.id] += 1
        if was.exclusive:
            self.running[str(was.schedule_id)].discard(job.id)
        who = None if self.kernel.current is None else self.kernel.current.name
        if who == was.worker:
            return
        if was.lease_until is not None and was.lease_until >= stamp(self.sql.clock()):
            self.wrong("G5", f"job {job.id} was settled by {who} while {was.worker} held a live lease")
        elif not self._process().startswith("beat"):
            self.wrong("G5", f"job {job.id} of {was.worker} was settled by {who}")

    def _ended(self, job_id: str, token: str, number: int, outcome: str) -> None:
        self.outcomes[job_id] += 1

    def _began_term(self, term: int) -> None:
        if term != self.term + 1:
            self.wrong("G3", f"term {term} followed {self.term}")
        self.term = term

    def _moved_cursor(
        self, schedule_id: str, cursor: str | None, paused_at: str | None, *, edited: bool
    ) -> None:
        (self.paused.discard if paused_at is None else self.paused.add)(schedule_id)
        before = self.cursors.get(schedule_id)
        self.cursors[schedule_id] = cursor
        if schedule_id not in self.first:
            self.first[schedule_id] = cursor
            self.since[schedule_id] = self.moment() + timedelta(seconds=SINCE_S)
            return
        if cursor == before:
            return
        if before is not None and cursor is not None and cursor < before:
            if cursor < stamp(self.sql.clock() - SLACK_S):
                self.wrong("G7", f"the cursor of {schedule_id} went back from {before} to {cursor}")
            elif not edited:
                self.wrong("G7", f"the cursor of {schedule_id} went back without an edit")

    def _require_term(self, what: str, job_id: str) -> None:
        current = self.kernel.current
        beat = None if current is None else current.process.parts
        term = None if beat is None else beat.loop._term
        if term is None or term.term != self.term:
            self.wrong("G3", f"{job_id} was {what} in term {term and term.term}; the newest is {self.term}")

    # -- who leads -----------------------------------------------------------------------------------------

    def _judge_trust(self) -> None:
        holder = self.cluster.redis.get(f"{self.cluster.settings.key_prefix}leader:0")
        if holder is not None:
            self.lock_taken(holder)

    def lock_taken(self, holder: str) -> None:
        """`holder` has the lock: nobody else may trust that it still has it."""
        for process in self.cluster.processes.values():
            beat = process.parts
            held = None if beat is None or not process.alive else beat.leadership._held
            if held is None or held[0].holder == holder:
                continue
            trusts = held[1] - process.monotonic()
            renewed_ago = self.cluster.settings.lock_s - trusts
            emptied_ago = self.kernel.now - self.cluster.redis.emptied_at
            # Without Redis a leader asks SQL; what holds then is the term.
            if (
                trusts > 0
                and emptied_ago > renewed_ago + 1
                and self.cluster.redis.renewed.get(held[0].holder)
            ):
                self.wrong("G3", f"{holder} got the lock while {held[0].holder} trusts it for {trusts:.3f} s")

    def moment(self) -> datetime:
        """Return what time it is, by the database's clock."""
        return datetime.fromtimestamp(self.sql.clock(), UTC)

    # -- bodies --------------------------------------------------------------------------------------------

    def begins(self, job_id: str) -> None:
        self.bodies += 1

    # -- the end -------------------------------------------------------------------------------------------

    def unfinished(self, until: float) -> list[str]:
        """Return what has no end yet of what is due up to `until`."""
        moment = stamp(until)
        waiting = [job_id for job_id in self.open if self.jobs[job_id].due_at <= moment]
        behind = [i for i, cursor in self.cursors.items() if cursor is not None and cursor <= moment]
        unknown = [each for each in self.cluster.schedule_ids if each not in self.first]
        return [*waiting, *behind, *unknown, *self.paused]

    def conclude(self, healed_at: float) -> None:
        """Look at everything once more, after the faults are over and all had time to recover."""
        for what in self.unfinished(healed_at):
            job = self.jobs.get(what)
            self.wrong("G4", f"stuck: {'schedule ' + what if job is None else job}")
        for job_id, count in self.outcomes.items():
            if count != self.left_running[job_id]:
                self.wrong("G5", f"job {job_id} has {count} outcomes of {self.left_running[job_id]} attempts")
        for declared, schedule_id in zip(self.cluster.schedules, self.cluster.schedule_ids, strict=True):
            if declared.timing["kind"] == "every":
                self._judge_fires(declared, schedule_id, healed_at)
            elif declared.name in CRONS and schedule_id in self.since:
                self._judge_crons(declared, schedule_id, healed_at)

    def _judge_crons(self, declared: Any, schedule_id: str, healed_at: float) -> None:
        since, until = self.since[schedule_id], stamp(healed_at)
        due = {stamp(each.timestamp()) for each in fire_times(declared.name, since, _seconds(until))}
        known = {at for of, at, _item in self.fires if of == schedule_id and at <= until}
        for at in sorted(due - known):
            self.wrong("G2", f"{declared.name} at {at} has no disposition")
        for at in sorted(known - due):
            if at >= stamp(since.timestamp()):
                self.wrong("timing", f"{declared.name} has a job for {at}, when it was not due")
        for at in due & known:
            self._judge_reason(declared, self.jobs[self.fires[schedule_id, at, ""]])

    def _judge_fires(self, declared: Any, schedule_id: str, healed_at: float) -> None:
        begin = self.first.get(schedule_id)
        if begin is None:
            return  # it counts as stuck
        fire = self.judged.get(schedule_id) or datetime.fromisoformat(begin).replace(tzinfo=UTC)
        period = timedelta(seconds=declared.timing["seconds"])
        while fire.timestamp() <= healed_at:
            key = (schedule_id, fire.isoformat(" ", "microseconds")[:26], "")
            if key not in self.fires:
                self.wrong("G2", f"{declared.name} at {key[1]} has no disposition")
            else:
                self._judge_reason(declared, self.jobs[self.fires[key]])
            fire += period
        self.judged[schedule_id] = fire

    def _judge_reason(self, declared: Any, job: Job) -> None:
        if job.reason is None:
            return
        assert job.fire_time is not None
        planned_late = _seconds(job.planned_at) - _seconds(job.fire_time)
        allowed = {
            "overlap": job.overlap in ("skip", "cancel_previous", "terminate_previous"),
            "buffer_full": job.overlap in ("queue", "queue_one"),
            "missed_window": planned_late > LATE_S
            and (declared.catch_up == "skip" or planned_late > declared.catch_up_window.total_seconds()),
            "coalesced": planned_late > LATE_S and declared.catch_up == "latest",
            "paused": True,
        }
        if not allowed.get(job.reason, False):
            self.wrong("G2", f"{declared.name} at {job.fire_time} was skipped without ground: {job.reason}")

    def _process(self) -> str:
        return "-" if self.kernel.current is None else self.kernel.current.process.name


def _process_of(worker: str | None) -> str:
    return str(worker).partition("/")[0]


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
