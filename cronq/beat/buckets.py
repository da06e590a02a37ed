"""Is there room under one limited key? What goes on there, how fast it may start, and who waits. Pure."""

from dataclasses import dataclass
from math import ceil
from typing import Any, Final

from cronq.beat.turns import Turns
from cronq.limits import Limit

SLICE_S: Final = 0.05
"""A fast rate is let out in portions of this many seconds: a beat need not wake for every job."""
UNCLAIMED_S: Final = 2.0
"""Seconds' worth of starts that may wait on the broker: workers that come back do not start many at once."""


@dataclass(slots=True)
class Bucket:
    """What one key (`tenant:acme`) takes up now. Instants are seconds of the monotonic clock."""

    key: str
    limit: Limit
    turns: Turns[Any]  #: who waits here
    in_flight: int = 0  #: published and not at an end
    background: int = 0  #: of these, background work
    unclaimed: int = 0  #: of these, not started as far as the last look told
    tokens: float = 0.0
    filled_at: float = 0.0
    allowed: int | None = None  #: by the breaker: how many may go on; None: it is closed
    depth: int | None = None  #: messages on the broker at the last look, and sent since; None: never looked

    def start(self, now: float, recent: int = 0) -> None:
        """Begin with the tokens that `recent` starts within the time of a full refill have left."""
        self.tokens, self.filled_at = max(0.0, self.capacity - recent), now

    @property
    def capacity(self) -> float:
        """How many tokens there are after a pause."""
        return max(float(self.limit.burst), (self.limit.rate or 0.0) * SLICE_S)

    @property
    def refill_s(self) -> float:
        """How many seconds an empty bucket takes to be full."""
        return 0.0 if self.limit.rate is None else self.capacity / self.limit.rate

    def stops(self, now: float, *, background: bool) -> bool:
        """Tell whether a job has to wait here."""
        return (
            self._is_full(background=background)
            or self._is_too_fast(now)
            or self._is_too_deep(background=background)
        )

    def take(self, now: float, *, background: bool) -> None:
        """Note that a job goes out."""
        self._refill(now)
        self.tokens -= 1.0
        self.enter(background=background, unclaimed=True)
        if self.depth is not None:
            self.depth += 1

    def enter(self, *, background: bool, unclaimed: bool) -> None:
        """Count a job that goes on."""
        self.in_flight += 1
        self.unclaimed += unclaimed
        self.background += background

    def leave(self, *, background: bool, unclaimed: bool) -> None:
        """Count a job no more."""
        self.in_flight -= 1
        self.unclaimed -= unclaimed
        self.background -= background

    def opens_in(self, now: float) -> float | None:
        """Return the seconds until there is a token; None: that is not what is missing."""
        if self.limit.rate is None:
            return None
        self._refill(now)
        return max(0.0, (1.0 - self.tokens) / self.limit.rate) if self.tokens < 1.0 else None

    def _is_full(self, *, background: bool) -> bool:
        if self.allowed is not None and self.in_flight >= self.allowed:
            return True
        room = self.limit.concurrency
        if room is None:
            return False
        # Background work gets half, so that live work never finds it all taken.
        return self.in_flight >= room or (background and self.background >= ceil(room / 2))

    def _is_too_fast(self, now: float) -> bool:
        rate = self.limit.rate
        if rate is None:
            return False
        self._refill(now)
        return self.tokens < 1.0 - 1e-9 or self.unclaimed >= max(2.0, rate * UNCLAIMED_S) + self.limit.burst

    def _is_too_deep(self, *, background: bool) -> bool:
        backlog = self.limit.backlog
        if backlog is None:
            return False
        # Until somebody has looked, nothing is sent.
        return self.depth is None or self.depth >= (ceil(backlog / 2) if background else backlog)

    def _refill(self, now: float) -> None:
        if self.limit.rate is not None:
            grown = self.tokens + (now - self.filled_at) * self.limit.rate
            self.tokens, self.filled_at = min(self.capacity, grown), now
