"""Should a failed attempt be tried again, and when? Pure."""

import random
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What sort of failure it was."""

    ERROR = "error"  #: the task raised, and nothing says that another try cannot help
    RETRY = "retry"  #: the task asked for it: `self.retry()`, `autoretry_for`
    NETWORK = "network"
    TIMEOUT = "timeout"
    WORKER_LOST = "worker_lost"
    PERMANENT = "permanent"  #: another try cannot help


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential with full jitter: uniform between nothing and `base_s`·2ⁿ, at most `longest_s`.

    Source: "Exponential Backoff and Jitter", AWS Architecture Blog, 2015: full jitter needs the fewest calls.
    """

    base_s: float = 1.0
    longest_s: float = 600.0

    def wait_s(self, attempt: int, uniform: float | None = None) -> float:
        """Return the seconds to wait after attempt number `attempt` (from 1) failed."""
        ceiling: float = min(self.longest_s, self.base_s * 2.0 ** min(attempt - 1, 60))
        return ceiling * (random.random() if uniform is None else uniform)  # noqa: S311 - not a secret


@dataclass(frozen=True, slots=True)
class Decision:
    """What follows a failed attempt."""

    retry_in_s: float | None  #: None: no further attempt
    why: str


def decide(
    kind: Kind,
    *,
    attempt: int,
    max_attempts: int,
    backoff: Backoff,
    asked_wait_s: float | None = None,
) -> Decision:
    """Decide after attempt number `attempt` failed; `asked_wait_s` is what the task itself asked for."""
    if kind is Kind.PERMANENT:
        return Decision(None, "the error is permanent")
    if attempt >= max_attempts:
        return Decision(None, f"attempt {attempt} of {max_attempts} was the last")
    wait = backoff.wait_s(attempt) if asked_wait_s is None else max(0.0, asked_wait_s)
    return Decision(wait, f"attempt {attempt} of {max_attempts} failed")


def classify(error: BaseException) -> Kind:
    """Name the sort of failure that `error` is."""
    if isinstance(error, (ConnectionError, BrokenPipeError)):
        return Kind.NETWORK
    if isinstance(error, TimeoutError):
        return Kind.TIMEOUT
    return Kind.ERROR
