"""One attempt: a worker's single try at a job."""

import time
import traceback
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from cronq.context import JobContext, lease, running
from cronq.errors import Cancelled
from cronq.failpoints import failpoint
from cronq.job import Outcome, State
from cronq.progress.reporter import Report, reporting
from cronq.retry import Kind, Policy
from cronq.store.attempts import Claim, Settlement
from cronq.telemetry.log import get_logger
from cronq.worker.lease_keeper import Limits
from cronq.worker.record import AttemptRecord, Books
from cronq.worker.values import storable_json
from cronq.worker.verdict import SUCCESS, Exited, HandedBack, HardTimeLimit, Verdict, cause_of, judge

MAX_ERROR_CHARS = 8_000
TIME_LIMIT_SLACK_S = 0.5
SIGNALLED = -128
"""A child of Celery's pool that gets a signal ends by `SystemExit` with the signal's number minus 256."""

log = get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What the message says about the job, and how its task wants failures handled."""

    job_id: str
    task: str
    schedule: str | None
    fire_time: Any
    tenant: str | None
    worker: str
    default_attempts: int  #: how many attempts the task's own settings allow
    policies: tuple[Policy, ...] = ()  #: how it wants failures handled that it does not handle itself
    time_out: tuple[type[Exception], ...] = ()  #: what its soft time limit raises
    queue: str | None = None  #: that the message came by
    time_limit_s: float | None = None  #: after which Celery ends the worker's child
    soft_time_limit_s: float | None = None
    events: bool = True  #: whether Celery's events may show it


class Desk(Books, Protocol):
    """Where an attempt gets its lease and hands in its outcome."""

    def claim(self, work: Work, token: str) -> Claim | None:
        """Take the lease; None: nothing to do here."""

    def still_holds(self, token: str, asked: float) -> bool:
        """Tell whether a lease that was asked for at the monotonic instant `asked` is still held."""

    def hold(self, token: str, report: Report, limits: Limits) -> None:
        """Keep the lease; end what runs over its limits, unless Celery can."""

    def let_go(self, token: str) -> None:
        """Stop keeping it."""

    def settle(self, settlement: Settlement) -> bool:
        """Write the outcome; False: the lease was lost, nothing was written."""

    def report(self, job_id: str, attempt: int, *, events: bool) -> Report:
        """Open the job's progress."""

    def age_s(self, job_id: str, earlier: int) -> float:
        """Return the seconds since the first attempt after number `earlier` began."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How the attempt ended: what the caller tells Celery."""

    settlement: Settlement | None  #: None: the job was not this worker's to run, or no longer
    result: Any = None
    error: BaseException | None = None
    exits: bool = False  #: this process was told to end while the body ran


def run_attempt(desk: Desk, work: Work, body: Callable[[], Any], on_claim: Callable[[Claim], None]) -> Ended:
    """Claim the job, run `body`, settle. Does nothing if the job is another's, over, or not due."""
    token, asked = str(uuid.uuid4()), time.monotonic()
    claim = desk.claim(work, token)
    if claim is None:
        log.info("job.refused", job=work.job_id, why="it is another worker's, over, or not due")
        return Ended(None)
    failpoint("after_claim")
    if not desk.still_holds(token, asked):
        log.warning("job.refused", job=work.job_id, why="its lease ran out before the body could start")
        return Ended(None)
    on_claim(claim)
    report = desk.report(work.job_id, claim.attempt, events=work.events)
    record = AttemptRecord(
        desk, report, token,
        lambda value: _settlement(work, claim, report, SUCCESS, token=token, result=value, error=None),
    )  # fmt: skip
    context = _context(work, claim, record)
    desk.hold(token, report, _limits(desk, work, claim, report, token))
    started = time.monotonic()
    leased = lease.set(token)
    try:
        result, error = _perform(body, context, report, cancelled=claim.cancel_requested)
    finally:
        lease.reset(leased)
        desk.let_go(token)
    exits = isinstance(error, SystemExit)
    if exits:
        error = _why_ended(work, report, time.monotonic() - started)
    settlement, error = record.outcome(error)
    _say_last(report, completed=error is None)
    if settlement is None:
        settlement = _settle(desk, work, claim, report, token=token, result=result, error=error)
    if settlement is None:
        return Ended(None, exits=exits)
    failpoint("after_settle_before_ack")
    return Ended(settlement, result, error, exits=exits)


def _limits(desk: Desk, work: Work, claim: Claim, report: Report, token: str) -> Limits:
    return Limits(
        lambda error: _settle(desk, work, claim, report, token=token, result=None, error=error),
        hard_s=work.time_limit_s,
        soft_s=work.soft_time_limit_s,
        soft_error=next(iter(work.time_out), TimeoutError),
    )


