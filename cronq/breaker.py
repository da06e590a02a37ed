"""Is a dependency well enough to be called? A circuit breaker's states and what moves it. Pure.

Closed: jobs go out. After so many failures in a row it opens: no job goes out for a while. Then it is half
open: one job tries; when that is well two may, four, eight, and it closes. A failure meanwhile halves that;
if the only one that tries fails, it opens again, for twice as long if none has been well since.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

ENOUGH_TRIALS: Final = 8
"""Jobs at a time that a dependency has to bear before it counts as well."""
LONGEST_S: Final = 600.0
MAX_ERROR_CHARS: Final = 300


class Circuit(StrEnum):
    """Whether jobs go out."""

    CLOSED = "closed"  #: as always
    OPEN = "open"  #: none
    HALF_OPEN = "half_open"  #: a few


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """Where one dependency stands."""

    state: Circuit = Circuit.CLOSED
    failures: int = 0  #: in a row
    trials: int = 0  #: of a half-open one: how many jobs may run at a time
    passed: int = 0  #: of these, how many went well
    wait_s: float = 0.0  #: how long it stays open; half open: how long it was, if none has been well since
    until: datetime | None = None  #: when the next job may try
    error: str | None = None  #: what the last failure said

    @property
    def room(self) -> int | None:
        """How many jobs may run at a time; None: as many as the limits allow."""
        return {Circuit.CLOSED: None, Circuit.OPEN: 0, Circuit.HALF_OPEN: self.trials}[self.state]


WELL: Final = Breaker()


def failed(breaker: Breaker, *, after: int, break_for_s: float, now: datetime, error: str) -> Breaker:
    """Return what follows a failure; after: how many in a row open it."""
    failures, error = breaker.failures + 1, error[-MAX_ERROR_CHARS:]
    if breaker.state is Circuit.CLOSED and failures < after:
        return replace(breaker, failures=failures, error=error)
    if breaker.state is Circuit.OPEN:
        return replace(breaker, failures=failures, error=error)  # it was sent before the breaker opened
    if breaker.trials > 1:
        return replace(breaker, failures=failures, trials=breaker.trials // 2, passed=0, error=error)
    wait_s = min(2 * breaker.wait_s, LONGEST_S) or break_for_s
    until = now + timedelta(seconds=wait_s)
    return Breaker(state=Circuit.OPEN, failures=failures, wait_s=wait_s, until=until, error=error)


def went_well(breaker: Breaker) -> Breaker:
    """Return what follows a success."""
    if breaker.state is Circuit.CLOSED:
        return WELL
    if breaker.state is Circuit.OPEN:
        return breaker  # it was sent before the breaker opened
    if breaker.passed + 1 < breaker.trials:
        return replace(breaker, passed=breaker.passed + 1)
    if breaker.trials >= ENOUGH_TRIALS:
        return WELL
    return replace(breaker, failures=0, trials=2 * breaker.trials, passed=0, wait_s=0.0)


def tried(breaker: Breaker, now: datetime) -> Breaker:
    """Let one job try when an open breaker's time is up."""
    if breaker.state is not Circuit.OPEN or (breaker.until is not None and now < breaker.until):
        return breaker
    return replace(breaker, state=Circuit.HALF_OPEN, trials=1, passed=0, until=None)
