"""A timing that begins, ends or fires a limited number of times, and the union of several timings."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any

from cronq.timing.base import MICROSECOND, Omission, Timing, iso, omissions, require_aware
from cronq.timing.errors import InvalidTiming
from cronq.timing.periods import Every

MOST_FIRES = 100_000
MOST_MEMBERS = 100


@dataclass(frozen=True, slots=True)
class Bounded:
    """`of`, from `start` to `end` (both inclusive), at most `limit` fire times, counted from `start`."""

    of: Timing
    start: datetime | None = None
    end: datetime | None = None
    limit: int | None = None

    def __post_init__(self) -> None:
        for name in ("start", "end"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, require_aware(value, name))
        if self.start is not None and self.end is not None and self.end < self.start:
            raise InvalidTiming("it ends before it starts", field="end", text=iso(self.end),
                                suggestion=f"write {iso(self.start)} or later")  # fmt: skip
        if self.limit is None:
            return
        if not 0 < self.limit <= MOST_FIRES:
            raise InvalidTiming("this is no possible count", field="limit", text=str(self.limit),
                                suggestion=f"write 1 to {MOST_FIRES}, or an end")  # fmt: skip
        if self.start is None:
            raise InvalidTiming("a limited count needs a start to count from", field="limit",
                                suggestion="write a start", text=str(self.limit))  # fmt: skip

    @property
    def tz(self) -> str:
        """The zone of the timing inside."""
        return tz_of(self.of)

    def next(self, after: datetime) -> datetime | None:
        """Return the first fire time strictly after `after` that is within the bounds."""
        if self.start is not None and after < self.start:
            after = self.start - MICROSECOND
        found = self.of.next(after)
        last = self._last()
        return None if found is None or (last is not None and found > last) else found

    def previous(self, before: datetime) -> datetime | None:
        """Return the last fire time strictly before `before` that is within the bounds."""
        last = self._last()
        if last is not None and before > last:
            before = last + MICROSECOND
        found = self.of.previous(before)
        return None if found is None or (self.start is not None and found < self.start) else found

    def after_end(self, end: datetime) -> datetime | None:
        """Return the fire time that follows a job which ended at `end`, if it is within the bounds."""
        found = after_end(self.of, end)
        return None if found is None or (self.end is not None and found > self.end) else found

    def omitted(self, start: datetime, end: datetime) -> Iterator[Omission]:
        """Yield what the timing inside leaves out within the bounds."""
        last = self._last()
        for each in omissions(self.of, start, end if last is None else min(end, last)):
            if self.start is None or each.fire_time >= self.start:
                yield each

    def to_data(self) -> dict[str, Any]:
        """Return JSON-able data from which `timing_from` builds an equal timing."""
        data: dict[str, Any] = {"kind": "bounded", "of": self.of.to_data()}
        if self.start is not None:
            data["start"] = iso(self.start)
        if self.end is not None:
            data["end"] = iso(self.end)
        if self.limit is not None:
            data["limit"] = self.limit
        return data

    def daily_bound(self) -> float:
        """Return what the timing inside returns."""
        return self.of.daily_bound()

    def _last(self) -> datetime | None:
        """Return the last instant at which it may fire; None: there is no such bound."""
        if self.limit is None or self.start is None:
            return self.end
        counted = nth_fire(self.of, self.start, self.limit)
        if counted is None or (self.end is not None and self.end < counted):
            return self.end
        return counted


@lru_cache(maxsize=4096)
def nth_fire(timing: Timing, start: datetime, number: int) -> datetime | None:
    """Return the `number`-th fire time from `start` on; None: there are fewer."""
    fire = timing.next(start - MICROSECOND)
    if isinstance(timing, Every) and fire is not None:
        return timing.next(fire + timing.period * (number - 1) - MICROSECOND)
    for _ in range(number - 1):
        if fire is None:
            break
        fire = timing.next(fire)
    return fire


@dataclass(frozen=True, slots=True)
class Union:
    """Every fire time of every timing in `of`; one that several of them name is one fire time."""

    of: tuple[Timing, ...] = field()

    def __post_init__(self) -> None:
        object.__setattr__(self, "of", tuple(self.of))
        if not 0 < len(self.of) <= MOST_MEMBERS:
            raise InvalidTiming(
                f"{len(self.of)} timings were given", field="of", suggestion=f"give 1 to {MOST_MEMBERS}"
            )

    @property
    def tz(self) -> str:
        """The zone of the first timing."""
        return tz_of(self.of[0])

    def next(self, after: datetime) -> datetime | None:
        """Return the first fire time strictly after `after` of any of them."""
        return min((found for each in self.of if (found := each.next(after)) is not None), default=None)

    def previous(self, before: datetime) -> datetime | None:
        """Return the last fire time strictly before `before` of any of them."""
        return max((found for each in self.of if (found := each.previous(before)) is not None), default=None)

    def omitted(self, start: datetime, end: datetime) -> Iterator[Omission]:
        """Yield what the timings leave out and no other of them fires."""
        for timing in self.of:
            for each in omissions(timing, start, end):
                if self.next(each.fire_time - MICROSECOND) != each.fire_time:
                    yield each

    def to_data(self) -> dict[str, Any]:
        """Return JSON-able data from which `timing_from` builds an equal timing."""
        return {"kind": "union", "of": [each.to_data() for each in self.of]}

    def daily_bound(self) -> float:
        """Return the sum over all of them."""
        return sum(each.daily_bound() for each in self.of)


def tz_of(timing: Timing) -> str:
    """Return the name of the zone in which `timing` is declared; "UTC" when it has none."""
    return str(getattr(timing, "tz", "UTC"))


def after_end(timing: Timing, end: datetime) -> datetime | None:
    """Return the fire time that follows a job that ended at `end`; None unless it is a fixed delay."""
    follow = getattr(timing, "after_end", None)
    found: datetime | None = None if follow is None else follow(end)
    return found
