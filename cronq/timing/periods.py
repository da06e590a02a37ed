"""Timings without a calendar: a fixed rate, a pause after each job, once, never. Exact to the microsecond."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from cronq.timing.base import EPOCH, iso, microseconds, require_aware
from cronq.timing.errors import InvalidTiming

LAST_INSTANT = datetime(9990, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Every:
    """A fixed rate: `anchor` + n x `period` for every whole n, so it never drifts, whoever leads."""

    period: timedelta
    anchor: datetime = EPOCH

    def __post_init__(self) -> None:
        _require_positive(self.period)
        object.__setattr__(self, "anchor", require_aware(self.anchor, "anchor"))

    def next(self, after: datetime) -> datetime | None:
        """Return the first fire time strictly after `after`."""
        count = (require_aware(after, "after") - self.anchor) // self.period + 1
        return _instant(self.anchor, self.period, count)

    def previous(self, before: datetime) -> datetime | None:
        """Return the last fire time strictly before `before`."""
        count = -((self.anchor - require_aware(before, "before")) // self.period) - 1
        return _instant(self.anchor, self.period, count)

    def to_data(self) -> dict[str, Any]:
        """Return JSON-able data from which `timing_from` builds an equal timing."""
        data: dict[str, Any] = {"kind": "every", "seconds": seconds(self.period)}
        if self.anchor != EPOCH:
            data["anchor"] = iso(self.anchor)
        return data

    def daily_bound(self) -> float:
        """Return how many fires one day has."""
        return timedelta(days=1) / self.period


@dataclass(frozen=True, slots=True)
class Delay:
    """A fixed pause: the next fire comes `period` after the end of the last job, which only the caller knows.

    `start` is the first fire time. Without one the first fire is `after_end(declared)`, where `declared` is
    the instant at which the schedule was declared.
    """

    period: timedelta
    start: datetime | None = None

    def __post_init__(self) -> None:
        _require_positive(self.period)
        if self.start is not None:
            object.__setattr__(self, "start", require_aware(self.start, "start"))

    def next(self, after: datetime) -> datetime | None:
        """Return the first fire time while it is still to come; None after that."""
        return self.start if self.start is not None and after < self.start else None

    def previous(self, before: datetime) -> datetime | None:
        """Return the first fire time when it has passed."""
        return self.start if self.start is not None and self.start < before else None

    def after_end(self, end: datetime) -> datetime:
        """Return the fire time that follows a job which ended at `end`."""
        return require_aware(end, "end") + self.period

    def to_data(self) -> dict[str, Any]:
        """Return JSON-able data from which `timing_from` builds an equal timing."""
        data: dict[str, Any] = {"kind": "delay", "seconds": seconds(self.period)}
        if self.start is not None:
            data["start"] = iso(self.start)
        return data

    def daily_bound(self) -> float:
        """Return how many fires one day can have."""
        return timedelta(days=1) / self.period


@dataclass(frozen=True, slots=True)
class At:
    """Once, at `instant`."""

    instant: datetime

    def __post_init__(self) -> None:
        object.__setattr__(self, "instant", require_aware(self.instant, "instant"))

    @classmethod
    def after(cls, now: datetime, delay: timedelta) -> "At":
        """Return the one-shot that fires `delay` after `now` ("in 30 minutes")."""
        _require_positive(delay)
        return cls(now + delay)

    def next(self, after: datetime) -> datetime | None:
        """Return the instant while it is still to come."""
        return self.instant if after < self.instant else None

    def previous(self, before: datetime) -> datetime | None:
        """Return the instant when it has passed."""
        return self.instant if self.instant < before else None

    def to_data(self) -> dict[str, Any]:
        """Return JSON-able data from which `timing_from` builds an equal timing."""
        return {"kind": "at", "instant": iso(self.instant)}

    def daily_bound(self) -> float:
        """Return how many fires one day can have."""
        return 1


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Stands for stored data that is no timing, wherever it is only shown: nobody knows when it is due."""

    why: str

    def next(self, after: datetime) -> datetime | None:
        """Return None."""
        del after
        return None

    def previous(self, before: datetime) -> datetime | None:
        """Return None."""
        del before
        return None

    def to_data(self) -> dict[str, Any]:
        """Return data from which `timing_from` builds nothing."""
        return {"kind": "unreadable"}

    def daily_bound(self) -> float:
        """Return 0."""
        return 0


def seconds(span: timedelta) -> int | float:
    """Return `span` in seconds: a whole number when it is one."""
    return microseconds(span) // 1_000_000 if not span.microseconds else span.total_seconds()


def _instant(anchor: datetime, period: timedelta, count: int) -> datetime | None:
    try:
        found = anchor + period * count
    except OverflowError:
        return None
    return found if found < LAST_INSTANT else None


def _require_positive(period: timedelta) -> None:
    if period <= timedelta(0):
        raise InvalidTiming(
            "a period must be more than nothing",
            field="period",
            suggestion="write 90s or more",
            text=str(period),
        )
