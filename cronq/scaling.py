"""How many jobs at a time does a queue want, and how many workers are that? Pure."""

from collections.abc import Collection
from dataclasses import dataclass, field
from math import ceil
from typing import Final

CATCH_UP_S: Final = 60.0
"""Within how many seconds what waits is to be done."""
UNKNOWN_S: Final = 1.0
"""What a job is taken to last while none has ended."""
CALM_S: Final = 5.0
"""For how many seconds fewer workers have to do before any is stopped."""


@dataclass(frozen=True, slots=True)
class Load:
    """What there was to do lately of one task in a queue."""

    waiting: int = 0  #: due, and with no worker
    running: int = 0
    ended: int = 0  #: within the last `window_s`
    worked_s: float = 0.0  #: the sum of how long these took

    def __add__(self, other: "Load") -> "Load":
        return Load(
            self.waiting + other.waiting,
            self.running + other.running,
            self.ended + other.ended,
            self.worked_s + other.worked_s,
        )

    @property
    def work_s(self) -> float:
        """How long what waits should take, by what jobs of its kind took."""
        return self.waiting * (self.worked_s / self.ended if self.ended else UNKNOWN_S)


def wanted_slots(loads: Collection[Load], *, window_s: float) -> int:
    """Return how many jobs at a time keep up with what comes, and work off what waits within a minute.

    loads: of the queue, one for each task: a few slow jobs do not hide among many fast ones.
    """
    if not any(load.waiting + load.running + load.ended for load in loads):
        return 0
    keep_up = sum(load.worked_s for load in loads) / window_s
    work_off = sum(load.work_s for load in loads) / CATCH_UP_S
    return max(1, ceil(keep_up + work_off - 1e-9))


@dataclass(slots=True)
class Scaler:
    """How many workers there should be: more at once, fewer when that has been enough for a while."""

    least: int
    most: int
    _enough_since: float | None = field(default=None, init=False)

    def workers(self, slots: int, *, each: int, running: int, now: float) -> int:
        """Return how many are to run. slots: what is wanted; each: what one worker does at a time."""
        enough = min(self.most, max(self.least, ceil(slots / each)))
        if enough >= running:
            self._enough_since = None
            return enough
        if self._enough_since is None:
            self._enough_since = now
        return enough if now - self._enough_since >= CALM_S else running
