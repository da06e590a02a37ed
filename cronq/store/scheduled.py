"""What does a schedule's job look like? One place that copies a declaration into a job."""

from datetime import datetime

from cronq.job import Trigger, scheduled_job_id
from cronq.needs import parse
from cronq.store.agenda import DueJob
from cronq.store.schedules import StoredSchedule


def job_of(
    stored: StoredSchedule, fire_time: datetime, *, due_at: datetime, trigger: Trigger, item: str = ""
) -> DueJob:
    """Return the job of one fire time of `stored`, as the schedule is declared now."""
    declared = stored.definition
    job_id = scheduled_job_id(stored.id, fire_time, item)
    fans_out = declared.fan_out is not None
    return DueJob(
        id=job_id,
        batch_id=job_id if fans_out else None,
        schedule_id=stored.id,
        schedule_name=declared.name,
        schedule_version=stored.version,
        fire_time=fire_time,
        item=item,
        trigger=trigger,
        task=declared.task,
        args=list(declared.args),
        kwargs=declared.kwargs,
        queue=declared.queue if declared.needs is None else parse(declared.needs).queues[0],
        needs=declared.needs,
        priority=declared.priority,
        tenant=declared.tenant,
        overlap=declared.overlap,
        max_attempts=declared.max_attempts,
        # Of a fan-out, the end of the whole batch is told.
        callback_url=None if fans_out else declared.callback_url,
        due_at=due_at,
    )
