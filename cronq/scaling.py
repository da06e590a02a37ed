"""How many jobs at a time does a queue want? From what waits, what comes, and how long it takes. Pure."""

from dataclasses import dataclass
from math import ceil
from typing import Final

CATCH_UP_S: Final = 60.0
"""Within how many seconds what waits is to be done."""
UNKNOWN_S: Final = 1.0
"""What a job is taken to last while none has ended."""


@dataclass(frozen=True, slots=True)
class Load:
    """What a queue had to do lately, or a part of it."""

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


def wanted_slots(load: Load, *, window_s: float) -> int:
    """Return how many jobs at a time keep up with what comes, and work off what waits within a minute."""
    if load.waiting + load.running + load.ended == 0:
        return 0
    mean_s = load.worked_s / load.ended if load.ended else UNKNOWN_S
    keep_up = load.worked_s / window_s
    work_off = load.waiting * mean_s / CATCH_UP_S
    return max(1, ceil(keep_up + work_off - 1e-9))