def _settle(
    desk: Desk,
    work: Work,
    claim: Claim,
    report: Report,
    *,
    token: str,
    result: Any,  # noqa: ANN401 - whatever the body returned
    error: BaseException | None,
) -> Settlement | None:
    """Judge how the body ended, and hand that in; None: the lease was lost."""
    failpoint("before_settle")
    verdict = _judge(desk, work, claim, error)
    settlement = _settlement(work, claim, report, verdict, token=token, result=result, error=error)
    if not desk.settle(settlement):
        log.warning("job.settle_refused", job=work.job_id, attempt=claim.attempt, why="the lease was lost")
        return None
    log.info(
        "job.settled", job=work.job_id, schedule=work.schedule, attempt=claim.attempt,
        state=settlement.state, kind=settlement.kind, retry_in_s=settlement.retry_in_s, why=verdict.why,
    )  # fmt: skip
    return settlement


def _judge(desk: Desk, work: Work, claim: Claim, error: BaseException | None) -> Verdict:
    try:
        return judge(
            error, claim,
            default_attempts=work.default_attempts, time_out=work.time_out, policies=work.policies,
            age_s=lambda: desk.age_s(work.job_id, claim.earlier),
        )  # fmt: skip
    except Exception as fault:
        # A user's own error may do anything when it is looked at; the attempt is over all the same.
        log.exception("job.not_judged", job=work.job_id, consequence="it is a dead letter")
        why = f"not tried again: its error could not be looked at ({type(fault).__name__}: {fault})"
        return Verdict(Outcome.FAILED, State.FAILED, Kind.ERROR, why=why)


def _say_last(report: Report, *, completed: bool) -> None:
    try:
        report.close(completed=completed)
    except Exception as error:  # noqa: BLE001 - showing progress must never cost the outcome
        log.warning("progress.not_shown", job=report.job_id, error=str(error))


def _perform(
    body: Callable[[], Any], context: JobContext, report: Report, *, cancelled: bool
) -> tuple[Any, BaseException | None]:
    if cancelled:
        return None, Cancelled("it was cancelled before it started")
    here, reported = running.set(context), reporting.set(report)
    try:
        return body(), None
    except SystemExit as error:
        if _was_told(error):
            return None, error
        exited = Exited(f"the task called sys.exit({error.code!r}); let it return, or raise what is wrong")
        exited.__cause__ = error
        return None, exited
    except Exception as error:  # noqa: BLE001 - whatever it was, it is settled
        return None, error
    finally:
        running.reset(here)
        reporting.reset(reported)


def _was_told(error: SystemExit) -> bool:
    """Tell whether this process was told to end: a body may call `sys.exit` by itself, too."""
    return type(error) is not SystemExit or (isinstance(error.code, int) and error.code < SIGNALLED)


def _why_ended(work: Work, report: Report, ran_s: float) -> Exception:
    """Tell why Celery ended this child with SIGTERM: it says no more than that."""
    if report.stop is not None:
        return report.stop("it did not stop by itself")
    # Celery counts from when it handed the task to the child, a little earlier than the body began.
    if work.time_limit_s is not None and ran_s >= work.time_limit_s - TIME_LIMIT_SLACK_S:
        return HardTimeLimit(f"it ran for {ran_s:.1f} s, over its time limit of {work.time_limit_s:g} s")
    return HandedBack("the worker shut down")


def _settlement(
    work: Work,
    claim: Claim,
    report: Report,
    verdict: Verdict,
    *,
    token: str,
    result: Any,  # noqa: ANN401 - whatever the body returned
    error: BaseException | None,
) -> Settlement:
    dead = verdict.state in (State.FAILED, State.TIMED_OUT)
    return Settlement(
        job_id=work.job_id,
        token=token,
        worker=work.worker,
        number=claim.attempt,
        outcome=verdict.outcome,
        state=verdict.state,
        kind=verdict.kind,
        error=None if error is None else _described(error, verdict.why if dead else None),
        retry_in_s=verdict.retry_in_s,
        dead=dead,
        result=storable_json(result, work.job_id, what="the result"),
        progress=report.state(),
    )


def _context(work: Work, claim: Claim, record: AttemptRecord) -> JobContext:
    return JobContext(
        id=work.job_id,
        task=work.task,
        attempt=claim.attempt,
        max_attempts=claim.max_attempts or claim.earlier + work.default_attempts,
        schedule=work.schedule,
        fire_time=work.fire_time,
        tenant=work.tenant,
        record=record,
    )


def _described(error: BaseException, why: str | None) -> str:
    lines = "".join(traceback.format_exception(cause_of(error)))
    head = "" if why is None else f"{why}\n\n"
    return head + lines[-(MAX_ERROR_CHARS - len(head)) :]
