"""For users' tests: time that the test owns, and the production planner on it.

No server, no waiting, no patching: `Timeline(app, start=…).advance(timedelta(days=1))` returns what ran.
"""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from celery import Celery

from cronq.beat.catalog import examine
from cronq.beat.planner import CatchUpSpread, plan
from cronq.context import JobContext, running
from cronq.job import State
from cronq.schedule import Reason, Schedule
from cronq.settings import Settings
from cronq.store.agenda import DueJob
from cronq.store.schedules import StoredSchedule
from cronq.timing import after_end, timing_from
from cronq.timing.simulate import Disposition, simulate

__all__ = ["Disposition", "Ran", "Timeline", "simulate"]


@dataclass(frozen=True, slots=True)
class Ran:
    """What became of one fire time: `reason` if it did not run, else the task's result or error."""

    schedule: str
    fire_time: datetime
    due_at: datetime
    result: Any = None
    error: BaseException | None = None
    reason: Reason | None = None


class Timeline:
    """An app's schedules on a clock that only the test moves. Tasks run at once, in this process.

    A task that raises is tried once; what it raised stands in `Ran.error`. Jobs take no time, so nothing
    overlaps.
    """

    def __init__(self, app: Celery, *, start: datetime) -> None:
        self._app = app
        self.now = start.astimezone(UTC)
        app.loader.import_default_modules()
        app.finalize()
        defaults = Settings.model_fields
        found, refused = examine(app, max_payload_bytes=defaults["max_payload_bytes"].default)
        if refused:
            raise ValueError("; ".join(f"schedule {name!r}: {why}" for name, why in refused))
        self._schedules = [_stored(schedule, self.now) for schedule in found]
        self._limit: int = defaults["catch_up_limit"].default

    def advance(self, by: timedelta) -> list[Ran]:
        """Move the time on, running what comes due on the way; return it in order."""
        until, ran = self.now + by, []
        while (earliest := self._earliest()) is not None and earliest <= until:
            self.now = max(self.now, earliest)
            ran += self.run_due()
        self.now = until
        return ran

    def sleep(self, by: timedelta) -> list[Ran]:
        """Move the time on while no beat runs, then let one catch up by the schedules' policies."""
        self.now += by
        return self.run_due()

    def run_due(self) -> list[Ran]:
        """Run what is due now; return it in order, with the fire times that were left out."""
        spread = CatchUpSpread(per_second=1e9)
        jobs: list[DueJob] = []
        for index, stored in enumerate(self._schedules):
            result = plan(stored, now=self.now, until=self.now, limit=self._limit, spread=spread)
            jobs += result.jobs
            following = result.next_fire_at
            if following is None and result.jobs:
                following = after_end(timing_from(stored.definition.timing), self.now)
            self._schedules[index] = replace(stored, next_fire_at=following)
        return [self._run(job) for job in sorted(jobs, key=lambda job: job.due_at)]

    def _run(self, job: DueJob) -> Ran:
        assert job.schedule_name is not None
        assert job.fire_time is not None
        if job.state is State.SKIPPED:
            return Ran(job.schedule_name, job.fire_time, job.due_at, reason=job.reason)
        here = running.set(
            JobContext(
                id=job.id,
                task=job.task,
                attempt=1,
                max_attempts=job.max_attempts or 1,
                schedule=job.schedule_name,
                fire_time=job.fire_time,
                tenant=job.tenant,
            )
        )
        try:
            outcome = self._app.tasks[job.task].apply(args=job.args, kwargs=job.kwargs, task_id=job.id)
        finally:
            running.reset(here)
        error = outcome.result if outcome.failed() else None
        result = None if outcome.failed() else outcome.result
        return Ran(job.schedule_name, job.fire_time, job.due_at, result=result, error=error)

    def _earliest(self) -> datetime | None:
        return min((s.next_fire_at for s in self._schedules if s.next_fire_at is not None), default=None)


def _stored(schedule: Schedule, now: datetime) -> StoredSchedule:
    timing = timing_from(schedule.timing)
    return StoredSchedule(
        definition=schedule,
        version=1,
        source="test",
        shard=0,
        next_fire_at=timing.next(now) or after_end(timing, now),
        paused_at=None,
        pause_note=None,
        resumed_at=None,
        retired_at=None,
        fault=None,
    )
