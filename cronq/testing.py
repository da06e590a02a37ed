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
from cronq.store.batch_steps import end_facts
from cronq.store.dependencies import Upstream
from cronq.store.schedules import StoredSchedule
from cronq.timing import after_end, timing_from
from cronq.timing.simulate import Disposition, simulate
from cronq.upkeep.dependency_resolver import decide
from cronq.worker.expansion import DueTimes, Item, find_items, job_of_item

__all__ = ["Disposition", "Ran", "Timeline", "simulate"]


@dataclass(frozen=True, slots=True)
class Ran:
    """What became of one fire time: `reason` if it did not run, else the task's result or error.

    Of a fan-out there is one for each item, and one for its `on_complete`.
    """

    schedule: str
    fire_time: datetime
    due_at: datetime
    task: str
    item: str | None = None
    result: Any = None
    error: BaseException | None = None
    reason: Reason | None = None


class Timeline:
    """An app's schedules on a clock that only the test moves. Tasks run at once, in this process.

    A task that raises is tried once; what it raised stands in `Ran.error`. Jobs take no time, so nothing
    overlaps, and no limit is ever full. Chains and fan-outs run as declared.

    Raises ValueError for a `start` without an offset, and for schedules that cronq refuses.
    """

    def __init__(self, app: Celery, *, start: datetime) -> None:
        if start.tzinfo is None:
            raise ValueError(f"start={start} has no offset; give an aware datetime, such as tzinfo=UTC")
        self._app = app
        self.now = start.astimezone(UTC)
        app.loader.import_default_modules()
        app.finalize()
        defaults = Settings.model_fields
        found, refused = examine(app, max_payload_bytes=defaults["max_payload_bytes"].default)
        if refused:
            raise ValueError("; ".join(f"schedule {name!r}: {why}" for name, why in refused))
        self._schedules = {schedule.name: _stored(schedule, self.now) for schedule in found}
        self._limit: int = defaults["catch_up_limit"].default
        self._max_payload_bytes: int = defaults["max_payload_bytes"].default

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
        for name, stored in self._schedules.items():
            result = plan(stored, now=self.now, until=self.now, limit=self._limit, spread=spread)
            jobs += result.jobs
            following = result.next_fire_at
            if following is None and result.jobs:
                following = after_end(timing_from(stored.definition.timing), self.now)
            self._schedules[name] = replace(stored, next_fire_at=following)
        return self._run_in_order(sorted(jobs, key=lambda job: job.due_at))

    def _run_in_order(self, waiting: list[DueJob]) -> list[Ran]:
        """Run each job once those that it comes after are done; there are no circles."""
        ran: list[Ran] = []
        became: dict[tuple[str | None, datetime | None], Upstream] = {}
        for job in waiting:
            became.setdefault((job.schedule_name, job.fire_time), Upstream.OPEN)
        while waiting:
            for job in waiting:
                goes = self._goes(job, became)
                if goes is not None:
                    break
            waiting.remove(job)
            if not goes:
                job.state, job.reason = State.SKIPPED, Reason.UPSTREAM
            done = self._run_batch(job) if job.expands and goes else [self._run(job)]
            became[job.schedule_name, job.fire_time] = _became(done)
            ran += done
        return ran

    def _goes(self, job: DueJob, became: dict[tuple[str | None, datetime | None], Upstream]) -> bool | None:
        after = self._declared(job).after
        if after is None or job.state is State.SKIPPED:
            return True
        return decide(
            after, [became.get((name, job.fire_time), Upstream.LEFT_OUT) for name in after.schedules]
        )

    def _run_batch(self, head: DueJob) -> list[Ran]:
        """Run each item of a fan-out once, then the task that runs at the end."""
        declared, bytes_ = self._declared(head), self._max_payload_bytes
        due = DueTimes(head, declared, self.now)
        found: dict[str, Item] = {}
        try:
            for item in find_items(declared.fan_out or {}, bytes_):
                found.setdefault(item.key, item)
        except Exception as error:  # noqa: BLE001 - whatever the user's function raises, the test is to see
            return [replace(_ran(head), error=error)]
        items = [job_of_item(head, item, due) for item in found.values()]
        ran = [self._run(job) for job in sorted(items, key=lambda job: job.due_at)]
        if declared.on_complete is not None:
            failed = sum(each.error is not None for each in ran)
            counts = {str(State.COMPLETED): len(ran) - failed, str(State.FAILED): failed}
            told = end_facts(head.id, declared.name, head.fire_time, len(ran), counts)
            ran.append(self._run(replace(head, task=declared.on_complete, args=[told], kwargs={})))
        return ran

    def _run(self, job: DueJob) -> Ran:
        if job.state is State.SKIPPED:
            return replace(_ran(job), reason=job.reason)
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
        if outcome.failed():
            return replace(_ran(job), error=outcome.result)
        return replace(_ran(job), result=outcome.result)

    def _declared(self, job: DueJob) -> Schedule:
        assert job.schedule_name is not None
        return self._schedules[job.schedule_name].definition

    def _earliest(self) -> datetime | None:
        return min(
            (s.next_fire_at for s in self._schedules.values() if s.next_fire_at is not None), default=None
        )


def _ran(job: DueJob) -> Ran:
    assert job.schedule_name is not None
    assert job.fire_time is not None
    return Ran(job.schedule_name, job.fire_time, job.due_at, job.task, item=job.item or None)


def _became(done: list[Ran]) -> Upstream:
    """Return what those that come after see of a job, or of a whole batch."""
    if any(each.error is not None for each in done):
        return Upstream.FAILED
    return Upstream.LEFT_OUT if any(each.reason is not None for each in done) else Upstream.COMPLETED


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
