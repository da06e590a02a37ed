"""When is the process looked through for garbage? When the loop says: it can take half a second.

Sixty thousand jobs that wait in memory are several hundred thousand objects. Python by itself would look them
all through every few seconds, whatever is due meanwhile; what is young it goes on looking through by itself.
"""

import gc
import time
from dataclasses import dataclass
from typing import Final

EVERY_S: Final = 60.0
AT_LAST_S: Final = 600.0
"""Seconds after which it is done whatever is due."""
NEVER: Final = 1_000_000


def leave_to_loop() -> None:
    """From now on only the loop looks for old garbage; what is there by now stays for ever."""
    gc.collect()
    gc.freeze()
    young, middle, _old = gc.get_threshold()
    gc.set_threshold(young, middle, NEVER)


@dataclass(slots=True)
class Garbage:
    """When it was done last, and how long that took."""

    _done_at: float = 0.0
    _took_s: float = 0.5

    def __post_init__(self) -> None:
        self._done_at = time.monotonic()

    def look(self, until_due: float | None) -> None:
        """Look the process through if it is time, and if no job is due before it is over; None: none is."""
        began = time.monotonic()
        fits = until_due is None or until_due > self._took_s
        if began >= self._done_at + (EVERY_S if fits else AT_LAST_S):
            gc.collect()
            self._done_at = time.monotonic()
            self._took_s = self._done_at - began
