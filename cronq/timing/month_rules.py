"""Recurrence rules of months and years, evaluated by python-dateutil within a bound that it lacks.

dateutil looks for a match until the year 9999, even past UNTIL. Our calendar repeats every 400 years
to the weekday, so each search is moved forward by a multiple of 400 years, as far as it goes: then the end of
dateutil's calendar is a few centuries away, and a rule that never matches costs milliseconds.
"""

from datetime import MAXYEAR, datetime
from typing import Any

from dateutil.rrule import MONTHLY, YEARLY, rrule

from cronq.timing.rules import DAY, HORIZON, Ruled, seconds, wall_time
from cronq.timing.wall import NEVER

CYCLE = 400
LATEST = datetime(MAXYEAR, 12, 31, 23, 59, 59)  # noqa: DTZ001 - a wall clock


class MonthRule(Ruled):
    """A rule of months or years."""

    def __init__(self, rule: str, start: datetime, until: datetime | None, removed: frozenset[int]) -> None:
        super().__init__(rule, start, until, removed)
        self._frequency = self._rule._freq  # noqa: SLF001 - dateutil shows it nowhere else
        self._options = _explicit(self._rule, start)
        self.daily = float(_times(self._options))

    def _find_next(self, wall: int) -> int:
        base = self._base(wall)
        shift = _shift(base)
        found = self._from(base, shift).after(_moved(wall_time(wall), shift), inc=True)
        return NEVER if found is None else seconds(_moved(found, -shift))

    def _find_previous(self, wall: int) -> int:
        reach = 31
        while True:
            base = self._base(wall - reach * self._interval * DAY)
            shift = _shift(base)
            found = self._from(base, shift).before(_moved(wall_time(wall), shift), inc=True)
            if found is not None:
                return seconds(_moved(found, -shift))
            if base <= self._start or reach > HORIZON:
                return -NEVER
            reach *= 8

    def _from(self, base: datetime, shift: int) -> Any:  # noqa: ANN401 - a dateutil rule
        return rrule(self._frequency, dtstart=_moved(base, shift), interval=self._interval, **self._options)

    def _base(self, wall: int) -> datetime:
        """Return the start of a period of the rule that is not after `wall` and not before its start."""
        if wall <= self._first:
            return self._start
        there, start = wall_time(wall), self._start
        if self._frequency == YEARLY:
            moved = datetime(there.year - (there.year - start.year) % self._interval, 1, 1)  # noqa: DTZ001
        else:
            months = there.year * 12 + there.month - 1
            months -= (months - start.year * 12 - start.month + 1) % self._interval
            moved = datetime(months // 12, months % 12 + 1, 1)  # noqa: DTZ001
        return max(moved, start)


def _shift(base: datetime) -> int:
    """Return by how many years to move a search from `base`, so that it ends soon."""
    return (MAXYEAR - base.year - 60) // CYCLE * CYCLE


def _moved(wall: datetime, years: int) -> datetime:
    """Return the same day and time `years` (a multiple of 400) later, or the end of the calendar."""
    return LATEST if wall.year + years > MAXYEAR else wall.replace(year=wall.year + years)


def _times(options: dict[str, Any]) -> int:
    return len(options["byhour"]) * len(options["byminute"]) * len(options["bysecond"])


def _explicit(rule: Any, start: datetime) -> dict[str, Any]:  # noqa: ANN401 - a dateutil rule
    """Return the BY… parts of a rule with those written out that its start implies."""
    known = rule._original_rule  # noqa: SLF001 - dateutil shows it nowhere else
    options = {name: value for name, value in known.items() if name.startswith("by") and value}
    if not {"byweekno", "byyearday", "bymonthday", "byweekday"} & set(options):
        options["bymonthday"] = (start.day,)
        if rule._freq != MONTHLY and "bymonth" not in options:  # noqa: SLF001 - as above
            options["bymonth"] = (start.month,)
    for name, value in (("byhour", start.hour), ("byminute", start.minute), ("bysecond", start.second)):
        options[name] = tuple(known.get(name) or (value,))
    options["wkst"] = rule._wkst  # noqa: SLF001 - as above
    return options
