"""What becomes of a job whose body ended like this? Pure, but for the clock that a policy may ask."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from cronq.errors import Cancelled, LeaseLost
from cronq.job import Outcome, State
from cronq.retry import (
    DEFAULT_WAIT,
    Decision,
    Kind,
    Policy,
    Wait,
    classify,
    decide,
    policy_for,
    retry_after_of,
)
from cronq.store.attempts import Claim
from cronq.telemetry.log import get_logger

log = get_logger(__name__)


class RetryAsked(Exception):
    """The body asked for another attempt: `self.retry()`, or Celery's `autoretry_for`."""

    def __init__(self, cause: BaseException | None, wait_s: float | None, max_attempts: int | None) -> None:
        self.cause, self.wait_s, self.max_attempts = cause, wait_s, max_attempts
        super().__init__(str(cause) if cause is not None else "the task asked for another attempt")


class HandedBack(Exception):
    """The worker shuts down: the job goes back, and this attempt does not count."""


class ToldToEnd(SystemExit):
    """Ends the body because its process was told to end, where a signal alone does not do so."""


class Exited(Exception):
    """The body itself called `sys.exit`, as a script does."""


class HardTimeLimit(TimeoutError):
    """The task ran into its hard time limit."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of the attempt, and the job's next state."""

    outcome: Outcome
    state: State
    kind: str | None = None
    retry_in_s: float | None = None
    why: str | None = None  #: of a failure: why it is tried again, or not


SUCCESS: Final = Verdict(Outcome.COMPLETED, State.COMPLETED)


def judge(
    error: BaseException | None,
    claim: Claim,
    *,
    default_attempts: int,
    time_out: tuple[type[Exception], ...] = (),
    policies: Sequence[Policy] = (),
    age_s: Callable[[], float] = lambda: 0.0,
) -> Verdict:
    """Judge how a body ended; `error` is None after a success.

    default_attempts: how many the task's own settings allow where it asks for a retry by itself. time_out:
    what its time limit raises. age_s: tells how long ago the first attempt began; asked only where a policy
    limits that.
    """
    if error is None:
        return SUCCESS
    if isinstance(error, HandedBack):
        return Verdict(Outcome.HANDED_BACK, State.RETRYING, "shutdown", 0.0)
    # `autoretry_for=(Exception,)` also catches what is no failure of the task.
    cause = cause_of(error)
    if isinstance(cause, (Cancelled, LeaseLost)):
        return Verdict(Outcome.CANCELLED, State.CANCELLED, "cancelled")
    timed_out = isinstance(cause, (HardTimeLimit, *time_out))
    kind = Kind.TIMEOUT if timed_out else classify(cause)
    if isinstance(error, RetryAsked):
        kind = Kind.RETRY if kind is Kind.ERROR else kind
        decision = _asked(error, cause, kind, claim, default_attempts)
    else:
        decision = _by_policy(cause, kind, claim, policies, age_s)
    if decision.retry_in_s is not None:
        state = State.RETRYING
    else:
        state = State.TIMED_OUT if timed_out else State.FAILED
    outcome = Outcome.TIMED_OUT if timed_out else Outcome.FAILED
    return Verdict(outcome, state, kind, decision.retry_in_s, decision.why)


def cause_of(error: BaseException) -> BaseException:
    """Return the error that made the body ask for a retry, or `error` itself."""
    return error.cause if isinstance(error, RetryAsked) and error.cause is not None else error


def _asked(
    error: RetryAsked, cause: BaseException, kind: Kind, claim: Claim, default_attempts: int
) -> Decision:
    """Decide as the body asked; the job's own limit goes before its, and that before the task's."""
    return decide(
        kind,
        attempt=claim.attempt,
        max_attempts=claim.max_attempts or claim.earlier + (error.max_attempts or default_attempts),
        asked_wait_s=error.wait_s,
        least_wait_s=retry_after_of(cause) or 0.0,
    )


def _by_policy(
    error: BaseException, kind: Kind, claim: Claim, policies: Sequence[Policy], age_s: Callable[[], float]
) -> Decision:
    policy = policy_for(policies, kind, error)
    if policy is None:
        # As in Celery, an error that nobody declared as worth a retry is not retried: it takes a schedule or
        # a caller that says how many attempts there are.
        attempts = claim.max_attempts if claim.max_attempts is not None and not policies else claim.attempt
        return decide(
            kind,
            attempt=claim.attempt,
            max_attempts=attempts,
            wait=_careful(DEFAULT_WAIT, earlier=claim.earlier),
            least_wait_s=retry_after_of(error) or 0.0,
        )
    return decide(
        kind,
        attempt=claim.attempt,
        max_attempts=claim.max_attempts or claim.earlier + policy.attempts,
        wait=_careful(policy.wait, earlier=claim.earlier),
        least_wait_s=retry_after_of(error) or 0.0,
        age_s=0.0 if policy.max_age_s is None else age_s(),
        max_age_s=policy.max_age_s,
    )


def _careful(wait: Wait, *, earlier: int) -> Wait:
    """Return `wait`, counting from the last operator's retry; a fault in it must not cost the outcome."""

    def seconds(attempt: int) -> float:
        try:
            return float(wait(attempt - earlier))
        except Exception as error:  # noqa: BLE001 - a user's own function
            log.warning("retry.wait_failed", error=str(error), consequence="the usual back-off is used")
            return DEFAULT_WAIT(attempt - earlier)

    return seconds
