"""On-demand jobs: stored first, then published; nothing accepted is ever lost."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from celery import Celery, current_app
from sqlalchemy import Connection
from sqlalchemy.orm import Session

from cronq.app import Cronq, cronq_of
from cronq.coordination.notices import send_notice
from cronq.declaration import needs_text
from cronq.errors import JobRefused
from cronq.job import Trigger, demanded_job_id
from cronq.needs import Needs, parse
from cronq.store.agenda import DueJob
from cronq.store.jobs import add_job, check_payload
from cronq.webhooks.address import check_callback


def enqueue(
    task: Any,  # noqa: ANN401 - a Celery task, or its name
    *args: Any,  # noqa: ANN401
    kwargs: Mapping[str, Any] | None = None,
    run_at: datetime | None = None,
    run_in: timedelta | float | None = None,
    queue: str | None = None,
    needs: str | Mapping[str, Any] | None = None,
    priority: int | None = None,
    max_attempts: int | None = None,
    dedup_key: str | None = None,
    tenant: str | None = None,
    callback_url: str | None = None,
    session: Session | Connection | None = None,
    app: Celery | None = None,
) -> str:
    """Ask for one job of `task` and return its id; the leader publishes it when it is due.

    run_at / run_in: when (an aware datetime / seconds or a timedelta); now by default. dedup_key: a second
    request with the same key is the same job. needs: instead of a queue, the kind of machine and the places
    (`cronq.needs`). callback_url: whom to tell of its end, by a signed webhook.
    session: the caller's own SQLAlchemy session or connection to cronq's database; the job then commits or
    rolls back with it. Raises `JobRefused` for what cannot run.
    """
    name = task if isinstance(task, str) else task.name
    return submit(
        cronq_of(app or getattr(task, "app", None) or current_app._get_current_object()),  # noqa: SLF001
        name,
        args,
        dict(kwargs or {}),
        due=_due(run_at, run_in),
        queue=queue,
        needs=needs,
        priority=priority,
        max_attempts=max_attempts,
        dedup_key=dedup_key,
        tenant=tenant,
        callback_url=callback_url,
        session=session,
    )[0]


def submit(
    parts: Cronq,
    task: str,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    *,
    due: datetime | float = 0.0,
    queue: str | None = None,
    needs: str | Mapping[str, Any] | None = None,
    priority: int | None = None,
    max_attempts: int | None = None,
    dedup_key: str | None = None,
    tenant: str | None = None,
    callback_url: str | None = None,
    session: Session | Connection | None = None,
) -> tuple[str, bool]:
    """Do the same for code that has the parts at hand; return the id, and whether the job is new."""
    _check(parts, args, kwargs, priority, callback_url)
    where = None if needs is None else _needs(queue, needs)
    demanded = DueJob(
        id=demanded_job_id(dedup_key),
        task=task,
        args=list(args),
        kwargs=kwargs,
        due_at=datetime.now(UTC),
        trigger=Trigger.DEMAND,
        queue=queue if where is None else where.queues[0],
        needs=None if where is None else str(where),
        priority=priority,
        max_attempts=max_attempts,
        tenant=tenant,
        callback_url=callback_url,
    )
    demanded, new = add_job(parts.database, demanded, due=due, session=session)
    if session is None and new:
        send_notice(parts.redis, parts.settings.key_prefix, "job", job_id=demanded.id)
    return demanded.id, new


def _check(
    parts: Cronq, args: Sequence[Any], kwargs: dict[str, Any], priority: int | None, callback_url: str | None
) -> None:
    check_payload(list(args), kwargs, parts.settings.max_payload_bytes)
    if priority is not None and not 0 <= priority <= 9:  # noqa: PLR2004 - the scale of both brokers
        raise JobRefused(f"priority {priority} is not between 0 and 9")
    if callback_url is not None:
        check_callback(callback_url, parts.settings)


def _needs(queue: str | None, given: str | Mapping[str, Any]) -> Needs:
    if queue is not None:
        raise JobRefused("give queue or needs, not both: needs say which queues")
    try:
        return parse(needs_text(given))
    except ValueError as error:
        raise JobRefused(str(error)) from None


def _due(run_at: datetime | None, run_in: timedelta | float | None) -> datetime | float:
    """Return an instant, or seconds from now by the database's clock."""
    if run_at is not None and run_in is not None:
        raise JobRefused("give run_at or run_in, not both")
    if run_at is not None:
        if run_at.tzinfo is None:
            raise JobRefused(f"run_at {run_at} has no offset; give an aware datetime")
        return run_at
    if run_in is None:
        return 0.0
    return run_in.total_seconds() if isinstance(run_in, timedelta) else float(run_in)
