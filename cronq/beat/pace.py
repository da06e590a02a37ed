"""How much does one step of the loop take on, so that it is over in time? Learns what one thing costs."""

from typing import Final

LEARN: Final = 0.25
"""How much the newest step counts against what was learned before."""


class Pace:
    """Of one kind of step: how many things it may take on."""

    def __init__(self, cost_s: float, most: int) -> None:
        """cost_s: seconds that one thing is thought to take at first. most: things in one step."""
        self._cost_s, self._most = cost_s, most

    def count(self, within_s: float) -> int:
        """Return how many things are done within so many seconds; at least one."""
        return max(1, min(self._most, int(within_s / self._cost_s)))

    def took(self, count: int, seconds: float) -> None:
        """Learn from a step of `count` things."""
        if count > 0:
            self._cost_s += LEARN * (seconds / count - self._cost_s)
