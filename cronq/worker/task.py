"""Puts the attempt around every Celery task of a worker: plain tasks need not know of cronq.

A message with cronq's header goes through `run_attempt`; any other is run as always.
"""

import functools
import inspect
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from celery import Celery
from celery.exceptions import Ignore, Retry, SoftTimeLimitExceeded

from cronq.delivery.message import HEADER
from cronq.errors import CronqError, WrongArguments
from cronq.job import State
from cronq.progress.reporter import reporting
from cronq.retry import Policy, policies_of
from cronq.store.attempts import Claim
from cronq.telemetry.log import get_logger
from cronq.worker.attempt import Ended, Work, run_attempt
from cronq.worker.desk import StoreDesk
from cronq.worker.verdict import RetryAsked, ToldToEnd, cause_of

log = get_logger(__name__)

UNLIMITED = 2**31
"""Attempts of a task that says `max_retries=None`, as Celery reads that."""


def wrap_tasks(app: Celery, desk_of_process: Callable[[], StoreDesk]) -> None:
    """Wrap every task of `app`, once. Has to happen before Celery builds its tracers."""
    for task in app.tasks.values():
        if not getattr(task, "_cronq_wrapped", False) and not task.name.startswith("celery."):
            task.run = _around(task, task.run, desk_of_process)
            task.retry = _asking(task, task.retry)
            task._cronq_wrapped = True  # noqa: SLF001 - the mark is ours


def hand_back_when_cold(consumer: Any, desk_of_process: Callable[[], StoreDesk]) -> None:  # noqa: ANN401
    """Let a cold shutdown hand jobs back where Celery cannot cancel them: it raises in these pools."""
    in_main_thread = type(consumer.pool).__module__ == "celery.concurrency.solo"

    def cancel() -> None:
        desk = desk_of_process()
        if in_main_thread and desk.holds_any():
            raise ToldToEnd  # this is a signal handler in the middle of the body, which ends with it
        desk.hand_back()

    consumer.cancel_active_requests = cancel


def _around(
    task: Any,  # noqa: ANN401 - a Celery task
    run: Callable[..., Any],
    desk_of_process: Callable[[], StoreDesk],
) -> Callable[..., Any]:
    policies = policies_of(getattr(task, "cronq_retry", None), task.name)

    @functools.wraps(run)
    def attempt(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        request = task.request
        facts = (
            None if request.called_directly else (request.headers or {}).get(HEADER) or request.get(HEADER)
        )
        if facts is None or reporting.get() is not None:
            return run(*args, **kwargs)
        desk = desk_of_process()
        work = _work(task, request, facts, policies)

        def on_claim(claim: Claim) -> None:
            # So that Celery's own back-off and `self.request.retries` count right.
            request.retries = claim.attempt - 1

        def body() -> Any:  # noqa: ANN401
            return desk.expand(work.job_id) if facts.get("expand") else _run(run, args, kwargs)

        ended = run_attempt(desk, work, body, on_claim)
        if ended.settlement is not None:
            desk.tell_leader(
                work, ended.settlement, facts.get("schedule_id") if facts.get("notify") else None
            )
        if ended.exits:
            raise SystemExit
        if ended.settlement is None:
            raise Ignore
        return _tell_celery(task, ended)

    return attempt


def _run(run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401
    """Call the body; say so if its function does not accept the arguments."""
    try:
        return run(*args, **kwargs)
    except (TypeError, RetryAsked) as error:
        if isinstance(cause_of(error), TypeError):
            _require_fit(run, args, kwargs)
        raise


def _require_fit(run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    try:
        accepted = inspect.signature(run)
    except (TypeError, ValueError):
        return  # a built-in function does not tell
    try:
        accepted.bind(*args, **kwargs)
    except TypeError as misfit:
        raise WrongArguments(
            f"the task takes {accepted}, so it does not accept its arguments: {misfit}"
        ) from None


def _tell_celery(task: Any, ended: Ended) -> Any:  # noqa: ANN401
    """Return or raise what makes Celery's own events and signals say the same as the settlement."""
    settlement, error = ended.settlement, ended.error
    assert settlement is not None
    if settlement.state is State.COMPLETED:
        return ended.result
    if error is not None:
        error = cause_of(error)
    if settlement.state is State.RETRYING:
        reason = error if isinstance(error, Exception) else None
        raise Retry(exc=reason, when=settlement.retry_in_s, message=f"{settlement.kind}: {error}")
    if settlement.state is State.CANCELLED:
        if task.app.conf.worker_send_task_events:
            task.send_event("task-revoked", terminated=False, signum=None, expired=False)
        raise Ignore
    if error is None:
        raise CronqError(settlement.error or str(settlement.state))
    raise error


def _asking(task: Any, celery_retry: Callable[..., Any]) -> Callable[..., Any]:  # noqa: ANN401
    @functools.wraps(celery_retry)
    def retry(  # noqa: PLR0917 - Celery's own signature
        args: Any = None,  # noqa: ANN401
        kwargs: Any = None,  # noqa: ANN401
        exc: BaseException | None = None,
        throw: bool = True,
        eta: datetime | None = None,
        countdown: float | None = None,
        max_retries: int | None = None,
        **options: Any,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        if reporting.get() is None:
            return celery_retry(args, kwargs, exc, throw, eta, countdown, max_retries, **options)
        if args is not None or kwargs is not None or options:
            log.warning(
                "retry.changes_ignored", task=task.name, job=task.request.id,
                consequence="the job keeps its arguments, queue and priority",
            )  # fmt: skip
        exc = exc or sys.exc_info()[1]
        if eta is not None:
            countdown = (eta.astimezone(UTC) - datetime.now(UTC)).total_seconds()
        if countdown is None:
            countdown = task.default_retry_delay
        limit = task.max_retries if max_retries is None else max_retries
        attempts = None if limit is None else int(limit) + 1
        raise RetryAsked(exc, float(countdown), attempts) from exc

    return retry


def _work(task: Any, request: Any, facts: dict[str, Any], policies: tuple[Policy, ...]) -> Work:  # noqa: ANN401
    fire_time = facts.get("fire_time")
    asked, conf = request.timelimit or (None, None), task.app.conf
    return Work(
        job_id=request.id,
        task=task.name,
        schedule=facts.get("schedule"),
        fire_time=None if fire_time is None else datetime.fromisoformat(fire_time),
        tenant=facts.get("tenant"),
        queue=(request.delivery_info or {}).get("routing_key"),
        worker=f"{request.hostname}/{os.getpid()}",
        default_attempts=UNLIMITED if task.max_retries is None else int(task.max_retries) + 1,
        # What its author says of the task's failures is not said of finding what there is to do.
        policies=(Policy(),) if facts.get("expand") else policies,
        time_out=(SoftTimeLimitExceeded,),
        time_limit_s=asked[0] or task.time_limit or conf.task_time_limit,
        soft_time_limit_s=asked[1] or task.soft_time_limit or conf.task_soft_time_limit,
        events=task.send_events,
    )
