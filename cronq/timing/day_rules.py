"""Recurrence rules of weeks, days, hours, minutes and seconds: first the days, then the times in one.

The days are found here, with a bound; python-dateutil, whose search has none, is only asked about one day.
"""

from bisect import bisect_left, bisect_right
from calendar import monthrange
from datetime import datetime, timedelta
from itertools import product
from typing import Any

from dateutil.rrule import WEEKLY

from cronq.timing.rule_text import ANCHOR, UNITS
from cronq.timing.rules import DAY, HORIZON, Ruled, seconds, wall_time
from cronq.timing.wall import NEVER

DAYS_TRIED = 1500
"""How many days that match a rule below a day are looked into: steps of 1,000 units meet each hour then."""


class DayFilter:
    """The BYMONTH, BYMONTHDAY, BYYEARDAY and BYDAY parts of a rule."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._months = frozenset(options.get("bymonth") or range(1, 13))
        self._month_days = frozenset(options.get("bymonthday") or ())
        self._year_days = frozenset(options.get("byyearday") or ())
        self._weekdays = frozenset(getattr(each, "weekday", each) for each in options.get("byweekday") or ())

    def skip(self, day: int) -> int:
        """Return 0 when `day` (since 1970) matches, else in how many days one may match at the earliest."""
        shown = ANCHOR + timedelta(days=day)
        length = monthrange(shown.year, shown.month)[1]
        if shown.month not in self._months:
            return length - shown.day + 1
        return 0 if self._matches(shown, length) else 1

    def _matches(self, shown: datetime, length: int) -> bool:
        if self._weekdays and shown.weekday() not in self._weekdays:
            return False
        if self._month_days and not self._month_days & {shown.day, shown.day - length - 1}:
            return False
        if not self._year_days:
            return True
        of_year = shown.timetuple().tm_yday
        of_length = shown.replace(month=12, day=31).timetuple().tm_yday
        return bool(self._year_days & {of_year, of_year - of_length - 1})


class DayRule(Ruled):
    """A rule of days or weeks."""

    def __init__(self, rule: str, start: datetime, until: datetime | None, removed: frozenset[int]) -> None:
        super().__init__(rule, start, until, removed)
        known = self._rule._original_rule  # noqa: SLF001 - dateutil shows it nowhere else
        options = {name: value for name, value in known.items() if name.startswith("by") and value}
        weekly = self._rule._freq == WEEKLY  # noqa: SLF001 - as above
        if weekly and not {"byweekday", "bymonthday", "byyearday"} & set(options):
            options["byweekday"] = (start.weekday(),)
        self._filter = DayFilter(options)
        first = self._first // DAY
        # Weeks begin on WKST; a period is a run of days, counted from the one that holds the start.
        self._zero = first - (start.weekday() - self._rule._wkst) % 7 if weekly else first  # noqa: SLF001 - as above
        self._length = 7 if weekly else 1
        hours, minutes, ticks = (
            known.get(name) or (value,)
            for name, value in (
                ("byhour", start.hour),
                ("byminute", start.minute),
                ("bysecond", start.second),
            )
        )
        self._times: list[int] = sorted({h * 3600 + m * 60 + s for h, m, s in product(hours, minutes, ticks)})
        self.daily = float(len(self._times))

    def _find_next(self, wall: int) -> int:
        day, rest = divmod(wall, DAY)
        index = bisect_left(self._times, rest)
        if index == len(self._times):
            day, index = day + 1, 0
        end = day + HORIZON * self._interval
        first = day
        while day < end:
            skip = self._off_period(day) or self._filter.skip(day)
            if not skip:
                return day * DAY + self._times[index if day == first else 0]
            day += skip
        return NEVER

    def _find_previous(self, wall: int) -> int:
        day, rest = divmod(wall, DAY)
        index = bisect_right(self._times, rest) - 1
        if index < 0:
            day, index = day - 1, len(self._times) - 1
        last, end = day, max(day - HORIZON * self._interval, self._zero - 1)
        while day > end:
            if not self._off_period(day) and not self._filter.skip(day):
                return day * DAY + self._times[index if day == last else -1]
            day -= 1
        return -NEVER

    def _off_period(self, day: int) -> int:
        """Return 0 when `day` lies in a period that counts, else the days until the next one."""
        cycle = self._length * self._interval
        into = (day - self._zero) % cycle
        return 0 if into < self._length else cycle - into


class SubDayRule(Ruled):
    """A rule of hours, minutes or seconds: interval-like at a DST change."""

    interval = True

    def __init__(self, rule: str, start: datetime, until: datetime | None, removed: frozenset[int]) -> None:
        super().__init__(rule, start, until, removed)
        unit = UNITS[self._rule._freq]  # noqa: SLF001 - dateutil shows it nowhere else
        self._step, self.daily = unit * self._interval, DAY / unit / self._interval
        known = self._rule._original_rule  # noqa: SLF001 - as above
        for finer, divisor in (("byminute", 3600), ("bysecond", 60)):
            if unit >= divisor and known.get(finer):
                self.daily *= len(known[finer])
        self._filter = DayFilter(known)
        # Each search is about one day that matches already.
        days = dict.fromkeys(("bymonth", "bymonthday", "byyearday", "byweekday"))
        self._times: Any = self._rule.replace(**days)

    def _find_next(self, wall: int) -> int:
        day, end, tried = wall // DAY, wall // DAY + HORIZON, 0
        while day < end and tried < DAYS_TRIED:
            skip = self._filter.skip(day)
            if not skip:
                tried += 1
                low = max(wall, day * DAY)
                found = self._in_day(low, (day + 1) * DAY - 1).after(wall_time(low), inc=True)
                if found is not None:
                    return seconds(found)
            day += skip or 1
        return NEVER

    def _find_previous(self, wall: int) -> int:
        tried = 0
        for day in range(wall // DAY, max(wall // DAY - HORIZON, self._first // DAY - 1), -1):
            if not self._filter.skip(day):
                if (tried := tried + 1) > DAYS_TRIED:
                    break
                top = min(wall, (day + 1) * DAY - 1)
                found = self._in_day(max(day * DAY, self._first), top).before(wall_time(top), inc=True)
                if found is not None and found >= wall_time(day * DAY):
                    return seconds(found)
        return -NEVER

    def _in_day(self, low: int, high: int) -> Any:  # noqa: ANN401 - a dateutil rule
        steps = max(low - self._first, 0) // self._step
        start = self._start + timedelta(seconds=steps * self._step)
        return self._times.replace(dtstart=start, until=wall_time(high))
