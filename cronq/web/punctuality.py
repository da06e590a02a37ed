"""How punctual is a schedule, how long does its job take, and does it drift? In seconds."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from math import ceil
from statistics import median
from typing import Any, Final

LEAST: Final = 8
"""Jobs below which nothing is said about drift."""


@dataclass(frozen=True, slots=True)
class Leg:
    """One part of the way from the due time to the end; in seconds."""

    name: str
    half: float  #: half of the jobs need at most this
    most: float  #: and 95 of 100 this
    longest: float


def late(row: Mapping[Any, Any]) -> float | None:
    """Return by how many seconds a job's only attempt started late; None of one that was tried again.

    None of a fan-out, too: its items start one by one.
    """
    if row["batch_id"] is not None or row["attempts"] > 1:
        return None
    return _between(row, "due_at", "started_at")


def took(row: Mapping[Any, Any]) -> float | None:
    """Return how many seconds a job's last attempt took."""
    return _between(row, "started_at", "finished_at")


def legs(rows: Sequence[Mapping[Any, Any]]) -> list[Leg]:
    """Return the parts of the way that any of the jobs `rows` has gone."""
    once = [row for row in rows if row["attempts"] <= 1]
    measured = {
        "published after it was due": [_between(row, "due_at", "published_at") for row in once],
        "claimed by a worker after that": [_between(row, "published_at", "started_at") for row in once],
        "took": [took(row) for row in rows],
        "over after it was due": [
            _between(row, "due_at", "finished_at") for row in once if row["started_at"]
        ],
    }
    found = []
    for name, spans in measured.items():
        known = sorted(span for span in spans if span is not None)
        if known:
            found.append(Leg(name, median(known), within(known, 0.95), known[-1]))
    return found


def drift(rows: Sequence[Mapping[Any, Any]]) -> timedelta | None:
    """Return how much later the newer half of `rows` (the newest first) started than the older one."""
    lateness = [each for each in map(late, rows) if each is not None]
    if len(lateness) < LEAST:
        return None
    half = len(lateness) // 2
    return timedelta(seconds=median(lateness[:half]) - median(lateness[-half:]))


def within(known: Sequence[float], share: float) -> float:
    """Return what `share` of the sorted values `known` do not exceed: one of them, of few the greater one."""
    return known[ceil(share * len(known)) - 1]


def typical(values: Iterable[float | None]) -> float | None:
    """Return what half of `values` do not exceed; None without any."""
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _between(row: Mapping[Any, Any], first: str, second: str) -> float | None:
    if row[first] is None or row[second] is None:
        return None
    return max(0.0, float((row[second] - row[first]).total_seconds()))
