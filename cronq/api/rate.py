"""How often may somebody ask? A bucket of requests for each token, or address without one.

Each API process counts for itself: behind several of them a caller has as many times the rate.
"""

import time
from collections.abc import Callable
from typing import Final

BURST_S: Final = 10.0
"""Seconds whose requests may come at once."""
MOST_BUCKETS: Final = 10_000


class RateLimit:
    """The buckets of one process; used from one thread."""

    def __init__(self, per_second: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second, self._full, self._clock = per_second, per_second * BURST_S, clock
        self._buckets: dict[str, tuple[float, float]] = {}  # caller: (requests left, as of when)

    def wait_s(self, caller: str) -> float:
        """Take one request out of the bucket of `caller`; return the seconds to wait if there is none."""
        now = self._clock()
        left = self._left(caller, now)
        if left < 1:
            return (1 - left) / self._per_second
        if len(self._buckets) >= MOST_BUCKETS:
            self._forget_full(now)
        self._buckets[caller] = (left - 1, now)
        return 0.0

    def _left(self, caller: str, now: float) -> float:
        left, at = self._buckets.get(caller, (self._full, now))
        return min(self._full, left + (now - at) * self._per_second)

    def _forget_full(self, now: float) -> None:
        """Forget those whose bucket is full again; if that is not enough, everybody begins anew."""
        self._buckets = {c: b for c, b in self._buckets.items() if self._left(c, now) < self._full}
        if len(self._buckets) >= MOST_BUCKETS:
            self._buckets.clear()
