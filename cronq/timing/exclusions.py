"""A timing without what falls into a calendar's closed days: left out, or moved to a business day."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Literal

from cronq.schedule import Reason
from cronq.timing.base import EPOCH, MICROSECOND, Omission, Timing, fires_between, omissions
from cronq.timing.bounds import after_end, tz_of
from cronq.timing.calendars import LONGEST_SEARCH, Calendar
from cronq.timing.dst import instant_of
from cronq.timing.errors import InvalidTiming
from cronq.timing.wall import DAY_SECONDS, EPOCH_ORDINAL
from cronq.timing.zones import zone

ONE_DAY = timedelta(days=1)
MOST_MOVED_A_DAY = 24
LONGEST_LOOK_BACK = 4096
"""How many days `previous` looks back for a fire time that moved."""


@dataclass(frozen=True, slots=True)
class Excluding:
    """`of` without what `calendar` closes; `then` says what becomes of that.

    "skip": nothing. "next" or "previous": it fires at the same local time, that business day;
    when the schedule fires then anyway, that is one fire time, not two. Days are those of the zone of `of`.
    """

    of: Timing
    calendar: Calendar
    then: Literal["skip", "next", "previous"] = "skip"

    def __post_init__(self) -> None:
        if self.then not in ("skip", "next", "previous"):
            raise InvalidTiming("there is no such thing to do with an excluded fire time", field="then",
                                text=str(self.then), suggestion="write skip, next or previous")  # fmt: skip
        if self.then != "skip" and self.of.daily_bound() > MOST_MOVED_A_DAY:
            raise InvalidTiming(
                f"only a timing of at most {MOST_MOVED_A_DAY} fires a day can move to a business day",
                field="then", text=self.then, suggestion="write skip",
            )  # fmt: skip

    @property
    def tz(self) -> str:
        """The zone of the timing inside."""
        return tz_of(self.of)

    def next(self, after: datetime) -> datetime | None:
        """Return the first fire time strictly after `after` that is open or was moved there."""
        if self.then == "skip":
            return self._next_open(after)
        return self._next_after_moves(after)

    def previous(self, before: datetime) -> datetime | None:
        """Return the last fire time strictly before `before` that is open or was moved there."""
        if self.then == "skip":
            return self._previous_open(before)
        reach = 1
        while reach <= LONGEST_LOOK_BACK:
            found = list(fires_between(self, before - reach * ONE_DAY, before - MICROSECOND))
            if found:
                return found[-1]
            reach *= 8
        return None

    def after_end(self, end: datetime) -> datetime | None:
        """Return the fire time that follows a job which ended at `end`; closed time is waited out."""
        found = after_end(self.of, end)
        while found is not None and (closed := self.calendar.stretch(found, self.tz)) is not None:
            found = closed[1]
        return found

    def omitted(self, start: datetime, end: datetime) -> Iterator[Omission]:
        """Yield the fire times in (start, end] that the calendar or the timing leaves out."""
        yield from omissions(self.of, start, end)
        for fire in fires_between(self.of, start, end):
            if self.calendar.stretch(fire, self.tz) is not None:
                into = None if self.then == "skip" else self._target(fire)
                yield Omission(fire, Reason.EXCLUDED, self.calendar.name, into)

    def to_data(self) -> dict[str, Any]:
        """Return JSON-able data from which `timing_from` builds an equal timing."""
        return {
            "kind": "excluding",
            "of": self.of.to_data(),
            "calendar": self.calendar.to_data(),
            "then": self.then,
        }

    def daily_bound(self) -> float:
        """Return what the timing inside returns."""
        return self.of.daily_bound()

    def _next_open(self, after: datetime) -> datetime | None:
        """Jump over each closed stretch as a whole: the work grows with the stretches only."""
        fire = self.of.next(after)
        while fire is not None and (closed := self.calendar.stretch(fire, self.tz)) is not None:
            fire = self.of.next(closed[1] - MICROSECOND)
        return fire

    def _previous_open(self, before: datetime) -> datetime | None:
        fire = self.of.previous(before)
        while fire is not None and (closed := self.calendar.stretch(fire, self.tz)) is not None:
            fire = self.of.previous(closed[0])
        return fire

    def _next_after_moves(self, after: datetime) -> datetime | None:
        """Look at every original fire time that could come to lie after `after`, and take the earliest."""
        source = self.of.next(self._first_source(after))
        best: datetime | None = None
        while source is not None and not (best is not None and self._settled(best, source)):
            target = self._target(source)
            if target is not None and target > after and (best is None or target < best):
                best = target
            source = self.of.next(source)
        return best

    def _first_source(self, after: datetime) -> datetime:
        """Return an instant before every fire time that could move past `after`."""
        if self.then == "previous":
            return after
        day = self.calendar.local_day(after, self.tz)
        for _ in range(LONGEST_SEARCH):
            day -= ONE_DAY
            if self._clean(day):
                break
        return self.calendar.midnight(day, self.tz) - MICROSECOND

    def _settled(self, best: datetime, source: datetime) -> bool:
        """Return whether neither `source` nor any later fire time can come to lie before `best`."""
        if self.then == "next" or source <= best:
            return source >= best
        day, until = self.calendar.local_day(best, self.tz), self.calendar.local_day(source, self.tz)
        return any(
            self._clean(day + n * ONE_DAY) for n in range(1, min((until - day).days, LONGEST_SEARCH) + 1)
        )

    def _clean(self, day: date) -> bool:
        """Return whether fire times of earlier and later days cannot move across `day`."""
        return self.calendar.business_day(day) and not self.calendar.touched(day, self.tz)

    def _target(self, fire: datetime) -> datetime | None:
        """Return where `fire` goes: itself when it is open, None when no business day is near."""
        if self.calendar.stretch(fire, self.tz) is None:
            return fire
        there = zone(self.tz)
        local = fire.astimezone(there.info)
        clock = local.hour * 3600 + local.minute * 60 + local.second
        step = ONE_DAY if self.then == "next" else -ONE_DAY
        day = local.date()
        for _ in range(LONGEST_SEARCH):
            day += step
            if self.calendar.business_day(day):
                wall = (day.toordinal() - EPOCH_ORDINAL) * DAY_SECONDS + clock
                moved = EPOCH + timedelta(seconds=instant_of(wall, there), microseconds=local.microsecond)
                if self.calendar.stretch(moved, self.tz) is None:
                    return moved
        return None
