"""The task that tells a receiver of a job's end. Every worker of an app with cronq has it."""

from collections.abc import Callable
from typing import Any

from celery import Celery

from cronq.context import current_job
from cronq.settings import Settings
from cronq.store.database import Database
from cronq.webhooks.deliver import TASK, WAITS_S, deliver, wait_s
from cronq.webhooks.post import NotDelivered


def add_webhook_task(
    app: Celery, database_of_process: Callable[[], Database], settings_of_process: Callable[[], Settings]
) -> None:
    """Register the task `cronq.webhook` with `app`; route it like any other."""

    def tell(task: Any, job_id: str, status: str) -> dict[str, int]:  # noqa: ANN401 - a Celery task
        job = current_job()
        if job is None:
            raise RuntimeError(f"{TASK} is a job of cronq's own; it cannot be called or sent by hand")
        try:
            answered = deliver(
                database_of_process(), settings_of_process(), webhook_id=job.id, job_id=job_id, status=status
            )
        except NotDelivered as error:
            countdown = wait_s(job.attempt, job.max_attempts)
            raise task.retry(exc=error, countdown=countdown) from None
        return {"answered": answered}

    if TASK not in app.tasks:
        app.task(tell, name=TASK, bind=True, max_retries=len(WAITS_S), shared=False)
