"""The task that tells a receiver of a job's or a batch's end. Every worker of an app with cronq has it."""

from collections.abc import Callable
from typing import Any

from celery import Celery

from cronq.context import current_job
from cronq.job import TELLING
from cronq.settings import Settings
from cronq.store.database import Database
from cronq.webhooks.deliver import WAITS_S, deliver_batch, deliver_job, wait_s
from cronq.webhooks.post import NotDelivered


def add_webhook_task(
    app: Celery, database_of_process: Callable[[], Database], settings_of_process: Callable[[], Settings]
) -> None:
    """Register the task `cronq.webhook` with `app`; route it like any other."""

    def tell(
        task: Any,  # noqa: ANN401 - a Celery task
        job_id: str | None = None,
        status: str = "",
        batch: dict[str, Any] | None = None,
    ) -> dict[str, int]:
        job = current_job()
        if job is None:
            raise RuntimeError(f"{TELLING} is a job of cronq's own; it cannot be called or sent by hand")
        try:
            database, settings = database_of_process(), settings_of_process()
            if batch is not None:
                answered = deliver_batch(database, settings, webhook_id=job.id, told=batch)
            else:
                answered = deliver_job(
                    database, settings, webhook_id=job.id, job_id=str(job_id), status=status
                )
        except NotDelivered as error:
            countdown = wait_s(job.attempt, job.max_attempts)
            raise task.retry(exc=error, countdown=countdown) from None
        return {"answered": answered}

    if TELLING not in app.tasks:
        app.task(tell, name=TELLING, bind=True, max_retries=len(WAITS_S), shared=False)
