"""The one place that says what time it is: the stores' clocks, carried forward by the monotonic clock.

A wrong or jumping wall clock of this machine changes nothing. A store whose clock jumps is outvoted by the
other store and by the monotonic clock.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

RESOLUTION_S = 0.0005
"""SQLite tells whole milliseconds: half of one is unknown."""
SLOW_S = 1.0
"""An answer that took longer says little about now."""
TOLERANCE_S = 0.5
"""Seconds by which two clocks may differ before one of them is taken to have jumped."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """What the clocks said at one moment; seconds since the epoch, None: no answer."""

    sql: float | None
    redis: float | None
    within_s: float = 0.0
    """By how much they may be off: half of the time that asking took, and more cannot be known."""


def sight(*, ask_sql: Callable[[], float], ask_redis: Callable[[], float]) -> Sighting:
    """Ask both stores what time it is, in seconds since the epoch."""
    redis, redis_took = _ask(ask_redis)
    sql, sql_took = _ask(ask_sql)
    if redis is not None:
        redis += sql_took
    took = redis_took if sql is None else sql_took
    return Sighting(sql=sql, redis=redis, within_s=took / 2 + RESOLUTION_S)


def _ask(question: Callable[[], float]) -> tuple[float | None, float]:
    """Return the answer as of now, and how many seconds it took."""
    started = time.monotonic()
    try:
        answer = question()
    except Exception:  # noqa: BLE001 - a store that does not answer is no witness
        return None, 0.0
    took = time.monotonic() - started
    return (answer + took / 2 if took < SLOW_S else None), took


class StoreClock:
    """Tells the stores' time between two sightings. Until the first one it tells the local wall clock's."""

    def __init__(
        self, monotonic: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time
    ) -> None:
        self._monotonic, self._wall = monotonic, wall
        self._offset: float | None = None  # store time minus monotonic time
        self._sql_outvoted = False
        self._lock = threading.Lock()

    def timestamp(self) -> float:
        """Return the time in seconds since the epoch."""
        offset = self._offset
        return self._wall() if offset is None else self._monotonic() + offset

    def now(self) -> datetime:
        """Return the time, aware, in UTC."""
        return datetime.fromtimestamp(self.timestamp(), UTC)

    def wall_offset(self) -> float:
        """Return by how many seconds the local wall clock is ahead of the stores' time."""
        return self._wall() - self.timestamp()

    def observe(self, seen: Sighting) -> str | None:
        """Take in what the stores said just now; return what is wrong with one of them, or None.

        SQL is believed before Redis, because leases and due times are compared by its clock. But a clock
        that left the path that it was on, while the other stayed, is not followed, not even once it is the
        only one that answers. Redis alone is never followed off the path: without SQL nothing is decided.
        """
        with self._lock:
            now = self._monotonic()
            carried = None if self._offset is None else now + self._offset
            chosen, trouble = _choose(seen, carried, sql_counts=not self._sql_outvoted)
            if seen.sql is not None and seen.redis is not None:
                path = carried if chosen is None else chosen
                self._sql_outvoted = path is not None and abs(seen.sql - path) > TOLERANCE_S
            if chosen is not None:
                if carried is not None and trouble is None:
                    # Nothing is corrected that may be right: a slow answer does not shake the clock.
                    chosen = min(max(carried, chosen - seen.within_s), chosen + seen.within_s)
                self._offset = chosen - now
            return trouble


def _choose(  # noqa: PLR0911 - one answer each
    seen: Sighting, carried: float | None, *, sql_counts: bool
) -> tuple[float | None, str | None]:
    answers = [answer for answer in (seen.sql, seen.redis) if answer is not None]
    if not answers:
        return None, None
    if carried is None:
        return answers[0], None
    steady = [answer for answer in answers if abs(answer - carried) <= TOLERANCE_S]
    if steady:
        jumped = [answer - carried for answer in answers if abs(answer - carried) > TOLERANCE_S]
        trouble = f"a store's clock jumped by {jumped[0]:+.3f} s and is not followed" if jumped else None
        return steady[0], trouble
    if len(answers) == 1:
        trouble = f"the only store that answers moved its clock by {answers[0] - carried:+.3f} s"
        if seen.sql is None or not sql_counts:
            return None, f"{trouble} and is not followed"
        # One witness against the monotonic clock: a store never runs backwards for us, but may be corrected.
        return max(answers[0], carried), trouble
    if abs(answers[0] - answers[1]) <= TOLERANCE_S:
        return answers[
            0
        ], f"both stores moved their clocks by {answers[0] - carried:+.3f} s; they are followed"
    return None, "both stores' clocks jumped, and differ; the monotonic clock is followed"
