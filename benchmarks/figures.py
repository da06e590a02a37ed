"""Figures: percentiles, medians with ranges, and what they are held against."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Bar:
    """What a figure has to reach."""

    figure: str
    limit: float
    at_least: bool = False  #: True: the figure must not be below the limit; False: not above it

    def judge(self, value: float | None) -> dict[str, Any]:
        """Return the bar with the figure and whether it holds; a figure that is missing does not."""
        sign = "≥" if self.at_least else "≤"
        held = value is not None and (value >= self.limit if self.at_least else value <= self.limit)
        return {"figure": self.figure, "bar": f"{sign} {self.limit:g}", "measured": value, "holds": held}


def percentile(values: Iterable[float], share: float) -> float | None:
    """Return the value below which `share` of `values` lie (the next greater one); None without values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else None


def spread(values: Sequence[float], prefix: str) -> dict[str, float | None]:
    """Return p50, p99 and the maximum of `values` as `<prefix>_p50_s` and so on."""
    shares = {"p50": 0.5, "p99": 0.99, "max": 1.0}
    return {f"{prefix}_{name}_s": rounded(percentile(values, share)) for name, share in shares.items()}


def rounded(value: float | None, digits: int = 4) -> float | None:
    """Return `value` with as many digits as the measurement is worth."""
    return None if value is None else round(value, digits)


def combine(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the median of each figure over `runs`, and under `ranges` its least and greatest value."""
    medians: dict[str, Any] = {}
    ranges: dict[str, list[float]] = {}
    for name in runs[0]:
        values = [run[name] for run in runs if isinstance(run.get(name), (int, float))]
        if len(values) < len(runs):
            medians[name] = None  # one run without an answer: the figure was not reached
        else:
            medians[name] = rounded(statistics.median(values))
            ranges[name] = [min(values), max(values)]
    return {**medians, "ranges": ranges}


def ratio(greater: float | None, smaller: float | None) -> float | None:
    """Return how many times `greater` is `smaller`."""
    return round(greater / smaller, 2) if greater and smaller else None
