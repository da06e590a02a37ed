"""Says how long to wait before the next attempt; called with the number of the one that failed, from 1."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

Wait = Callable[[int], float]
"""Attempt number (from 1) → seconds; any function will do."""


@dataclass(frozen=True, slots=True)
class Exponential:
    """Full jitter: uniform between nothing and `base_s`·2ⁿ, at most `longest_s`.

    Source: "Exponential Backoff and Jitter", AWS Architecture Blog, 2015: full jitter needs the fewest calls.
    """

    base_s: float = 1.0
    longest_s: float = 600.0

    def __call__(self, attempt: int) -> float:
        """Return the seconds to wait."""
        return self.ceiling_s(attempt) * random.random()  # noqa: S311 - not a secret

    def ceiling_s(self, attempt: int) -> float:
        """Return the most that it may be."""
        return float(min(self.longest_s, self.base_s * 2.0 ** min(attempt - 1, 60)))


DEFAULT_WAIT: Final = Exponential()


@dataclass(frozen=True, slots=True)
class Fixed:
    """Always the same."""

    wait_s: float

    def __call__(self, attempt: int) -> float:
        """Return the seconds to wait."""
        del attempt
        return self.wait_s


@dataclass(frozen=True, slots=True)
class Linear:
    """`step_s` longer after each attempt, at most `longest_s`."""

    step_s: float
    longest_s: float = 600.0

    def __call__(self, attempt: int) -> float:
        """Return the seconds to wait."""
        return min(self.longest_s, self.step_s * attempt)
